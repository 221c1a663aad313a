//! The programs of the figures about graphs of steps: what a step, a miss and an item cost,
//! wavefronts, and the six programs of [NCM11 §4]. `child.rs` calls `run`; the figures in
//! `figures/src/cnc.rs` give the numbers.
//!
//! Beside each graph are the same kernels in a plain loop and under rayon. The first number of a
//! program names its `Engine` by the place in `ENGINES`, so that list is only extended at its end.

pub(crate) mod cholesky;
pub(crate) mod edges;
mod items;
pub(crate) mod kernels;
mod kinds;
#[path = "../../../crates/cnc/tests/suite/on_rayon.rs"]
mod on_rayon;
mod six;
pub(crate) mod steps;
mod stuck;
pub(crate) mod trace;

use rayon::{ThreadPool, ThreadPoolBuilder};
use selvedge_cnc::schedulers::{Affine, OneByOne, Scheduler, Stealing, TaskPool, ThreadPerStep};
use selvedge_cnc::{FinishedGraph, Graph, StepContext, StepResult, graph};
use selvedge_core::NoEvents;
use selvedge_sched::work_stealing;

use self::kinds::StepKind;
use self::on_rayon::OnRayon;
use super::clock::Times;

/// What runs a program, by the numbers that a figure gives.
pub(crate) const ENGINES: [&str; 15] = [
    "serial loop",
    "rayon",
    "selvedge, stealing",
    "selvedge, one by one",
    "selvedge, LIFO pool",
    "selvedge, FIFO pool",
    "selvedge, FIFO pool that spins",
    "selvedge, priority pool",
    "selvedge, fuzz pool",
    "selvedge, LIFO pool that spins",
    "selvedge, affinity",
    "selvedge, a thread for each step",
    "selvedge, on rayon's pool",
    "selvedge, async steps",
    "selvedge, declared items",
];
/// The plain loop.
pub(crate) const LOOP: u64 = 0;
/// rayon.
pub(crate) const RAYON: u64 = 1;
/// The scheduler to begin with; those after it are the others.
pub(crate) const STEALING: u64 = 2;

/// Async steps under the stealing scheduler, and steps with declared items.
const ASYNC: u64 = 13;
const DECLARED: u64 = 14;

/// What runs a program.
enum Engine {
    Loop,
    Rayon(ThreadPool),
    Graph(Box<dyn Scheduler>),
}

impl Engine {
    fn new(number: u64, workers: u64) -> Result<Engine, String> {
        let workers = workers as usize;
        Ok(match number {
            LOOP => Engine::Loop,
            RAYON => Engine::Rayon(rayon(workers)),
            STEALING => Engine::Graph(Box::new(Stealing::new(workers))),
            3 => Engine::Graph(Box::new(OneByOne)),
            4 => Engine::Graph(Box::new(TaskPool::lifo(workers))),
            5 => Engine::Graph(Box::new(TaskPool::fifo(workers))),
            6 => Engine::Graph(Box::new(TaskPool::fifo(workers).spinning())),
            7 => Engine::Graph(Box::new(TaskPool::priority(workers))),
            8 => Engine::Graph(Box::new(TaskPool::fuzz(workers, 1))),
            9 => Engine::Graph(Box::new(TaskPool::lifo(workers).spinning())),
            10 => Engine::Graph(Box::new(Affine::new(workers))),
            11 => Engine::Graph(Box::new(ThreadPerStep::under(move |main| {
                work_stealing(workers, |_| Ok(NoEvents::new()), main).expect("no thread waits");
            }))),
            12 => Engine::Graph(Box::new(OnRayon::new(workers))),
            _ => return Err(format!("no such engine: {number}")),
        })
    }
}

fn rayon(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(workers).build().expect("the machine has threads")
}

