//! Stages that only the shell has.

mod frame;
mod gather;
mod over;
mod sort;

pub use frame::{AroundStream, CompleteLine, around_stream, complete_line};
pub use gather::{
    CountAll, FoldNumbers, LastItems, Tally, Unique, count_all, fold_numbers, last_items, tally, unique,
};
pub use over::{OverText, over_text};
pub use sort::{Sort, Sorted, sort_lines, sort_numbers, sort_records};
