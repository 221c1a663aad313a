//! Models for loom of private parts: the item's slot (`models/slot.rs`), the end of a run
//! (`models/end.rs`), a living environment (`models/living.rs`), and workers that stay while it
//! lives (`models/staying.rs`).
//!
//! `tests/loom/slot.rs` and `tests/loom/end.rs` call these functions under `--cfg loom`; no other
//! build has these files. A change to `slot.rs`, `in_use.rs`, `waiters.rs`, `places.rs`, `bell.rs`
//! or `schedulers/circle.rs` needs a run of them.

mod end;
mod living;
mod slot;
mod staying;

pub use end::workers_end_together;
pub use living::{a_graph_at_rest, a_living_environment, a_stop_of_a_living_environment};
pub use slot::{
    a_claim_given_back, a_counted_get_that_waits, a_get_that_is_late,
    a_missed_get_and_a_place_that_is_used_again, a_put_and_two_waiters, a_put_that_has_begun,
    a_take_and_a_get, a_take_that_waits, counted_gets, two_puts,
};
pub use staying::{LONG, workers_stay};
