//! [`TMap`]: a map from keys to values.
//!
//! # The trie
//! ```text
//!    root          16 cells     by bits 0..4 of the hash of the key
//!    branch        32 cells     by bits 4..9; below it by bits 9..14, and so on
//!    cell          empty, or a leaf of at most eight entries, or a branch
//! ```
//! A cell is a variable; a branch is a block of them (`cells.rs`). A leaf is immutable: a change of
//! an entry replaces the leaf, and the new one shares the other entries. A ninth entry makes a
//! branch of a leaf. Below the last bits of the hash there are no branches, but buckets without a
//! bound.
//!
//! A leaf that loses its last entry leaves an empty cell. If it was the last one of its branch, the
//! cell of the branch becomes empty too. So each branch but the root has an entry.

use crate::cells::Cells;
use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

/// A map from keys to values, for transactions.
///
/// Clones are handles to the same map. Transactions are in each other's way if they touch the same
/// leaf, and one of them changes it. The hash of a key chooses its leaf, which has at most eight
/// entries; so two transactions with different keys seldom meet. Values that change often are
/// better kept in a variable of their own, as in `TMap<K, TWord<u64>>`: the change of such a value
/// is in the way of the transactions that touch this value alone.
///
/// A transaction that finds no entry, and retries, waits until the leaf changes in which the entry
/// would be.
///
/// # Paper
/// [HMP05 §5] has the variables; this is a hash trie made of them.
///
/// # Complexity
/// A lookup reads two variables in a map of 1,000 entries, and three or four in one of 100,000. An
/// entry takes a node of its own: its key, its value and 24 bytes. Leaves and branches take 50 to
/// 230 bytes more for each entry, the most just after many leaves have become branches. An empty
/// map takes 1 KB.
///
/// # Examples
/// ```
/// use selvedge::stm::{TMap, atomically};
///
/// selvedge::run(async {
///     let pages = TMap::new();
///     let reader = pages.clone();
///     let waits = selvedge::spawn(atomically(move |tx| match reader.get(tx, "/warp")? {
///         Some(page) => Ok(String::len(page)),
///         None => tx.retry(),
///     }));
///     atomically(|tx| {
///         pages.insert(tx, "/warp".to_string(), "lengthwise".to_string())?;
///         pages.insert(tx, "/weft".to_string(), "across".to_string())?;
///         Ok(())
///     })
///     .await;
///     assert_eq!(waits.await.unwrap(), 10);
///     let weft = atomically(|tx| pages.remove(tx, "/weft").map(|page| page.cloned())).await;
///     assert_eq!(weft.as_deref(), Some("across"));
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
pub struct TMap<K, V, E = Versioned, S = RandomState>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    trie: Arc<Trie<K, V, E, S>>,
}

struct Trie<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S> {
    root: TrieBranch<K, V, E>,
    hasher: S,
}

type TrieBranch<K, V, E> = Cells<Option<Box<TrieNode<K, V, E>>>, E>;

enum TrieNode<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> {
    Branch(TrieBranch<K, V, E>),
    Leaf(TrieLeaf<K, V>),
    /// More entries than a leaf has, with equal hashes.
    Bucket(Vec<Arc<TrieEntry<K, V>>>),
}

struct TrieEntry<K, V> {
    hash: u64,
    key: K,
    value: V,
}

/// The first `len` entries are there.
struct TrieLeaf<K, V> {
    len: usize,
    /// The upper halves of the hashes, so that a lookup follows hardly any pointer in vain.
    tags: [u32; LEAF],
    entries: [Option<Arc<TrieEntry<K, V>>>; LEAF],
}

/// The number of entries that a leaf can have.
const LEAF: usize = 8;
/// The bits of the hash that choose a cell of the root.
const ROOT_BITS: u32 = 4;
/// The bits that choose a cell of another branch.
const BRANCH_BITS: u32 = 5;

#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The cell in the branch that begins with this bit.
#[inline(always)]
fn cell_in_branch(hash: u64, bit: u32) -> usize {
    (hash >> bit) as usize % (1 << BRANCH_BITS)
}

