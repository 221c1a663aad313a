//! Stages that only the shell has, beside those of the coroutine crate. `stage.rs` puts them into
//! pipelines.
//!
//! | file | stages of the language |
//! |---|---|
//! | `frame.rs` | the last part of `lines`; `prepend` and `append` over bytes |
//! | `gather.rs` | `count`, also of parts, `sum`, `min`, `max`, `unique`, `tally`, `last` |
//! | `nested.rs` | the condition `nested in`, and the failure at its limit |
//! | `over.rs` | the branches of `if` and `foreach` that change whole lines as text |
//! | `sort.rs` | `sort` in a branch |

mod frame;
mod gather;
mod nested;
mod over;
mod sort;

pub use frame::{AroundStream, CompleteLine, around_stream, complete_line};
pub use gather::{
    CountAll, CountChunks, FoldNumbers, LastItems, Tally, Unique, add_counts, count_all, count_chunks,
    fold_numbers, last_items, tally, unique,
};
pub use nested::{Guarded, TooDeep, guarded, nested_in};
pub use over::{OverText, over_text};
pub use sort::{Sort, sort};
