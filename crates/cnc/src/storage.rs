//! Where the items of a collection lie: [`Storage`].
//!
//! An item never moves once it has a place, so a get is a reference. Nothing is removed while
//! workers run, except whole pages, and the items of a stream. So readers need no epochs, and those
//! of a stream alone need a lock.
//!
//! `ItemStore` (`item_store.rs`) owns a `Storage`. The gets and puts of `step/` and
//! `kinds/` find a slot by its key with `find`, `kept` or `dense_slot`; the reports and the
//! end of the graph walk all slots with `each`. There are four kinds: an array, pages, a
//! hash table (`storage/table.rs`), and one for streams (`storage/streamed.rs`).
//!
//! A page is used for other keys when all its items are gone. The comment on [`Pages`] says why no
//! get takes one key's slot for another's. The head of `storage/streamed.rs` does so for streams.
//!
//! Paper: [NCM11 Appendix A], the table is chosen by the type of the keys.

mod gone;
mod streamed;
mod table;

use crate::first_panic::FirstPanic;
use crate::key::{AxisLengths, Grid, ItemKey};
use crate::primitives::{AtomicPtr, AtomicUsize, Mutex, Ordering, lock};
use crate::slot::ItemSlot;
use std::iter;
use std::ptr;
use streamed::StreamTable;
use table::ItemTable;

/// The number of parts of a hash table, each with a lock.
const SHARDS: usize = 16;

/// The number of items in a page.
const PAGE: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    16
} else {
    1024
};

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
    Streamed(StreamTable<K, V, R>),
}

/// A place of an item that stays while it is used.
pub(crate) struct ItemPlace<'s, V, R> {
    pub(crate) slot: &'s ItemSlot<V, R>,
    /// For [`Storage::note_gone`].
    pub(crate) place: usize,
    /// The count of the users of the page, or of the place of a stream.
    users: Option<&'s AtomicUsize>,
}

impl<V, R> Drop for ItemPlace<'_, V, R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(users) = self.users {
            users.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A use of a page or of a place of a stream, without its item. While it exists, the page or the
/// place is not used for other keys.
#[derive(Debug)]
pub(crate) struct PageUse<'s>(&'s AtomicUsize);

impl Drop for PageUse<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<'s, V, R> ItemPlace<'s, V, R> {
    /// Keeps the use of the page or of the place alone, if it is counted.
    pub(crate) fn into_page_use(mut self) -> Option<PageUse<'s>> {
        self.users.take().map(PageUse)
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

    pub(crate) fn streamed() -> Self {
        Storage::Streamed(StreamTable::new())
    }

