//! How a program starts: its workers, their names and event sources, and a main function that may
//! fail: [`run_main`] and [`Runner`].
//!
//! Programs call both; `selvedge::run` (`lib.rs`) is a `Runner` as it comes. The scheduler is
//! `WorkStealing` of `sched` with an `EventLoop` for each worker, or `round_robin_over` where one
//! OS thread is asked for. `SELVEDGE_WORKERS` is read here, `SELVEDGE_SEE` in `lib.rs` (`seeing`).

use crate::see::Seeing;
use crate::{refuse_within, seeing};
use selvedge_core::{Events, round_robin_over};
use selvedge_io::EventLoop;
use selvedge_io::pool::{self, Limits};
use selvedge_sched::{SchedulerError, WorkStealing};
use std::error::Error;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a program with a main function that may fail, on all cores, and says how the process ends:
/// the whole of `fn main`.
///
/// An error, of `main` or of the scheduler, is written to standard error in the words of its
/// `Display`, and the process ends with [`ExitCode::FAILURE`]. The environment variables
/// `SELVEDGE_WORKERS` ([`Runner::from_environment`]) and `SELVEDGE_SEE`
/// ([`see::from_environment`](crate::see::from_environment)) are heeded.
///
/// [`#[selvedge::main]`](macro@crate::main) does this for an `async fn main`, and takes what
/// [`Termination`](std::process::Termination) takes: an error is then written by its `Debug`.
///
/// # Panics
/// If `main` panics.
///
/// # Examples
/// ```
/// use selvedge::fs;
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     selvedge::run_main(async {
///         let manifest = fs::read_to_string("Cargo.toml").await?;
///         println!("{} lines", manifest.lines().count());
///         Ok(())
///     })
/// }
/// ```
#[doc(alias = "main")]
pub fn run_main<F>(main: F) -> ExitCode
where
    F: Future<Output = Result<(), Box<dyn Error>>> + Send + 'static,
{
    let ended = match Runner::from_environment() {
        Ok(runner) => runner.run(async { main.await.map_err(|error| error.to_string()) }),
        Err(error) => Ok(Err(error.to_string())),
    };
    match ended.map_err(|failure| failure.to_string()).flatten() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("Error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// How a program runs: on how many workers, what their OS threads are called, and with which bounds
/// of the blocking pool.
///
/// [`run`](crate::run) is `Runner::new().run(main)`.
///
/// # Examples
/// ```
/// use selvedge::Runner;
///
/// let sum = Runner::new().workers(2).name("loom").run(async {
///     let squares: Vec<_> = (0..10).map(|n| selvedge::spawn(async move { n * n })).collect();
///     let mut sum = 0;
///     for square in squares {
///         sum += square.await.unwrap();
///     }
///     sum
/// })?;
/// assert_eq!(sum, 285);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it starts nothing until it is told to run"]
#[doc(alias = "Runtime")]
#[doc(alias = "Builder")]
pub struct Runner {
    workers: Workers,
    name: Option<String>,
    blocking_threads: Option<NonZeroUsize>,
    blocking_idle: Option<Duration>,
}

/// Which OS threads take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// The calling one alone, round-robin.
    Local,
    /// This number of workers that steal from one another; 0 stands for one for each CPU that the
    /// process may use.
    Stealing(usize),
}

impl Default for Workers {
    fn default() -> Workers {
        Workers::Stealing(0)
    }
}

/// The environment variable that names the workers.
const VARIABLE: &str = "SELVEDGE_WORKERS";

/// The variable `SELVEDGE_WORKERS` is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkersError(String);

impl fmt::Display for WorkersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VARIABLE}={}: neither a number of workers nor local", self.0)
    }
}

impl Error for WorkersError {}

impl Runner {
    /// One worker for each CPU that the process may use.
    pub fn new() -> Runner {
        Runner::default()
    }

