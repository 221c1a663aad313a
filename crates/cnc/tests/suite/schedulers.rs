//! Every scheduler, for tests that hold under all of them.

use crate::on_rayon::OnRayon;
use selvedge_cnc::schedulers::{Affine, MainThread, OneByOne, Scheduler, Stealing, TaskPool, ThreadPerStep};
use selvedge_core::{NoEvents, round_robin};
use selvedge_sched::{priority, work_stealing};
use std::sync::OnceLock;

/// The seeds that a test tries with one worker, without `CNC_SEEDS`. More workers try fewer.
const SEEDS: u64 = 40;

/// The seeds that a test tries with this number of workers: `CNC_SEEDS`, or its part of [`SEEDS`].
fn seeds(workers: usize) -> u64 {
    let asked = std::env::var("CNC_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(SEEDS / workers as u64)
}

/// rayon's threads would be started for each graph otherwise.
fn rayon(workers: usize) -> &'static OnRayon {
    static POOLS: [OnceLock<OnRayon>; 9] = [const { OnceLock::new() }; 9];
    POOLS[workers].get_or_init(|| OnRayon::new(workers))
}

/// Each scheduler with 1, 2, 4 and 8 workers, and a random one with several seeds.
pub(crate) fn each(mut see: impl FnMut(&str, &dyn Scheduler)) {
    each_of(&mut see);
}

/// The compiler builds this once, and not once for each test.
fn each_of(see: &mut dyn FnMut(&str, &dyn Scheduler)) {
    see("sequential", &OneByOne);
    // Miri sees lent jobs in a test of their own.
    if !cfg!(miri) {
        let run: fn(MainThread) = |main| round_robin(main).unwrap();
        see("a thread per step, round_robin", &ThreadPerStep::under(run));
        let run: fn(MainThread) = |main| priority(&mut NoEvents::new(), main).unwrap();
        see("a thread per step, priority", &ThreadPerStep::under(run));
    }
    let workers: &[usize] = if cfg!(miri) { &[2] } else { &[1, 2, 4, 8] };
    for &workers in workers {
        see(&format!("stealing {workers}"), &Stealing::new(workers));
        // The task pools have no unsafe code. Miri takes a minute for what they add.
        if cfg!(miri) {
            continue;
        }
        see(&format!("lifo {workers}"), &TaskPool::lifo(workers));
        see(&format!("lifo, spinning {workers}"), &TaskPool::lifo(workers).spinning());
        see(&format!("fifo {workers}"), &TaskPool::fifo(workers));
        see(&format!("fifo, spinning {workers}"), &TaskPool::fifo(workers).spinning());
        see(&format!("affine {workers}"), &Affine::new(workers));
        see(&format!("rayon {workers}"), rayon(workers));
        let stealing =
            ThreadPerStep::under(move |main| work_stealing(workers, |_| Ok(NoEvents::new()), main).unwrap());
        see(&format!("a thread per step, work_stealing {workers}"), &stealing);
        see(&format!("priority {workers}"), &TaskPool::priority(workers));
        for seed in 0..seeds(workers) {
            see(&format!("fuzz {workers} {seed}"), &TaskPool::fuzz(workers, seed));
        }
    }
}
