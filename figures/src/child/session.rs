//! The paper's experiment itself: one process compiles all modules of a program, with a thread for
//! each module and one cache of interfaces that all threads share.
//!
//! # Paper
//! [HMP05 §7.2, §7.3].

use super::fault;
use super::make::{STEPS, compute, imports, interface, interfaces_of};
use super::runtime::{Ours, Runtime, Waits};
use selvedge_lazy::Lazy;
use selvedge_sync::{MVar, Semaphore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// How many interfaces of packages there are.
pub(super) const PACKAGES: u64 = 16;

/// The results of the modules so far, by their numbers.
type Tables = Arc<BTreeMap<u64, u64>>;

/// Compiles a program of this number of modules on one worker, and on two.
pub(super) fn session(count: u64, percent: u64) {
    let steps = STEPS / 100 * percent;
    let run = |workers: usize| Ours::run(workers, Waits::Nothing, program(count, steps, workers as u32));
    let (one, alone) = run(1);
    let (two, together) = run(2);
    assert_eq!(alone, together, "both sessions compile the same");
    println!("commands {}", together.len());
    println!("speed_up {:.4}", one / two);
    println!("wall_ms {:.4}", two * 1e3);
}

/// Returns the seconds that it took, and the results of all modules.
async fn program(count: u64, steps: u64, jobs: u32) -> (f64, BTreeMap<u64, u64>) {
    let began = Instant::now();
    let cells: Arc<[MVar<Tables>]> = (0..count + fault()).map(|_| MVar::empty()).collect();
    // Only ever added to: the first thread that needs an interface reads it, and the others wait.
    let cache: Arc<[Lazy<u64>]> =
        (0..PACKAGES).map(|package| Lazy::new(move || interface(package, steps))).collect();
    let jobs = Arc::new(Semaphore::new(jobs));
    for module in 0..cells.len() as u64 {
        let (cells, cache, jobs) = (cells.clone(), cache.clone(), jobs.clone());
        Ours::spawn(async move {
            let mut table = BTreeMap::new();
            for import in imports(count, module) {
                table.extend(&*read(&cells[import as usize]).await);
            }
            let _job = jobs.acquire().await;
            let mut state = table.values().fold(module, |state, import| state ^ import);
            for package in interfaces_of(module) {
                state ^= *cache[package as usize].force().await;
            }
            // A step keeps the threads that it makes ready until it ends. The reads above may have
            // made a reader of the same cells ready, and the computation is long.
            Ours::yield_now().await;
            table.insert(module, compute(state, steps));
            cells[module as usize].put(Arc::new(table)).await;
        });
    }
    let mut all = BTreeMap::new();
    for cell in &*cells {
        all.extend(&*read(cell).await);
    }
    (began.elapsed().as_secs_f64(), all)
}

/// The paper's `readMVar`.
async fn read(cell: &MVar<Tables>) -> Tables {
    let table = cell.take().await;
    cell.put(table.clone()).await;
    table
}
