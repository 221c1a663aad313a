//! Transactions while comparisons fail without cause. The comparisons of the whole process fail, so
//! these tests are a program of their own, and take turns.
#![cfg(not(loom))]

use selvedge_stm::testing::shake;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[macro_use]
#[path = "../engines/mod.rs"]
mod engines;
#[path = "../engines/workloads.rs"]
mod workloads;

mod linearisable;
mod random_programs;
mod shaken;

/// Makes one in `one_in` comparisons fail, or none if it is 0, until the next test asks for another
/// number. No other test asks while the guard lives.
fn shaken_alone(one_in: u32) -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    shake(one_in);
    turn
}
