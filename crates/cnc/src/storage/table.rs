//! Items by their keys: [`ItemTable`], the hash table of a [`Storage`](super::Storage).

use std::iter;
use std::ptr;

use crate::first_panic::FirstPanic;
use crate::key::{ItemKey, fold, hash_of, is_word};
use crate::primitives::{AtomicPtr, AtomicU64, Mutex, Ordering, lock};
use crate::slot::ItemSlot;

use super::SHARDS;

/// Items by the word of their key or by its hash: open addressing, to which keys are only added.
///
/// A reader takes no lock. A table that has become too small stays until the storage is freed, so a
/// reader may go through an old table; it then does not find the newest keys, takes the lock, and
/// looks again.
#[derive(Debug)]
pub(crate) struct ItemTable<K, V, R> {
    shards: Box<[Shard<K, V, R>]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Shard<K, V, R> {
    current: AtomicPtr<Entries<K, V, R>>,
    growing: Mutex<Growing<K, V, R>>,
}

#[derive(Debug)]
struct Growing<K, V, R> {
    keys: usize,
    tables: Vec<*mut Entries<K, V, R>>,
    /// Blocks with room for items, each filled from its front.
    blocks: Vec<Vec<Keyed<K, V, R>>>,
    /// Blocks without items, which the table had before it was reset. The largest is the last.
    spare: Vec<Vec<Keyed<K, V, R>>>,
}

// SAFETY: the pointers are those of boxes that the shard owns.
unsafe impl<K: Send, V: Send, R: Send> Send for Growing<K, V, R> {}

#[derive(Debug)]
struct Keyed<K, V, R> {
    key: K,
    slot: ItemSlot<V, R>,
}

#[derive(Debug)]
struct Entries<K, V, R> {
    entries: Box<[TableEntry<K, V, R>]>,
}

#[derive(Debug)]
struct TableEntry<K, V, R> {
    /// Null in an entry without a key. Written last.
    item: AtomicPtr<Keyed<K, V, R>>,
    word: AtomicU64,
}

/// The word of a key, or its hash.
#[inline]
pub(super) fn word_of<K: ItemKey>(key: &K) -> u64 {
    if is_word::<K>() { key.to_word() } else { hash_of(key) }
}

impl<K: ItemKey, V, R> ItemTable<K, V, R> {
    pub(super) fn new() -> Self {
        let shard = || Shard {
            current: AtomicPtr::new(ptr::null_mut()),
            growing: Mutex::new(Growing {
                keys: 0,
                tables: Vec::new(),
                blocks: Vec::new(),
                spare: Vec::new(),
            }),
        };
        ItemTable { shards: iter::repeat_with(shard).take(SHARDS).collect() }
    }

    #[inline]
    pub(super) fn find(&self, key: &K) -> &ItemSlot<V, R> {
        let word = word_of(key);
        let spread = fold(word);
        let shard = &self.shards[spread as usize % SHARDS];
        match shard.look(word, spread, key) {
            Some(slot) => slot,
            None => shard.add(word, spread, key),
        }
    }

    pub(super) fn look(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        let word = word_of(key);
        let spread = fold(word);
        self.shards[spread as usize % SHARDS].look(word, spread, key)
    }

    pub(super) fn each<'s>(&'s self, mut see: impl FnMut(&'s K, &'s ItemSlot<V, R>)) {
        for shard in &self.shards {
            let at = shard.current.load(Ordering::Acquire);
            if at.is_null() {
                continue;
            }
            // SAFETY: as in `Shard::look`.
            for entry in &unsafe { &*at }.entries {
                let item = entry.item.load(Ordering::Acquire);
                if !item.is_null() {
                    // SAFETY: as in `Shard::look`.
                    let item = unsafe { &*item };
                    see(&item.key, &item.slot);
                }
            }
        }
    }

    /// Drops all keys and values, and keeps the memory.
    ///
    /// # Safety
    /// As for `Storage::reset`.
    pub(super) unsafe fn reset(&self, panics: &mut FirstPanic) {
        // SAFETY: as promised by the caller.
        self.shards.iter().for_each(|shard| unsafe { shard.reset(panics) });
    }

    /// Drops all keys and values.
    ///
    /// # Safety
    /// As for [`ItemSlot::empty`].
    pub(super) unsafe fn empty(&self) {
        for shard in &self.shards {
            // The tables name keys that are dropped below, so no destructor may find them.
            shard.current.store(ptr::null_mut(), Ordering::Relaxed);
            let blocks = std::mem::take(&mut lock(&shard.growing).blocks);
            let mut panics = FirstPanic::default();
            // SAFETY: as promised by the caller.
            let empty = || blocks.iter().flatten().for_each(|item| unsafe { item.slot.empty() });
            if std::mem::needs_drop::<V>() && !panics.run(empty) {
                // The next call drops the other values.
                lock(&shard.growing).blocks = blocks;
                panics.go_on();
                return;
            }
        }
    }
}

