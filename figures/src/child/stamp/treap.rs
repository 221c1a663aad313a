//! An ordered map of variables: a treap, in which the hash of a key is its priority. `maps.rs`
//! offers it as `Trees`. The Haskell programs in `figures/peers` have the same tree.
//!
//! The tree has one shape for one set of keys, so the order of the transactions changes no cost.
//! Each link is a variable of its own, so transactions at different places do not meet.

use super::maps::MapValue;
use selvedge_stm::{TVar, Tried, Tx};

/// A tree. Each place of it is a variable, so transactions at different places do not meet.
pub(in crate::child) struct Treap<V: MapValue>(Place<V>);

type Place<V> = TVar<TreapNode<V>>;

#[derive(Clone)]
enum TreapNode<V: MapValue> {
    Leaf,
    Fork(Fork<V>),
}

#[derive(Clone)]
struct Fork<V: MapValue> {
    key: u64,
    value: V,
    /// The smaller keys and the greater ones.
    branches: [Place<V>; 2],
}

fn priority(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<V: MapValue> Treap<V> {
    pub(super) fn new() -> Treap<V> {
        Treap(TVar::new(TreapNode::Leaf))
    }

    /// The value of a key.
    pub(super) fn find<'tx>(&self, tx: &'tx Tx, key: u64) -> Tried<Option<&'tx V>> {
        let mut node = self.0.read(tx)?;
        while let TreapNode::Fork(fork) = node {
            if fork.key == key {
                return Ok(Some(&fork.value));
            }
            node = fork.branches[usize::from(fork.key < key)].read(tx)?;
        }
        Ok(None)
    }

    /// Adds a key that the tree does not have.
    pub(super) fn insert(&self, tx: &Tx, key: u64, value: V) -> Tried<()> {
        let mut place = &self.0;
        let mut node = place.read(tx)?;
        while let TreapNode::Fork(fork) = node
            && priority(fork.key) >= priority(key)
        {
            place = &fork.branches[usize::from(fork.key < key)];
            node = place.read(tx)?;
        }
        let branches = [TVar::new(TreapNode::Leaf), TVar::new(TreapNode::Leaf)];
        split(tx, node, key, &branches)?;
        place.write(tx, TreapNode::Fork(Fork { key, value, branches }));
        Ok(())
    }

    /// Removes a key.
    pub(super) fn remove(&self, tx: &Tx, key: u64) -> Tried<()> {
        let mut place = &self.0;
        loop {
            let TreapNode::Fork(fork) = place.read(tx)? else { return Ok(()) };
            if fork.key == key {
                let [less, greater] = &fork.branches;
                return join(tx, place, less.read(tx)?, greater.read(tx)?);
            }
            place = &fork.branches[usize::from(fork.key < key)];
        }
    }

    /// The keys and values, in the order of the keys.
    pub(super) fn entries(&self, tx: &Tx) -> Tried<Vec<(u64, V)>> {
        let mut entries = Vec::new();
        collect(tx, &self.0, &mut entries)?;
        Ok(entries)
    }
}

/// Distributes the keys of a node to two places: those below `key`, and those above it.
fn split<'tx, V>(tx: &'tx Tx, mut node: &'tx TreapNode<V>, key: u64, into: &'tx [Place<V>; 2]) -> Tried<()>
where
    V: MapValue,
{
    let mut open = [&into[0], &into[1]];
    let mut is_split = false;
    while let TreapNode::Fork(fork) = node {
        let side = usize::from(fork.key > key);
        open[side].write(tx, node.clone());
        open[side] = &fork.branches[1 - side];
        node = open[side].read(tx)?;
        is_split = true;
    }
    if is_split {
        for place in open {
            place.write(tx, TreapNode::Leaf);
        }
    }
    Ok(())
}

/// Makes one tree of two at `place`; all keys of `less` are below those of `greater`.
fn join<'tx, V>(
    tx: &'tx Tx,
    mut place: &'tx Place<V>,
    mut less: &'tx TreapNode<V>,
    mut greater: &'tx TreapNode<V>,
) -> Tried<()>
where
    V: MapValue,
{
    loop {
        match (less, greater) {
            (TreapNode::Leaf, rest) | (rest, TreapNode::Leaf) => {
                place.write(tx, rest.clone());
                return Ok(());
            }
            (TreapNode::Fork(one), TreapNode::Fork(other)) if priority(one.key) >= priority(other.key) => {
                place.write(tx, less.clone());
                place = &one.branches[1];
                less = place.read(tx)?;
            }
            (_, TreapNode::Fork(other)) => {
                place.write(tx, greater.clone());
                place = &other.branches[0];
                greater = place.read(tx)?;
            }
        }
    }
}

fn collect<V: MapValue>(tx: &Tx, place: &Place<V>, entries: &mut Vec<(u64, V)>) -> Tried<()> {
    let TreapNode::Fork(fork) = place.read(tx)? else { return Ok(()) };
    collect(tx, &fork.branches[0], entries)?;
    entries.push((fork.key, fork.value.clone()));
    collect(tx, &fork.branches[1], entries)
}
