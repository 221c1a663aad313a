//! [`per_core`]: one loop per core, on OS threads that share nothing.
//!
//! Programs call it, and the web server `apps/httpd`. Each worker is `core`'s `round_robin_on`
//! with an event source of its own; `WorkerGroup` has all that the workers share: the word to stop,
//! and the number of workers that are left. The OS thread that called `per_core` only waits, so it
//! counts as quiet while a worker is present (`core`'s `quiet.rs`); otherwise no deadlock of the
//! workers would be reported.

use selvedge_core::{Cpu, Events, Quiet, RunError, Unpark, prepare_heavy_fence, round_robin_on};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The reason why [`per_core`] ended early: a worker failed, and the other workers were stopped.
pub struct SchedulerError {
    /// The worker's number.
    pub worker: usize,
    /// The error that stopped it.
    pub error: RunError,
}

impl fmt::Display for SchedulerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}: {}", self.worker, self.error)
    }
}

/// Like `Display`, because a `main` that returns a `Result` prints its error by `Debug`.
impl fmt::Debug for SchedulerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SchedulerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Starts `workers` OS threads, each with a CPU and an event source of its own, and runs
/// `main(worker)` on each of them, round-robin with the threads that it creates there. Returns the
/// results in the workers' order after all mains have ended.
///
/// A thread never leaves its worker, so it need not be `Send`, and data that the threads of one
/// worker share need no lock. The source of the work spreads it: for a server, the kernel spreads
/// it over the listening sockets.
///
/// The calling OS thread only waits.
///
/// # Errors
/// The first worker that fails stops the others: their threads are cancelled at their next turn.
///
/// # Panics
/// If a main panics: with its payload, after the other workers have been stopped.
///
/// # Paper
/// [LZ07 §4.4, Figure 17] has several `worker_main` loops on one ready queue; [Mighty §Scaling] has
/// several processes that share nothing, and this does the same with threads.
///
/// # Examples
/// ```
/// use selvedge::{NoEvents, yield_now};
/// use selvedge::sched::per_core;
///
/// let squares = per_core(2, |_| Ok(NoEvents::new()), |worker| async move {
///     yield_now().await;
///     worker * worker
/// })?;
/// assert_eq!(squares, [0, 1]);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub fn per_core<E, F>(
    workers: usize,
    events: impl Fn(usize) -> io::Result<E> + Sync,
    main: impl Fn(usize) -> F + Sync,
) -> Result<Vec<F::Output>, SchedulerError>
where
    E: Events,
    F: Future + 'static,
    F::Output: Send,
{
    let group = WorkerGroup::default();
    let (group, events, main) = (&group, &events, &main);
    prepare_heavy_fence();
    let ended: Vec<_> = std::thread::scope(|scope| {
        let start = |worker: usize| {
            group.attendance().present += 1;
            let name = format!("worker-{worker}");
            std::thread::Builder::new().name(name).spawn_scoped(scope, move || {
                let _present = Present(group);
                let _on_panic = StopOnPanic(group);
                let ended = work(worker, events, main, group);
                if ended.is_err() {
                    group.stop();
                }
                ended
            })
        };
        let started: Vec<_> = (0..workers).map(start).collect();
        for _missing in started.iter().filter(|started| started.is_err()) {
            group.stop();
            group.leave();
        }
        group.waits();
        // All workers are joined before any panic goes on.
        started.into_iter().map(|s| s.map(|handle| handle.join())).collect()
    });
    let mut results = Vec::new();
    let mut failure = None;
    for (worker, ended) in ended.into_iter().enumerate() {
        match ended {
            Ok(Ok(Ok(result))) => results.extend(result),
            Ok(Ok(Err(error))) => failure = failure.or(Some(SchedulerError { worker, error })),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => failure = failure.or(Some(SchedulerError { worker, error: error.into() })),
        }
    }
    failure.map_or(Ok(results), Err)
}

/// The state that the workers share: whether to stop, and how to wake each other for that.
#[derive(Debug, Default)]
struct WorkerGroup {
    stopped: AtomicBool,
    unparkers: Mutex<Vec<Arc<dyn Unpark>>>,
    attendance: Mutex<Attendance>,
}