#[inline(always)]
fn cell_in_root(hash: u64) -> usize {
    hash as usize % (1 << ROOT_BITS)
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

impl<K, V> TrieLeaf<K, V> {
    fn of(entry: Arc<TrieEntry<K, V>>) -> TrieLeaf<K, V> {
        let mut leaf = TrieLeaf { len: 0, tags: [0; LEAF], entries: [const { None }; LEAF] };
        leaf.push(entry);
        leaf
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
        let is_at = |at: &usize| self.tags[*at] == tag(hash) && self[*at].has(hash, key);
        (0..self.len.min(LEAF)).find(is_at)
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<TrieEntry<K, V>>> {
        self.entries.iter().flatten()
    }
}

impl<K, V> std::ops::Index<usize> for TrieLeaf<K, V> {
    type Output = Arc<TrieEntry<K, V>>;

    #[inline(always)]
    fn index(&self, at: usize) -> &Arc<TrieEntry<K, V>> {
        self.entries[at].as_ref().expect("an entry of the leaf")
    }
}

impl<K, V> Clone for TrieLeaf<K, V> {
    /// A leaf with the same entries, which both share.
    fn clone(&self) -> Self {
        TrieLeaf { len: self.len, tags: self.tags, entries: self.entries.clone() }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> TrieNode<K, V, E> {
    /// The place of a key among the entries.
    #[inline(always)]
    fn position<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        match self {
            TrieNode::Leaf(leaf) => leaf.position(hash, key),
            TrieNode::Bucket(entries) => entries.iter().position(|entry| entry.has(hash, key)),
            TrieNode::Branch(_) => None,
        }
    }

    /// The entry at a place, if there are so many.
    #[inline(always)]
    fn entry(&self, at: usize) -> Option<&TrieEntry<K, V>> {
        match self {
            TrieNode::Leaf(leaf) => leaf.entries.get(at)?.as_deref(),
            TrieNode::Bucket(entries) => entries.get(at).map(|entry| &**entry),
            TrieNode::Branch(_) => None,
        }
    }

    /// A node with one more entry. Below it, branches begin with this bit.
    fn with(&self, entry: Arc<TrieEntry<K, V>>, bit: u32) -> TrieNode<K, V, E> {
        match self {
            TrieNode::Leaf(leaf) if leaf.len < LEAF => {
                let mut leaf = leaf.clone();
                leaf.push(entry);
                TrieNode::Leaf(leaf)
            }
            TrieNode::Leaf(leaf) => TrieNode::of(leaf.iter().cloned().chain([entry]).collect(), bit),
            TrieNode::Bucket(entries) => TrieNode::Bucket(entries.iter().cloned().chain([entry]).collect()),
            TrieNode::Branch(_) => unreachable!("a branch has no entries of its own"),
        }
    }

    /// A branch or a bucket for one entry more than a leaf can have.
    fn of(entries: Vec<Arc<TrieEntry<K, V>>>, bit: u32) -> TrieNode<K, V, E> {
        if bit >= u64::BITS {
            return TrieNode::Bucket(entries);
        }
        let mut cells: Vec<Option<Box<Self>>> = (0..1 << BRANCH_BITS).map(|_| None).collect();
        let first = cell_in_branch(entries[0].hash, bit);
        if entries.iter().all(|entry| cell_in_branch(entry.hash, bit) == first) {
            cells[first] = Some(Box::new(TrieNode::of(entries, bit + BRANCH_BITS)));
            return TrieNode::Branch(Cells::new(cells));
        }
        for entry in entries {
            match &mut cells[cell_in_branch(entry.hash, bit)] {
                Some(node) => match &mut **node {
                    TrieNode::Leaf(leaf) => leaf.push(entry),
                    _ => unreachable!("at most eight of the nine entries are in one cell"),
                },
                empty => *empty = Some(Box::new(TrieNode::Leaf(TrieLeaf::of(entry)))),
            }
        }
        TrieNode::Branch(Cells::new(cells))
    }

    /// A node with another entry at this place.
    fn replaced(&self, at: usize, entry: Arc<TrieEntry<K, V>>) -> TrieNode<K, V, E> {
        match self {
            TrieNode::Leaf(leaf) => {
                let mut leaf = leaf.clone();
                leaf.tags[at] = tag(entry.hash);
                leaf.entries[at] = Some(entry);
                TrieNode::Leaf(leaf)
            }
            TrieNode::Bucket(entries) => {
                let mut entries = entries.clone();
                entries[at] = entry;
                TrieNode::Bucket(entries)
            }
            TrieNode::Branch(_) => unreachable!("a branch has no entries of its own"),
        }
    }

    /// A node without the entry at this place. `None` if there is no other entry.
    fn without(&self, at: usize) -> Option<TrieNode<K, V, E>> {
        match self {
            TrieNode::Leaf(leaf) => {
                let mut others = leaf.iter().enumerate().filter(|(place, _)| *place != at);
                let mut rest = TrieLeaf::of(others.next()?.1.clone());
                others.for_each(|(_, entry)| rest.push(entry.clone()));
                Some(TrieNode::Leaf(rest))
            }
            TrieNode::Bucket(entries) => {
                let mut entries = entries.clone();
                entries.swap_remove(at);
                (!entries.is_empty()).then_some(TrieNode::Bucket(entries))
            }
            TrieNode::Branch(_) => unreachable!("a branch has no entries of its own"),
        }
    }
}

/// The cell in which the entry of a hash is, if there is one.
struct TriePlace<'a, 'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> {
    branch: &'a TrieBranch<K, V, E>,
    cell: usize,
    /// The leaf or the bucket in the cell.
    node: Option<&'tx TrieNode<K, V, E>>,
    /// The bit with which a branch in this cell would begin.
    bit: u32,
}

impl<'tx, K, V, E> TriePlace<'_, 'tx, K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    fn put(&self, tx: &Tx<E>, at: Option<usize>, entry: TrieEntry<K, V>) {
        let entry = Arc::new(entry);
        let node = match (self.node, at) {
            (None, _) => TrieNode::Leaf(TrieLeaf::of(entry)),
            (Some(node), None) => node.with(entry, self.bit),
            (Some(node), Some(at)) => node.replaced(at, entry),
        };
        self.branch.write(tx, self.cell, Some(Box::new(node)));
    }
}

impl<K, V, E, S> Trie<K, V, E, S>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
    S: BuildHasher,
{
    #[inline]
    fn place<'a, 'tx: 'a>(&'a self, tx: &'tx Tx<E>, hash: u64) -> Tried<TriePlace<'a, 'tx, K, V, E>> {
        let (mut branch, mut cell, mut bit) = (&self.root, cell_in_root(hash), ROOT_BITS);
        loop {
            match branch.read(tx, cell)? {
                Some(TrieNode::Branch(below)) => {
                    (branch, cell) = (below, cell_in_branch(hash, bit));
                    bit += BRANCH_BITS;
                }
                node => return Ok(TriePlace { branch, cell, node, bit }),
            }
        }
    }

    /// Takes the entry out of the node of its place.
    fn take_out(&self, tx: &Tx<E>, hash: u64, place: &TriePlace<'_, '_, K, V, E>, at: usize) -> Tried<()> {
        let rest = place.node.and_then(|node| node.without(at));
        let is_empty = rest.is_none();
        place.branch.write(tx, place.cell, rest.map(Box::new));
        let is_in_root = place.bit == ROOT_BITS;
        if is_empty && !is_in_root && is_alone(tx, place.branch, place.cell)? {
            self.shrink(tx, hash)?;
        }
        Ok(())
    }

    /// Empties the cells of the branches above this hash that have no entry. The lowest branch has
    /// none.
    #[cold]
    fn shrink(&self, tx: &Tx<E>, hash: u64) -> Tried<()> {
        let mut path = Vec::new();
        let (mut branch, mut cell, mut bit) = (&self.root, cell_in_root(hash), ROOT_BITS);
        while let Some(TrieNode::Branch(below)) = branch.read(tx, cell)? {
            path.push((branch, cell));
            (branch, cell) = (below, cell_in_branch(hash, bit));
            bit += BRANCH_BITS;
        }
        while let Some((branch, cell)) = path.pop() {
            branch.write(tx, cell, None);
            let is_root = path.is_empty();
            if is_root || !is_alone(tx, branch, cell)? {
                break;
            }
        }
        Ok(())
    }
}

