//! Items that leave nothing behind when they go: [`StreamTable`], a hash table of a
//! [`Storage`](super::Storage).
//!
//! An item has a place until it has gone; then the place is used for another key. So the table has
//! the memory of the items that were there at one time, and a stream of items may have no end.
//!
//! **A place is not used again while another user looks at it.** [`StreamTable::find`] counts the
//! user under the lock of the key's shard, and the drop of the `ItemPlace` or of the `PageUse` ends
//! the use. [`StreamTable::note_gone`] takes the key out under the same lock. From then on no user
//! comes, and `StreamShard::add` uses the place again when the count is 0. A step that waits in
//! the item's list, and a step with a claim, need no use: their item has not gone.
//!
//! A place is freed with the table alone, so the end of a use touches memory that is a place still.

use super::gone::GoneKeys;
use super::{ItemPlace, SHARDS};
use crate::first_panic::FirstPanic;
use crate::key::{ItemKey, fold, identity_of, is_word};
use crate::primitives::{AtomicUsize, ItemCell, Mutex, Ordering, lock};
use crate::slot::ItemSlot;
use std::ptr;

/// The places of a block at most.
const BLOCK_MAX: usize = 1024;

/// Items by the word of their key or by its hash, as long as they have not gone.
#[derive(Debug)]
pub(crate) struct StreamTable<K, V, R> {
    shards: Box<[Mutex<StreamShard<K, V, R>>]>,
    /// The words of the keys of items that have gone, if keys are words. Its lock is taken under
    /// the lock of a shard.
    gone: Mutex<GoneKeys>,
}

/// A part of the table: open addressing.
#[derive(Debug)]
struct StreamShard<K, V, R> {
    /// Null in an entry without a key. The length is a power of two, or 0.
    entries: Vec<StreamEntry<K, V, R>>,
    keys: usize,
    /// How many items have gone.
    gone: usize,
    /// Blocks with room for places, each filled from its front.
    blocks: Vec<Vec<StreamPlace<K, V, R>>>,
    /// The places without a key.
    free: Vec<*mut StreamPlace<K, V, R>>,
}

// SAFETY: the pointers are to places in the blocks that the shard owns.
unsafe impl<K: Send, V: Send, R: Send> Send for StreamShard<K, V, R> {}

#[derive(Debug)]
struct StreamEntry<K, V, R> {
    word: u64,
    place: *mut StreamPlace<K, V, R>,
}

impl<K, V, R> Clone for StreamEntry<K, V, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, R> Copy for StreamEntry<K, V, R> {}

#[derive(Debug)]
struct StreamPlace<K, V, R> {
    /// The key with its word, while the place is in the entries. It is changed under the lock of
    /// the shard, when the place goes into the entries and when it goes out.
    key: ItemCell<Option<(u64, K)>>,
    /// How many users look at the place now.
    users: AtomicUsize,
    slot: ItemSlot<V, R>,
}

/// The place of a key in a part of the table of a hashed word.
fn shard_of(spread: u64) -> usize {
    spread as usize % SHARDS
}

impl<K: ItemKey, V, R> StreamTable<K, V, R> {
    pub(super) fn new() -> Self {
        let shard = || {
            let (entries, blocks, free) = (Vec::new(), Vec::new(), Vec::new());
            Mutex::new(StreamShard { entries, keys: 0, gone: 0, blocks, free })
        };
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        StreamTable { shards, gone: Mutex::new(GoneKeys::default()) }
    }

