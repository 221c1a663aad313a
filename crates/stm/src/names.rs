//! The names of variables, which reports show.
//!
//! They lie in a table beside the variables, so a variable without a name has no place for one. The
//! [`VarKind`](crate::variable::VarKind) of a variable says whether the table has its name.

use crate::variable::Inner;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::ptr::NonNull;
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

/// Gives a name to a new variable of a kind that has names.
pub(crate) fn give(inner: NonNull<Inner>, name: Arc<str>) {
    give_row(inner, 1, size_of::<Inner>(), name);
}

/// Gives the name `NAME[0]` to the first of this number of new variables, which lie `stride` bytes
/// apart, and so on; `NAME`, if there is one. All of them are of a kind that has names.
pub(crate) fn give_row(first: NonNull<Inner>, len: usize, stride: usize, name: Arc<str>) {
    names().insert(first.addr().get(), RowName { name, len, stride });
}

/// Takes the name of a variable, or of the row that begins with it, which is about to be freed.
pub(crate) fn forget(inner: *mut ()) {
    names().remove(&inner.addr());
}

/// The name of a variable, if it was given one.
pub(crate) fn of(inner: &Inner) -> Option<Arc<str>> {
    if !inner.kind.is_named {
        return None;
    }
    let (names, address) = (names(), (&raw const *inner).addr());
    let (first, row) = names.range(..=address).next_back()?;
    row.at(address - first)
}

/// The number of names or types that a report lists.
const LISTED: usize = 8;

/// The variables in words, in their order: those with names by their names, the others by the types
/// of their values.
pub(crate) fn describe<'a>(variables: impl Iterator<Item = &'a Inner>) -> String {
    let mut listed: Vec<(String, usize)> = Vec::new();
    let mut places = HashMap::new();
    for inner in variables {
        let word = match of(inner) {
            Some(name) => format!("\"{name}\""),
            None => format!("a variable of type {}", (inner.kind.type_name)()),
        };
        let at = *places.entry(word.clone()).or_insert(listed.len());
        match listed.get_mut(at) {
            Some((_, times)) => *times += 1,
            None => listed.push((word, 1)),
        }
    }
    let more = listed.len().saturating_sub(LISTED);
    let mut text = String::new();
    for (at, (word, times)) in listed.iter().take(LISTED).enumerate() {
        let is_last = at + 1 == listed.len() && at > 0;
        text.push_str(if is_last {
            " or "
        } else if at > 0 {
            ", "
        } else {
            ""
        });
        text.push_str(word);
        if *times > 1 {
            let _ = write!(text, " ({times} of them)");
        }
    }
    if more > 0 {
        let _ = write!(text, " or {more} others");
    }
    text
}
