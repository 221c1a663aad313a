//! The programs of the figures `blocking-call` and `runner-start`. `child.rs` calls them for
//! `figures/src/starts.rs`.
//!
//! `Starts` is the trait through which both runtimes run one text.

use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use selvedge_io::EventLoop;
use selvedge_sched::work_stealing;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs the program `name` with its numbers. `false` if it is no program about calls on OS threads
/// and runners that start.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("blocking-call", &[w, threads, calls]) => blocking_call::<Ours>(w, threads, calls, fault()),
        ("runner-start", &[w, runs, calls]) => runner_start::<Ours>(w, runs, calls, fault()),
        ("tokio-blocking-call", &[w, threads, calls]) => blocking_call::<Tokio>(w, threads, calls, fault()),
        ("tokio-runner-start", &[w, runs, calls]) => runner_start::<Tokio>(w, runs, calls, fault()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A runtime that starts and ends, with its blocking pool.
pub(super) trait Starts: Runtime {
    /// Runs a call that may block on another OS thread.
    fn blocking<T: Send + 'static>(
        call: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// Starts the workers, runs `main`, and ends the workers.
    fn start<F>(workers: usize, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;
}

impl Starts for Ours {
    async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
        selvedge_io::blocking(call).await.expect("the call does not panic")
    }

    fn start<F>(workers: usize, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        work_stealing(workers, |_| EventLoop::new(), main).expect("no worker fails")
    }
}

impl Starts for Tokio {
    async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
        tokio::task::spawn_blocking(call).await.expect("the call does not panic")
    }

    fn start<F>(workers: usize, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers).enable_all().build();
        // The drop at the end of the statement waits for the workers.
        runtime.expect("the system has what a runtime needs").block_on(main)
    }
}

/// `threads` threads, each of which makes `calls` blocking calls, one after another. A `fault`
/// makes the sum wrong.
fn blocking_call<S: Starts>(workers: u64, threads: u64, calls: u64, fault: u64) {
    let (micros, sum) = S::run(workers as usize, Waits::World, async move {
        // The OS threads of the pool are there before the time is taken.
        S::blocking(|| ()).await;
        let first = Instant::now();
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                S::spawn(async move {
                    let mut sum = fault;
                    for i in 0..calls {
                        sum += S::blocking(move || i).await;
                    }
                    sum
                })
            })
            .collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await;
        }
        (first.elapsed().as_secs_f64() * 1e6, sum)
    });
    println!("sum {sum}");
    println!("us {:.4}", micros / (threads * calls) as f64);
}

/// `runs` runtimes, one after another, each with a main that makes `calls` blocking calls, one
/// after another. A `fault` makes the number of calls wrong.
fn runner_start<S: Starts>(workers: u64, runs: u64, calls: u64, fault: u64) {
    let made = Arc::new(AtomicU64::new(fault));
    let first = Instant::now();
    for _ in 0..runs {
        let made = made.clone();
        S::start(workers as usize, async move {
            for _ in 0..calls {
                let made = made.clone();
                S::blocking(move || made.fetch_add(1, Ordering::Relaxed)).await;
            }
        });
    }
    let micros = first.elapsed().as_secs_f64() * 1e6;
    println!("calls {}", made.load(Ordering::Relaxed));
    println!("us {:.4}", micros / runs as f64);
}
