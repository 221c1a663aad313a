//! A red-black tree over variables: each node has its links in it, and a variable for its colour.
//!
//! A red node has no red child, and each path from a node down to a missing child has the same
//! number of black nodes. An operation descends by recursion and mends the tree on its way back;
//! it writes only the variables that change.
//!
//! `sets.rs` calls it as one of the sets of the figure `stm-sets`.

use super::set::Set;
use selvedge_stm::{TLink, TLinkRef, TNode, TNodeRef, TWord, Tried, Tx};

/// The value of a node.
struct Key {
    key: u64,
    red: TWord<bool>,
}

type Node<'tx> = TNodeRef<'tx, Key, 2>;

type Link<'tx> = TLinkRef<'tx, Key, 2>;

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

fn side(node: Node<'_>, key: u64) -> Hand {
    if key < node.value().key { Hand::Left } else { Hand::Right }
}

fn child<'tx>(node: Node<'tx>, side: Hand) -> Link<'tx> {
    node.link(side as usize)
}

fn is_red(tx: &Tx, node: Node<'_>) -> Tried<bool> {
    node.value().red.read(tx)
}

fn paint(tx: &Tx, node: Node<'_>, red: bool) {
    node.value().red.write(tx, red);
}

/// The node at a link that is known to have one.
fn node_at<'tx>(tx: &'tx Tx, link: Link<'_>) -> Tried<Node<'tx>> {
    Ok(link.read(tx)?.expect("the tree is balanced, so there is a node"))
}

/// Gives `to` the link that `from` has.
fn move_link(tx: &Tx, from: Link<'_>, to: Link<'_>) -> Tried<()> {
    to.write(tx, from.read(tx)?.map(Node::owned));
    Ok(())
}

