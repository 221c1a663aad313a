//! The names of variables, which reports show.
//!
//! They lie in a table beside the variables, by the addresses of the variables, so a variable
//! without a name has no place for one. The kind of a variable (`variable.rs`) says whether the
//! table has its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of a variable, or of a row of variables in one allocation.
struct RowName {
    name: Arc<str>,
    len: usize,
    /// The bytes from one variable of the row to the next.
    stride: usize,
}

impl RowName {
    /// The name of the variable this number of bytes behind the first one.
    fn at(&self, offset: usize) -> Option<Arc<str>> {
        let index = offset / self.stride;
        match self.len {
            len if index >= len => None,
            1 => Some(self.name.clone()),
            _ => Some(format!("{}[{index}]", self.name).into()),
        }
    }
}

/// The names, by the addresses of the variables; of a row, by that of its first variable. So a row
/// has one entry however long it is, and the names of its variables are made when they are asked
/// for.
static NAMES: Mutex<BTreeMap<usize, RowName>> = Mutex::new(BTreeMap::new());

fn names() -> MutexGuard<'static, BTreeMap<usize, RowName>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the name `NAME[0]` to the first of this number of new variables, which lie `stride` bytes
/// apart, and so on; `NAME`, if there is one. All of them are of a kind that has names.
pub(crate) fn give(first: usize, len: usize, stride: usize, name: Arc<str>) {
    names().insert(first, RowName { name, len, stride });
}

/// Takes the name of a variable, or of the row that begins with it, which is about to be freed.
pub(crate) fn forget(inner: *mut ()) {
    names().remove(&inner.addr());
}

/// The name of the variable at this address, which is of a kind that has names.
pub(crate) fn of(address: usize) -> Option<Arc<str>> {
    let names = names();
    let (first, row) = names.range(..=address).next_back()?;
    row.at(address - first)
}
