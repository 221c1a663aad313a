//! [`Engine`]: what runs a program of graphs, by the number that a figure gives.
//!
//! `cnc.rs` makes an engine for the six programs of [NCM11 §4], and they run on it.

use super::on_rayon::OnRayon;
use rayon::{ThreadPool, ThreadPoolBuilder};
use selvedge_cnc::schedulers::{Affine, OneByOne, Scheduler, Stealing, TaskPool, ThreadPerStep};
use selvedge_core::NoEvents;
use selvedge_sched::work_stealing;

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
pub(super) const ASYNC: u64 = 13;
pub(super) const DECLARED: u64 = 14;

/// What runs a program.
pub(super) enum Engine {
    Loop,
    Rayon(ThreadPool),
    Graph(Box<dyn Scheduler>),
}

impl Engine {
    /// # Errors
    /// When there is no such engine.
    pub(super) fn new(number: u64, workers: u64) -> Result<Engine, String> {
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

/// A pool of rayon with this number of OS threads.
pub(super) fn rayon(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(workers).build().expect("the machine has threads")
}
