//! A sorted list over variables.

use std::sync::Arc;

use selvedge_stm::{TVar, Tried, Tx};

use super::sets::Set;

type ItemLink = Option<Arc<Item>>;

struct Item {
    key: u64,
    next: TVar<ItemLink>,
}

/// A set of keys as a sorted list.
#[derive(Clone)]
pub(super) struct List {
    start: TVar<ItemLink>,
}

/// The first link to an item with the key or a larger one, and the item.
fn seek<'tx>(
    start: &'tx TVar<ItemLink>,
    tx: &'tx Tx,
    key: u64,
) -> Tried<(&'tx TVar<ItemLink>, &'tx ItemLink)> {
    let mut link = start;
    loop {
        match link.read(tx)? {
            Some(item) if item.key < key => link = &item.next,
            found => return Ok((link, found)),
        }
    }
}

impl Set for List {
    fn new() -> List {
        List { start: TVar::new(None) }
    }

    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let (_, found) = seek(&self.start, tx, key)?;
        Ok(found.as_ref().is_some_and(|item| item.key == key))
    }

    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        let (link, found) = seek(&self.start, tx, key)?;
        if found.as_ref().is_some_and(|item| item.key == key) {
            return Ok(false);
        }
        link.write(tx, Some(Arc::new(Item { key, next: TVar::new(found.clone()) })));
        Ok(true)
    }

    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        match seek(&self.start, tx, key)? {
            (link, Some(item)) if item.key == key => {
                link.write(tx, item.next.read(tx)?.clone());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>> {
        let mut keys = Vec::new();
        let mut link = &self.start;
        while let Some(item) = link.read(tx)? {
            keys.push(item.key);
            link = &item.next;
        }
        Ok(keys)
    }
}
