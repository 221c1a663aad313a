//! The interleavings of workers that steal, sleep, are called, and end; and those of a run with a
//! living environment.

use selvedge_cnc::models::{
    LONG, a_graph_at_rest, a_living_environment, a_stop_of_a_living_environment, workers_end_together,
    workers_stay,
};

/// Checks all interleavings with at most this number of preemptions.
fn model(preemptions: Option<usize>, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(check);
}

#[test]
fn two_workers_with_items_in_a_ring() {
    model(Some(2), || workers_end_together(2, &[0, 0]));
}

#[test]
fn two_workers_with_items_that_make_others() {
    model(Some(2), || workers_end_together(2, &[2]));
}

#[test]
fn two_workers_without_items() {
    model(Some(2), || workers_end_together(2, &[]));
}

#[test]
fn an_environment_that_puts_once() {
    model(None, || a_living_environment(1));
}

#[test]
fn an_environment_that_puts_twice() {
    model(Some(3), || a_living_environment(2));
}

#[test]
fn an_environment_that_waits_for_rest() {
    model(Some(2), a_graph_at_rest);
}

#[test]
fn an_environment_that_is_stopped() {
    model(Some(3), a_stop_of_a_living_environment);
}

#[test]
fn a_worker_that_stays_and_an_environment_that_puts_twice() {
    model(Some(3), || workers_stay(1, &[0, 0], true, false));
}

#[test]
fn a_put_wakes_a_worker_while_the_other_one_is_in_a_long_step() {
    model(Some(2), || workers_stay(2, &[LONG, 0], false, false));
}

#[test]
fn two_workers_that_stay_and_an_environment_that_puts_once() {
    model(Some(2), || workers_stay(2, &[0], false, false));
}

#[test]
fn two_workers_that_stay_and_an_environment_that_puts_twice() {
    model(Some(2), || workers_stay(2, &[0, 0], false, false));
}

#[test]
fn two_workers_that_stay_and_an_environment_that_waits_for_rest() {
    model(Some(2), || workers_stay(2, &[1], true, false));
}

#[test]
fn two_workers_that_stay_and_an_environment_that_stops_the_run() {
    model(Some(2), || workers_stay(2, &[0], false, true));
}