    /// The place of a key, which is made if need be.
    #[inline(always)]
    pub(crate) fn find(&self, key: &K) -> Result<ItemPlace<'_, V, R>, NoPlace> {
        match self {
            Storage::Dense(shape, slots) => {
                let place = key.place(&shape.lengths).ok_or(NoPlace::Outside)?;
                Ok(ItemPlace { slot: &slots[place], place, users: None })
            }
            Storage::ItemTable(table) => Ok(ItemPlace { slot: table.find(key), place: 0, users: None }),
            Storage::Paged(shape, pages) => {
                let place = key.place(&shape.lengths).ok_or(NoPlace::Outside)?;
                pages.find(place).ok_or(NoPlace::Retired)
            }
            Storage::Streamed(table) => table.find(key).ok_or(NoPlace::Retired),
        }
    }

    /// The place of a key if the key has one.
    pub(crate) fn look(&self, key: &K) -> Option<ItemPlace<'_, V, R>> {
        match self {
            Storage::ItemTable(table) => {
                table.look(key).map(|slot| ItemPlace { slot, place: 0, users: None })
            }
            Storage::Streamed(table) => table.look(key),
            Storage::Dense(..) | Storage::Paged(..) => self.find(key).ok(),
        }
    }

    /// Notes that the item at a place is gone. A stream drops its key: code of the program.
    pub(crate) fn note_gone(&self, place: usize) {
        match self {
            Storage::Paged(_, pages) => pages.note_gone(place),
            Storage::Streamed(table) => table.note_gone(place),
            Storage::Dense(..) | Storage::ItemTable(_) => {}
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
            Storage::Streamed(table) => table.kept(key),
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
            Storage::Streamed(table) => table.each(|key, slot| see(KeyOf::Stored(key), slot)),
        }
    }

    /// The slots of an array in the order of the keys, each with its key; nothing if the storage is
    /// of another kind.
    pub(crate) fn dense_slots(&self) -> impl Iterator<Item = (KeyOf<'_, K>, &ItemSlot<V, R>)> {
        let array = match self {
            Storage::Dense(shape, slots) => Some((shape, slots)),
            _ => None,
        };
        array.into_iter().flat_map(|(shape, slots)| {
            slots.iter().enumerate().map(move |(place, slot)| (KeyOf::Placed(shape, place), slot))
        })
    }

    /// Whether the storage is an array.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self, Storage::Dense(..))
    }

    /// Whether what is known of an item may be given up when the item has gone.
    pub(crate) fn forgets(&self) -> bool {
        matches!(self, Storage::Paged(..) | Storage::Streamed(_))
    }

    /// The number of items that have gone, and that [`each`](Storage::each) does not see.
    pub(crate) fn count_forgotten(&self) -> usize {
        match self {
            Storage::Paged(_, pages) => pages.count_retired() * PAGE,
            Storage::Streamed(table) => table.count_gone(),
            Storage::Dense(..) | Storage::ItemTable(_) => 0,
        }
    }

    /// Whether [`each`](Storage::each) goes in the order of the keys.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Storage::ItemTable(_) | Storage::Streamed(_))
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
            // SAFETY: as above.
            Storage::Streamed(table) => unsafe { table.empty() },
        }
    }

    /// Drops all keys and values, and keeps the memory for other items.
    ///
    /// # Safety
    /// As for [`ItemSlot::empty`]. No step waits.
    pub(crate) unsafe fn reset(&self) {
        let mut panics = FirstPanic::default();
        match self {
            Storage::Dense(_, slots) => {
                for slot in slots {
                    // SAFETY: as promised by the caller.
                    panics.run(|| unsafe { slot.empty() });
                    slot.state.reset_if_used();
                }
            }
            // SAFETY: as above.
            Storage::Paged(_, pages) => unsafe { pages.reset(&mut panics) },
            // SAFETY: as above.
            Storage::ItemTable(table) => unsafe { table.reset(&mut panics) },
            // SAFETY: as above.
            Storage::Streamed(table) => unsafe { table.reset(&mut panics) },
        }
        panics.go_on();
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
/// directory still names the page. The worker that retires a page writes to the directory first,
/// and then looks at `users`. All four are `SeqCst`, so one of the two sees the other: either the
/// user finds the page retired and goes, or the page is not used again. No page is freed before the
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
    /// A page that stands for all retired pages.
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
            let found = ItemPlace { slot: &page.slots[place % PAGE], place, users: Some(&page.users) };
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

    /// The number of pages that were given back. All items of such a page are gone.
    fn count_retired(&self) -> usize {
        let retired = self.retired();
        self.directory.iter().filter(|entry| entry.load(Ordering::Relaxed) == retired).count()
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

    /// Drops the values, and makes all pages free. [`make`](Pages::make) resets a page that is used
    /// again.
    ///
    /// # Safety
    /// As for [`Storage::reset`].
    unsafe fn reset(&self, panics: &mut FirstPanic) {
        self.directory.iter().for_each(|entry| entry.store(ptr::null_mut(), Ordering::Relaxed));
        let mut pool = lock(&self.pool);
        let PagePool { all, free } = &mut *pool;
        free.clone_from(all);
        let pages = all.clone();
        drop(pool);
        for page in pages {
            // SAFETY: each page in the list is a box that the storage owns.
            for slot in &unsafe { &*page }.slots {
                // SAFETY: as promised by the caller.
                panics.run(|| unsafe { slot.empty() });
            }
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
