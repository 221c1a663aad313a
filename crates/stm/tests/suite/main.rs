//! What transactions do, in one program, because linking is what takes long.
#![cfg(not(loom))]

#[macro_use]
#[path = "../engines/mod.rs"]
mod engines;
#[macro_use]
mod each_turn;
#[path = "../engines/workloads.rs"]
mod workloads;

mod alternatives;
mod conditions;
mod faults_of_others;
mod handles;
mod hints;
mod os_threads;
mod random_structures;
mod semantics;
mod structures;
mod structures_at_once;
mod zombies;
