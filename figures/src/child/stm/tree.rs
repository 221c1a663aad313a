//! A red-black tree over variables: each node has one for its colour and one for each link.
//!
//! A red node has no red child, and each path from a node down to a missing child has the same
//! number of black nodes. An operation descends by recursion and mends the tree on its way back;
//! it writes only the variables that change.

use std::sync::Arc;

use selvedge_stm::{TVar, TWord, Tried, Tx};

use super::sets::Set;

type NodeLink = Option<Arc<RedBlackNode>>;

struct RedBlackNode {
    key: u64,
    red: TWord<bool>,
    left: TVar<NodeLink>,
    right: TVar<NodeLink>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Left,
    Right,
}

impl Hand {
    fn other(self) -> Hand {
        match self {
            Hand::Left => Hand::Right,
            Hand::Right => Hand::Left,
        }
    }
}

impl RedBlackNode {
    fn side(&self, key: u64) -> Hand {
        if key < self.key { Hand::Left } else { Hand::Right }
    }

    fn child(&self, side: Hand) -> &TVar<NodeLink> {
        match side {
            Hand::Left => &self.left,
            Hand::Right => &self.right,
        }
    }
}

fn is_red(tx: &Tx, link: &NodeLink) -> Tried<bool> {
    link.as_ref().map_or(Ok(false), |node| node.red.read(tx))
}

/// The node at a link that is known to have one.
fn node_at<'tx>(tx: &'tx Tx, link: &TVar<NodeLink>) -> Tried<&'tx Arc<RedBlackNode>> {
    Ok(link.read(tx)?.as_ref().expect("the tree is balanced, so there is a node"))
}

/// Gives `to` the link that `from` has.
fn move_link(tx: &Tx, from: &TVar<NodeLink>, to: &TVar<NodeLink>) -> Tried<()> {
    to.write(tx, from.read(tx)?.clone());
    Ok(())
}

fn set_link(tx: &Tx, link: &TVar<NodeLink>, node: &Arc<RedBlackNode>) {
    link.write(tx, Some(node.clone()));
}

/// What an insertion below a link has left there.
enum Grown {
    /// The key was there.
    Present,
    /// Nothing is to be mended.
    Done,
    /// The node at the link is red now.
    RedRoot,
    /// The node at the link is red, and so is its child on this side.
    RedRed(Hand),
}

fn insert_below(tx: &Tx, link: &TVar<NodeLink>, key: u64) -> Tried<Grown> {
    let Some(node) = link.read(tx)? else {
        let node = RedBlackNode { key, red: TWord::new(true), left: TVar::new(None), right: TVar::new(None) };
        link.write(tx, Some(Arc::new(node)));
        return Ok(Grown::RedRoot);
    };
    if node.key == key {
        return Ok(Grown::Present);
    }
    let side = node.side(key);
    match insert_below(tx, node.child(side), key)? {
        Grown::RedRoot if node.red.read(tx)? => Ok(Grown::RedRed(side)),
        Grown::RedRoot => Ok(Grown::Done),
        Grown::RedRed(inner) => mend_red(tx, link, node, side, inner),
        grown => Ok(grown),
    }
}

/// The child of `node` on `side` is red, and so is its child on the side `inner`.
fn mend_red(
    tx: &Tx,
    link: &TVar<NodeLink>,
    node: &Arc<RedBlackNode>,
    side: Hand,
    inner: Hand,
) -> Tried<Grown> {
    let low = node_at(tx, node.child(side))?;
    let uncle = node.child(side.other()).read(tx)?;
    let uncle_is_red = is_red(tx, uncle)?;
    node.red.write(tx, true);
    if let (true, Some(uncle)) = (uncle_is_red, uncle) {
        low.red.write(tx, false);
        uncle.red.write(tx, false);
        return Ok(Grown::RedRoot);
    }
    let top = if side == inner {
        move_link(tx, low.child(side.other()), node.child(side))?;
        low
    } else {
        let top = node_at(tx, low.child(inner))?;
        move_link(tx, top.child(side), low.child(inner))?;
        move_link(tx, top.child(side.other()), node.child(side))?;
        set_link(tx, top.child(side), low);
        top
    };
    set_link(tx, top.child(side.other()), node);
    set_link(tx, link, top);
    top.red.write(tx, false);
    Ok(Grown::Done)
}

/// What a removal below a link has left there.
#[derive(PartialEq, Eq)]
enum Shrunk {
    /// The key was not there.
    Absent,
    /// Nothing is to be mended.
    Whole,
    /// The paths through the link have one black node less.
    Short,
}

fn remove_below(tx: &Tx, link: &TVar<NodeLink>, key: u64) -> Tried<Shrunk> {
    let Some(node) = link.read(tx)? else { return Ok(Shrunk::Absent) };
    if node.key != key {
        let side = node.side(key);
        let shrunk = remove_below(tx, node.child(side), key)?;
        return mend(tx, shrunk, link, node, side);
    }
    match (node.left.read(tx)?, node.right.read(tx)?) {
        (None, only) | (only, None) => take_out(tx, link, node, only),
        (Some(_), Some(_)) => {
            let (heir, shrunk) = take_least(tx, &node.right)?;
            move_link(tx, &node.left, &heir.left)?;
            move_link(tx, &node.right, &heir.right)?;
            heir.red.write(tx, node.red.read(tx)?);
            set_link(tx, link, heir);
            mend(tx, shrunk, link, heir, Hand::Right)
        }
    }
}

