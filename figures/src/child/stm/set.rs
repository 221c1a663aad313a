//! [`Set`]: what the structures of the figure about sets have in common.

use selvedge_stm::{Tried, Tx};

/// A set of keys over variables.
pub(super) trait Set: Clone + Send + Sync + 'static {
    fn new() -> Self;
    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool>;
    /// Whether the key is new.
    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool>;
    /// Whether the key was there.
    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool>;
    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>>;
}