/// The number of workers that have not ended, and the quiet of the OS thread that waits for their
/// end. The last worker to end removes the quiet.
#[derive(Debug, Default)]
struct Attendance {
    present: usize,
    quiet: Option<Quiet>,
}

impl WorkerGroup {
    fn attendance(&self) -> MutexGuard<'_, Attendance> {
        self.attendance.lock().expect("no panic under this lock")
    }

    /// A worker has ended.
    fn leave(&self) {
        let mut attendance = self.attendance();
        attendance.present -= 1;
        if attendance.present == 0 {
            attendance.quiet = None;
        }
    }

    /// The calling OS thread does nothing more until all workers have ended.
    fn waits(&self) {
        let mut attendance = self.attendance();
        if attendance.present > 0 {
            attendance.quiet = Some(Quiet::new());
        }
    }

    fn enlist(&self, unparker: Arc<dyn Unpark>) {
        self.unparkers.lock().expect("no panic under this lock").push(unparker);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.unparkers.lock().expect("no panic under this lock").iter().for_each(|u| u.unpark());
    }
}

/// While it lives, a worker has not ended.
struct Present<'a>(&'a WorkerGroup);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct StopOnPanic<'a>(&'a WorkerGroup);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Runs one worker until its end. `None` if it was stopped before its main ended.
fn work<E: Events, F: Future + 'static>(
    worker: usize,
    events: &(impl Fn(usize) -> io::Result<E> + Sync),
    main: &(impl Fn(usize) -> F + Sync),
    group: &WorkerGroup,
) -> Result<Option<F::Output>, RunError> {
    let mut events = events(worker)?;
    let cpu = Cpu::new()?;
    group.enlist(cpu.unparker());
    // This check sees a stop that came before `enlist`. A later stop unparks the CPU.
    round_robin_on(cpu, &mut events, main(worker), || group.stopped.load(Ordering::SeqCst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::{NoEvents, spawn, yield_now};
    use std::panic::catch_unwind;

    #[test]
    fn a_failure_is_printed_in_words() {
        let failure = SchedulerError { worker: 3, error: RunError::MainExited };
        assert_eq!(format!("{failure:?}"), failure.to_string());
    }

    #[test]
    fn workers_talk_through_foreign_channels() {
        use futures::channel::mpsc;
        use futures::{SinkExt, StreamExt};
        let n = if cfg!(miri) { 20 } else { 2_000 };
        let (there, here) = mpsc::channel::<u32>(4);
        let (back, end) = mpsc::channel::<u32>(4);
        let ends = [Mutex::new(Some((there, end))), Mutex::new(Some((back, here)))];
        let sums = per_core(
            2,
            |_| Ok(NoEvents::new()),
            |worker| {
                let (mut to, mut from) = ends[worker].lock().unwrap().take().unwrap();
                async move {
                    let send = spawn(async move {
                        for i in 0..n {
                            to.send(i).await.unwrap();
                        }
                    });
                    let mut sum = 0;
                    for _ in 0..n {
                        sum += from.next().await.unwrap();
                    }
                    send.await.unwrap();
                    sum
                }
            },
        );
        assert_eq!(sums.unwrap(), [(0..n).sum::<u32>(); 2]);
    }

    #[test]
    fn a_panic_in_one_main_stops_the_others_and_goes_on() {
        let panicked = catch_unwind(|| {
            per_core(
                2,
                |_| Ok(NoEvents::new()),
                |worker| async move {
                    if worker == 1 {
                        std::panic::resume_unwind(Box::new("worker one"));
                    }
                    loop {
                        yield_now().await;
                    }
                },
            )
        });
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"worker one"));
    }

    #[test]
    fn a_worker_without_events_fails_all() {
        let failed = per_core(
            2,
            |worker| if worker == 0 { Err(io::Error::other("no descriptors")) } else { Ok(NoEvents::new()) },
            |_| std::future::pending::<()>(),
        );
        let failure = failed.unwrap_err();
        assert_eq!(
            (failure.worker, failure.to_string()),
            (0, "worker 0: waiting for events: no descriptors".into())
        );
    }
}
