//! [`Shelf`]: which blocks stay in memory when there is no room for all.
//!
//! The rule is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP
//! 2023). A new block goes to the end of the queue `young`, which may have a tenth of the room. The
//! block at the front of `young` goes over to the queue `old` if it was asked for twice meanwhile.
//! Otherwise it leaves, and [`Ghosts`] keeps its key for a while. A block that comes back while
//! `Ghosts` has its key goes to `old` at once. The block at the front of `old` goes to the end of
//! `old` as often as it was asked for, at most three times, and then leaves.
//!
//! So a client that reads a large site from one end to the other gets blocks into `young` only, and
//! drives no block out that others ask for again. A hit moves nothing.
//!
//! `block_cache.rs` has one behind its lock. The `Shelf` makes no system call.

use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

/// The part of the room that `young` may have while `old` has blocks: one in this number.
const YOUNG_SHARE: usize = 10;

/// A block is asked for more often than this before it goes from `young` to `old`. A read ahead is
/// asked for once, by the reply that it was made for.
const YOUNG_USES: u8 = 1;

/// More uses than this are not counted.
const USES_MAX: u8 = 3;

/// Values with keys, which take a bounded number of bytes.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    held: HashMap<K, ShelvedValue<V>, RandomState>,
    /// The keys of values that are new, the oldest first.
    young: VecDeque<K>,
    /// The keys of values that were asked for again, in the order in which they are examined.
    old: VecDeque<K>,
    young_bytes: usize,
    bytes: usize,
    bytes_max: usize,
    ghosts: Ghosts,
}

#[derive(Debug)]
struct ShelvedValue<V> {
    value: V,
    bytes: usize,
    uses: u8,
}

impl<K: Copy + Eq + Hash, V> Shelf<K, V> {
    /// An empty shelf for `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Shelf<K, V> {
        Shelf {
            held: HashMap::default(),
            young: VecDeque::new(),
            old: VecDeque::new(),
            young_bytes: 0,
            bytes: 0,
            bytes_max,
            ghosts: Ghosts::default(),
        }
    }

    /// The bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the value with this key is here. This does not count as a use.
    pub(super) fn has(&self, key: &K) -> bool {
        self.held.contains_key(key)
    }

    /// The value with this key.
    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        let shelved = self.held.get_mut(key)?;
        shelved.uses = (shelved.uses + 1).min(USES_MAX);
        Some(&shelved.value)
    }

    /// Adds a value that takes `bytes`. The values that leave for it go to `evicted`. A value that
    /// takes more than the whole room is not kept, nor a second one with the same key.
    pub(super) fn insert(&mut self, key: K, value: V, bytes: usize, evicted: &mut Vec<V>) {
        if bytes > self.bytes_max || self.has(&key) {
            return;
        }
        let is_known = self.ghosts.take(self.hash(&key));
        while self.bytes + bytes > self.bytes_max
            && let Some(value) = self.evict()
        {
            evicted.push(value);
        }
        self.bytes += bytes;
        self.held.insert(key, ShelvedValue { value, bytes, uses: 0 });
        if is_known {
            self.old.push_back(key);
        } else {
            self.young_bytes += bytes;
            self.young.push_back(key);
        }
    }

    /// Makes the room `bytes_max` bytes large. The values that have no room any more go to
    /// `evicted`.
    pub(super) fn resize(&mut self, bytes_max: usize, evicted: &mut Vec<V>) {
        self.bytes_max = bytes_max;
        while self.bytes > self.bytes_max
            && let Some(value) = self.evict()
        {
            evicted.push(value);
        }
    }

    /// Takes the value out that has to leave first; `None` if there is none.
    fn evict(&mut self) -> Option<V> {
        loop {
            let is_young = self.young_bytes > self.bytes_max / YOUNG_SHARE || self.old.is_empty();
            let queue = if is_young { &mut self.young } else { &mut self.old };
            let key = queue.pop_front()?;
            let shelved = self.held.get_mut(&key).expect("a key is in a queue while its value is held");
            if is_young {
                self.young_bytes -= shelved.bytes;
            }
            let stays = if is_young { shelved.uses > YOUNG_USES } else { shelved.uses > 0 };
            if stays {
                shelved.uses = if is_young { 0 } else { shelved.uses - 1 };
                self.old.push_back(key);
                continue;
            }
            let ShelvedValue { value, bytes, .. } = self.held.remove(&key)?;
            self.bytes -= bytes;
            if is_young {
                self.ghosts.push(self.hash(&key), bytes, self.bytes_max);
            }
            return Some(value);
        }
    }

    fn hash(&self, key: &K) -> u64 {
        self.held.hasher().hash_one(key)
    }
}

/// The keys of values that have left `young`, as hashes. Two keys with one hash cost a worse choice
/// and nothing else.
#[derive(Debug, Default)]
struct Ghosts {
    /// The number of the last entry in `queue` with this hash.
    last: HashMap<u64, u64, RandomState>,
    /// Number, hash and bytes, the oldest first.
    queue: VecDeque<(u64, u64, usize)>,
    bytes: usize,
    number: u64,
}

impl Ghosts {
    /// Adds a key. The keys of the last `bytes_max` bytes are kept.
    fn push(&mut self, hash: u64, bytes: usize, bytes_max: usize) {
        self.number += 1;
        self.last.insert(hash, self.number);
        self.queue.push_back((self.number, hash, bytes));
        self.bytes += bytes;
        while self.bytes > bytes_max
            && let Some((number, hash, bytes)) = self.queue.pop_front()
        {
            self.bytes -= bytes;
            if self.last.get(&hash) == Some(&number) {
                self.last.remove(&hash);
            }
        }
    }

    /// Takes a key out. Returns whether it was there.
    fn take(&mut self, hash: u64) -> bool {
        self.last.remove(&hash).is_some()
    }
}

#[cfg(test)]
mod tests;
