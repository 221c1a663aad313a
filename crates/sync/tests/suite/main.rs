//! What the objects do that threads share, in one program, because linking is what takes long.

mod common;
#[macro_use]
#[path = "../../../core/tests/common/has.rs"]
mod has;

mod against_models;
mod auto_traits;
mod every_suspension_point;
mod foreign_wakers;
mod locks_against_models;
mod one_shot;
mod os_threads;
mod queues_against_models;
mod random_programs;
mod reentry;
mod refusals;
mod statics;
#[cfg(not(any(loom, miri)))]
mod under_tokio;
