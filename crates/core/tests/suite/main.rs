//! What threads, their handles and CPUs do, in one program, because linking is what takes long.

#[path = "../common/group.rs"]
mod group;
#[macro_use]
#[path = "../common/has.rs"]
mod has;
#[path = "../common/never.rs"]
mod never;

mod answer;
mod auto_traits;
mod deep_results;
mod foreign_joiners;
mod mobile;
mod names_of_panics;
mod reentry;
mod requests;
mod several_cpus;
mod standstill;
mod thread_value;
mod threads;
mod unpark_panics;
