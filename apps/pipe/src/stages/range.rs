//! The numbers of `range`, for `stream::stream`.

use selvedge_coroutine::pipeline::Number;
use std::cmp::Ordering;

/// The numbers from `from` on, each `step` more than the one before, to the last that is not behind
/// `to`. With a negative `step` they descend.
///
/// It ends before a number of more than a million digits, and the parser refuses such a range.
pub fn range(from: Number, to: Number, step: Number) -> impl Iterator<Item = Number> + Clone {
    let behind = if step.is_negative() { Ordering::Less } else { Ordering::Greater };
    let numbers = std::iter::successors(Some(from), move |last| last.checked_add(&step));
    numbers.take_while(move |number| number.cmp(&to) != behind)
}
