//! Several jobs, two at a time: the queue from which two OS threads take them.
//!
//! The tests' binaries (`binaries.rs`) and the proofs that run on one CPU each (`prove.rs`) go
//! through it. The machine that their limits of time are for has two CPUs.

use std::sync::Mutex;
use std::thread;

const SIDES: usize = 2;

/// Runs `job` on each item, and returns the results in the order in which the jobs ended.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (left, ended) = (Mutex::new(items.iter()), Mutex::new(Vec::new()));
    // Its own statement: the guard of a `while let` would last for the whole turn.
    let next = || left.lock().expect("no job panics with it").next();
    thread::scope(|scope| {
        for _ in 0..SIDES {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let result = job(item);
                    ended.lock().expect("no job panics with it").push(result);
                }
            });
        }
    });
    ended.into_inner().expect("no job panics with it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn two_jobs_run_at_once_and_each_runs_once() {
        // A pair of jobs ends only if both run at the same time.
        let pair = Barrier::new(SIDES);
        let mut ended = each(&[1, 2, 3, 4], |item| {
            pair.wait();
            *item
        });
        ended.sort_unstable();
        assert_eq!(ended, [1, 2, 3, 4]);
    }
}
