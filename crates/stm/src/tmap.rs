//! [`TMap`]: a map from keys to values.
//!
//! # The trie
//! ```text
//!    root          32 cells     by bits 0..5 of the hash of the key
//!    branch        16 cells     by bits 5..9; below it by bits 9..13, and so on
//!    cell          empty, or an entry, or a leaf of at most four, or a branch
//! ```
//! A cell is a variable; a branch is a block of them (`cells.rs`), and so is the root, of which the
//! head is the hasher. The value of a cell is a pointer to an entry, a leaf or a branch. A leaf is
//! immutable: a change of an entry replaces the leaf, and the new one shares the other entries. A
//! fifth entry makes a branch of a leaf. Below the last bits of the hash there are no branches, but
//! buckets without a bound.
//!
//! A leaf that loses all entries but one leaves that entry in the cell. If the last entry of a
//! branch is removed, the cell of the branch becomes empty too. So each branch but the root has an
//! entry.
//!
//! | File | |
//! |---|---|
//! | `tmap.rs` | the map: [`TMap`] |
//! | `tmap/trie.rs` | the way from the root to the place of a hash, and the changes there |
//! | `tmap/node.rs` | entries, leaves and branches, and the values of the cells |
//! | `tmap/iter.rs` | the iterator |

mod iter;
mod node;
mod trie;

pub use iter::TMapIter;

use crate::cells::Cells;
use crate::engine::{Engine, Versioned};
use crate::hasher::HashState;
use crate::stop::Tried;
use crate::transaction::Tx;
use node::{ROOT_BITS, TrieSlot};
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use trie::{Trie, place};

