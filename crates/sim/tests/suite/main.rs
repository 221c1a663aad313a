//! What simulated schedules, networks and disks do, in one program, because linking is what takes
//! long.

#[path = "../../../lazy/tests/programs/mod.rs"]
mod lazy_programs;
#[path = "../../../sched/tests/programs/mod.rs"]
#[allow(dead_code, reason = "some programs are for the other schedulers")]
mod programs;
#[path = "../../../sched/tests/schedulers/scheduler.rs"]
mod schedulers;

mod clock_that_stands_still;
mod datagrams;
mod disk;
mod every_scheduler;
mod handles;
mod network;
mod orders;
mod scheduler;
