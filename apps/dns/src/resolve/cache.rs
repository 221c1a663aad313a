//! [`Cache`]: what other servers have said, for as long as they allow, in a bounded memory.
//!
//! The resolver keeps two of them: answers to questions, and servers of zones. When a new entry
//! has no room, the entries go that were not asked for the longest time.

use crate::record::NameKey;
use domain::base::Rtype;
use selvedge::Time;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What an entry takes beside its value: two keys in two maps, and what allocators add.
const ENTRY_BYTES: usize = 256;

/// A question: a name and a type of records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The name.
    pub name: NameKey,
    /// The type.
    pub rtype: Rtype,
}

/// Values with a time to live, of a bounded number of bytes.
#[derive(Debug)]
pub struct Cache<V> {
    entries: HashMap<Arc<CacheKey>, Entry<V>>,
    /// The keys by their last use.
    uses: BTreeMap<u64, Arc<CacheKey>>,
    /// The number of uses so far.
    clock: u64,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    stored: Time,
    seconds: u32,
    bytes: usize,
    last_use: u64,
}

impl<V: Clone> Cache<V> {
    /// An empty cache of at most this number of bytes.
    pub fn new(bytes_max: usize) -> Cache<V> {
        Cache { entries: HashMap::new(), uses: BTreeMap::new(), clock: 0, bytes: 0, bytes_max }
    }

    /// A value that is not too old, with its age in whole seconds.
    ///
    /// # Complexity
    /// O(log n).
    pub fn get(&mut self, key: &CacheKey, now: Time) -> Option<(V, u32)> {
        let entry = self.entries.get_mut(key)?;
        let age = now.since(entry.stored);
        if age >= Duration::from_secs(entry.seconds.into()) {
            self.remove(key);
            return None;
        }
        let key = self.uses.remove(&entry.last_use).expect("each entry has a last use");
        self.clock += 1;
        entry.last_use = self.clock;
        self.uses.insert(self.clock, key);
        // Below the number of seconds, which is a `u32`.
        Some((entry.value.clone(), age.as_secs() as u32))
    }

    /// Stores a value of about `bytes` bytes for a number of seconds, in place of an older one. A
    /// value of no seconds, or one that is too large for the cache, is not stored.
    ///
    /// # Complexity
    /// O(log n), and the same for each entry that goes.
    pub fn insert(&mut self, key: CacheKey, value: V, seconds: u32, bytes: usize, now: Time) {
        self.remove(&key);
        let bytes = bytes + ENTRY_BYTES;
        if seconds == 0 || bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            let (_, oldest) = self.uses.first_key_value().expect("bytes are those of entries");
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        self.clock += 1;
        let key = Arc::new(key);
        self.uses.insert(self.clock, key.clone());
        self.bytes += bytes;
        self.entries.insert(key, Entry { value, stored: now, seconds, bytes, last_use: self.clock });
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }

    /// How many entries there are. Entries that are too old count too.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
