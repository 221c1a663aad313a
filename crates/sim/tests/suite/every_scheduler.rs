//! The programs that run under every scheduler, under the simulated one: with the event source that
//! needs no descriptors, and in a simulated world. Each program runs under several seeds.
//!
//! Left out are the programs that wake threads from other OS threads, because these are outside the
//! simulation, and the programs in which a thread panics that no thread joins, or the main thread,
//! because such a run fails with a report instead of the panic.

use crate::schedulers::Scheduler;
use selvedge_core::RunError;
use selvedge_sim::{Conditions, Simulation, SimulationError, VirtualTime, Why, World};
use std::cell::Cell;

/// Priorities that change cost a step as much as there are threads, so the tests take few seeds.
const SEEDS: u64 = if cfg!(debug_assertions) { 2 } else { 20 };

thread_local! {
    /// The seed of the next run on this OS thread.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

macro_rules! under_the_simulated_scheduler {
    ($($test:ident)*) => {
        under_the_simulated_scheduler! { @ in_virtual_time SIMULATED; $($test)* }
        under_the_simulated_scheduler! { @ in_a_world IN_WORLD; $($test)* }
    };
    (@ $name:ident $scheduler:ident; $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() {
                for seed in 0..super::SEEDS {
                    super::SEED.set(seed);
                    crate::programs::$test(super::$scheduler);
                }
            })*
        }
    };
}

under_the_simulated_scheduler! {
    a_tree_of_threads_is_joined
    threads_that_yield_all_come_to_their_end
    a_value_goes_round_a_ring
    ten_thousand_threads_wait_and_are_woken
    a_panic_reaches_the_joiner_and_no_other_thread
    a_cancelled_thread_runs_its_destructors
    a_shielded_thread_is_cancelled_when_it_leaves_the_shield
    what_is_left_when_main_ends_is_cancelled
    exit_ends_a_thread_and_main_without_a_result
    threads_sleep_and_time_goes_on_however_many_are_ready
    a_local_thread_stays_on_its_os_thread
    random_programs_deliver_every_value_once
    random_programs_in_direct_style_deliver_every_value_once
    a_foreign_waker_that_panics_harms_no_other_thread
    threads_in_direct_style_block_like_ordinary_code
    a_cancelled_thread_in_direct_style_unwinds_its_stack
    a_panic_in_direct_style_reaches_the_thread_that_joins
}

/// An order that depends on the seed: at random, or by priorities that change.
fn order() -> Simulation {
    match SEED.get() {
        seed if seed % 2 == 0 => Simulation::new(seed),
        seed => Simulation::pct(seed, 3, 1_000),
    }
}

fn error(failed: SimulationError) -> RunError {
    match failed.why() {
        Why::Deadlock(deadlock) => RunError::Deadlock(deadlock.clone()),
        Why::MainExited => RunError::MainExited,
        _ => panic!("{failed}"),
    }
}

const SIMULATED: Scheduler =
    Scheduler(|main| order().run(&mut VirtualTime::new(), main).map(drop).map_err(error));

const IN_WORLD: Scheduler = Scheduler(|main| {
    let world = World::new(SEED.get()).conditions(Conditions::bad()).order(order());
    world.run(main).map(drop).map_err(error)
});