/// Puts the only child of a node, if there is one, in the node's place.
fn take_out(tx: &Tx, link: &TVar<NodeLink>, node: &RedBlackNode, only: &NodeLink) -> Tried<Shrunk> {
    link.write(tx, only.clone());
    if node.red.read(tx)? {
        return Ok(Shrunk::Whole);
    }
    match only {
        Some(child) if child.red.read(tx)? => {
            child.red.write(tx, false);
            Ok(Shrunk::Whole)
        }
        _ => Ok(Shrunk::Short),
    }
}

/// Takes the node with the least key out.
fn take_least<'tx>(tx: &'tx Tx, link: &TVar<NodeLink>) -> Tried<(&'tx Arc<RedBlackNode>, Shrunk)> {
    let node = node_at(tx, link)?;
    if node.left.read(tx)?.is_none() {
        let shrunk = take_out(tx, link, node, node.right.read(tx)?)?;
        return Ok((node, shrunk));
    }
    let (least, shrunk) = take_least(tx, &node.left)?;
    Ok((least, mend(tx, shrunk, link, node, Hand::Left)?))
}

fn mend(
    tx: &Tx,
    shrunk: Shrunk,
    link: &TVar<NodeLink>,
    node: &Arc<RedBlackNode>,
    side: Hand,
) -> Tried<Shrunk> {
    if shrunk == Shrunk::Short { mend_short(tx, link, node, side) } else { Ok(shrunk) }
}

/// The paths through the child of `node` on `side` have one black node less than the others.
fn mend_short(tx: &Tx, link: &TVar<NodeLink>, node: &Arc<RedBlackNode>, side: Hand) -> Tried<Shrunk> {
    let away = side.other();
    let sibling = node_at(tx, node.child(away))?;
    if sibling.red.read(tx)? {
        move_link(tx, sibling.child(side), node.child(away))?;
        set_link(tx, sibling.child(side), node);
        set_link(tx, link, sibling);
        sibling.red.write(tx, false);
        node.red.write(tx, true);
        return mend_short(tx, sibling.child(side), node, side);
    }
    let near = sibling.child(side).read(tx)?;
    let far = sibling.child(away).read(tx)?;
    let node_is_red = node.red.read(tx)?;
    let top = match (near, far) {
        (_, Some(far)) if far.red.read(tx)? => {
            move_link(tx, sibling.child(side), node.child(away))?;
            far.red.write(tx, false);
            sibling
        }
        (Some(near), _) if near.red.read(tx)? => {
            move_link(tx, near.child(side), node.child(away))?;
            move_link(tx, near.child(away), sibling.child(side))?;
            set_link(tx, near.child(away), sibling);
            near
        }
        _ => {
            sibling.red.write(tx, true);
            if node_is_red {
                node.red.write(tx, false);
            }
            return Ok(if node_is_red { Shrunk::Whole } else { Shrunk::Short });
        }
    };
    set_link(tx, top.child(side), node);
    set_link(tx, link, top);
    top.red.write(tx, node_is_red);
    node.red.write(tx, false);
    Ok(Shrunk::Whole)
}

/// A set of keys as a red-black tree.
#[derive(Clone)]
pub(super) struct RedBlackTree {
    root: TVar<NodeLink>,
}

impl Set for RedBlackTree {
    fn new() -> RedBlackTree {
        RedBlackTree { root: TVar::new(None) }
    }

    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let mut link = &self.root;
        while let Some(node) = link.read(tx)? {
            if node.key == key {
                return Ok(true);
            }
            link = node.child(node.side(key));
        }
        Ok(false)
    }

    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let grown = insert_below(tx, &self.root, key)?;
        if let Grown::RedRoot = grown {
            node_at(tx, &self.root)?.red.write(tx, false);
        }
        Ok(!matches!(grown, Grown::Present))
    }

    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        Ok(remove_below(tx, &self.root, key)? != Shrunk::Absent)
    }

    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>> {
        fn add(tx: &Tx, link: &TVar<NodeLink>, keys: &mut Vec<u64>) -> Tried<()> {
            let Some(node) = link.read(tx)? else { return Ok(()) };
            add(tx, &node.left, keys)?;
            keys.push(node.key);
            add(tx, &node.right, keys)
        }
        let mut keys = Vec::new();
        add(tx, &self.root, &mut keys)?;
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use selvedge_stm::atomically_blocking;

    use super::*;
    use crate::child::cores::burst;

    /// The number of black nodes on each path down from the link.
    fn black_height(tx: &Tx, link: &TVar<NodeLink>, parent_is_red: bool) -> Tried<u32> {
        let Some(node) = link.read(tx)? else { return Ok(0) };
        let red = node.red.read(tx)?;
        assert!(!(red && parent_is_red), "a red node has a red child");
        let heights = (black_height(tx, &node.left, red)?, black_height(tx, &node.right, red)?);
        assert_eq!(heights.0, heights.1, "two paths differ in black nodes");
        Ok(heights.0 + u32::from(!red))
    }

    #[test]
    fn it_is_the_set_that_it_should_be_and_stays_balanced() {
        let (tree, mut model, mut x) = (RedBlackTree::new(), BTreeSet::new(), 7);
        for round in 0..4000 {
            x = burst(x, 1);
            let key = x % 100;
            // The tree grows, shrinks to nothing, and grows again.
            let grows = (round / 1000) % 2 == 0;
            let inserts = x >> 32 & 3 != 0;
            let (ours, right) = if grows == inserts {
                (atomically_blocking(|tx| tree.insert(tx, key)), model.insert(key))
            } else {
                (atomically_blocking(|tx| tree.remove(tx, key)), model.remove(&key))
            };
            assert_eq!(ours, right);
            atomically_blocking(|tx| {
                black_height(tx, &tree.root, true)?;
                assert_eq!(tree.has(tx, key)?, model.contains(&key));
                assert!(tree.keys(tx)?.iter().eq(&model));
                Ok(())
            });
        }
    }
}