    /// What the environment variable `SELVEDGE_WORKERS` asks for: a number of workers, `0` for one
    /// for each CPU, or `local` for the calling OS thread alone. Without the variable it is as
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// If the variable says something else.
    pub fn from_environment() -> Result<Runner, WorkersError> {
        let workers = match std::env::var_os(VARIABLE) {
            Some(text) => parse(&text.to_string_lossy())?,
            None => Workers::default(),
        };
        Ok(Runner { workers, ..Runner::default() })
    }

    /// This number of workers that steal threads from one another; with 0, one for each CPU that
    /// the process may use.
    pub fn workers(self, number: usize) -> Runner {
        Runner { workers: Workers::Stealing(number), ..self }
    }

    /// The calling OS thread alone, round-robin, as [`run_local`](crate::run_local): what a thread
    /// does between two of its system calls is then one piece for all others.
    pub fn local(self) -> Runner {
        Runner { workers: Workers::Local, ..self }
    }

    /// The OS threads of the workers are called `name-1`, `name-2` and so on, in debuggers and in
    /// `top`; without this, `worker-1` and so on. The calling OS thread, which is worker 0, keeps
    /// its name.
    pub fn name(self, name: impl Into<String>) -> Runner {
        Runner { name: Some(name.into()), ..self }
    }

    /// At most this number of OS threads at once make the calls that threads hand to
    /// [`blocking`](crate::blocking); further calls wait until one has ended. The default is 64.
    ///
    /// The pool belongs to the process and has no OS thread before the first call. So this bound
    /// holds for every program in the process from the moment when this one starts, and afterwards,
    /// until another is set. OS threads in surplus leave when they have no call to make. The OS
    /// threads that open files and look up names for [`fs`](crate::fs) and [`net`](crate::net) are
    /// apart from this pool, and keep their own bound of 64. The length of the queue is set by
    /// [`pool::Pool::set_limits`](crate::pool::Pool::set_limits).
    ///
    /// # Panics
    /// With 0, because no call would ever be made.
    ///
    /// # Examples
    /// ```
    /// use selvedge::{Runner, blocking, pool};
    /// use std::time::Duration;
    ///
    /// let runner = Runner::new().blocking_threads(2).blocking_idle(Duration::from_secs(1));
    /// let threads = runner.run(async {
    ///     let calls: Vec<_> = (0..10)
    ///         .map(|_| selvedge::spawn(blocking(|| std::thread::sleep(Duration::from_millis(1)))))
    ///         .collect();
    ///     for call in calls {
    ///         call.await.unwrap().unwrap();
    ///     }
    ///     pool::shared().load().threads_most
    /// })?;
    /// assert_eq!(threads, 2);
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    #[doc(alias = "max_blocking_threads")]
    #[track_caller]
    pub fn blocking_threads(self, most: usize) -> Runner {
        let most = NonZeroUsize::new(most).expect("the blocking pool needs at least one OS thread");
        Runner { blocking_threads: Some(most), ..self }
    }

    /// Sets the time after which an idle OS thread of the blocking pool ends. The default is 5
    /// seconds. As for [`blocking_threads`](Self::blocking_threads), this holds for the process
    /// until another time is set. With `Duration::ZERO` it ends at once, with `Duration::MAX`
    /// never.
    #[doc(alias = "thread_keep_alive")]
    pub fn blocking_idle(self, longest: Duration) -> Runner {
        Runner { blocking_idle: Some(longest), ..self }
    }

    /// Sets the bounds of the pool that this runner names, and leaves the others as they are.
    fn limit_pool(&self) {
        if self.blocking_threads.is_none() && self.blocking_idle.is_none() {
            return;
        }
        let before = pool::shared().limits();
        pool::shared().set_limits(Limits {
            threads_max: self.blocking_threads.unwrap_or(before.threads_max),
            idle: self.blocking_idle.unwrap_or(before.idle),
            ..before
        });
    }

