//! Every scheduler, for tests that hold under all of them.

use selvedge_cnc::schedulers::{Pool, Scheduler, Sequential, WorkStealing};

/// The seeds that a test tries.
pub(crate) const SEEDS: u64 = if cfg!(miri) { 1 } else { 40 };

/// Each scheduler with 1, 2, 4 and 8 workers, and a random one with several seeds.
pub(crate) fn each(mut see: impl FnMut(&str, &dyn Scheduler)) {
    see("sequential", &Sequential);
    let workers: &[usize] = if cfg!(miri) { &[2] } else { &[1, 2, 4, 8] };
    for &workers in workers {
        see(&format!("stealing {workers}"), &WorkStealing::new(workers));
        see(&format!("lifo {workers}"), &Pool::lifo(workers));
        see(&format!("fifo {workers}"), &Pool::fifo(workers));
        see(&format!("fifo, spinning {workers}"), &Pool::fifo(workers).spinning());
        see(&format!("priority {workers}"), &Pool::priority(workers));
        for seed in 0..SEEDS / workers as u64 {
            see(&format!("fuzz {workers} {seed}"), &Pool::fuzz(workers, seed));
        }
    }
}
