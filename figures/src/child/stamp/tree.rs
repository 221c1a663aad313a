//! An ordered map of variables: a treap, in which the hash of a key is its priority. So the tree
//! has one shape for one set of keys.

use selvedge_stm::{TVar, Tried, Tx};

/// A tree. Each place of it is a variable, so transactions at different places do not meet.
#[derive(Debug)]
pub(super) struct Tree<V: Clone + Send + Sync + 'static>(TVar<Node<V>>);

type Place<V> = TVar<Node<V>>;

#[derive(Clone, Debug)]
enum Node<V: Clone + Send + Sync + 'static> {
    Leaf,
    Fork(Fork<V>),
}

#[derive(Clone, Debug)]
struct Fork<V: Clone + Send + Sync + 'static> {
    key: u64,
    value: V,
    /// The smaller keys and the greater ones.
    branches: [Place<V>; 2],
}

fn priority(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<V: Clone + Send + Sync + 'static> Tree<V> {
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

    /// Calls `each` with the keys and values of this moment, in the order of the keys, when no
    /// transaction runs.
    pub(super) fn for_each(&self, each: &mut impl FnMut(u64, &V)) {
        for_each(&self.0, each);
    }
}

/// Distributes the keys of a node to two places: those below `key`, and those above it.
fn split<'tx, V>(tx: &'tx Tx, mut node: &'tx Node<V>, key: u64, into: &'tx [Place<V>; 2]) -> Tried<()>
where
    V: Clone + Send + Sync + 'static,
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
    V: Clone + Send + Sync + 'static,
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

fn for_each<V>(place: &Place<V>, each: &mut impl FnMut(u64, &V))
where
    V: Clone + Send + Sync + 'static,
{
    place.read_now(|node| {
        if let Node::Fork(fork) = node {
            for_each(&fork.branches[0], each);
            each(fork.key, &fork.value);
            for_each(&fork.branches[1], each);
        }
    });
}
