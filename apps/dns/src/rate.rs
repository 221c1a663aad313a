//! [`RateLimit`]: how often the server answers the hosts of one network over UDP.
//!
//! The sender's address of a datagram is easily forged. A server that answers each query sends its
//! answers, which are longer, to the host that an attacker names. So each prefix of addresses has a
//! rate. Of the queries above it, one in two gets no answer. The other one gets an empty answer
//! that says "truncated", and a client that is no forgery asks again over TCP.

use crate::networks::prefix;
use selvedge::Time;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many rates are kept. Two prefixes with the same slot share one: the memory is bounded, and
/// an attacker cannot choose the slot because the hash has a secret.
const SLOTS: usize = 1 << 16;

/// How much a prefix may be ahead of its rate, in nanoseconds.
const BURST: u64 = 1_000_000_000;

/// What the server does with a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The server answers it.
    Answer,
    /// The server sends an empty answer that is marked as truncated.
    Truncate,
    /// The server sends nothing.
    Drop,
}

/// The rates of all prefixes, as the generic cell rate algorithm keeps them: a slot has the time at
/// which the answers given so far would all be due, in nanoseconds.
#[derive(Debug)]
pub struct RateLimit {
    /// Nanoseconds from one answer to the next; 0 for no limit.
    interval: u64,
    slots: Box<[AtomicU64]>,
    hash: RandomState,
    refused: AtomicU32,
}

impl RateLimit {
    /// A limit of this number of answers a second for each prefix. With 0 there is no limit.
    pub fn new(per_second: u32) -> RateLimit {
        let slots = if per_second == 0 { 0 } else { SLOTS };
        RateLimit {
            interval: 1_000_000_000_u64.checked_div(per_second.into()).unwrap_or(0),
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            hash: RandomState::new(),
            refused: AtomicU32::new(0),
        }
    }

    /// Counts a query of a client, and says what becomes of it.
    pub fn pace(&self, client: IpAddr, now: Time) -> Pace {
        if self.interval == 0 {
            return Pace::Answer;
        }
        let slot = self.hash.hash_one(prefix(client)) as usize % SLOTS;
        let now = now.as_nanos();
        // Relaxed: the number alone counts, and it guards nothing else.
        let counted = self.slots[slot].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| {
            let due = due.max(now) + self.interval;
            (due <= now + BURST.max(self.interval)).then_some(due)
        });
        match counted {
            Ok(_) => Pace::Answer,
            Err(_) if self.refused.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => Pace::Truncate,
            Err(_) => Pace::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_second_of_answers_and_then_the_rate() {
        let limit = RateLimit::new(10);
        let client = "203.0.113.1".parse().unwrap();
        let neighbour = "203.0.113.2".parse().unwrap();
        let answered = (0..100).filter(|_| limit.pace(client, at(5000)) == Pace::Answer).count();
        assert_eq!(answered, 10);
        assert_ne!(limit.pace(neighbour, at(5000)), Pace::Answer);
        // 100 ms later there is one more.
        assert_eq!(limit.pace(neighbour, at(5100)), Pace::Answer);
        assert_ne!(limit.pace(client, at(5100)), Pace::Answer);
        assert_eq!((0..20).filter(|_| limit.pace(client, at(9000)) == Pace::Answer).count(), 10);
    }

    #[test]
    fn every_other_refused_query_is_told() {
        let limit = RateLimit::new(1);
        let client = "2001:db8::1".parse().unwrap();
        let paces: Vec<Pace> = (0..5).map(|_| limit.pace(client, at(1))).collect();
        assert_eq!(paces, [Pace::Answer, Pace::Truncate, Pace::Drop, Pace::Truncate, Pace::Drop]);
    }

    #[test]
    fn no_limit_counts_nothing() {
        let limit = RateLimit::new(0);
        let client = "203.0.113.1".parse().unwrap();
        assert!((0..10_000).all(|_| limit.pace(client, at(1)) == Pace::Answer));
    }
}
