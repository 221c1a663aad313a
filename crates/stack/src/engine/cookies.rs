//! Handshakes of which the stack keeps nothing, while a listener has too many that have not ended.
//!
//! A flood of first segments from made-up addresses fills each table of half-open connections, and
//! then keeps true clients out. When the listener's table is full, the stack answers a first
//! segment with a *cookie*: the sequence number of its answer is a keyed hash of the connection,
//! the peer's number, the time, and what the peer's options say. A client that acknowledges the
//! number has heard the answer, so the address is its own, and all that the stack has to know is in
//! the segment: the connection gets its socket then (`admission.rs`).
//!
//! ```text
//!   31          8   7    6  5    4    3 2 1 0
//!   [ 24 of hash ] [time] [size] [SACK] [shift]
//! ```
//! `size` is the number of the largest segment in [`SIZES`], rounded down, and `shift` is 15 if the
//! peer does not scale its windows. The hash covers these bits and the whole count of periods, so a
//! cookie is right for one period to two. One guess in 2^24 hits, while cookies are out at all.

use super::workshop::before;
use crate::flow::{OpeningOptions, SocketPair, StackSegment};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::TcpSeqNumber;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How long the bit of the time stays.
const PERIOD: Duration = Duration::from_secs(64);
/// The largest segments that a cookie can tell.
pub(super) const SIZES: [u16; 4] = [536, 1220, 1440, 1460];
/// In place of a shift.
const NO_SHIFT: u8 = 15;

/// The key of the cookies of a stack, and whether any are out.
pub(super) struct SynCookies {
    key: u64,
    /// When the last one went.
    last: Option<Instant>,
}

impl SynCookies {
    pub(super) fn new(key: u64) -> SynCookies {
        SynCookies { key, last: None }
    }

    /// The cookie of a connection with these low bits, in this period.
    fn cookie(&self, flow: SocketPair, peers: TcpSeqNumber, low: u8, period: i64) -> TcpSeqNumber {
        let mut hash = DefaultHasher::new();
        (self.key, flow.local, flow.peer, peers.0, low, period).hash(&mut hash);
        TcpSeqNumber((hash.finish() as u32 & !0xFF | u32::from(low)) as i32)
    }

    /// The number of the answer to a peer's first segment.
    pub(super) fn issue(&mut self, flow: SocketPair, head: &StackSegment, now: Instant) -> TcpSeqNumber {
        self.last = Some(now);
        let OpeningOptions { largest, shift, selects } = head.opening;
        let size = SIZES.iter().rposition(|size| largest.is_some_and(|most| most >= *size)).unwrap_or(0);
        let period = period_of(now);
        let time = (period & 1) as u8;
        let low = time << 7 | (size as u8) << 5 | u8::from(selects) << 4 | shift.unwrap_or(NO_SHIFT);
        self.cookie(flow, head.sequence, low, period)
    }

    /// Whether a client may have a cookie.
    pub(super) fn are_out(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now < last + PERIOD * 2)
    }

    /// What a cookie says of its peer's first segment, if the segment `head` brings one back.
    pub(super) fn verify(
        &self,
        flow: SocketPair,
        head: &StackSegment,
        now: Instant,
    ) -> Option<OpeningOptions> {
        let out = self.are_out(now);
        let cookie = head.acknowledges.filter(|_| out && !head.synchronizes && !head.resets)?;
        let cookie = before(cookie);
        let low = cookie.0 as u8;
        let (current, time) = (period_of(now), i64::from(low >> 7));
        let period = if current & 1 == time { current } else { current - 1 };
        if self.cookie(flow, before(head.sequence), low, period) != cookie {
            return None;
        }
        let shift = Some(low & 15).filter(|shift| *shift != NO_SHIFT);
        let largest = Some(SIZES[usize::from(low >> 5 & 3)]);
        Some(OpeningOptions { largest, shift, selects: low >> 4 & 1 == 1 })
    }
}

fn period_of(now: Instant) -> i64 {
    now.total_micros() / PERIOD.total_micros() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening_segment(opening: OpeningOptions) -> StackSegment {
        StackSegment {
            sequence: TcpSeqNumber(-7),
            acknowledges: None,
            length: 1,
            window: 1000,
            selected: [None; 3],
            synchronizes: true,
            opening,
            ends: false,
            resets: false,
        }
    }

    /// The segment that acknowledges a cookie.
    fn brings(cookie: TcpSeqNumber) -> StackSegment {
        let head = opening_segment(OpeningOptions::default());
        StackSegment {
            sequence: head.sequence + 1,
            acknowledges: Some(cookie + 1),
            length: 0,
            synchronizes: false,
            ..head
        }
    }

    #[test]
    fn a_cookie_tells_what_the_peer_said_for_a_period_at_least_and_two_at_most() {
        let flow = SocketPair { local: "10.0.0.2:80".parse().unwrap(), peer: "10.0.0.1:7".parse().unwrap() };
        let other = SocketPair { peer: "10.0.0.1:8".parse().unwrap(), ..flow };
        let mut cookies = SynCookies::new(1);
        let (sizes, shifts) =
            ([None, Some(100), Some(1219), Some(1460), Some(9000)], [None, Some(0), Some(14)]);
        for (step, largest) in sizes.into_iter().enumerate() {
            for (shift, selects) in shifts.into_iter().zip([true, false, true]) {
                let now = Instant::from_secs(1000 + 37 * step as i64);
                let cookie =
                    cookies.issue(flow, &opening_segment(OpeningOptions { largest, shift, selects }), now);
                let told = cookies.verify(flow, &brings(cookie), now + PERIOD).unwrap();
                let rounded = [536, 536, 536, 1460, 1460][step];
                assert_eq!(told, OpeningOptions { largest: Some(rounded), shift, selects });
                assert_eq!(cookies.verify(other, &brings(cookie), now), None);
                assert_eq!(cookies.verify(flow, &brings(cookie + 256), now), None);
                assert_eq!(SynCookies { key: 2, ..cookies }.verify(flow, &brings(cookie), now), None);
                assert_eq!(cookies.verify(flow, &brings(cookie), now + PERIOD * 2), None);
            }
        }
        let at_rest = SynCookies::new(1);
        let now = Instant::from_secs(1000);
        let cookie = cookies.issue(flow, &opening_segment(OpeningOptions::default()), now);
        assert_eq!(at_rest.verify(flow, &brings(cookie), now), None, "none is out");
    }
}
