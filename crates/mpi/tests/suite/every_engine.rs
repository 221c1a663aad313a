//! Runs every case on each engine, under each scheduler.

use crate::conformance::{Case, all};
use selvedge_core::{NoEvents, round_robin};
use selvedge_mpi::Ranks;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs all cases, and says which have failed.
fn each(run: impl Fn(&'static Case)) {
    let failed: Vec<&str> = all()
        .filter(|case| catch_unwind(AssertUnwindSafe(|| run(case))).is_err())
        .map(|case| case.name)
        .collect();
    assert!(failed.is_empty(), "cases have failed: {failed:?}");
}

async fn ranks(world: Ranks, case: &'static Case) {
    world.run(case.body).await.unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
}

#[test]
fn threads() {
    each(|case| round_robin(ranks(Ranks::new(case.ranks), case)).unwrap());
}

#[test]
fn threads_that_serialise() {
    each(|case| round_robin(ranks(Ranks::new(case.ranks).serialized(), case)).unwrap());
}

#[test]
fn threads_on_two_workers() {
    each(|case| {
        for _ in 0..10 {
            selvedge_sched::work_stealing(2, |_| Ok(NoEvents::new()), ranks(Ranks::new(case.ranks), case))
                .unwrap();
        }
    });
}

#[test]
fn threads_in_simulated_worlds() {
    each(|case| {
        selvedge_sim::simulate(0..15, || ranks(Ranks::new(case.ranks), case));
    });
}

/// Messages take time, and those of different pairs of ranks overtake one another.
#[test]
fn threads_with_couriers_in_simulated_worlds() {
    each(|case| {
        selvedge_sim::simulate(0..15, || ranks(Ranks::new(case.ranks).delayed(), case));
    });
}

/// The check of collectives disturbs none that is right.
#[test]
fn threads_that_check_collectives() {
    // In these a rank goes on, or ends, where the check is an error on every rank.
    let wrong = [
        "another_collective",
        "a_wrong_number_of_values",
        "slices_of_different_lengths",
        "started_with_errors",
        "started_elements_with_errors",
    ];
    let right = |case: &Case| !wrong.contains(&case.name);
    each(|case| {
        if right(case) {
            round_robin(ranks(Ranks::new(case.ranks).checked(), case)).unwrap();
            selvedge_sim::simulate(0..3, || ranks(Ranks::new(case.ranks).checked().delayed(), case));
        }
    });
}
