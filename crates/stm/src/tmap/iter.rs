//! The entries of a map, one after the other.

use super::node::SeenSlot;
use super::trie::TrieRow;
use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use std::fmt;

/// The entries of a [`TMap`](crate::TMap), as a transaction sees them: see
/// [`TMap::iter`](crate::TMap::iter).
pub struct TMapIter<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine = Versioned> {
    tx: &'tx Tx<E>,
    /// The cells of the root and of a branch of each level below it, with the next cell of each.
    rows: Vec<(TrieRow<'tx, K, V, E>, usize)>,
    /// A slot with entries, with the place of its next one.
    slot: (SeenSlot<'tx, K, V, E>, usize),
}

impl<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> TMapIter<'tx, K, V, E> {
    pub(super) fn new(tx: &'tx Tx<E>, root: TrieRow<'tx, K, V, E>) -> Self {
        TMapIter { tx, rows: vec![(root, 0)], slot: (SeenSlot::Empty, 0) }
    }
}

impl<'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> Iterator for TMapIter<'tx, K, V, E> {
    /// An error is as one of [`TVar::read`](crate::TVar::read). The body hands it on.
    type Item = Tried<(&'tx K, &'tx V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (slot, at) = &mut self.slot;
            if let Some(entry) = slot.entry(*at) {
                *at += 1;
                return Some(Ok((&entry.key, &entry.value)));
            }
            let (row, next) = self.rows.last_mut()?;
            if *next == row.len() {
                self.rows.pop();
                continue;
            }
            *next += 1;
            match row.cell(*next - 1).read(self.tx) {
                Err(stop) => return Some(Err(stop)),
                Ok(SeenSlot::Branch(below)) => self.rows.push((below.row_of_tx(), 0)),
                Ok(slot) => self.slot = (slot, 0),
            }
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> fmt::Debug for TMapIter<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TMapIter").finish_non_exhaustive()
    }
}
