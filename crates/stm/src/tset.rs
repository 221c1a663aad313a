//! [`TSet`]: a set of keys.

use crate::engine::{Engine, Versioned};
use crate::hasher::HashState;
use crate::stop::Tried;
use crate::tmap::TMap;
use crate::transaction::Tx;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// A set of keys, for transactions: a [`TMap`] without values.
///
/// Clones are handles to the same set. Transactions are in each other's way as those of a [`TMap`]
/// are.
///
/// # Paper
/// [HMP05 §5] has the variables; this is a hash trie made of them.
///
/// # Complexity
/// As [`TMap`].
///
/// # Examples
/// ```
/// use selvedge::stm::{TSet, atomically};
///
/// selvedge::run(async {
///     let present = TSet::new();
///     let shared = present.clone();
///     let first = atomically(move |tx| shared.insert(tx, "ann".to_string()));
///     assert!(first.await);
///     assert!(atomically(|tx| present.contains(tx, "ann")).await);
///     assert!(atomically(|tx| present.remove(tx, "ann")).await);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TSet<K, E = Versioned, S = HashState>
where
    K: Send + Sync + 'static,
    E: Engine,
{
    map: TMap<K, (), E, S>,
}

impl<K: Send + Sync + 'static> TSet<K> {
    /// An empty set.
    pub fn new() -> TSet<K> {
        TSet::with_hasher(HashState::default())
    }

    /// An empty set with a name: see
    /// [`TMap::named`].
    pub fn named(name: impl Into<Arc<str>>) -> TSet<K> {
        TSet { map: TMap::named(name) }
    }
}

impl<K: Send + Sync + 'static, E: Engine, S: Send + Sync + 'static> TSet<K, E, S> {
    /// An empty set with this hasher. See
    /// [`TMap::with_hasher`].
    pub fn with_hasher(hasher: S) -> TSet<K, E, S> {
        TSet { map: TMap::with_hasher(hasher) }
    }

    /// As [`with_hasher`](TSet::with_hasher) and [`named`](TSet::named).
    pub fn named_with_hasher(name: impl Into<Arc<str>>, hasher: S) -> TSet<K, E, S> {
        TSet { map: TMap::named_with_hasher(name, hasher) }
    }
}

impl<K: Send + Sync + 'static, E: Engine, S> TSet<K, E, S> {
    /// The keys, in no order. See [`TMap::iter`].
    ///
    /// # Complexity
    /// As [`TMap::iter`].
    pub fn iter<'tx>(&'tx self, tx: &'tx Tx<E>) -> impl Iterator<Item = Tried<&'tx K>> {
        self.map.iter(tx).map(|entry| entry.map(|(key, ())| key))
    }

    /// The number of keys.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Linear, as [`TMap::len`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        self.map.len(tx)
    }

    /// Whether there is no key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TMap::is_empty`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        self.map.is_empty(tx)
    }

    /// Removes all keys.
    ///
    /// # Complexity
    /// As [`TMap::clear`].
    pub fn clear(&self, tx: &Tx<E>) {
        self.map.clear(tx);
    }
}

impl<K, E, S> TSet<K, E, S>
where
    K: Eq + Hash + Send + Sync + 'static,
    E: Engine,
    S: BuildHasher,
{
    /// Whether the set has this key.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TMap::get`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn contains<Q>(&self, tx: &Tx<E>, key: &Q) -> Tried<bool>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.map.contains_key(tx, key)
    }

    /// A reference to the key of the set that is equal to this one.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TMap::get`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn get<'tx, Q>(&self, tx: &'tx Tx<E>, key: &Q) -> Tried<Option<&'tx K>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        Ok(self.map.get_key_value(tx, key)?.map(|(key, ())| key))
    }

    /// Adds a key, if the set does not have it, and tells whether it was added.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TMap::insert`]. Nothing is written if the set has the key.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn insert(&self, tx: &Tx<E>, key: K) -> Tried<bool> {
        self.map.try_insert(tx, key, ())
    }

    /// Removes a key, and tells whether the set had it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TMap::remove`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn remove<Q>(&self, tx: &Tx<E>, key: &Q) -> Tried<bool>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        Ok(self.map.remove(tx, key)?.is_some())
    }
}

impl<K: Send + Sync + 'static, E: Engine, S: Default + Send + Sync + 'static> Default for TSet<K, E, S> {
    /// An empty set.
    fn default() -> Self {
        TSet::with_hasher(S::default())
    }
}

impl<K: Send + Sync + 'static, E: Engine, S> Clone for TSet<K, E, S> {
    /// Another handle to the same set.
    fn clone(&self) -> Self {
        TSet { map: self.map.clone() }
    }
}

impl<K: Send + Sync + 'static, E: Engine, S> fmt::Debug for TSet<K, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TSet").finish_non_exhaustive()
    }
}
