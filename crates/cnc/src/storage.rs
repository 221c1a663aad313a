//! Where the items of a collection lie: [`Storage`].
//!
//! An item never moves once it has a place, so a get is a reference. Nothing is removed while
//! workers run, except whole pages. So readers need no lock and no epochs.
//!
//! `ItemStore` (`collections.rs`) owns a `Storage`. The gets and puts of `step/` and
//! `async_step.rs` find a slot by its key with `find`, `kept` or `dense_slot`; the reports and the
//! end of the graph walk all slots with `each`. There are three kinds: an array, an array of pages,
//! and a hash table.
//!
//! A page is used for other keys when all its items are gone. The comment on [`Pages`] says why no
//! get takes one key's slot for another's.
//!
//! Paper: [NCM11 Appendix A], the table is chosen by the type of the keys.

use std::iter;
use std::ptr;

use crate::first_panic::FirstPanic;
use crate::key::{AxisLengths, Grid, ItemKey, fold, hash_of, is_word};
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::slot::ItemSlot;

/// The number of items in a page.
const PAGE: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    16
} else {
    1024
};

/// The number of parts of a hashed storage. Each has a lock for those that add keys.
const SHARDS: usize = 16;

/// How the keys of a grid become places, without the bound on `K` that creation needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<K> {
    lengths: AxisLengths,
    at: fn(&AxisLengths, usize) -> K,
}

impl<K: Grid> Shape<K> {
    pub(crate) fn new(extent: &K) -> Shape<K> {
        Shape { lengths: extent.lengths(), at: K::at }
    }
}

impl<K> Shape<K> {
    fn places(&self) -> usize {
        if self.lengths.contains(&0) {
            return 0;
        }
        let places = self.lengths.iter().try_fold(1_usize, |places, &length| places.checked_mul(length));
        places.unwrap_or_else(|| panic!("a grid of {:?} has more places than a usize counts", self.lengths))
    }
}

/// The places of the items of one collection.
#[derive(Debug)]
pub(crate) enum Storage<K, V, R> {
    Dense(Shape<K>, Box<[ItemSlot<V, R>]>),
    Paged(Shape<K>, Pages<V, R>),
    ItemTable(ItemTable<K, V, R>),
}

/// A place of an item that stays while it is used.
pub(crate) struct ItemPlace<'s, V, R> {
    pub(crate) slot: &'s ItemSlot<V, R>,
    /// For [`Storage::note_gone`].
    pub(crate) place: usize,
    page: Option<&'s ItemPage<V, R>>,
}

impl<V, R> Drop for ItemPlace<'_, V, R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(page) = self.page {
            page.users.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A use of a page, without its item. While it exists, the page is not used for other keys.
#[derive(Debug)]
pub(crate) struct PageUse<'s>(&'s AtomicUsize);

impl Drop for PageUse<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<'s, V, R> ItemPlace<'s, V, R> {
    /// Keeps the use of the page alone, if the place is in a page.
    pub(crate) fn into_page_use(mut self) -> Option<PageUse<'s>> {
        self.page.take().map(|page| PageUse(&page.users))
    }
}

/// A key that has a place. It is computed if it is needed alone, because that takes divisions.
#[derive(Debug)]
pub(crate) enum KeyOf<'s, K> {
    Placed(&'s Shape<K>, usize),
    Stored(&'s K),
}

impl<K: Clone> KeyOf<'_, K> {
    pub(crate) fn key(&self) -> K {
        match self {
            KeyOf::Placed(shape, place) => (shape.at)(&shape.lengths, *place),
            KeyOf::Stored(key) => (*key).clone(),
        }
    }
}

/// Why there is no place for a key.
#[derive(Debug)]
pub(crate) enum NoPlace {
    Outside,
    Retired,
}

impl<K: ItemKey, V, R> Storage<K, V, R> {
    pub(crate) fn dense(shape: Shape<K>) -> Self {
        let slots = ItemSlot::several(shape.places());
        Storage::Dense(shape, slots)
    }

