//! Stages that only the shell has, beside those of the pipeline crate. `stage.rs` puts them into
//! pipelines.
//!
//! | file | stages of the language |
//! |---|---|
//! | `branches.rs` | `each`, `having`, `if`, `foreach`, `while` |
//! | `change.rs` | `replace`, `number`, `prepend` and `append`, the changes that are a word |
//! | `frame.rs` | the last part of `lines`; `prepend` and `append` over bytes |
//! | `gather.rs` | `count`, also of parts, `sum`, `min`, `max`, `unique`, `tally`, `last` |
//! | `nested.rs` | the condition `nested in`, and the failure at its limit |
//! | `numbers.rs` | `decimals` and `integers`, and numbers as text |
//! | `over.rs` | the branches of `if` and `foreach` that change whole lines as text |
//! | `range.rs` | the numbers of `range` |
//! | `records.rs` | `fields`, `column`, `columns`, `join` |
//! | `sort.rs` | `sort` in a branch |
//! | `text.rs` | `lines` and stages behind it, where only their text is wanted; `replace regex` |

mod branches;
mod change;
mod frame;
mod gather;
mod nested;
mod numbers;
mod over;
mod range;
mod records;
mod sort;
mod text;

pub(crate) use branches::{branch_of, each_match, having, loop_of};
pub use change::line_number;
pub(crate) use change::{around, change, numbered, replace};
pub use frame::{AroundStream, CompleteLine, around_stream, complete_line};
pub use gather::{
    CountAll, CountChunks, FoldNumbers, LastItems, Tally, Unique, add_counts, count_all, count_chunks,
    fold_numbers, last_items, tally, unique,
};
pub use nested::{Guarded, TooDeep, guarded, nested_in};
pub use numbers::{decimal_of, integer_of, written_numbers};
pub use over::{OverText, over_text};
pub use range::range;
pub(crate) use records::{column, columns, field, fields, joined_fields};
pub use sort::{Sort, sort};
pub use text::{
    AroundLines, ChangeCase, CompleteText, CountLines, ReplaceInLines, around_lines, change_case,
    complete_text, count_lines, number_lines, replace_in_lines, replaced,
};