/// Runs a program of graphs.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<(), String> {
    match (name, numbers) {
        ("empty", &[workers, n]) => steps::empty(&Stealing::new(workers as usize), n),
        ("rayon-empty", &[workers, n]) => steps::rayon_empty(&rayon(workers as usize), n),
        ("put", &[workers, n]) => steps::one_put(&Stealing::new(workers as usize), n),
        ("rayon-put", &[workers, n]) => steps::rayon_put(&rayon(workers as usize), n),
        ("chain", &[workers, n]) => steps::chain(&Stealing::new(workers as usize), n),
        ("rayon-chain", &[workers, n]) => steps::rayon_chain(&rayon(workers as usize), n),
        ("tree", &[workers, depth]) => steps::tree(&Stealing::new(workers as usize), depth),
        ("rayon-tree", &[workers, depth]) => steps::rayon_tree(&rayon(workers as usize), depth),
        ("get", &[kind, workers, n]) => steps::gets(kind, &Stealing::new(workers as usize), n, false),
        ("miss", &[kind, workers, n]) => steps::gets(kind, &Stealing::new(workers as usize), n, true),
        ("stuck", &[workers, n]) => stuck::stuck(&Stealing::new(workers as usize), n),
        ("trace", &[kind, workers, n]) => trace::trace(kind, &Stealing::new(workers as usize), n),
        ("wavefront", &[kind, workers, side]) => {
            steps::wavefront(kind, &Stealing::new(workers as usize), side as u32);
        }
        ("rayon-wavefront", &[workers, side]) => {
            steps::rayon_wavefront(&rayon(workers as usize), side as u32);
        }
        ("loop-wavefront", &[side]) => steps::loop_wavefront(side as u32),
        ("waves", &[workers, tiles, block]) => {
            steps::waves(&Stealing::new(workers as usize), tiles as u32, block as u32);
        }
        ("loop-waves", &[tiles, block]) => steps::loop_waves(tiles as u32, block as u32),
        ("items", &[kind, workers, n]) => items::items(kind, &Stealing::new(workers as usize), n as u32),
        ("once-lock", &[workers, n]) => items::once_lock(workers as usize, n as u32),
        (
            "mandel" | "primes" | "nbody" | "blackscholes" | "queens" | "cholesky",
            &[engine, workers, ref sizes @ ..],
        ) if engine == ASYNC || engine == DECLARED => {
            let kind = if engine == ASYNC { StepKind::Async } else { StepKind::Declared };
            kinds::run(kind, &Stealing::new(workers as usize), name, sizes)?;
        }
        ("mandel", &[engine, workers, side, depth]) => {
            six::mandel(&Engine::new(engine, workers)?, side as u32, depth as u32);
        }
        ("primes", &[engine, workers, n]) => six::primes(&Engine::new(engine, workers)?, n as u32),
        ("nbody", &[engine, workers, n]) => six::nbody(&Engine::new(engine, workers)?, n),
        ("blackscholes", &[engine, workers, n]) => six::blackscholes(&Engine::new(engine, workers)?, n),
        ("queens", &[engine, workers, size]) => six::queens(&Engine::new(engine, workers)?, size as u32),
        ("cholesky", &[engine, workers, tiles, block]) => {
            cholesky::cholesky(&Engine::new(engine, workers)?, tiles as u32, block as u32);
        }
        _ => return Err(format!("no such program of graphs: {name} {numbers:?}")),
    }
    Ok(())
}

/// Runs the graph after the environment's `begin`. Prints the time of one of this number of
/// operations.
///
/// # Panics
/// When the run does not end well.
fn timed<'g>(
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
fn finish<'g>(
    graph: &'g Graph<'g, '_>,
    scheduler: &dyn Scheduler,
    begin: impl FnOnce(&StepContext<'g>) -> StepResult,
) -> FinishedGraph<'g> {
    graph.initialize(begin).unwrap_or_else(|error| panic!("{error}"));
    graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"))
}

/// Gives `work` a new graph. The time of all that is printed, without the end of the graph: a loop
/// that [`timed_loop`] measures makes its arrays too, and returns its result.
fn timed_graph<'env, R>(operations: u64, work: impl for<'g> FnOnce(&'g Graph<'g, 'env>) -> R) -> R {
    let first = Times::now();
    graph(|graph| {
        let result = work(graph);
        print_times(first, operations);
        result
    })
}

/// As [`timed`], for a program without a graph.
fn timed_loop<R>(operations: u64, work: impl FnOnce() -> R) -> R {
    let first = Times::now();
    let result = work();
    print_times(first, operations);
    result
}

fn print_times(first: Times, operations: u64) {
    let last = Times::now();
    first.print_until(last, operations);
    println!("ms {:.4}", first.seconds_until(last) * 1e3);
}