    pub(crate) fn paged(shape: Shape<K>) -> Self {
        let pages = Pages::new(shape.places());
        Storage::Paged(shape, pages)
    }

    pub(crate) fn table() -> Self {
        Storage::ItemTable(ItemTable::new())
    }

    /// The place of a key, which is made if need be.
    #[inline(always)]
    pub(crate) fn find(&self, key: &K) -> Result<ItemPlace<'_, V, R>, NoPlace> {
        match self {
            Storage::Dense(shape, slots) => {
                let place = key.place(&shape.lengths).ok_or(NoPlace::Outside)?;
                Ok(ItemPlace { slot: &slots[place], place, page: None })
            }
            Storage::ItemTable(table) => Ok(ItemPlace { slot: table.find(key), place: 0, page: None }),
            Storage::Paged(shape, pages) => {
                let place = key.place(&shape.lengths).ok_or(NoPlace::Outside)?;
                pages.find(place).ok_or(NoPlace::Retired)
            }
        }
    }

    /// The place of a key if the key has one.
    pub(crate) fn look(&self, key: &K) -> Option<ItemPlace<'_, V, R>> {
        match self {
            Storage::ItemTable(table) => table.look(key).map(|slot| ItemPlace { slot, place: 0, page: None }),
            _ => self.find(key).ok(),
        }
    }

    /// Notes that the item at a place is gone.
    pub(crate) fn note_gone(&self, place: usize) {
        if let Storage::Paged(_, pages) = self {
            pages.note_gone(place);
        }
    }

    /// The slot of a key of a dense storage.
    #[inline(always)]
    pub(crate) fn dense_slot(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        match self {
            Storage::Dense(shape, slots) => slots.get(key.place(&shape.lengths)?),
            _ => None,
        }
    }

    /// The slot of a key, in pages or in a table, if its item is kept. This needs no count of users
    /// of a page: see [`Pages`].
    #[inline(never)]
    pub(crate) fn kept_elsewhere(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        match self {
            Storage::Dense(..) => None,
            Storage::Paged(shape, pages) => pages.kept(key.place(&shape.lengths)?),
            Storage::ItemTable(table) => table.look(key).filter(|slot| slot.state.is_kept()),
        }
    }

    /// The slot of a key, if its item is kept.
    #[inline(always)]
    pub(crate) fn kept(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        match self {
            Storage::Dense(..) => self.dense_slot(key).filter(|slot| slot.state.is_kept()),
            _ => self.kept_elsewhere(key),
        }
    }

    /// Calls `see` with every key that has a place, in no order if the storage is hashed. No worker
    /// may run meanwhile.
    pub(crate) fn each<'s>(&'s self, mut see: impl FnMut(KeyOf<'s, K>, &'s ItemSlot<V, R>)) {
        match self {
            Storage::Dense(shape, slots) => {
                for (place, slot) in slots.iter().enumerate() {
                    see(KeyOf::Placed(shape, place), slot);
                }
            }
            Storage::Paged(shape, pages) => pages.each(|place, slot| see(KeyOf::Placed(shape, place), slot)),
            Storage::ItemTable(table) => table.each(|key, slot| see(KeyOf::Stored(key), slot)),
        }
    }

    /// Whether [`each`](Storage::each) goes in the order of the keys.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Storage::ItemTable(_))
    }

    /// Drops all keys and values.
    ///
    /// # Safety
    /// As for [`ItemSlot::empty`].
    pub(crate) unsafe fn empty(&self) {
        match self {
            Storage::Dense(_, slots) if std::mem::needs_drop::<V>() => {
                // SAFETY: as promised by the caller.
                slots.iter().for_each(|slot| unsafe { slot.empty() });
            }
            // SAFETY: as above.
            Storage::Paged(_, pages) if std::mem::needs_drop::<V>() => unsafe { pages.empty() },
            Storage::Dense(..) | Storage::Paged(..) => {}
            // SAFETY: as above.
            Storage::ItemTable(table) => unsafe { table.empty() },
        }
    }
}

