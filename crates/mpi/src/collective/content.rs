//! What a rank gives in a collective, in words. In a world that is [checked](crate::Ranks::checked)
//! `collective.rs` compares the words of all ranks.
//!
//! A call that does not say what it gives has no words, and fits each other call.

use std::any::type_name;

/// A value of this type.
pub(crate) fn value_of<T>() -> String {
    format!("a value of type {}", type_name::<T>())
}

/// Elements of this type, of which each rank may have another number.
pub(crate) fn elements_of<T>() -> String {
    format!("elements of type {}", type_name::<T>())
}

/// This number of elements of this type, which is the same on all ranks.
pub(crate) fn count_of<T>(count: usize) -> String {
    format!("{count} elements of type {}", type_name::<T>())
}

/// Parts of elements of this type, with these numbers on all ranks.
pub(crate) fn counts_of<T>(counts: impl Iterator<Item = usize>) -> String {
    format!("parts of {:?} elements of type {}", counts.collect::<Vec<_>>(), type_name::<T>())
}