fn set_link(tx: &Tx, link: Link<'_>, node: Node<'_>) {
    link.write(tx, Some(node.owned()));
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

fn insert_below(tx: &Tx, link: Link<'_>, key: u64) -> Tried<Grown> {
    let Some(node) = link.read(tx)? else {
        link.write(tx, Some(TNode::new(Key { key, red: TWord::new(true) }, [None, None])));
        return Ok(Grown::RedRoot);
    };
    if node.value().key == key {
        return Ok(Grown::Present);
    }
    let side = side(node, key);
    match insert_below(tx, child(node, side), key)? {
        Grown::RedRoot if is_red(tx, node)? => Ok(Grown::RedRed(side)),
        Grown::RedRoot => Ok(Grown::Done),
        Grown::RedRed(inner) => mend_red(tx, link, node, side, inner),
        grown => Ok(grown),
    }
}

/// The child of `node` on `side` is red, and so is its child on the side `inner`.
fn mend_red(tx: &Tx, link: Link<'_>, node: Node<'_>, side: Hand, inner: Hand) -> Tried<Grown> {
    let low = node_at(tx, child(node, side))?;
    let uncle = child(node, side.other()).read(tx)?;
    paint(tx, node, true);
    if let Some(uncle) = uncle
        && is_red(tx, uncle)?
    {
        paint(tx, low, false);
        paint(tx, uncle, false);
        return Ok(Grown::RedRoot);
    }
    let top = if side == inner {
        move_link(tx, child(low, side.other()), child(node, side))?;
        low
    } else {
        let top = node_at(tx, child(low, inner))?;
        move_link(tx, child(top, side), child(low, inner))?;
        move_link(tx, child(top, side.other()), child(node, side))?;
        set_link(tx, child(top, side), low);
        top
    };
    set_link(tx, child(top, side.other()), node);
    set_link(tx, link, top);
    paint(tx, top, false);
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

fn remove_below(tx: &Tx, link: Link<'_>, key: u64) -> Tried<Shrunk> {
    let Some(node) = link.read(tx)? else { return Ok(Shrunk::Absent) };
    if node.value().key != key {
        let side = side(node, key);
        let shrunk = remove_below(tx, child(node, side), key)?;
        return mend(tx, shrunk, link, node, side);
    }
    match (child(node, Hand::Left).read(tx)?, child(node, Hand::Right).read(tx)?) {
        (None, only) | (only, None) => take_out(tx, link, node, only),
        (Some(_), Some(_)) => {
            let (heir, shrunk) = take_least(tx, child(node, Hand::Right))?;
            move_link(tx, child(node, Hand::Left), child(heir, Hand::Left))?;
            move_link(tx, child(node, Hand::Right), child(heir, Hand::Right))?;
            paint(tx, heir, is_red(tx, node)?);
            set_link(tx, link, heir);
            mend(tx, shrunk, link, heir, Hand::Right)
        }
    }
}

/// Puts the only child of a node, if there is one, in the node's place.
fn take_out(tx: &Tx, link: Link<'_>, node: Node<'_>, only: Option<Node<'_>>) -> Tried<Shrunk> {
    link.write(tx, only.map(Node::owned));
    if is_red(tx, node)? {
        return Ok(Shrunk::Whole);
    }
    match only {
        Some(child) if is_red(tx, child)? => {
            paint(tx, child, false);
            Ok(Shrunk::Whole)
        }
        _ => Ok(Shrunk::Short),
    }
}

/// Takes the node with the least key out.
fn take_least<'tx>(tx: &'tx Tx, link: Link<'_>) -> Tried<(Node<'tx>, Shrunk)> {
    let node = node_at(tx, link)?;
    if child(node, Hand::Left).read(tx)?.is_none() {
        let shrunk = take_out(tx, link, node, child(node, Hand::Right).read(tx)?)?;
        return Ok((node, shrunk));
    }
    let (least, shrunk) = take_least(tx, child(node, Hand::Left))?;
    Ok((least, mend(tx, shrunk, link, node, Hand::Left)?))
}

fn mend(tx: &Tx, shrunk: Shrunk, link: Link<'_>, node: Node<'_>, side: Hand) -> Tried<Shrunk> {
    if shrunk == Shrunk::Short { mend_short(tx, link, node, side) } else { Ok(shrunk) }
}

/// The paths through the child of `node` on `side` have one black node less than the others.
fn mend_short(tx: &Tx, link: Link<'_>, node: Node<'_>, side: Hand) -> Tried<Shrunk> {
    let away = side.other();
    let sibling = node_at(tx, child(node, away))?;
    if is_red(tx, sibling)? {
        move_link(tx, child(sibling, side), child(node, away))?;
        set_link(tx, child(sibling, side), node);
        set_link(tx, link, sibling);
        paint(tx, sibling, false);
        paint(tx, node, true);
        return mend_short(tx, child(sibling, side), node, side);
    }
    let near = child(sibling, side).read(tx)?;
    let far = child(sibling, away).read(tx)?;
    let node_is_red = is_red(tx, node)?;
    let top = match (near, far) {
        (_, Some(far)) if is_red(tx, far)? => {
            move_link(tx, child(sibling, side), child(node, away))?;
            paint(tx, far, false);
            sibling
        }
        (Some(near), _) if is_red(tx, near)? => {
            move_link(tx, child(near, side), child(node, away))?;
            move_link(tx, child(near, away), child(sibling, side))?;
            set_link(tx, child(near, away), sibling);
            near
        }
        _ => {
            paint(tx, sibling, true);
            if node_is_red {
                paint(tx, node, false);
            }
            return Ok(if node_is_red { Shrunk::Whole } else { Shrunk::Short });
        }
    };
    set_link(tx, child(top, side), node);
    set_link(tx, link, top);
    paint(tx, top, node_is_red);
    paint(tx, node, false);
    Ok(Shrunk::Whole)
}

/// A set of keys as a red-black tree.
#[derive(Clone)]
pub(super) struct RedBlackTree {
    root: TLink<Key, 2>,
}

impl Set for RedBlackTree {
    fn new() -> RedBlackTree {
        RedBlackTree { root: TLink::new(None) }
    }

    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let mut link = self.root.link();
        while let Some(node) = link.read(tx)? {
            if node.value().key == key {
                return Ok(true);
            }
            link = child(node, side(node, key));
        }
        Ok(false)
    }

    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let grown = insert_below(tx, self.root.link(), key)?;
        if let Grown::RedRoot = grown {
            paint(tx, node_at(tx, self.root.link())?, false);
        }
        Ok(!matches!(grown, Grown::Present))
    }

    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        Ok(remove_below(tx, self.root.link(), key)? != Shrunk::Absent)
    }

    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>> {
        fn add(tx: &Tx, link: Link<'_>, keys: &mut Vec<u64>) -> Tried<()> {
            let Some(node) = link.read(tx)? else { return Ok(()) };
            add(tx, child(node, Hand::Left), keys)?;
            keys.push(node.value().key);
            add(tx, child(node, Hand::Right), keys)
        }
        let mut keys = Vec::new();
        add(tx, self.root.link(), &mut keys)?;
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::cores::burst;
    use selvedge_stm::atomically_blocking;
    use std::collections::BTreeSet;

    /// The number of black nodes on each path down from the link.
    fn black_height(tx: &Tx, link: Link<'_>, parent_is_red: bool) -> Tried<u32> {
        let Some(node) = link.read(tx)? else { return Ok(0) };
        let red = is_red(tx, node)?;
        assert!(!(red && parent_is_red), "a red node has a red child");
        let heights = (
            black_height(tx, child(node, Hand::Left), red)?,
            black_height(tx, child(node, Hand::Right), red)?,
        );
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
                black_height(tx, tree.root.link(), true)?;
                assert_eq!(tree.has(tx, key)?, model.contains(&key));
                assert!(tree.keys(tx)?.iter().eq(&model));
                Ok(())
            });
        }
    }
}
