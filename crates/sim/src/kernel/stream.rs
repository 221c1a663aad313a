//! [`StreamSocket`]: one end of a connection, with its window and the bytes that have arrived.

use super::id::Id;
use super::socket_name::SocketName;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use selvedge_core::Time;

#[derive(Debug)]
pub(super) struct StreamSocket {
    pub(super) local: SocketName,
    pub(super) remote: SocketName,
    pub(super) peer: Id,
    pub(super) state: StreamState,
    /// The bytes that have arrived. `read` of them were read already.
    pub(super) arrived: Vec<u8>,
    pub(super) read: usize,
    /// How many bytes may be unread here and on the way here, together.
    pub(super) window: usize,
    pub(super) on_the_way: usize,
    /// When the last of the bytes on the way here arrives.
    pub(super) arrives: Time,
    /// Until this time no byte on the way here arrives.
    pub(super) stalled: Time,
    /// The end of the peer's bytes has arrived.
    pub(super) ended: bool,
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    pub(super) error: Option<Errno>,
    /// A send found no room, so an edge must follow when there is room.
    pub(super) wants_room: bool,
    /// The stream takes no bytes to send until a `Room` happens.
    pub(super) full: bool,
    pub(super) room_comes: bool,
    pub(super) lingers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    Connecting,
    Connected,
    /// The connection was reset or refused, or never came about.
    Broken,
}

impl StreamSocket {
    pub(super) fn new(
        local: SocketName,
        remote: SocketName,
        peer: Id,
        state: StreamState,
        window: usize,
    ) -> StreamSocket {
        StreamSocket {
            local,
            remote,
            peer,
            state,
            arrived: Vec::new(),
            read: 0,
            window,
            on_the_way: 0,
            arrives: Time::default(),
            stalled: Time::default(),
            ended: false,
            read_shut: false,
            write_shut: false,
            error: None,
            wants_room: false,
            full: false,
            room_comes: false,
            lingers: false,
        }
    }

    /// How many bytes its peer may send to it.
    pub(super) fn room(&self) -> usize {
        self.window.saturating_sub(self.unread() + self.on_the_way)
    }

    pub(super) fn unread(&self) -> usize {
        self.arrived.len() - self.read
    }

    pub(super) fn take(&mut self, most: usize) -> Vec<u8> {
        let taken = self.arrived[self.read..][..most.min(self.unread())].to_vec();
        self.read += taken.len();
        if self.read == self.arrived.len() {
            self.arrived.clear();
            self.read = 0;
        }
        taken
    }

    pub(super) fn flags(&self, has_room: bool) -> EventFlags {
        match self.state {
            StreamState::Connecting => EventFlags::empty(),
            StreamState::Broken => {
                let error = if self.error.is_some() { EventFlags::ERR } else { EventFlags::empty() };
                EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::HUP | error
            }
            StreamState::Connected => {
                let mut flags = EventFlags::empty();
                let ended = self.ended || self.read_shut;
                flags.set(EventFlags::IN, ended || self.unread() > 0);
                flags.set(EventFlags::RDHUP, ended);
                flags.set(EventFlags::OUT, has_room || self.write_shut);
                flags.set(EventFlags::HUP, ended && self.write_shut);
                flags
            }
        }
    }
}
