//! The events of the calendar, and their times: every `Happening` is entered here (`enter`,
//! `later`) and happens here (`happen`).
//!
//! `sockets.rs`, `datagrams.rs` and `pipes.rs` enter what is to come; `readiness.rs` and
//! `arrivals.rs` take an entry out and call `happen`. Bytes of one stream never overtake each
//! other, because `arrival` gives no time before that of the bytes sent before.

use super::*;

impl Kernel {
    pub(super) fn drawn(&mut self, range: Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos() as u64;
        range.start + Duration::from_nanos(self.random.below(span.max(1)))
    }

    pub(super) fn enter(&mut self, at: Time, what: Happening) {
        self.entries += 1;
        self.calendar.push(Reverse(CalendarEntry { at, number: self.entries, what }));
    }

    pub(super) fn later(&mut self, what: Happening) {
        let range = self.conditions.delay.clone();
        let at = Time::now() + self.drawn(range);
        self.enter(at, what);
    }

    /// The time at which bytes that are sent now arrive: not before the bytes that were sent
    /// before.
    pub(super) fn arrival(&mut self, to: Id, bytes: usize) -> Time {
        let range = self.conditions.delay.clone();
        let mut at = Time::now() + self.drawn(range);
        let stalls = self.random.happens(self.conditions.stalled);
        let stall = if stalls {
            self.drawn(Duration::from_secs(1)..Duration::from_secs(120))
        } else {
            Duration::ZERO
        };
        if let Some(stream) = self.stream(to) {
            stream.stalled = stream.stalled.max(if stalls { at + stall } else { Time::default() });
            at = at.max(stream.arrives).max(stream.stalled);
            stream.arrives = at;
            stream.on_the_way += bytes;
        }
        at
    }

    /// Sends a stream the end of its bytes.
    pub(super) fn end(&mut self, to: Id) {
        let at = self.arrival(to, 0);
        self.enter(at, Happening::End { to });
    }

    pub(super) fn reset(&mut self, to: Id) {
        let at = self.arrival(to, 0);
        self.enter(at, Happening::Reset { to });
    }

    /// Lets an entry of the calendar happen.
    pub(super) fn happen(&mut self, what: Happening) {
        match what {
            Happening::Knock { from, tries } => self.knock(from, tries),
            Happening::Connected { to } => {
                self.note(u64::from(to) | 1 << 40);
                if let Some(stream) = self.stream(to)
                    && stream.state == StreamState::Connecting
                {
                    stream.state = StreamState::Connected;
                    self.edge(to);
                }
            }
            Happening::Refused { to, errno } => self.break_off(to, errno),
            Happening::Segment { to, from, bytes } => {
                self.note(u64::from(to) << 32 | bytes.len() as u64 | 3 << 30);
                let Some(stream) = self.stream(to) else { return self.reset(from) };
                stream.on_the_way -= bytes.len();
                if stream.state == StreamState::Connected {
                    stream.arrived.extend_from_slice(&bytes);
                    self.edge(to);
                }
            }
            Happening::End { to } => {
                self.note(u64::from(to) | 2 << 40);
                if let Some(stream) = self.stream(to)
                    && stream.state == StreamState::Connected
                {
                    stream.ended = true;
                    self.edge(to);
                }
            }
            Happening::Reset { to } => self.break_off(to, Errno::CONNRESET),
            Happening::Datagram { from, to, bytes } => self.datagram(from, to, bytes),
            Happening::Unreachable { from, to } => self.unreachable(from, to),
            Happening::DatagramRoom { to } => self.datagram_room(to),
            Happening::PipeRoom { pipe } => self.pipe_room(pipe),
            Happening::Room { to } => {
                let Some(stream) = self.stream(to) else { return };
                stream.full = false;
                stream.room_comes = false;
                let (peer, wanted) = (stream.peer, stream.wants_room);
                let room = self.stream(peer).map_or(usize::MAX, |peer| peer.room());
                if wanted && room > 0 {
                    self.stream(to).expect("as above").wants_room = false;
                    self.edge(to);
                }
            }
        }
    }

    pub(super) fn break_off(&mut self, id: Id, errno: Errno) {
        self.note(u64::from(id) | 3 << 40);
        if let Some(stream) = self.stream(id)
            && stream.state != StreamState::Broken
        {
            // A program that has read the end learns from this only that writing is over.
            stream.error = Some(errno);
            stream.state = StreamState::Broken;
            self.edge(id);
        }
    }

    /// A client's request to be connected arrives.
    pub(super) fn knock(&mut self, from: Id, tries: u32) {
        let window = self.window();
        let Some(client) = self.stream(from) else { return };
        let (client_name, server_name) = (client.local.clone(), client.remote.clone());
        let refused = self.random.happens(self.conditions.refused);
        let Some(listener) = self.listener(&server_name).filter(|_| !refused) else {
            return self.later(Happening::Refused { to: from, errno: Errno::CONNREFUSED });
        };
        let server = StreamSocket::new(server_name, client_name, from, StreamState::Connected, window);
        let server = self.add(ObjectKind::Stream(Box::new(server)));
        if !self.enqueue(listener, server) {
            self.objects[server as usize] = None;
            let (at, what) = match tries < KNOCKS_MAX {
                true => (KNOCK_AGAIN * (1 << (tries - 1)), Happening::Knock { from, tries: tries + 1 }),
                false => (KNOCK_AGAIN, Happening::Refused { to: from, errno: Errno::TIMEDOUT }),
            };
            return self.enter(Time::now() + at, what);
        }
        self.stream(from).expect("as above").peer = server;
        let at = self.arrival(from, 0);
        self.enter(at, Happening::Connected { to: from });
        if self.random.happens(self.conditions.reset) {
            let range = Duration::ZERO..self.conditions.delay.end * 20;
            for to in [from, server] {
                let at = Time::now() + self.drawn(range.clone());
                self.enter(at, Happening::Reset { to });
            }
        }
    }
}
