//! A sorted list over variables, in which each link is one: the set `list` of the figures about
//! sets. `sets.rs` calls it.
//!
//! A search reads every link up to its key. So a transaction has many reads, and meets each
//! transaction that changes the list before that key. The figure wants this.

use super::set::Set;
use selvedge_stm::{TLink, TLinkRef, TNode, TNodeRef, Tried, Tx};

/// A link to the items from a key on, and the first of them.
type Found<'tx> = (TLinkRef<'tx, u64, 1>, Option<TNodeRef<'tx, u64, 1>>);

/// A set of keys as a sorted list.
#[derive(Clone)]
pub(super) struct List {
    start: TLink<u64, 1>,
}

impl List {
    /// The first link to an item with the key or a larger one, and the item.
    fn seek<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<Found<'tx>> {
        let mut link = self.start.link();
        loop {
            match link.read(tx)? {
                Some(item) if *item.value() < key => link = item.link(0),
                found => return Ok((link, found)),
            }
        }
    }
}

impl Set for List {
    fn new() -> List {
        List { start: TLink::new(None) }
    }

    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let (_, found) = self.seek(tx, key)?;
        Ok(found.is_some_and(|item| *item.value() == key))
    }

    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let (link, found) = self.seek(tx, key)?;
        if found.is_some_and(|item| *item.value() == key) {
            return Ok(false);
        }
        link.write(tx, Some(TNode::new(key, [found.map(TNodeRef::owned)])));
        Ok(true)
    }

    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        match self.seek(tx, key)? {
            (link, Some(item)) if *item.value() == key => {
                link.write(tx, item.link(0).read(tx)?.map(TNodeRef::owned));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>> {
        let mut keys = Vec::new();
        let mut next = self.start.read(tx)?;
        while let Some(item) = next {
            keys.push(*item.value());
            next = item.link(0).read(tx)?;
        }
        Ok(keys)
    }
}
