//! A scheduler that tells when a run makes no progress: [`Watchdog`]. It runs another scheduler,
//! and an OS thread beside it looks at the graph's `Monitor`.

use super::{GraphJob, Scheduler};
use crate::monitor::{Monitor, Stalled};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// Another scheduler, with an OS thread that tells when the run makes no progress: some steps wait
/// for items, and for a given time no step has begun or ended.
///
/// A graph in which all steps wait ends by itself, with the same report. This is for a graph with
/// an environment that lives on: a [`LiveEnvironment`](crate::LiveEnvironment), or a step that
/// waits for a socket, a queue or a user, and puts items as they come. Nothing is ended: the
/// closure may report, or cancel the run with a [`Canceller`](crate::Canceller). It is called once
/// for each time without progress.
///
/// # Complexity
/// That of [`Graph::monitor`](crate::Graph::monitor), which the first run turns on. A step that
/// waits since a run before that one is not told.
///
/// # Examples
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use selvedge::cnc::{self, schedulers::{Stealing, Watchdog}};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let (sender, receiver) = mpsc::channel();
/// let receiver = std::sync::Mutex::new(receiver);
/// let watched = Watchdog::new(Stealing::new(2), Duration::from_millis(50), |stalled| {
///     println!("{stalled}"); // 1 steps wait for 1 items that no step has put ..
///     sender.send(7).unwrap();
/// });
/// let sum = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("tags");
///     let items = graph.items::<&str, u32>("items");
///     graph.prescribe(tags, "receive", move |_, step| {
///         step.put(items, "received", receiver.lock().unwrap().recv()?)
///     });
///     graph.prescribe(tags, "add", move |n, step| {
///         step.put(items, "sum", step.get(items, "received")? + n)
///     });
///     graph.initialize(|env| env.put_tag(tags, 1))?;
///     Ok(graph.run(&watched)?.finalize(|view| view.get(items, "sum").copied()))
/// })?;
/// assert_eq!(sum, Some(8));
/// # Ok(())
/// # }
/// ```
pub struct Watchdog<S, F> {
    scheduler: S,
    limit: Duration,
    tell: F,
}

impl<S: Scheduler, F: Fn(&Stalled) + Sync> Watchdog<S, F> {
    /// Runs under `scheduler`, and calls `tell` after `limit` without progress.
    pub fn new(scheduler: S, limit: Duration, tell: F) -> Watchdog<S, F> {
        Watchdog { scheduler, limit, tell }
    }
}

/// The end of a run, for the OS thread that watches.
#[derive(Default)]
struct RunEnd {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl RunEnd {
    /// Waits until the run has ended, or for a time. True at the end.
    fn wait(&self, time: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(ended, time, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Ends the watch, also when the scheduler unwinds.
struct EndsWatch<'a>(&'a RunEnd);

impl Drop for EndsWatch<'_> {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// The loop of the OS thread that watches. It looks several times within the limit, so that it
/// tells soon after the limit.
fn watch(limit: Duration, tell: impl Fn(&Stalled), monitor: &Monitor, end: &RunEnd) {
    let pause = (limit / 8).max(Duration::from_millis(1));
    let (mut seen, mut since, mut told) = (monitor.changes(), Instant::now(), false);
    while !end.wait(pause) {
        let changes = monitor.changes();
        if changes != seen {
            (seen, since, told) = (changes, Instant::now(), false);
        } else if !told
            && since.elapsed() >= limit
            && let Some(stalled) = monitor.stalled(since.elapsed())
        {
            told = true;
            tell(&stalled);
        }
    }
}

impl<S: Scheduler, F: Fn(&Stalled) + Sync> Scheduler for Watchdog<S, F> {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let (monitor, end) = (job.monitor(), RunEnd::default());
        let (limit, tell) = (self.limit, &self.tell);
        thread::scope(|scope| {
            scope.spawn(|| watch(limit, tell, &monitor, &end));
            let _end = EndsWatch(&end);
            // It also watches while the graph is at rest and its environment lives on.
            job.rounds(&self.scheduler);
        });
    }
}

impl<S: fmt::Debug, F> fmt::Debug for Watchdog<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("scheduler", &self.scheduler)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