    /// Runs `main` and the threads it creates until `main` has ended; returns its result. The
    /// threads that are left are cancelled. The environment variable `SELVEDGE_SEE` is heeded.
    ///
    /// # Errors
    /// See [`SchedulerError`]: no event loop, no OS thread, or a deadlock.
    ///
    /// # Panics
    /// As [`run`](crate::run).
    pub fn run<F>(&self, main: F) -> Result<F::Output, SchedulerError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.run_over(|_| EventLoop::new(), main)
    }

    /// As [`run`](Self::run), with a `main` that need not be `Send`: see
    /// [`run_pinned`](crate::run_pinned()).
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](crate::run).
    ///
    /// # Examples
    /// ```
    /// use selvedge::{Runner, spawn};
    /// use std::rc::Rc;
    ///
    /// let sum = Runner::new().workers(2).run_pinned(async {
    ///     let shared = Rc::new(40);
    ///     let two = spawn(async { 2 }).await.unwrap();
    ///     *shared + two
    /// })?;
    /// assert_eq!(sum, 42);
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    pub fn run_pinned<F: Future + 'static>(&self, main: F) -> Result<F::Output, SchedulerError> {
        let _seeing = self.begin("run_pinned()");
        match self.stealing() {
            Some(scheduler) => scheduler.run_pinned(|_| EventLoop::new(), main),
            None => run_here(|_| EventLoop::new(), main),
        }
    }

    /// As [`run`](Self::run), with the event source that `events(worker)` makes for each worker, on
    /// its OS thread.
    ///
    /// # Errors
    /// As for [`run`](Self::run), and those of `events`.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// # Examples
    /// ```
    /// use selvedge::{NoEvents, Runner};
    ///
    /// // Threads that wait only for one another need no event loop.
    /// let answer = Runner::new().workers(1).run_over(|_| Ok(NoEvents::new()), async { 6 * 7 })?;
    /// assert_eq!(answer, 42);
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    pub fn run_over<E, F>(
        &self,
        events: impl Fn(usize) -> io::Result<E> + Sync,
        main: F,
    ) -> Result<F::Output, SchedulerError>
    where
        E: Events,
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let _seeing = self.begin("run()");
        match self.stealing() {
            Some(scheduler) => scheduler.run(events, main),
            None => run_here(events, main),
        }
    }

    /// What comes before each run.
    fn begin(&self, name: &str) -> Seeing {
        refuse_within(name);
        self.limit_pool();
        seeing()
    }

    /// The scheduler, unless the calling OS thread runs alone.
    fn stealing(&self) -> Option<WorkStealing> {
        let Workers::Stealing(number) = self.workers else { return None };
        let scheduler = WorkStealing::new(number);
        Some(match &self.name {
            Some(name) => scheduler.name(name),
            None => scheduler,
        })
    }
}

/// Runs `main` on the calling OS thread.
fn run_here<E: Events, F: Future + 'static>(
    events: impl Fn(usize) -> io::Result<E>,
    main: F,
) -> Result<F::Output, SchedulerError> {
    let run = || round_robin_over(&mut events(0)?, main);
    run().map_err(|error| SchedulerError { worker: 0, error })
}

fn parse(text: &str) -> Result<Workers, WorkersError> {
    match text {
        "local" => Ok(Workers::Local),
        number => number.parse().map(Workers::Stealing).map_err(|_| WorkersError(number.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_or_local() {
        assert_eq!(parse("local"), Ok(Workers::Local));
        assert_eq!(parse("3"), Ok(Workers::Stealing(3)));
        let error = parse("many").unwrap_err().to_string();
        assert_eq!(error, "SELVEDGE_WORKERS=many: neither a number of workers nor local");
    }

    #[test]
    fn workers_are_called_as_they_are_told() {
        let runner = Runner::new().workers(2).name("loom");
        let name = runner.run(async {
            loop {
                // More threads than a worker claims at once, each of which holds its worker: the
                // other worker takes some.
                let name = || {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    std::thread::current().name().map(str::to_string)
                };
                let threads: Vec<_> = (0..64).map(|_| selvedge_core::spawn(async move { name() })).collect();
                for thread in threads {
                    match thread.await.unwrap() {
                        Some(name) if name.starts_with("loom-") => return name,
                        _ => {}
                    }
                }
            }
        });
        assert_eq!(name.unwrap(), "loom-1");
    }
}
