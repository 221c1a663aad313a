//! Rates and connections by address, in a table with a bound.
//!
//! [`Limiter`] is a token bucket for each address: a bucket holds up to `burst` tokens, gains
//! `per_second` of them, and each request takes one. The table has a fixed number of entries in
//! sets of eight. An address that finds its set full takes the entry that is nearest to full, which
//! loses least: that bucket would have refused nothing for the longest time. So a flood from many
//! addresses takes no memory. [`OpenCounts`] counts what is open by address, with the same bound.
//!
//! Time is given by the caller, in nanoseconds from any start.

use crate::network::bits;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

/// How often one address may ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second over a long time.
    pub per_second: f64,
    /// Requests at once after a pause.
    pub burst: u32,
}

/// Entries of one set.
const WAYS: usize = 8;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// The part of an address that is counted as one client: all of an IPv4 address, and the first 64
/// bits of an IPv6 address, because a client has as many addresses below them as it likes.
fn client(address: IpAddr) -> u128 {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => bits(address),
        address @ IpAddr::V6(_) => bits(address) & !u128::from(u64::MAX),
    }
}

/// Token buckets by address.
#[derive(Debug)]
pub struct Limiter {
    rate: Rate,
    sets: Vec<[Bucket; WAYS]>,
    hash: RandomState,
}

/// `full_at` is the time at which the bucket is full if nothing is taken: the whole state.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    client: u128,
    full_at: u64,
}

impl Limiter {
    /// Buckets for at least `addresses` addresses, of 32 bytes each.
    pub fn new(rate: Rate, addresses: usize) -> Limiter {
        let sets = addresses.div_ceil(WAYS).next_power_of_two();
        Limiter { rate, sets: vec![[Bucket::default(); WAYS]; sets], hash: RandomState::new() }
    }

    /// Takes a token for a request of `address` at `now`.
    ///
    /// # Errors
    /// The seconds after which the address has a token again, at least 1: the value of
    /// `Retry-After`.
    ///
    /// # Complexity
    /// Constant, without allocation.
    pub fn take(&mut self, address: IpAddr, now: u64) -> Result<(), u64> {
        let client = client(address);
        let set = self.hash.hash_one(client) as usize & (self.sets.len() - 1);
        let set = &mut self.sets[set];
        let bucket = match set.iter().position(|bucket| bucket.client == client) {
            Some(found) => &mut set[found],
            None => {
                let bucket = set.iter_mut().min_by_key(|bucket| bucket.full_at).expect("a set has entries");
                *bucket = Bucket { client, full_at: now };
                bucket
            }
        };
        let token = (SECOND / self.rate.per_second) as u64;
        let full_at = bucket.full_at.max(now) + token;
        let most = token.saturating_mul(u64::from(self.rate.burst.max(1)));
        match (full_at - now).saturating_sub(most) {
            0 => {
                bucket.full_at = full_at;
                Ok(())
            }
            missing => Err((missing as f64 / SECOND).ceil().max(1.0) as u64),
        }
    }
}

/// The number of things that are open by address, such as connections.
#[derive(Debug)]
pub struct OpenCounts {
    most: u32,
    entries_max: usize,
    open: std::collections::HashMap<u128, u32>,
}

impl OpenCounts {
    /// At most `most` for each address, and at most `addresses` addresses at a time.
    pub fn new(most: u32, addresses: usize) -> OpenCounts {
        OpenCounts { most, entries_max: addresses, open: std::collections::HashMap::new() }
    }

    /// At most `most` for each address from now on. An address that has more keeps them.
    pub fn set_most(&mut self, most: u32) {
        self.most = most;
    }

    /// Counts one for `address`. False if it has as many as it may, or if the table is full.
    pub fn open(&mut self, address: IpAddr) -> bool {
        let client = client(address);
        let room = self.open.len() < self.entries_max;
        match self.open.entry(client) {
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let is_below = *entry.get() < self.most;
                *entry.get_mut() += u32::from(is_below);
                is_below
            }
            std::collections::hash_map::Entry::Vacant(entry) if room && self.most > 0 => {
                entry.insert(1);
                true
            }
            std::collections::hash_map::Entry::Vacant(_) => false,
        }
    }

    /// Takes one off that was counted for `address`.
    pub fn close(&mut self, address: IpAddr) {
        let client = client(address);
        if let Some(count) = self.open.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::net::Ipv4Addr;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(n).into()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut limiter = Limiter::new(Rate { per_second: 2.0, burst: 3 }, 8);
        let now = 5_000_000_000;
        let taken: Vec<bool> = (0..5).map(|_| limiter.take(address(1), now).is_ok()).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert_eq!(limiter.take(address(1), now), Err(1));
        assert!(limiter.take(address(2), now).is_ok(), "another address has a bucket of its own");
        assert!(limiter.take(address(1), now + 500_000_000).is_ok());
        assert!(limiter.take(address(1), now + 500_000_000).is_err());
    }

    #[test]
    fn an_ipv6_client_has_one_bucket_for_its_network() {
        let mut limiter = Limiter::new(Rate { per_second: 0.1, burst: 1 }, 8);
        assert!(limiter.take("2001:db8::1".parse().unwrap(), 0).is_ok());
        assert_eq!(limiter.take("2001:db8::2".parse().unwrap(), 0), Err(10));
        assert!(limiter.take("2001:db8:0:1::1".parse().unwrap(), 0).is_ok());
    }

    #[test]
    fn a_flood_of_addresses_does_not_free_the_one_that_asks_most() {
        let mut limiter = Limiter::new(Rate { per_second: 1.0, burst: 100 }, 8);
        for _ in 0..100 {
            limiter.take(address(1), 0).unwrap();
        }
        for n in 2..10_000 {
            limiter.take(address(n), 0).unwrap();
        }
        assert!(limiter.take(address(1), 0).is_err());
    }

    #[test]
    fn counts() {
        let mut counts = OpenCounts::new(2, 2);
        assert!(counts.open(address(1)) && counts.open(address(1)) && !counts.open(address(1)));
        assert!(counts.open(address(2)) && !counts.open(address(3)), "the table is full");
        counts.close(address(2));
        assert!(counts.open(address(3)));
        counts.close(address(1));
        assert!(counts.open(address(1)));
        counts.set_most(1);
        counts.close(address(1));
        assert!(!counts.open(address(1)), "it has as many as it may by now");
        counts.set_most(2);
        assert!(counts.open(address(1)) && !counts.open(address(1)));
    }

    proptest! {
        /// While there is room for all addresses, it is a bucket for each: tokens that are counted.
        #[test]
        fn buckets(requests in prop::collection::vec((0u32..4, 0u64..3), 0..60), burst in 1u32..4) {
            let mut limiter = Limiter::new(Rate { per_second: 1.0, burst }, 256);
            let mut tokens: HashMap<u32, (u64, u64)> = HashMap::new();
            let mut second = 0;
            for (n, pause) in requests {
                second += pause;
                let (left, last) = tokens.entry(n).or_insert((u64::from(burst), second));
                *left = (*left + second - *last).min(u64::from(burst));
                *last = second;
                let taken = limiter.take(address(n + 1), second * 1_000_000_000);
                prop_assert_eq!(taken.is_ok(), *left > 0);
                *left -= u64::from(*left > 0);
            }
        }
    }
}
