//! The parts of the trie: entries, leaves and branches, and the values of the cells.

use crate::cells::{CellValue, Cells, CellsRef};
use crate::engine::Engine;
use crate::garbage::Free;
use std::any::type_name;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, take};
use std::sync::Arc;

/// The number of entries that a leaf can have.
const LEAF: usize = 4;
/// The bits of the hash that choose a cell of the root.
pub(super) const ROOT_BITS: u32 = 5;
/// The bits that choose a cell of another branch.
pub(super) const BRANCH_BITS: u32 = 4;

/// The cell of the root.
#[inline(always)]
pub(super) fn cell_in_root(hash: u64) -> usize {
    hash as usize % (1 << ROOT_BITS)
}

/// The cell in the branch that begins with this bit.
#[inline(always)]
pub(super) fn cell_in_branch(hash: u64, bit: u32) -> usize {
    (hash >> bit) as usize % (1 << BRANCH_BITS)
}

pub(super) struct TrieEntry<K, V> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) value: V,
}

impl<K, V> TrieEntry<K, V> {
    #[inline(always)]
    fn has<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.hash == hash && self.key.borrow() == key
    }
}

/// Two entries or more. The first `len` are there.
pub(super) struct TrieLeaf<K, V> {
    len: usize,
    /// The upper halves of the hashes, so that a lookup follows hardly any pointer in vain.
    tags: [u32; LEAF],
    entries: [Option<Arc<TrieEntry<K, V>>>; LEAF],
}

#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl<K, V> TrieLeaf<K, V> {
    /// A leaf with two entries. It is not made out of an empty one, of which the compiler knows
    /// that it consists of zeros: the allocator is slower at memory that is to be zero.
    fn of_two(one: Arc<TrieEntry<K, V>>, other: Arc<TrieEntry<K, V>>) -> TrieLeaf<K, V> {
        let tags = [tag(one.hash), tag(other.hash), 0, 0];
        TrieLeaf { len: 2, tags, entries: [Some(one), Some(other), None, None] }
    }

    /// # Panics
    /// If the leaf is full.
    fn push(&mut self, entry: Arc<TrieEntry<K, V>>) {
        self.tags[self.len] = tag(entry.hash);
        self.entries[self.len] = Some(entry);
        self.len += 1;
    }

    #[inline(always)]
    fn position<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let has = |at: &usize| self.entries[*at].as_ref().is_some_and(|entry| entry.has(hash, key));
        (0..LEAF).find(|at| self.tags[*at] == tag(hash) && has(at))
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<TrieEntry<K, V>>> {
        self.entries.iter().flatten()
    }
}

impl<K, V> Clone for TrieLeaf<K, V> {
    /// A leaf with the same entries, which both share.
    fn clone(&self) -> Self {
        TrieLeaf { len: self.len, tags: self.tags, entries: self.entries.clone() }
    }
}

/// More entries than a leaf has, with equal hashes.
pub(super) type TrieBucket<K, V> = Vec<Arc<TrieEntry<K, V>>>;

/// A branch has `1 << BRANCH_BITS` cells.
pub(super) type TrieBranch<K, V, E> = Cells<TrieSlot<K, V, E>, E>;

/// What a cell has in it.
#[derive(Default)]
pub(super) enum TrieSlot<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> {
    #[default]
    Empty,
    One(Arc<TrieEntry<K, V>>),
    Leaf(Box<TrieLeaf<K, V>>),
    Bucket(Box<TrieBucket<K, V>>),
    Branch(TrieBranch<K, V, E>),
}

