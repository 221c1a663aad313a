//! How the programs of graphs run and print their times.

use crate::child::clock::Times;
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{FinishedGraph, Graph, StepContext, StepResult, graph};

/// Runs the graph after the environment's `begin`. Prints the time of one of this number of
/// operations.
///
/// # Panics
/// When the run does not end well.
pub(super) fn timed<'g>(
    graph: &'g Graph<'g, '_>,
    scheduler: &dyn Scheduler,
    operations: u64,
    begin: impl FnOnce(&StepContext<'g>) -> StepResult,
) -> FinishedGraph<'g> {
    timed_loop(operations, || finish(graph, scheduler, begin))
}

/// Runs the graph after the environment's `begin`.
///
/// # Panics
/// When the run does not end well.
pub(super) fn finish<'g>(
    graph: &'g Graph<'g, '_>,
    scheduler: &dyn Scheduler,
    begin: impl FnOnce(&StepContext<'g>) -> StepResult,
) -> FinishedGraph<'g> {
    graph.initialize(begin).unwrap_or_else(|error| panic!("{error}"));
    graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"))
}

/// Gives `work` a new graph. The time of all that is printed, without the end of the graph: a loop
/// that [`timed_loop`] measures makes its arrays too, and returns its result.
pub(super) fn timed_graph<'env, R>(
    operations: u64,
    work: impl for<'g> FnOnce(&'g Graph<'g, 'env>) -> R,
) -> R {
    let first = Times::now();
    graph(|graph| {
        let result = work(graph);
        print_times(first, operations);
        result
    })
}

/// As [`timed`], for a program without a graph.
pub(super) fn timed_loop<R>(operations: u64, work: impl FnOnce() -> R) -> R {
    let first = Times::now();
    let result = work();
    print_times(first, operations);
    result
}

/// Prints the time from `first` until now, as that of one of this number of operations.
pub(super) fn print_times(first: Times, operations: u64) {
    let last = Times::now();
    first.print_until(last, operations);
    println!("ms {:.4}", first.seconds_until(last) * 1e3);
}