/// A part of a paged storage.
#[derive(Debug)]
struct ItemPage<V, R> {
    /// How many users look at the page now. The page is used for other keys only while it is 0.
    users: AtomicUsize,
    /// How many of its items are gone.
    gone: AtomicUsize,
    slots: Box<[ItemSlot<V, R>]>,
}

/// Pages that are made on the first touch, and used again when all their items are gone.
///
/// **A page is not used again while another user looks at it.** A step that has missed an item is a
/// user until it waits in the item's list; then the item cannot be gone before its put has taken
/// the step out of the list. A user counts itself in `users`, and then looks once more whether the
/// directory still names the page. The one that retires a page writes to the directory first, and
/// then looks at `users`. All four are `SeqCst`, so one of the two sees the other: either the user
/// finds the page retired and goes, or the page is not used again. No page is freed before the
/// storage is, so a late user counts itself in memory that is a page still.
///
/// **A get of a kept item does not count itself.** It loads the directory's entry, sees in the slot
/// that the item is kept, and then loads the entry once more. If the page had been used for other
/// keys before the look at the slot, then the second load would find the page retired, because the
/// look acquires what was written before the item. And a page with a kept item is never retired.
#[derive(Debug)]
pub(crate) struct Pages<V, R> {
    /// Null for a page that was not touched yet.
    directory: Box<[AtomicPtr<ItemPage<V, R>>]>,
    /// A page that stands for those that were retired.
    retired: Box<ItemPage<V, R>>,
    pool: Mutex<PagePool<V, R>>,
}

#[derive(Debug)]
struct PagePool<V, R> {
    all: Vec<*mut ItemPage<V, R>>,
    free: Vec<*mut ItemPage<V, R>>,
}

// SAFETY: the pointers are those of boxes that the pool owns.
unsafe impl<V: Send, R: Send> Send for PagePool<V, R> {}

impl<V, R> ItemPage<V, R> {
    fn new(places: usize) -> ItemPage<V, R> {
        ItemPage { users: AtomicUsize::new(0), gone: AtomicUsize::new(0), slots: ItemSlot::several(places) }
    }
}

impl<V, R> Pages<V, R> {
    fn new(places: usize) -> Pages<V, R> {
        let directory =
            iter::repeat_with(|| AtomicPtr::new(ptr::null_mut())).take(places.div_ceil(PAGE)).collect();
        let pool = Mutex::new(PagePool { all: Vec::new(), free: Vec::new() });
        Pages { directory, retired: Box::new(ItemPage::new(0)), pool }
    }

    fn retired(&self) -> *mut ItemPage<V, R> {
        ptr::from_ref(&*self.retired).cast_mut()
    }