/// The same, as a transaction sees it.
pub(super) enum SeenSlot<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> {
    Empty,
    One(SharedEntry<'tx, K, V>),
    Leaf(&'tx TrieLeaf<K, V>),
    Bucket(&'tx TrieBucket<K, V>),
    Branch(CellsRef<'tx, TrieSlot<K, V, E>, E>),
}

/// An entry of a cell, as a transaction sees it.
pub(super) struct SharedEntry<'tx, K, V> {
    entry: ManuallyDrop<Arc<TrieEntry<K, V>>>,
    _during: PhantomData<&'tx ()>,
}

impl<'tx, K, V> SharedEntry<'tx, K, V> {
    #[inline(always)]
    fn get(&self) -> &'tx TrieEntry<K, V> {
        // SAFETY: `TrieSlot::see` has made this of an entry that lives as long as `'tx`.
        unsafe { &*Arc::as_ptr(&self.entry) }
    }

    fn share(&self) -> Arc<TrieEntry<K, V>> {
        Arc::clone(&self.entry)
    }
}

/// The kind of a slot lies in the last two bits of the pointer. An empty slot is a null pointer.
const BRANCH: usize = 0;
const ONE: usize = 1;
const LEAVES: usize = 2;
const BUCKET: usize = 3;
const KINDS: usize = 3;

#[inline(always)]
fn with_kind(pointer: *mut (), kind: usize) -> *mut () {
    pointer.map_addr(|address| address | kind)
}

#[inline(always)]
fn without_kind<T>(raw: *mut ()) -> *mut T {
    const { assert!(align_of::<T>() > KINDS, "the pointer has two free bits") };
    raw.map_addr(|address| address & !KINDS).cast()
}

/// # Safety
/// `TrieSlot::into_raw` gave the pointer for the same types, and it is not used again.
unsafe fn free_slot<K, V, E>(raw: *mut ())
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    if raw.is_null() {
        return;
    }
    // SAFETY: the caller's contract; `into_raw` has given each pointer the kind of its type.
    unsafe {
        match raw.addr() & KINDS {
            ONE => drop(Arc::from_raw(without_kind::<TrieEntry<K, V>>(raw).cast_const())),
            LEAVES => drop(Box::from_raw(without_kind::<TrieLeaf<K, V>>(raw))),
            BUCKET => drop(Box::from_raw(without_kind::<TrieBucket<K, V>>(raw))),
            _ => drop(TrieBranch::<K, V, E>::from_raw(raw)),
        }
    }
}

// SAFETY: `free_slot` drops what `into_raw` has leaked; `see` borrows it.
unsafe impl<K, V, E> CellValue for TrieSlot<K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    type Seen<'tx> = SeenSlot<'tx, K, V, E>;

    const FREE: Option<Free> = Some(free_slot::<K, V, E>);

    fn type_name() -> &'static str {
        type_name::<(K, V)>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        match self {
            TrieSlot::Empty => std::ptr::null_mut(),
            TrieSlot::One(entry) => with_kind(Arc::into_raw(entry).cast_mut().cast(), ONE),
            TrieSlot::Leaf(leaf) => with_kind(Box::into_raw(leaf).cast(), LEAVES),
            TrieSlot::Bucket(entries) => with_kind(Box::into_raw(entries).cast(), BUCKET),
            TrieSlot::Branch(branch) => with_kind(branch.into_raw(), BRANCH),
        }
    }

    #[inline(always)]
    unsafe fn see<'tx>(raw: *mut (), _during: PhantomData<&'tx ()>) -> SeenSlot<'tx, K, V, E> {
        if raw.is_null() {
            return SeenSlot::Empty;
        }
        // SAFETY: the caller's contract; `into_raw` has given each pointer the kind of its type.
        unsafe {
            match raw.addr() & KINDS {
                ONE => {
                    let entry = Arc::from_raw(without_kind::<TrieEntry<K, V>>(raw).cast_const());
                    SeenSlot::One(SharedEntry { entry: ManuallyDrop::new(entry), _during })
                }
                LEAVES => SeenSlot::Leaf(&*without_kind(raw)),
                BUCKET => SeenSlot::Bucket(&*without_kind(raw)),
                _ => SeenSlot::Branch(CellsRef::new(raw)),
            }
        }
    }
}