/// Whether all other cells of a branch are empty. The next one often is not.
fn is_alone<K, V, E>(tx: &Tx<E>, branch: &TrieBranch<K, V, E>, cell: usize) -> Tried<bool>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    for other in (cell + 1..branch.len()).chain(0..cell) {
        if branch.read(tx, other)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> TMap<K, V> {
    /// An empty map, for transactions of the default engine.
    #[expect(clippy::new_without_default, reason = "a map is made on purpose, as each variable is")]
    pub fn new() -> TMap<K, V> {
        TMap::with_engine()
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> TMap<K, V, E> {
    /// An empty map, for transactions of the engine `E`.
    pub fn with_engine() -> TMap<K, V, E> {
        TMap::with_hasher(RandomState::new())
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S> TMap<K, V, E, S> {
    /// An empty map with this hasher, for transactions of the engine `E`. All 64 bits of the hashes
    /// are to differ: a map is slow if its hashes differ in the upper half alone.
    pub fn with_hasher(hasher: S) -> TMap<K, V, E, S> {
        let root = Cells::new((0..1 << ROOT_BITS).map(|_| None).collect());
        TMap { trie: Arc::new(Trie { root, hasher }) }
    }

    /// The entries, in no order. Each leaf is read when the iterator comes to it; an entry that the
    /// transaction inserts or removes meanwhile may be there or not.
    ///
    /// # Complexity
    /// Linear in the number of entries. Each change of the map by another transaction is in the
    /// way.
    pub fn iter<'tx>(&'tx self, tx: &'tx Tx<E>) -> TMapIter<'tx, K, V, E> {
        TMapIter { tx, branches: vec![(&self.trie.root, 0)], leaf: None }
    }

    /// The number of entries.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`iter`](TMap::iter): the map does not count its entries, because each insertion would be
    /// in the way of the other ones. A program that needs the number often keeps a
    /// [`TCounter`](crate::TCounter) beside the map.
    pub fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        self.iter(tx).try_fold(0, |len, entry| entry.map(|_| len + 1))
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Up to 16 reads, and up to 32 for each level of branches.
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        Ok(self.iter(tx).next().transpose()?.is_none())
    }

    /// Removes all entries.
    ///
    /// # Complexity
    /// 16 writes. It is in the way of each other transaction of the map.
    pub fn clear(&self, tx: &Tx<E>) {
        (0..self.trie.root.len()).for_each(|cell| self.trie.root.write(tx, cell, None));
    }
}

impl<K, V, E, S> TMap<K, V, E, S>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
    S: BuildHasher,
{
    /// A reference to the value of a key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// One read for each level of the trie. Nothing is allocated or cloned.
    #[inline]
    pub fn get<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<&'tx V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        Ok(self.get_key_value(tx, key)?.map(|(_, value)| value))
    }

    /// References to the key of an entry and its value.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    pub fn get_key_value<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<(&'tx K, &'tx V)>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.trie.hasher.hash_one(key);
        let Some(node) = self.trie.place(tx, hash)?.node else { return Ok(None) };
        let entry = node.position(hash, key).and_then(|at| node.entry(at));
        Ok(entry.map(|entry| (&entry.key, &entry.value)))
    }

    /// Whether there is an entry with this key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    pub fn contains_key<Q>(&self, tx: &Tx<E>, key: &Q) -> Tried<bool>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        Ok(self.get(tx, key)?.is_some())
    }

    /// Adds an entry, or replaces the one with this key. Gives a reference to the value of the
    /// entry that was replaced.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Two allocations: the entry, and its leaf, which shares the up to seven others. A leaf that
    /// becomes a branch takes some more.
    pub fn insert<'tx>(&self, tx: &'tx Tx<E>, key: K, value: V) -> Tried<Option<&'tx V>> {
        let hash = self.trie.hasher.hash_one(&key);
        let place = self.trie.place(tx, hash)?;
        let at = place.node.and_then(|node| node.position(hash, &key));
        place.put(tx, at, TrieEntry { hash, key, value });
        Ok(place.node.zip(at).and_then(|(node, at)| node.entry(at)).map(|entry| &entry.value))
    }

    /// Adds an entry, if there is none with this key, and tells whether it was added.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`insert`](TMap::insert). Nothing is written if there is an entry with this key.
    pub fn try_insert(&self, tx: &Tx<E>, key: K, value: V) -> Tried<bool> {
        let hash = self.trie.hasher.hash_one(&key);
        let place = self.trie.place(tx, hash)?;
        let is_new = place.node.is_none_or(|node| node.position(hash, &key).is_none());
        if is_new {
            place.put(tx, None, TrieEntry { hash, key, value });
        }
        Ok(is_new)
    }

    /// Removes the entry with this key, and gives a reference to its value.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// One allocation. If the leaf becomes empty, its branch is searched for another one; as a rule
    /// that takes one read or two.
    pub fn remove<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<&'tx V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.trie.hasher.hash_one(key);
        let place = self.trie.place(tx, hash)?;
        let Some(node) = place.node else { return Ok(None) };
        let Some(at) = node.position(hash, key) else { return Ok(None) };
        self.trie.take_out(tx, hash, &place, at)?;
        Ok(node.entry(at).map(|entry| &entry.value))
    }

    /// Replaces the value of a key by one that `f` makes of it. `f` gets `None` if there is no
    /// entry with this key; there is none afterwards if `f` gives `None`.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`insert`](TMap::insert) or [`remove`](TMap::remove), with one search.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TMap, atomically_blocking};
    ///
    /// let counts = TMap::new();
    /// for word in ["warp", "weft", "warp"] {
    ///     atomically_blocking(|tx| counts.update(tx, word, |n| Some(n.unwrap_or(&0) + 1)));
    /// }
    /// assert_eq!(atomically_blocking(|tx| counts.get(tx, "warp").map(|n| n.copied())), Some(2));
    /// ```
    #[doc(alias = "entry")]
    #[doc(alias = "alter")]
    pub fn update(&self, tx: &Tx<E>, key: K, f: impl FnOnce(Option<&V>) -> Option<V>) -> Tried<()> {
        let hash = self.trie.hasher.hash_one(&key);
        let place = self.trie.place(tx, hash)?;
        let at = place.node.and_then(|node| node.position(hash, &key));
        let old = place.node.zip(at).and_then(|(node, at)| node.entry(at));
        match (f(old.map(|entry| &entry.value)), at) {
            (Some(value), _) => place.put(tx, at, TrieEntry { hash, key, value }),
            (None, Some(at)) => self.trie.take_out(tx, hash, &place, at)?,
            (None, None) => {}
        }
        Ok(())
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S> Clone for TMap<K, V, E, S> {
    /// Another handle to the same map.
    fn clone(&self) -> Self {
        TMap { trie: self.trie.clone() }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S> fmt::Debug for TMap<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TMap").finish_non_exhaustive()
    }
}

/// The entries of a [`TMap`], as a transaction sees them: see [`TMap::iter`].
pub struct TMapIter<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine = Versioned> {
    tx: &'tx Tx<E>,
    /// From the root down, with the next cell of each.
    branches: Vec<(&'tx TrieBranch<K, V, E>, usize)>,
    /// A leaf or a bucket, with the place of its next entry.
    leaf: Option<(&'tx TrieNode<K, V, E>, usize)>,
}

impl<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> Iterator for TMapIter<'tx, K, V, E> {
    /// An error is as one of [`TVar::read`](crate::TVar::read). The body hands it on.
    type Item = Tried<(&'tx K, &'tx V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((node, at)) = &mut self.leaf {
                if let Some(entry) = node.entry(*at) {
                    *at += 1;
                    return Some(Ok((&entry.key, &entry.value)));
                }
                self.leaf = None;
            }
            let (branch, cell) = self.branches.last_mut()?;
            if *cell == branch.len() {
                self.branches.pop();
                continue;
            }
            *cell += 1;
            match branch.read(self.tx, *cell - 1) {
                Err(stop) => return Some(Err(stop)),
                Ok(Some(TrieNode::Branch(below))) => self.branches.push((below, 0)),
                Ok(leaf) => self.leaf = leaf.map(|leaf| (leaf, 0)),
            }
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> fmt::Debug for TMapIter<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TMapIter").finish_non_exhaustive()
    }
}
