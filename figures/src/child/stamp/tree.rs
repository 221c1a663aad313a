//! An ordered map of variables: a treap, in which the hash of a key is its priority. So the tree
//! has one shape for one set of keys.

use selvedge_stm::{TVar, Tried, Tx};

use super::maps::Handle;

/// A tree. Each place of it is a variable, so transactions at different places do not meet.
pub(in crate::child) struct Tree<V: Handle>(Place<V>);

type Place<V> = TVar<Node<V>>;

#[derive(Clone)]
enum Node<V: Handle> {
    Leaf,
    Fork(Fork<V>),
}

#[derive(Clone)]
struct Fork<V: Handle> {
    key: u64,
    value: V,
    /// The smaller keys and the greater ones.
    branches: [Place<V>; 2],
}

fn priority(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<V: Handle> Tree<V> {
    pub(super) fn new() -> Tree<V> {
        Tree(TVar::new(Node::Leaf))
    }

    /// The value of a key.
    pub(super) fn find<'tx>(&self, tx: &'tx Tx, key: u64) -> Tried<Option<&'tx V>> {
        let mut node = self.0.read(tx)?;
        while let Node::Fork(fork) = node {
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
        while let Node::Fork(fork) = node
            && priority(fork.key) >= priority(key)
        {
            place = &fork.branches[usize::from(fork.key < key)];
            node = place.read(tx)?;
        }
        let branches = [TVar::new(Node::Leaf), TVar::new(Node::Leaf)];
        split(tx, node, key, &branches)?;
        place.write(tx, Node::Fork(Fork { key, value, branches }));
        Ok(())
    }

    /// Removes a key.
    pub(super) fn remove(&self, tx: &Tx, key: u64) -> Tried<()> {
        let mut place = &self.0;
        loop {
            let Node::Fork(fork) = place.read(tx)? else { return Ok(()) };
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
fn split<'tx, V>(tx: &'tx Tx, mut node: &'tx Node<V>, key: u64, into: &'tx [Place<V>; 2]) -> Tried<()>
where
    V: Handle,
{
    let mut open = [&into[0], &into[1]];
    let mut is_split = false;
    while let Node::Fork(fork) = node {
        let side = usize::from(fork.key > key);
        open[side].write(tx, node.clone());
        open[side] = &fork.branches[1 - side];
        node = open[side].read(tx)?;
        is_split = true;
    }
    if is_split {
        for place in open {
            place.write(tx, Node::Leaf);
        }
    }
    Ok(())
}

/// Makes one tree of two at `place`; all keys of `less` are below those of `greater`.
fn join<'tx, V>(
    tx: &'tx Tx,
    mut place: &'tx Place<V>,
    mut less: &'tx Node<V>,
    mut greater: &'tx Node<V>,
) -> Tried<()>
where
    V: Handle,
{
    loop {
        match (less, greater) {
            (Node::Leaf, rest) | (rest, Node::Leaf) => {
                place.write(tx, rest.clone());
                return Ok(());
            }
            (Node::Fork(one), Node::Fork(other)) if priority(one.key) >= priority(other.key) => {
                place.write(tx, less.clone());
                place = &one.branches[1];
                less = place.read(tx)?;
            }
            (_, Node::Fork(other)) => {
                place.write(tx, greater.clone());
                place = &other.branches[0];
                greater = place.read(tx)?;
            }
        }
    }
}

fn collect<V: Handle>(tx: &Tx, place: &Place<V>, entries: &mut Vec<(u64, V)>) -> Tried<()> {
    let Node::Fork(fork) = place.read(tx)? else { return Ok(()) };
    collect(tx, &fork.branches[0], entries)?;
    entries.push((fork.key, fork.value.clone()));
    collect(tx, &fork.branches[1], entries)
}
