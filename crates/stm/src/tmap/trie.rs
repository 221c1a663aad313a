//! The way from the root to the place of a hash, and the changes there.

use super::node::{BRANCH_BITS, ROOT_BITS, SeenSlot, TrieEntry, TrieSlot, cell_in_branch, cell_in_root};
use crate::cells::{CellRef, CellRow, Cells, CellsRef};
use crate::engine::Engine;
use crate::stop::Tried;
use crate::transaction::Tx;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// The root, with `1 << ROOT_BITS` cells. Its head is the hasher.
pub(super) type Trie<K, V, E, S> = Cells<TrieSlot<K, V, E>, E, S>;

/// The cells of the root or of another branch.
pub(super) type TrieRow<'a, K, V, E> = CellRow<'a, TrieSlot<K, V, E>, E>;

type TrieCell<'a, K, V, E> = CellRef<'a, TrieSlot<K, V, E>, E>;

/// A branch other than the root, as a transaction sees it.
type SeenBranch<'tx, K, V, E> = CellsRef<'tx, TrieSlot<K, V, E>, E>;

/// The cell in which the entry of a hash is, if there is one.
pub(super) struct TriePlace<'a, 'tx, K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> {
    cell: TrieCell<'a, K, V, E>,
    /// The branch of the cell, unless it is the root.
    branch: Option<SeenBranch<'tx, K, V, E>>,
    /// What is in the cell, which is no branch.
    pub(super) slot: SeenSlot<'tx, K, V, E>,
    pub(super) hash: u64,
    /// The bit with which a branch in this cell would begin.
    bit: u32,
}

#[inline(always)]
fn first_cell<K, V, E, S>(trie: &Trie<K, V, E, S>, hash: u64) -> TrieCell<'_, K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    // SAFETY: the root has as many cells as `cell_in_root` has results.
    unsafe { trie.cell_unchecked(cell_in_root(hash)) }
}

#[inline(always)]
fn cell_of<'tx, K, V, E>(branch: &SeenBranch<'tx, K, V, E>, hash: u64, bit: u32) -> TrieCell<'tx, K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    // SAFETY: each branch has as many cells as `cell_in_branch` has results.
    unsafe { branch.cell_of_tx(cell_in_branch(hash, bit)) }
}

/// The place of a key.
#[inline(always)]
pub(super) fn place<'a, 'tx: 'a, K, V, E, S, Q>(
    trie: &'a Trie<K, V, E, S>,
    tx: &'tx Tx<E>,
    key: &Q,
) -> Tried<TriePlace<'a, 'tx, K, V, E>>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
    S: BuildHasher,
    Q: Hash + ?Sized,
{
    let hash = trie.head().hash_one(key);
    let mut cell = first_cell(trie, hash);
    let (mut branch, mut bit) = (None, ROOT_BITS);
    loop {
        match cell.read(tx)? {
            SeenSlot::Branch(below) => {
                cell = cell_of(&below, hash, bit);
                bit += BRANCH_BITS;
                branch = Some(below);
            }
            slot => return Ok(TriePlace { cell, branch, slot, hash, bit }),
        }
    }
}

impl<K, V, E> TriePlace<'_, '_, K, V, E>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    /// Replaces the entry at a place of the slot, or adds one.
    pub(super) fn put(&self, tx: &Tx<E>, at: Option<usize>, key: K, value: V) {
        let entry = Arc::new(TrieEntry { hash: self.hash, key, value });
        let slot = match at {
            None => self.slot.with(entry, self.bit),
            Some(at) => self.slot.replaced(at, entry),
        };
        self.cell.write(tx, slot);
    }

    /// Takes the entry at a place of the slot out.
    pub(super) fn take_out<S>(&self, trie: &Trie<K, V, E, S>, tx: &Tx<E>, at: usize) -> Tried<()> {
        let rest = self.slot.without(at);
        let is_empty = matches!(rest, TrieSlot::Empty);
        self.cell.write(tx, rest);
        match &self.branch {
            Some(branch) if is_empty && is_empty_row(tx, branch, self.hash, self.bit - BRANCH_BITS)? => {
                shrink(trie, tx, self.hash)
            }
            _ => Ok(()),
        }
    }
}

/// Whether all cells of a branch are empty that begins with this bit. That of the hash is; the next
/// one often is not.
fn is_empty_row<K, V, E>(tx: &Tx<E>, branch: &SeenBranch<'_, K, V, E>, hash: u64, bit: u32) -> Tried<bool>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    let at = cell_in_branch(hash, bit);
    for other in (at + 1..branch.len()).chain(0..at) {
        if !matches!(branch.read(tx, other)?, SeenSlot::Empty) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Empties the cells of the branches above this hash that have no entry. The lowest branch has
/// none.
#[cold]
fn shrink<K, V, E, S>(trie: &Trie<K, V, E, S>, tx: &Tx<E>, hash: u64) -> Tried<()>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Engine,
{
    // The cells with branches, each with the branch that it is in.
    let mut path = Vec::new();
    let (mut cell, mut branch, mut bit) = (first_cell(trie, hash), None, ROOT_BITS);
    while let SeenSlot::Branch(below) = cell.read(tx)? {
        let next = cell_of(&below, hash, bit);
        path.push((cell, branch.replace(below), bit));
        cell = next;
        bit += BRANCH_BITS;
    }
    while let Some((cell, branch, bit)) = path.pop() {
        cell.write(tx, TrieSlot::Empty);
        match branch {
            Some(branch) if is_empty_row(tx, &branch, hash, bit - BRANCH_BITS)? => {}
            _ => break,
        }
    }
    Ok(())
}
