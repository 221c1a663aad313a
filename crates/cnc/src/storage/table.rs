//! Items by their keys: [`ItemTable`], the hash table of a [`Storage`](super::Storage).

use super::SHARDS;
use crate::first_panic::FirstPanic;
use crate::key::{ItemKey, fold, identity_of};
use crate::primitives::{AtomicPtr, AtomicU64, Mutex, Ordering, lock};
use crate::slot::ItemSlot;
use std::iter;
use std::mem;
use std::ptr;

/// The number of items in the first block of a shard. Each further block is twice as large.
const FIRST_BLOCK: usize = 8;

/// The most keys in a shard, so that a number of an item and an index both fit in 32 bits.
const KEYS_MAX: usize = 3 << 30;

/// The most blocks in a shard, which hold `KEYS_MAX` items.
const BLOCKS_MAX: usize = 29;

/// Items by the word of their key or by its hash: open addressing, to which keys are only added.
///
/// A reader takes no lock. A table that has become too small stays until the storage is freed, so a
/// reader may go through an old table; it then does not find the newest keys, takes the lock, and
/// looks again.
///
/// **A key costs 8 bytes in a table.** Most of the time of a large table goes to memory that is in
/// no cache, and to the pages that the system clears. So an entry is half of a hash and the number
/// of an item, and the number says in which block the item lies.
///
/// **Neighbours share a cache line.** Most programs put and get the items of a row one after the
/// other. The line of a key is given by the hash of its word without the lowest three bits, and
/// these bits say where the search in the line begins. So eight neighbours lie in one line, and
/// their items lie side by side.
///
/// **A larger table is filled in order.** The line is the highest bits of the half of the hash. So
/// the keys of one line go to two lines side by side, and both tables are walked from their fronts
/// to their ends.
#[derive(Debug)]
pub(crate) struct ItemTable<K, V, R> {
    shards: Box<[Shard<K, V, R>]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Shard<K, V, R> {
    current: AtomicPtr<Entries>,
    /// The first item of each block. A pointer is written before the entries with its items.
    blocks: [AtomicPtr<Keyed<K, V, R>>; BLOCKS_MAX],
    growing: Mutex<Growing<K, V, R>>,
}

#[derive(Debug)]
struct Growing<K, V, R> {
    keys: usize,
    tables: Vec<*mut Entries>,
    /// The blocks of items, each filled from its front. After a reset all are empty, and are filled
    /// once more in their order.
    blocks: ItemBlocks<K, V, R>,
}

// SAFETY: the pointers are those of boxes that the shard owns.
unsafe impl<K: Send, V: Send, R: Send> Send for Growing<K, V, R> {}

#[derive(Debug)]
struct Keyed<K, V, R> {
    key: K,
    slot: ItemSlot<V, R>,
}

/// A table. In each entry the upper half is [`half_hash`] of the key, and the lower half is the
/// [number](place_of) of an item. An entry without a key is 0.
#[derive(Debug)]
struct Entries {
    /// 32 less the number of bits of the number of a line.
    shift: u32,
    lines: Box<[Line]>,
}

/// The entries in a cache line.
const LINE: usize = 8;

#[derive(Debug)]
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

/// The half of a hash that an entry has: of its word without the lowest three bits, and then these
/// bits.
#[inline]
fn half_hash(spread: u64, word: u64) -> u32 {
    (spread >> 32) as u32 & !(LINE as u32 - 1) | word as u32 & (LINE as u32 - 1)
}

/// The block of an item, and its place in the block, by its number. The numbers begin at
/// [`FIRST_BLOCK`], so the highest bit of a number says which block it is.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    let bit = number.ilog2();
    ((bit - FIRST_BLOCK.ilog2()) as usize, number as usize - (1 << bit))
}

impl<K: ItemKey, V, R> ItemTable<K, V, R> {
    pub(super) fn new() -> Self {
        let shard = || Shard {
            current: AtomicPtr::new(ptr::null_mut()),
            blocks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            growing: Mutex::new(Growing { keys: 0, tables: Vec::new(), blocks: Vec::new() }),
        };
        ItemTable { shards: iter::repeat_with(shard).take(SHARDS).collect() }
    }