    /// The place, unless its page was given back.
    fn find(&self, place: usize) -> Option<ItemPlace<'_, V, R>> {
        let entry = &self.directory[place / PAGE];
        loop {
            let mut at = entry.load(Ordering::SeqCst);
            if at.is_null() {
                at = self.make(entry);
            }
            if at == self.retired() {
                return None;
            }
            // SAFETY: `make` is the only source of the other pointers. A page is freed with `self`
            // alone.
            let page = unsafe { &*at };
            page.users.fetch_add(1, Ordering::SeqCst);
            let found = ItemPlace { slot: &page.slots[place % PAGE], place, page: Some(page) };
            if entry.load(Ordering::SeqCst) == at {
                return Some(found);
            }
        }
    }

    /// The slot at a place, if its item is kept.
    #[inline]
    fn kept(&self, place: usize) -> Option<&ItemSlot<V, R>> {
        let entry = self.directory.get(place / PAGE)?;
        let at = entry.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the pointer is that of `retired`, which has no slots, or one of `make`. Neither
        // is freed before `self`.
        let slot = unsafe { &*at }.slots.get(place % PAGE)?;
        (slot.state.is_kept() && entry.load(Ordering::Acquire) == at).then_some(slot)
    }

    #[cold]
    fn make(&self, entry: &AtomicPtr<ItemPage<V, R>>) -> *mut ItemPage<V, R> {
        let mut pool = lock(&self.pool);
        let there = entry.load(Ordering::SeqCst);
        if !there.is_null() {
            return there;
        }
        // SAFETY: the pages of the pool are not freed before `self` is.
        let unused = pool.free.iter().position(|&page| unsafe { &*page }.users.load(Ordering::SeqCst) == 0);
        let page = match unused {
            Some(at) => {
                let page = pool.free.swap_remove(at);
                // SAFETY: as above. The directory names the page no more and it has no user, so
                // none comes.
                let again = unsafe { &*page };
                again.gone.store(0, Ordering::Relaxed);
                again.slots.iter().for_each(|slot| slot.state.reset());
                page
            }
            None => {
                let page = Box::into_raw(Box::new(ItemPage::new(PAGE)));
                pool.all.push(page);
                page
            }
        };
        entry.store(page, Ordering::SeqCst);
        page
    }

    fn note_gone(&self, place: usize) {
        let entry = &self.directory[place / PAGE];
        let at = entry.load(Ordering::SeqCst);
        if at.is_null() || at == self.retired() {
            return;
        }
        // SAFETY: as in `find`. The item that is gone now was not counted yet, so the page is not
        // retired.
        let page = unsafe { &*at };
        if page.gone.fetch_add(1, Ordering::AcqRel) + 1 == PAGE {
            entry.store(self.retired(), Ordering::SeqCst);
            lock(&self.pool).free.push(at);
        }
    }

    fn each<'s>(&'s self, mut see: impl FnMut(usize, &'s ItemSlot<V, R>)) {
        for (number, entry) in self.directory.iter().enumerate() {
            let at = entry.load(Ordering::Acquire);
            if !at.is_null() && at != self.retired() {
                // SAFETY: as in `find`.
                let page = unsafe { &*at };
                page.slots.iter().enumerate().for_each(|(i, slot)| see(number * PAGE + i, slot));
            }
        }
    }

    /// # Safety
    /// As for [`ItemSlot::empty`].
    unsafe fn empty(&self) {
        let pages = lock(&self.pool).all.clone();
        for page in pages {
            // SAFETY: each page in the list is a box that the storage owns; and as promised by the
            // caller.
            unsafe { &*page }.slots.iter().for_each(|slot| unsafe { slot.empty() });
        }
    }
}

impl<V, R> Drop for Pages<V, R> {
    fn drop(&mut self) {
        for page in lock(&self.pool).all.drain(..) {
            // SAFETY: each page came from a box in `make`, and stands in the list once.
            drop(unsafe { Box::from_raw(page) });
        }
    }
}

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

impl<K: ItemKey, V, R> ItemTable<K, V, R> {
    fn new() -> Self {
        let shard = || Shard {
            current: AtomicPtr::new(ptr::null_mut()),
            growing: Mutex::new(Growing { keys: 0, tables: Vec::new(), blocks: Vec::new() }),
        };
        ItemTable { shards: iter::repeat_with(shard).take(SHARDS).collect() }
    }

    #[inline]
    fn word(key: &K) -> u64 {
        if is_word::<K>() { key.to_word() } else { hash_of(key) }
    }

    #[inline]
    fn find(&self, key: &K) -> &ItemSlot<V, R> {
        let word = Self::word(key);
        let spread = fold(word);
        let shard = &self.shards[spread as usize % SHARDS];
        match shard.look(word, spread, key) {
            Some(slot) => slot,
            None => shard.add(word, spread, key),
        }
    }

    fn look(&self, key: &K) -> Option<&ItemSlot<V, R>> {
        let word = Self::word(key);
        let spread = fold(word);
        self.shards[spread as usize % SHARDS].look(word, spread, key)
    }

    fn each<'s>(&'s self, mut see: impl FnMut(&'s K, &'s ItemSlot<V, R>)) {
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

    /// Drops all keys and values.
    ///
    /// # Safety
    /// As for [`ItemSlot::empty`].
    unsafe fn empty(&self) {
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
            growing.blocks.push(Vec::with_capacity(next));
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