impl<K, V, R> Shard<K, V, R> {
    /// Drops all keys and values, and keeps the memory.
    ///
    /// # Safety
    /// As for `Storage::reset`.
    unsafe fn reset(&self, panics: &mut FirstPanic) {
        let at = self.current.load(Ordering::Relaxed);
        if at.is_null() {
            return;
        }
        // The table names keys that are dropped below, so no destructor may find them.
        // SAFETY: the pointer came from a box in `add`, which is freed with the shard alone.
        let entries = unsafe { &*at }.entries.iter();
        entries.for_each(|entry| entry.item.store(ptr::null_mut(), Ordering::Relaxed));
        let mut growing = lock(&self.growing);
        growing.keys = 0;
        let mut blocks = std::mem::take(&mut growing.blocks);
        drop(growing);
        for block in &mut blocks {
            for item in block.iter() {
                // SAFETY: as promised by the caller.
                panics.run(|| unsafe { item.slot.empty() });
            }
            panics.run(|| block.clear());
        }
        let mut growing = lock(&self.growing);
        growing.spare.append(&mut blocks);
        growing.spare.sort_by_key(Vec::capacity);
        // Its own memory is kept too.
        growing.blocks = blocks;
    }
}

impl<K: ItemKey, V, R> Entries<K, V, R> {
    fn new(entries: usize) -> Self {
        let entry = || TableEntry { item: AtomicPtr::new(ptr::null_mut()), word: AtomicU64::new(0) };
        Entries { entries: iter::repeat_with(entry).take(entries).collect() }
    }

    /// The first entry of a key.
    fn first(&self, spread: u64) -> usize {
        (spread >> 8) as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    /// Adds an item. Its key is not here yet, and there is room.
    fn add(&self, word: u64, spread: u64, item: *mut Keyed<K, V, R>) {
        let mut at = self.first(spread);
        while !self.entries[at].item.load(Ordering::Relaxed).is_null() {
            at = self.after(at);
        }
        self.entries[at].word.store(word, Ordering::Relaxed);
        self.entries[at].item.store(item, Ordering::Release);
    }
}

impl<K: ItemKey, V, R> Shard<K, V, R> {
    #[inline]
    fn look(&self, word: u64, spread: u64, key: &K) -> Option<&ItemSlot<V, R>> {
        let at = self.current.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the pointer came from a box in `add`, which is freed with the shard alone.
        let table = unsafe { &*at };
        let mut at = table.first(spread);
        loop {
            let entry = &table.entries[at];
            let item = entry.item.load(Ordering::Acquire);
            if item.is_null() {
                return None;
            }
            if entry.word.load(Ordering::Relaxed) == word {
                // SAFETY: items lie in blocks that never grow and are freed with the shard alone,
                // and an item is written before the pointer to it is.
                let item = unsafe { &*item };
                if is_word::<K>() || item.key == *key {
                    return Some(&item.slot);
                }
            }
            at = table.after(at);
        }
    }

    #[cold]
    fn add(&self, word: u64, spread: u64, key: &K) -> &ItemSlot<V, R> {
        let key = key.clone();
        let mut growing = lock(&self.growing);
        if let Some(slot) = self.look(word, spread, &key) {
            return slot;
        }
        let current = self.current.load(Ordering::Relaxed);
        // SAFETY: as in `look`.
        let room = if current.is_null() { 0 } else { unsafe { &*current }.entries.len() };
        if 2 * (growing.keys + 1) > room {
            let table = Entries::new((2 * room).max(16));
            if !current.is_null() {
                // SAFETY: as in `look`.
                for entry in &unsafe { &*current }.entries {
                    let (word, item) =
                        (entry.word.load(Ordering::Relaxed), entry.item.load(Ordering::Relaxed));
                    if !item.is_null() {
                        table.add(word, fold(word), item);
                    }
                }
            }
            let table = Box::into_raw(Box::new(table));
            growing.tables.push(table);
            self.current.store(table, Ordering::Release);
        }
        if growing.blocks.last().is_none_or(|block| block.len() == block.capacity()) {
            let next = growing.blocks.last().map_or(8, |block| (2 * block.capacity()).min(1024));
            let block = growing.spare.pop().unwrap_or_else(|| Vec::with_capacity(next));
            growing.blocks.push(block);
        }
        growing.keys += 1;
        let block = growing.blocks.last_mut().expect("there is a block now");
        // SAFETY: the block has room for one more item, and never more than its capacity. No
        // reference to the items before is made, because workers use them.
        let item = unsafe { block.as_mut_ptr().add(block.len()) };
        block.push(Keyed { key, slot: ItemSlot::new() });
        // SAFETY: the table is the current one, which is freed with the shard alone.
        unsafe { &*self.current.load(Ordering::Relaxed) }.add(word, spread, item);
        // SAFETY: as in `look`.
        unsafe { &(*item).slot }
    }
}

impl<K, V, R> Drop for Shard<K, V, R> {
    fn drop(&mut self) {
        for table in lock(&self.growing).tables.drain(..) {
            // SAFETY: each table came from a box in `add`, and stands in the list once.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}