    #[inline]
    pub(super) fn find(&self, key: &K) -> &ItemSlot<V, R> {
        let (shard, hash) = self.shard(key);
        match shard.look(hash, key) {
            Ok(slot) => slot,
            Err(gap) => shard.add(hash, key, gap),
        }
    }

    pub(super) fn look(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        let (shard, hash) = self.shard(key);
        shard.look(hash, key).ok()
    }

    /// The shard of a key, by the lowest bits of its hash, and the half of the hash in its entry.
    #[inline]
    fn shard(&self, key: &K) -> (&Shard<K, V, R>, u32) {
        let word = identity_of(key);
        let spread = fold(word / LINE as u64);
        (&self.shards[spread as usize % SHARDS], half_hash(spread, word))
    }

    pub(super) fn each<'s>(&'s self, mut see: impl FnMut(&'s K, &'s ItemSlot<V, R>)) {
        for shard in &self.shards {
            let at = shard.current.load(Ordering::Acquire);
            if at.is_null() {
                continue;
            }
            // SAFETY: as in `Shard::look`.
            for entry in unsafe { &*at }.all() {
                let entry = entry.load(Ordering::Acquire);
                if entry != 0 {
                    // SAFETY: the entry is that of a key.
                    let item = unsafe { shard.item(entry) };
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
            let (keys, blocks) = lock(&shard.growing).take();
            let mut panics = FirstPanic::default();
            // SAFETY: as promised by the caller.
            let empty = || blocks.iter().flatten().for_each(|item| unsafe { item.slot.empty() });
            if mem::needs_drop::<V>() && !panics.run(empty) {
                // The next call drops the other values.
                let mut growing = lock(&shard.growing);
                (growing.keys, growing.blocks) = (keys, blocks);
                drop(growing);
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
        let table = unsafe { &*at };
        table.all().for_each(|entry| entry.store(0, Ordering::Relaxed));
        let (_, mut blocks) = lock(&self.growing).take();
        for block in &mut blocks {
            for item in block.iter() {
                // SAFETY: as promised by the caller.
                panics.run(|| unsafe { item.slot.empty() });
            }
            panics.run(|| block.clear());
        }
        let mut growing = lock(&self.growing);
        // A destructor may have added items, in new blocks. Those stay in place of the old ones.
        let made = growing.blocks.len().min(blocks.len());
        growing.blocks.extend(blocks.drain(made..));
    }

    /// The item with the number in an entry.
    ///
    /// # Safety
    /// The entry is not 0, and was loaded by `Acquire` from a table of this shard, or under the
    /// lock.
    #[inline]
    unsafe fn item(&self, entry: u64) -> &Keyed<K, V, R> {
        let (block, place) = place_of(entry as u32);
        let first = self.blocks[block].load(Ordering::Relaxed);
        // SAFETY: `add` has written the pointer and the item before the entry. Blocks never grow,
        // and are freed with the shard alone.
        unsafe { &*first.add(place) }
    }
}

/// The items of a shard in their blocks.
type ItemBlocks<K, V, R> = Vec<Vec<Keyed<K, V, R>>>;

impl<K, V, R> Growing<K, V, R> {
    /// Takes the items out: their number, and the blocks.
    fn take(&mut self) -> (usize, ItemBlocks<K, V, R>) {
        (mem::take(&mut self.keys), mem::take(&mut self.blocks))
    }
}

impl Entries {
    /// A table without keys. The number of entries is a power of two, of two lines at least.
    fn new(entries: usize) -> Self {
        let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
        let lines = entries / LINE;
        let shift = u32::BITS - lines.ilog2();
        Entries { shift, lines: iter::repeat_with(line).take(lines).collect() }
    }

    fn len(&self) -> usize {
        self.lines.len() * LINE
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.lines.iter().flat_map(|line| &line.0)
    }

    #[inline]
    fn at(&self, index: usize) -> &AtomicU64 {
        &self.lines[index / LINE].0[index % LINE]
    }

    /// The first index of a key.
    #[inline]
    fn first(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize * LINE + hash as usize % LINE
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        (index + 1) & (self.len() - 1)
    }

    /// The first index from which on a key that is not here may be added.
    fn gap(&self, hash: u32) -> usize {
        let mut index = self.first(hash);
        while self.at(index).load(Ordering::Relaxed) != 0 {
            index = self.after(index);
        }
        index
    }
}

/// Where a search has ended without the key: the table, null if there was none, and the index of an
/// entry that had no key.
#[derive(Clone, Copy)]
struct Gap {
    table: *const Entries,
    index: usize,
}

impl<K: ItemKey, V, R> Shard<K, V, R> {
    #[inline]
    fn look(&self, hash: u32, key: &K) -> Result<&ItemSlot<V, R>, Gap> {
        let at = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer came from a box in `table_with_room`, which is freed with the shard
        // alone.
        let Some(table) = (unsafe { at.as_ref() }) else {
            return Err(Gap { table: at, index: 0 });
        };
        self.search(table, table.first(hash), hash, key)
    }

    /// Looks for a key from an index on.
    #[inline]
    fn search(&self, table: &Entries, mut index: usize, hash: u32, key: &K) -> Result<&ItemSlot<V, R>, Gap> {
        loop {
            let entry = table.at(index).load(Ordering::Acquire);
            if entry == 0 {
                return Err(Gap { table, index });
            }
            if (entry >> 32) as u32 == hash {
                // SAFETY: the entry is that of a key.
                let item = unsafe { self.item(entry) };
                if item.key == *key {
                    return Ok(&item.slot);
                }
            }
            index = table.after(index);
        }
    }

    /// The slot of a key that was not found, where a search has ended. Another worker may have
    /// added the key meanwhile, then it stands behind the gap or in a newer table.
    ///
    /// # Panics
    /// Panics if the shard has [`KEYS_MAX`] keys.
    #[cold]
    fn add(&self, hash: u32, key: &K, gap: Gap) -> &ItemSlot<V, R> {
        let key = key.clone();
        let mut growing = lock(&self.growing);
        let current = self.current.load(Ordering::Relaxed);
        // SAFETY: as in `look`.
        let current = unsafe { current.as_ref() };
        let gap = match current {
            Some(table) => {
                let first = if ptr::eq(table, gap.table) { gap.index } else { table.first(hash) };
                match self.search(table, first, hash, &key) {
                    Ok(slot) => return slot,
                    Err(gap) => Some((table, gap.index)),
                }
            }
            None => None,
        };
        assert!(growing.keys < KEYS_MAX, "a collection has at most {KEYS_MAX} keys in each shard");
        let number = (FIRST_BLOCK + growing.keys) as u32;
        let (block, place) = place_of(number);
        if block == growing.blocks.len() {
            let mut fresh = Vec::with_capacity(FIRST_BLOCK << block);
            self.blocks[block].store(fresh.as_mut_ptr(), Ordering::Relaxed);
            growing.blocks.push(fresh);
        }
        // A search ends soon, because at most half of the entries have keys.
        let (table, index) = match gap {
            Some((table, index)) if 2 * (growing.keys + 1) <= table.len() => (table, index),
            _ => {
                let table = self.grow(&mut growing, current);
                (table, table.gap(hash))
            }
        };
        growing.keys += 1;
        let items = &mut growing.blocks[block];
        assert!(items.len() == place && place < items.capacity(), "blocks are filled in their order");
        // The block does not move, because it has room. Workers use the items before.
        items.push(Keyed { key, slot: ItemSlot::new() });
        let entry = u64::from(hash) << 32 | u64::from(number);
        table.at(index).store(entry, Ordering::Release);
        // SAFETY: the item was written above, under the lock.
        unsafe { &self.item(entry).slot }
    }

    /// A table twice as large with the same entries. It becomes the current one.
    fn grow(&self, growing: &mut Growing<K, V, R>, current: Option<&Entries>) -> &Entries {
        let table = Entries::new(current.map_or(2 * LINE, |table| 2 * table.len()));
        for entry in current.iter().flat_map(|table| table.all()) {
            let entry = entry.load(Ordering::Relaxed);
            if entry != 0 {
                table.at(table.gap((entry >> 32) as u32)).store(entry, Ordering::Relaxed);
            }
        }
        let table = Box::into_raw(Box::new(table));
        growing.tables.push(table);
        self.current.store(table, Ordering::Release);
        // SAFETY: as in `look`.
        unsafe { &*table }
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