impl<'tx, K, V, E> SeenSlot<'tx, K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    /// The entry of a key, and its place.
    #[inline(always)]
    pub(super) fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<(usize, &'tx TrieEntry<K, V>)>
    where
        K: Borrow<Q>,
    {
        let at = match self {
            SeenSlot::One(entry) => entry.get().has(hash, key).then_some(0),
            SeenSlot::Leaf(leaf) => leaf.position(hash, key),
            SeenSlot::Bucket(entries) => entries.iter().position(|entry| entry.has(hash, key)),
            SeenSlot::Empty | SeenSlot::Branch(_) => None,
        };
        at.and_then(|at| Some((at, self.entry(at)?)))
    }

    /// The entry at a place, if the node has that place.
    #[inline(always)]
    pub(super) fn entry(&self, at: usize) -> Option<&'tx TrieEntry<K, V>> {
        match self {
            SeenSlot::One(entry) => (at == 0).then(|| entry.get()),
            SeenSlot::Leaf(leaf) => leaf.entries.get(at)?.as_deref(),
            SeenSlot::Bucket(entries) => entries.get(at).map(|entry| &**entry),
            SeenSlot::Empty | SeenSlot::Branch(_) => None,
        }
    }

    /// A slot with one more entry. In the place of this one, a branch begins with this bit.
    pub(super) fn with(&self, entry: Arc<TrieEntry<K, V>>, bit: u32) -> TrieSlot<K, V, E> {
        match self {
            SeenSlot::Empty => TrieSlot::One(entry),
            SeenSlot::One(one) => TrieSlot::One(one.share()).and(entry),
            SeenSlot::Leaf(leaf) if leaf.len < LEAF => TrieSlot::Leaf(Box::new((*leaf).clone())).and(entry),
            SeenSlot::Leaf(leaf) => TrieSlot::of(leaf.iter().cloned().chain([entry]).collect(), bit),
            SeenSlot::Bucket(entries) => {
                TrieSlot::Bucket(Box::new(entries.iter().cloned().chain([entry]).collect()))
            }
            SeenSlot::Branch(_) => unreachable!("a branch has no entries of its own"),
        }
    }

    /// A slot with another entry at this place.
    pub(super) fn replaced(&self, at: usize, entry: Arc<TrieEntry<K, V>>) -> TrieSlot<K, V, E> {
        match self {
            SeenSlot::One(_) => TrieSlot::One(entry),
            SeenSlot::Leaf(leaf) => {
                let mut leaf = Box::new((*leaf).clone());
                leaf.tags[at] = tag(entry.hash);
                leaf.entries[at] = Some(entry);
                TrieSlot::Leaf(leaf)
            }
            SeenSlot::Bucket(entries) => {
                let mut entries = Box::new((*entries).clone());
                entries[at] = entry;
                TrieSlot::Bucket(entries)
            }
            SeenSlot::Empty | SeenSlot::Branch(_) => unreachable!("there is an entry at this place"),
        }
    }

    /// A slot without the entry at this place.
    pub(super) fn without(&self, at: usize) -> TrieSlot<K, V, E> {
        match self {
            SeenSlot::Empty | SeenSlot::One(_) => TrieSlot::Empty,
            SeenSlot::Leaf(leaf) => {
                let others = leaf.iter().enumerate().filter(|(place, _)| *place != at);
                others.fold(TrieSlot::Empty, |slot, (_, other)| slot.and(other.clone()))
            }
            SeenSlot::Bucket(entries) => {
                let mut entries = Box::new((*entries).clone());
                entries.swap_remove(at);
                if entries.is_empty() { TrieSlot::Empty } else { TrieSlot::Bucket(entries) }
            }
            SeenSlot::Branch(_) => unreachable!("a branch has no entries of its own"),
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> TrieSlot<K, V, E> {
    /// A slot with one more entry.
    ///
    /// # Panics
    /// If it has no room.
    fn and(self, entry: Arc<TrieEntry<K, V>>) -> Self {
        match self {
            TrieSlot::Empty => TrieSlot::One(entry),
            TrieSlot::One(one) => TrieSlot::Leaf(Box::new(TrieLeaf::of_two(one, entry))),
            TrieSlot::Leaf(mut leaf) => {
                leaf.push(entry);
                TrieSlot::Leaf(leaf)
            }
            TrieSlot::Bucket(_) | TrieSlot::Branch(_) => unreachable!("they do not grow in place"),
        }
    }

    /// A branch or a bucket for one entry more than a leaf can have.
    fn of(entries: TrieBucket<K, V>, bit: u32) -> Self {
        if bit >= u64::BITS {
            return TrieSlot::Bucket(Box::new(entries));
        }
        let mut slots: [Self; 1 << BRANCH_BITS] = Default::default();
        let first = cell_in_branch(entries[0].hash, bit);
        if entries.iter().all(|entry| cell_in_branch(entry.hash, bit) == first) {
            slots[first] = TrieSlot::of(entries, bit + BRANCH_BITS);
        } else {
            // No cell gets all of them, so each has room for its part.
            for entry in entries {
                let slot = &mut slots[cell_in_branch(entry.hash, bit)];
                *slot = take(slot).and(entry);
            }
        }
        let mut slots = slots.into_iter();
        TrieSlot::Branch(Cells::new((), 1 << BRANCH_BITS, None, || slots.next().unwrap_or_default()))
    }
}