    /// The place of a key, which is made if need be. `None` if the key is a word and its item has
    /// gone.
    pub(super) fn find(&self, key: &K) -> Option<ItemPlace<'_, V, R>> {
        let word = identity_of(key);
        let spread = fold(word);
        let mut shard = lock(&self.shards[shard_of(spread)]);
        let place = match shard.look(word, spread, key) {
            Some(place) => place,
            None if is_word::<K>() && lock(&self.gone).has(word) => return None,
            None => {
                let key = key.clone();
                shard.add(word, spread, key)
            }
        };
        // SAFETY: the place is in the entries, and the lock is held.
        Some(unsafe { Self::found(place) })
    }

    /// The place of a key if the key has one.
    pub(super) fn look(&self, key: &K) -> Option<ItemPlace<'_, V, R>> {
        let word = identity_of(key);
        let spread = fold(word);
        let shard = lock(&self.shards[shard_of(spread)]);
        // SAFETY: as in `find`.
        shard.look(word, spread, key).map(|place| unsafe { Self::found(place) })
    }

    /// Counts a user of a place.
    ///
    /// # Safety
    /// The place is one of the table's, is in its entries, and the lock of its shard is held.
    unsafe fn found<'s>(place: *mut StreamPlace<K, V, R>) -> ItemPlace<'s, V, R> {
        // SAFETY: the blocks never move, and are freed with the table alone.
        let (users, slot) = unsafe { (&(*place).users, &(*place).slot) };
        users.fetch_add(1, Ordering::Relaxed);
        ItemPlace { slot, place: place.expose_provenance(), users: Some(users) }
    }

    /// The slot of a key, if its item is kept. Such an item never goes, so this needs no use.
    pub(super) fn kept(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        self.look(key).filter(|found| found.slot.state.is_kept()).map(|found| found.slot)
    }

    /// Takes the key of an item out that has gone. `at` is the number of its `ItemPlace`.
    pub(super) fn note_gone(&self, at: usize) {
        let place = ptr::with_exposed_provenance_mut::<StreamPlace<K, V, R>>(at);
        // SAFETY: the number came from `found`, so it is the address of a place of this table. Its
        // item is noted as gone once, here, so the place has its key still, which the caller has
        // seen through `find`.
        let word = unsafe { (*place).key.with(|key| (*key).as_ref().map(|(word, _)| *word)) };
        let word = word.expect("an item goes once");
        let mut shard = lock(&self.shards[shard_of(fold(word))]);
        shard.take_out(word, place);
        if is_word::<K>() {
            // Under the lock of the shard: a get or a put finds the place, or that it has gone.
            lock(&self.gone).add(word);
        }
        // SAFETY: the place is in the entries no more, and the lock is held, so no other user reads
        // the key.
        let key = unsafe { (*place).key.with_mut(|key| (*key).take()) };
        shard.gone += 1;
        shard.free.push(place);
        drop(shard);
        // Code of the program, so not under the lock.
        drop(key);
    }

    /// The number of items that have gone.
    pub(super) fn count_gone(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).gone).sum()
    }

    /// As `Storage::each`.
    pub(super) fn each<'s>(&'s self, mut see: impl FnMut(&'s K, &'s ItemSlot<V, R>)) {
        for shard in &self.shards {
            let entries = lock(shard).entries.clone();
            for StreamEntry { place, .. } in entries.into_iter().filter(|entry| !entry.place.is_null()) {
                // SAFETY: the blocks never move, and are freed with the table alone. No worker
                // runs, so no item goes, and the place has its key.
                let (key, slot) = unsafe { ((*place).key.with(|key| &*key), &(*place).slot) };
                if let Some((_, key)) = key {
                    see(key, slot);
                }
            }
        }
    }

    /// Drops all keys and values.
    ///
    /// # Safety
    /// As for [`ItemSlot::empty`].
    pub(super) unsafe fn empty(&self) {
        for shard in &self.shards {
            let mut all = lock(shard);
            // They name places that are dropped below, so no destructor may find them.
            all.entries.clear();
            all.free.clear();
            all.keys = 0;
            let blocks = std::mem::take(&mut all.blocks);
            drop(all);
            let mut panics = FirstPanic::default();
            // SAFETY: as promised by the caller.
            let empty = || blocks.iter().flatten().for_each(|place| unsafe { place.slot.empty() });
            if std::mem::needs_drop::<V>() && !panics.run(empty) {
                // The next call drops the other values.
                lock(shard).blocks = blocks;
                panics.go_on();
                return;
            }
        }
    }
}

impl<K, V, R> StreamTable<K, V, R> {
    /// Drops all keys and values, and keeps the memory.
    ///
    /// # Safety
    /// As for `Storage::reset`.
    pub(super) unsafe fn reset(&self, panics: &mut FirstPanic) {
        lock(&self.gone).clear();
        for shard in &self.shards {
            let mut all = lock(shard);
            // They name places that lose their keys below, so no destructor may find them.
            all.entries.fill(StreamEntry { word: 0, place: ptr::null_mut() });
            (all.keys, all.gone) = (0, 0);
            all.free.clear();
            let mut blocks = std::mem::take(&mut all.blocks);
            drop(all);
            let mut free = Vec::new();
            for place in blocks.iter_mut().flat_map(|block| {
                let first = block.as_mut_ptr();
                // SAFETY: `at` is less than `block.len()`, so the place is in the block.
                (0..block.len()).map(move |at| unsafe { first.add(at) })
            }) {
                // SAFETY: no step runs and no step waits, so no other user looks at the place; and
                // as promised by the caller.
                unsafe {
                    panics.run(|| (*place).slot.empty());
                    panics.run(|| drop((*place).key.with_mut(|key| (*key).take())));
                    (*place).slot.state.reset();
                }
                free.push(place);
            }
            let mut all = lock(shard);
            // The oldest places are the first that are used again.
            all.free.extend(free.into_iter().rev());
            all.blocks = blocks;
        }
    }
}

