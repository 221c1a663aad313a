//! The numbers of `range`, for `stream::stream`.

use selvedge_pipeline::Number;
use std::cmp::Ordering;

/// The numbers from `from` on, each `step` more than the one before, to the last that is not behind
/// `to`. With a negative `step` they descend.
///
/// It ends before a number of more than a million digits, and the parser refuses such a range.
pub fn range(from: Number, to: Number, step: Number) -> impl Iterator<Item = Number> + Clone {
    let integers = match (from.integer(), to.integer(), step.integer()) {
        (Some(next), Some(last), Some(step)) => Some(Integers { next: Some(next), last, step }),
        _ => None,
    };
    let from = if integers.is_none() { Some(from) } else { None };
    let behind = if step.is_negative() { Ordering::Less } else { Ordering::Greater };
    let numbers = std::iter::successors(from, move |last| last.checked_add(&step));
    let numbers = numbers.take_while(move |number| number.cmp(&to) != behind);
    integers.into_iter().flatten().map(Number::from).chain(numbers)
}

/// As [`range`], of integers. All of them lie between two that are numbers of an `i64`.
#[derive(Clone)]
struct Integers {
    next: Option<i64>,
    last: i64,
    step: i64,
}

impl Iterator for Integers {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let next = self.next?;
        let is_behind = if self.step < 0 { next < self.last } else { next > self.last };
        self.next = if is_behind { None } else { next.checked_add(self.step) };
        (!is_behind).then_some(next)
    }
}
