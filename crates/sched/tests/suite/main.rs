//! What schedulers do with threads, in one program, because linking is what takes long.

#[path = "../naps/mod.rs"]
mod naps;
#[path = "../programs/mod.rs"]
mod programs;
#[macro_use]
#[path = "../schedulers/mod.rs"]
mod schedulers;

mod budget;
mod every_scheduler;
mod on_one_worker;
mod pinned_main;
mod stacks_and_scopes;
mod work_stealing;