/// A map from keys to values, for transactions.
///
/// Clones are handles to the same map. Transactions are in each other's way if they touch the same
/// leaf, and one of them changes it. The hash of a key chooses its leaf, which has at most four
/// entries; so two transactions with different keys seldom meet. Values that change often are
/// better kept in a variable of their own, as in `TMap<K, TWord<u64>>`: the change of such a value
/// is in the way of the transactions that touch this value alone.
///
/// The hasher is [`HashState`], which is fast. For keys that an attacker chooses, see there.
///
/// A transaction that finds no entry, and retries, waits until the leaf changes in which the entry
/// would be.
///
/// # Paper
/// [HMP05 §5] has the variables; this is a hash trie made of them.
///
/// # Complexity
/// A lookup reads two variables in a map of 1,000 entries, three in one of 10,000, and four in one
/// of 100,000. An entry takes a node of its own: its key, its value and 24 bytes. Leaves and
/// branches take 70 to 130 bytes more for each entry, the most when many leaves have become
/// branches. An empty map takes 2 KB.
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
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TMap<K, V, E = Versioned, S = HashState>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    trie: Trie<K, V, E, S>,
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> TMap<K, V> {
    /// An empty map.
    pub fn new() -> TMap<K, V> {
        TMap::with_hasher(HashState::default())
    }

    /// An empty map with a name. Reports of waiting threads
    /// call the cells of its root `NAME[0]` and so on: see [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>) -> TMap<K, V> {
        TMap::named_with_hasher(name, HashState::default())
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S: Send + Sync + 'static>
    TMap<K, V, E, S>
{
    /// An empty map with this hasher. All 64 bits of the hashes
    /// are to differ: a map is slow if its hashes differ in the upper half alone.
    pub fn with_hasher(hasher: S) -> TMap<K, V, E, S> {
        TMap::made(None, hasher)
    }

    /// As [`with_hasher`](TMap::with_hasher) and [`named`](TMap::named).
    pub fn named_with_hasher(name: impl Into<Arc<str>>, hasher: S) -> TMap<K, V, E, S> {
        TMap::made(Some(name.into()), hasher)
    }

    fn made(name: Option<Arc<str>>, hasher: S) -> TMap<K, V, E, S> {
        TMap { trie: Cells::new(hasher, 1 << ROOT_BITS, name, TrieSlot::default) }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine, S> TMap<K, V, E, S> {
    /// The entries, in no order. Each leaf is read when the iterator comes to it; an entry that the
    /// transaction inserts or removes meanwhile may be there or not.
    ///
    /// # Complexity
    /// Linear in the number of entries. Each change of the map by another transaction is in the
    /// way.
    pub fn iter<'tx>(&'tx self, tx: &'tx Tx<E>) -> TMapIter<'tx, K, V, E> {
        TMapIter::new(tx, self.trie.row())
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
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        self.iter(tx).try_fold(0, |len, entry| entry.map(|_| len + 1))
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Up to 32 reads, and up to 16 for each level of branches.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        Ok(self.iter(tx).next().transpose()?.is_none())
    }

    /// Removes all entries.
    ///
    /// # Complexity
    /// 32 writes. It is in the way of each other transaction of the map.
    pub fn clear(&self, tx: &Tx<E>) {
        (0..self.trie.len()).for_each(|cell| self.trie.write(tx, cell, TrieSlot::Empty));
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
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
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
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn get_key_value<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<(&'tx K, &'tx V)>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let place = place(&self.trie, tx, key)?;
        Ok(place.slot.find(place.hash, key).map(|(_, entry)| (&entry.key, &entry.value)))
    }

    /// Whether there is an entry with this key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
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
    /// One allocation, the entry; or two, if the leaf has other entries, up to three, which the new
    /// leaf shares. A leaf that becomes a branch takes some more.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn insert<'tx>(&self, tx: &'tx Tx<E>, key: K, value: V) -> Tried<Option<&'tx V>> {
        let place = place(&self.trie, tx, &key)?;
        let (at, old) = place.slot.find(place.hash, &key).unzip();
        place.put(tx, at, key, value);
        Ok(old.map(|entry| &entry.value))
    }

    /// Adds an entry, if there is none with this key, and tells whether it was added.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`insert`](TMap::insert). Nothing is written if there is an entry with this key.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_insert(&self, tx: &Tx<E>, key: K, value: V) -> Tried<bool> {
        let place = place(&self.trie, tx, &key)?;
        let is_new = place.slot.find(place.hash, &key).is_none();
        if is_new {
            place.put(tx, None, key, value);
        }
        Ok(is_new)
    }

    /// Removes the entry with this key, and gives a reference to its value.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// One allocation, if the leaf has more than two entries, and else none. If the cell becomes
    /// empty, its branch is searched for another entry; as a rule that takes a few reads.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn remove<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<&'tx V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let place = place(&self.trie, tx, key)?;
        let Some((at, entry)) = place.slot.find(place.hash, key) else { return Ok(None) };
        place.take_out(&self.trie, tx, at)?;
        Ok(Some(&entry.value))
    }

    /// Replaces the value of a key by the value that `f` makes of it. `f` gets `None` if there is
    /// no entry with this key; there is none afterwards if `f` gives `None`.
    ///
    /// `f` may change the map too. The value that it gives counts more than a change that it has
    /// made to the same key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`insert`](TMap::insert) or [`remove`](TMap::remove), with one search. If `f` has written
    /// a variable, it is two searches.
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
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn update(&self, tx: &Tx<E>, key: K, f: impl FnOnce(Option<&V>) -> Option<V>) -> Tried<()> {
        let mut found = place(&self.trie, tx, &key)?;
        let (mut at, old) = found.slot.find(found.hash, &key).unzip();
        let changes = tx.changes();
        let new = f(old.map(|entry| &entry.value));
        if tx.changes() != changes {
            found = place(&self.trie, tx, &key)?;
            at = found.slot.find(found.hash, &key).map(|(at, _)| at);
        }
        match (new, at) {
            (Some(value), _) => found.put(tx, at, key, value),
            (None, Some(at)) => found.take_out(&self.trie, tx, at)?,
            (None, None) => {}
        }
        Ok(())
    }
}

impl<K, V, E, S> Default for TMap<K, V, E, S>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
    S: Default + Send + Sync + 'static,
{
    /// An empty map.
    fn default() -> Self {
        TMap::with_hasher(S::default())
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
