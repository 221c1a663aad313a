//! The tests of this crate in one program, because linking is what takes long.

#[path = "../../../sched/tests/naps/mod.rs"]
mod naps;
#[macro_use]
#[path = "../../../sched/tests/schedulers/mod.rs"]
mod schedulers;

mod ends;
mod every_fault;
mod graphs;
mod joins;
mod parts;
mod places;