impl<K: ItemKey, V, R> StreamShard<K, V, R> {
    /// The first entry of a key. There are entries.
    fn first(&self, spread: u64) -> usize {
        (spread >> 8) as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    fn look(&self, word: u64, spread: u64, key: &K) -> Option<*mut StreamPlace<K, V, R>> {
        if self.keys == 0 {
            return None;
        }
        let mut at = self.first(spread);
        loop {
            let entry = self.entries[at];
            if entry.place.is_null() {
                return None;
            }
            // SAFETY: the place is in the entries, and `self` is borrowed from its lock.
            let is_same =
                || unsafe { (*entry.place).key.with(|of| (*of).as_ref().is_some_and(|(_, of)| of == key)) };
            if entry.word == word && (is_word::<K>() || is_same()) {
                return Some(entry.place);
            }
            at = self.after(at);
        }
    }

    /// Adds a key that is not here yet.
    fn add(&mut self, word: u64, spread: u64, key: K) -> *mut StreamPlace<K, V, R> {
        if 2 * (self.keys + 1) > self.entries.len() {
            let room = (2 * self.entries.len()).max(16);
            let none = StreamEntry { word: 0, place: ptr::null_mut() };
            let before = std::mem::replace(&mut self.entries, vec![none; room]);
            for entry in before.into_iter().filter(|entry| !entry.place.is_null()) {
                self.insert(entry, fold(entry.word));
            }
        }
        let place = self.unused();
        // SAFETY: the place is not in the entries, and has no user.
        unsafe {
            (*place).key.with_mut(|of| *of = Some((word, key)));
            (*place).slot.state.reset();
        }
        self.insert(StreamEntry { word, place }, spread);
        self.keys += 1;
        place
    }

    fn insert(&mut self, entry: StreamEntry<K, V, R>, spread: u64) {
        let mut at = self.first(spread);
        while !self.entries[at].place.is_null() {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    /// A place without a key and without users.
    fn unused(&mut self) -> *mut StreamPlace<K, V, R> {
        // Acquire: all that the users have done comes before the next use of the place.
        // SAFETY: a free place is in a block, which is freed with the table alone.
        let is_unused =
            |place: &*mut StreamPlace<K, V, R>| unsafe { (**place).users.load(Ordering::Acquire) == 0 };
        if let Some(at) = self.free.iter().rposition(is_unused) {
            return self.free.swap_remove(at);
        }
        if self.blocks.last().is_none_or(|block| block.len() == block.capacity()) {
            let next = self.blocks.last().map_or(8, |block| (2 * block.capacity()).min(BLOCK_MAX));
            self.blocks.push(Vec::with_capacity(next));
        }
        let block = self.blocks.last_mut().expect("there is a block now");
        // SAFETY: the block has room for one more place, and never more than its capacity. No
        // reference to the places before is made, because workers use them.
        let place = unsafe { block.as_mut_ptr().add(block.len()) };
        block.push(StreamPlace {
            key: ItemCell::new(None),
            users: AtomicUsize::new(0),
            slot: ItemSlot::new(),
        });
        place
    }

    /// Takes a place out of the entries. The entries behind it move up, so that no search ends
    /// before them.
    fn take_out(&mut self, word: u64, place: *mut StreamPlace<K, V, R>) {
        let mut hole = self.first(fold(word));
        while self.entries[hole].place != place {
            assert!(!self.entries[hole].place.is_null(), "an item goes once");
            hole = self.after(hole);
        }
        let mask = self.entries.len() - 1;
        let mut at = self.after(hole);
        while !self.entries[at].place.is_null() {
            let first = self.first(fold(self.entries[at].word));
            // The search for this key begins at the hole or before it.
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = self.entries[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.entries[hole].place = ptr::null_mut();
        self.keys -= 1;
    }
}
