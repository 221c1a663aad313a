//! The maps that the STAMP programs use: `Tries`, the hash trie of the library, and `Trees`, the
//! treap of `treap.rs`, which is like the trees of the Haskell programs. `child.rs` chooses one
//! of them, and `vacation.rs` and `intruder.rs` are generic over `Maps`.
//!
//! A value is a handle to a variable, so a change of a value does not change the map. All functions
//! run within a transaction.

use super::treap::Treap;
use selvedge_stm::{TMap, Tried, Tx, Versioned, atomically_blocking};
use std::hash::{BuildHasherDefault, Hasher};

/// A value of a map: a handle to a variable.
pub(in crate::child) trait MapValue: Clone + Send + Sync + 'static {}

impl<V: Clone + Send + Sync + 'static> MapValue for V {}

/// A kind of maps.
pub(in crate::child) trait Maps: 'static {
    type MapOf<V: MapValue>: Map<V>;
}

/// A map from numbers, for transactions.
pub(in crate::child) trait Map<V>: Send + Sync + 'static {
    fn new() -> Self;

    /// The value of a key.
    fn find<'tx>(&self, tx: &'tx Tx, key: u64) -> Tried<Option<&'tx V>>;

    /// Adds a key that the map does not have.
    fn insert(&self, tx: &Tx, key: u64, value: V) -> Tried<()>;

    /// Removes a key.
    fn remove(&self, tx: &Tx, key: u64) -> Tried<()>;

    /// The keys and values, in any order.
    fn entries(&self) -> Vec<(u64, V)>;
}

/// The hash trie of the library.
pub(in crate::child) struct Tries;

impl Maps for Tries {
    type MapOf<V: MapValue> = Trie<V>;
}

type Trie<V> = TMap<u64, V, Versioned, BuildHasherDefault<NumberHasher>>;

impl<V: MapValue> Map<V> for Trie<V> {
    fn new() -> Self {
        TMap::with_hasher(BuildHasherDefault::new())
    }

    fn find<'tx>(&self, tx: &'tx Tx, key: u64) -> Tried<Option<&'tx V>> {
        self.get(tx, &key)
    }

    fn insert(&self, tx: &Tx, key: u64, value: V) -> Tried<()> {
        TMap::insert(self, tx, key, value).map(|_| ())
    }

    fn remove(&self, tx: &Tx, key: u64) -> Tried<()> {
        TMap::remove(self, tx, &key).map(|_| ())
    }

    fn entries(&self) -> Vec<(u64, V)> {
        let copied = |entry: Tried<(&u64, &V)>| entry.map(|(key, value)| (*key, value.clone()));
        atomically_blocking(|tx| self.iter(tx).map(copied).collect())
    }
}

/// The hash of a number: a multiplication, and its upper half over its lower one.
#[derive(Default)]
pub(in crate::child) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Trees.
pub(in crate::child) struct Trees;

impl Maps for Trees {
    type MapOf<V: MapValue> = Treap<V>;
}

impl<V: MapValue> Map<V> for Treap<V> {
    fn new() -> Self {
        Treap::new()
    }

    fn find<'tx>(&self, tx: &'tx Tx, key: u64) -> Tried<Option<&'tx V>> {
        Treap::find(self, tx, key)
    }

    fn insert(&self, tx: &Tx, key: u64, value: V) -> Tried<()> {
        Treap::insert(self, tx, key, value)
    }

    fn remove(&self, tx: &Tx, key: u64) -> Tried<()> {
        Treap::remove(self, tx, key)
    }

    fn entries(&self) -> Vec<(u64, V)> {
        atomically_blocking(|tx| Treap::entries(self, tx))
    }
}
