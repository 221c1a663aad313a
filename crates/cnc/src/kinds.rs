//! The kinds of steps: what runs an instance, behind the trait [`Code`](crate::ready_step::Code).
//!
//! | kind | of | when an item is missing |
//! |---|---|---|
//! | `replayed.rs` | `Graph::prescribe` | the step runs again from its beginning |
//! | `declared.rs` | `Graph::prescribe_depends` | the step has not begun |
//! | `range.rs` | `Graph::prescribe_range` and its like | as `replayed.rs`, for a part of a range |
//! | `forked.rs` | `StepContext::fork` | as `replayed.rs` |
//! | `async_step.rs` | `Graph::prescribe_async` | the step goes on where it was |
//!
//! No kind names another one. `tag_word.rs` writes the methods of `Code` about tags for each.

pub(crate) mod async_step;
pub(crate) mod declared;
mod forked;
pub(crate) mod range;
pub(crate) mod replayed;
