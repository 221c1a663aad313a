//! [`run()`]: a program of several ranks, from its start to the end of the last rank; [`Ranks`],
//! which says how; and [`Failure`], which says which rank failed.
//!
//! Programs call it. Each rank is a thread of a scope, so no rank outlives the run.
//! [`RunningRank`], which the thread of a rank owns, tells the engine when the rank has ended,
//! however it ends.

use crate::communicator::Communicator;
use crate::completion::EndedRank;
use crate::job::{JobLink, JobRank, on_an_os_thread};
use crate::launched::LaunchedRank;
use crate::libmpi::Launched;
use crate::processes::{ProcessRank, RankSeat, StartedRanks};
use crate::threads::RankThreads;
use selvedge_core::{Exception, catch, observe};
use selvedge_scope::scope;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `body` once for each of this number of ranks, side by side, and waits until all have
/// returned. Gives their results, in the order of the ranks.
///
/// If a launcher (`selvedge-mpirun`, `mpirun`, `srun`) has started this process, the process is one
/// rank of its job, and the launcher's number of ranks holds. The messages then go through memory
/// that the processes share, or through the MPI library of the machine. The result is that of this
/// rank alone. One run is possible in such a process.
///
/// Without a launcher each rank is a thread of the running scheduler, with a [`Communicator`] of
/// all ranks. It may spawn threads of its own, which send and receive with clones of the
/// communicator. The rank has ended when `body` has returned: its threads then send and receive no
/// more.
///
/// # Errors
/// If a rank returns an error or panics, and if MPI cannot be started. The calls of other ranks
/// that need a message of that rank fail, so that they end too. The [`Failure`] names the rank that
/// failed first.
///
/// # Deadlock
/// Ranks that wait for one another are found as threads are: the scheduler returns
/// [`RunError::Deadlock`](selvedge_core::RunError::Deadlock), which says what each rank waits for.
///
/// # Cancellation
/// If the future is dropped, all ranks are cancelled.
///
/// # Panics
/// With 0 ranks.
///
/// # Paper
/// [HMPI "Point-to-point communications"] `mpi`: the same program in each rank (SPMD), within an
/// initialised environment.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// #[selvedge::main]
/// async fn main() -> Result<(), mpi::Failure<mpi::Error>> {
///     let sums = mpi::run(4, |world| async move {
///         // Every rank calls it, and every rank gets the sum.
///         world.allreduce(world.rank(), mpi::op::sum).await
///     });
///     assert_eq!(sums.await?, [6, 6, 6, 6]);
///     Ok(())
/// }
/// ```
#[doc(alias = "mpi")]
#[doc(alias = "mpiWorld")]
#[doc(alias = "MPI_Init")]
#[doc(alias = "MPI_Finalize")]
pub async fn run<T, E, F, R>(ranks: usize, body: F) -> Result<Vec<T>, Failure<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    Ranks::new(ranks).run(body).await
}

/// How a program of several ranks runs. [`run()`] is `Ranks::new(ranks).run(body)`.
#[derive(Debug, Clone)]
#[must_use = "it starts nothing until it is told to run"]
pub struct Ranks {
    ranks: usize,
    moves_values: bool,
    choice: EngineChoice,
}

/// What the program says of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineChoice {
    /// Nothing: the launcher, else the variable, else threads.
    Open,
    Threads,
    /// A launcher's, else processes.
    Processes,
}

/// What runs the ranks.
enum RanksRunner {
    Threads,
    /// This process is this rank of a job on this machine.
    Seat(RankSeat),
    /// It starts the other ranks.
    Starter,
    /// The MPI library.
    Mpi,
}

/// The variable that names an engine.
const ENGINE_VARIABLE: &str = "SELVEDGE_MPI_ENGINE";

/// Some ranks of a program failed.
pub struct Failure<E> {
    /// The ranks that failed, with the reason, in the order in which they failed. The first one may
    /// be the reason why the others failed.
    pub ranks: Vec<(usize, Cause<E>)>,
}

/// Why a rank failed.
pub enum Cause<E> {
    /// Its body returned an error.
    Error(E),
    /// Its body panicked, or threw an exception.
    Exception(Exception),
    /// The engine did not start or did not end.
    Engine(Box<dyn Error + Send + Sync>),
    /// Its process, which the run had started, ended with this status.
    Process(ExitStatus),
}

impl Ranks {
    /// A world of this number of ranks, which are threads of this process; or if `mpirun` or the
    /// like has started this process, the ranks of that job, of which this process is one.
    ///
    /// # Panics
    /// With 0 ranks.
    #[track_caller]
    pub fn new(ranks: usize) -> Ranks {
        assert!(ranks > 0, "a world has at least one rank");
        Ranks { ranks, moves_values: true, choice: EngineChoice::Open }
    }

    /// The ranks are threads of this process, also if a launcher has started it.
    pub fn in_process(self) -> Ranks {
        Ranks { choice: EngineChoice::Threads, ..self }
    }

    /// The ranks are processes of this machine, which share memory. This process is rank 0, and
    /// starts itself again with the same arguments as each other rank. Under a launcher the ranks
    /// are those of its job.
    ///
    /// So `main` runs in each process up to the run, and from there on. The result of a run is that
    /// of the process's own rank, and rank 0 waits until the other processes have ended. A rank
    /// that is killed is one that has failed; if rank 0 is killed, the system kills the others. A
    /// process has one such run.
    ///
    /// # Examples
    /// ```no_run
    /// use selvedge::mpi::{self, Ranks};
    ///
    /// #[selvedge::main]
    /// async fn main() -> Result<(), mpi::Failure<mpi::Error>> {
    ///     let run = Ranks::new(4).processes().run(|world| async move {
    ///         println!("rank {} is process {}", world.rank(), std::process::id());
    ///         world.barrier().await
    ///     });
    ///     run.await.map(drop)
    /// }
    /// ```
    pub fn processes(self) -> Ranks {
        Ranks { choice: EngineChoice::Processes, ..self }
    }

    /// As many [processes](Ranks::processes) as the program's argument `--ranks N` says; without
    /// the argument, `ranks` threads of this process, as [`Ranks::new`]. The program ignores the
    /// argument where it reads its own.
    ///
    /// # Panics
    /// If no number from 1 on follows `--ranks`, and with 0 ranks.
    #[track_caller]
    pub fn from_arguments(ranks: usize) -> Ranks {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--ranks");
        if arguments.next().is_none() {
            return Ranks::new(ranks);
        }
        match arguments.next().and_then(|number| number.parse().ok()) {
            Some(number @ 1..) => Ranks::new(number).processes(),
            _ => panic!("a number of ranks follows --ranks"),
        }
    }

    /// Serialises each value on its way, as between processes, instead of moving it. A test that
    /// runs so shows that the program's types survive it. The ranks are threads of this process.
    pub fn serialized(self) -> Ranks {
        Ranks { moves_values: false, ..self.in_process() }
    }

    /// Runs `body` once for each rank: see [`run()`].
    ///
    /// # Errors
    /// If a rank returns an error or panics.
    pub async fn run<T, E, F, R>(self, body: F) -> Result<Vec<T>, Failure<E>>
    where
        F: Fn(Communicator) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let refused = |error| Failure { ranks: vec![(0, Cause::Engine(error))] };
        match self.runner().map_err(refused)? {
            RanksRunner::Threads => {}
            RanksRunner::Seat(seat) => return run_seated(seat, body).await,
            RanksRunner::Starter => return run_and_start_others(self.ranks, body).await,
            RanksRunner::Mpi => return run_launched(body).await,
        }
        let threads = Arc::new(RankThreads::new(self.ranks, self.moves_values));
        let ends = Arc::new(RankEnds::new(0, self.ranks));
        scope(async |scope| {
            for rank in 0..self.ranks {
                let world = Communicator::world(threads.clone(), rank);
                let told = threads.clone();
                let running = RunningRank::new(rank, move |ended| told.end(ended));
                drop(scope.spawn(run_rank(body(world), running, ends.clone())));
            }
        })
        .await;
        ends.result()
    }

    /// # Errors
    /// If the variable names no engine.
    fn runner(&self) -> Result<RanksRunner, Box<dyn Error + Send + Sync>> {
        if self.choice == EngineChoice::Threads {
            return Ok(RanksRunner::Threads);
        }
        if let Some(seat) = RankSeat::from_environment() {
            return Ok(RanksRunner::Seat(seat));
        }
        let named = std::env::var(ENGINE_VARIABLE).ok();
        Ok(match named.as_deref() {
            None | Some("") if Launched::from_environment().is_some() => RanksRunner::Mpi,
            None | Some("") if self.choice == EngineChoice::Processes => RanksRunner::Starter,
            None | Some("" | "threads") => RanksRunner::Threads,
            Some("processes") => RanksRunner::Starter,
            Some("mpi") => RanksRunner::Mpi,
            Some(other) => {
                let text = format!("{ENGINE_VARIABLE} is {other}: it names threads, processes or mpi");
                return Err(text.into());
            }
        })
    }
}

/// Runs the one rank of a job that this process is.
async fn run_in_job<L, T, E, F, R>(job: &Arc<JobRank<L>>, body: F) -> Result<Vec<T>, Failure<E>>
where
    L: JobLink,
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let rank = job.rank();
    let ends = Arc::new(RankEnds::new(rank, 1));
    scope(async |scope| {
        let world = Communicator::world(job.clone(), rank);
        let told = job.clone();
        let running = RunningRank::new(rank, move |ended| told.end(ended));
        drop(scope.spawn(run_rank(body(world), running, ends.clone())));
    })
    .await;
    ends.result()
}

/// Runs the rank of a job on this machine as which this process was started.
async fn run_seated<T, E, F, R>(seat: RankSeat, body: F) -> Result<Vec<T>, Failure<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |error| Failure { ranks: vec![(seat.rank, Cause::Engine(error))] };
    let rank = ProcessRank::join(seat).map_err(failure)?;
    let result = run_in_job(&rank.job, body).await;
    let finished = rank.finish().await;
    let values = result?;
    finished.map_err(failure)?;
    Ok(values)
}

/// Starts this program again as the other ranks, and runs rank 0.
async fn run_and_start_others<T, E, F, R>(ranks: usize, body: F) -> Result<Vec<T>, Failure<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |error| Failure { ranks: vec![(0, Cause::Engine(error))] };
    let started = StartedRanks::start(ranks).map_err(|error| failure(error.into()))?;
    let rank = ProcessRank::first(started.job()).map_err(failure)?;
    let result = run_in_job(&rank.job, body).await;
    let finished = rank.finish().await;
    // They end when they have left the run, and this process must outlive them.
    let ends = on_an_os_thread(move || started.wait()).await.map_err(|error| failure(error.into()))?;
    let values = result?;
    finished.map_err(failure)?;
    let failed = ends.into_iter().filter_map(|(rank, end)| match end {
        Ok(status) if status.success() => None,
        Ok(status) => Some((rank, Cause::Process(status))),
        Err(error) => Some((rank, Cause::Engine(error.into()))),
    });
    let ranks: Vec<_> = failed.collect();
    if ranks.is_empty() { Ok(values) } else { Err(Failure { ranks }) }
}

/// Runs the one rank of the launcher's job that this process is.
async fn run_launched<T, E, F, R>(body: F) -> Result<Vec<T>, Failure<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |rank, error| Failure { ranks: vec![(rank, Cause::Engine(error))] };
    let launched = LaunchedRank::start().await.map_err(|error| failure(0, error))?;
    let result = run_in_job(&launched.job, body).await;
    let finished = launched.finish().await;
    let values = result?;
    finished.map_err(|error| failure(launched.job.rank(), error))?;
    Ok(values)
}

/// The thread of one rank.
async fn run_rank<T, E>(
    body: impl Future<Output = Result<T, E>>,
    mut running: RunningRank,
    ends: Arc<RankEnds<T, E>>,
) {
    let name: Arc<str> = format!("rank {}", running.rank).into();
    let mut caught = pin!(catch(body));
    let caught = poll_fn(|cx| {
        // Said in each step, because a report may begin to hear at any time.
        if observe::is_on() {
            observe::named(&name);
        }
        caught.as_mut().poll(cx)
    });
    let end = match caught.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Cause::Error(error)),
        Err(exception) => Err(Cause::Exception(exception)),
    };
    running.failed = end.is_err();
    ends.put(running.rank, end);
    // The others are told when `running` is dropped, after the end has been put: so the failure of
    // this rank comes before those which it causes.
}

/// A rank that runs. When it is dropped, the other ranks are told that it has ended.
struct RunningRank {
    rank: usize,
    failed: bool,
    tell: Box<dyn Fn(EndedRank) + Send + Sync>,
}

impl RunningRank {
    fn new(rank: usize, tell: impl Fn(EndedRank) + Send + Sync + 'static) -> RunningRank {
        RunningRank { rank, failed: true, tell: Box::new(tell) }
    }
}

impl Drop for RunningRank {
    fn drop(&mut self) {
        (self.tell)(EndedRank { rank: self.rank as u32, failed: self.failed });
    }
}

/// The results of the ranks that have ended.
struct RankEnds<T, E> {
    /// The rank of the first end.
    first: usize,
    ends: Mutex<Vec<Option<RankEnd<T, E>>>>,
    failures: AtomicUsize,
}

enum RankEnd<T, E> {
    Returned(T),
    /// With the number of failures before this one.
    Failed(usize, Cause<E>),
}

impl<T, E> RankEnds<T, E> {
    /// The ends of this number of ranks from `first` on.
    fn new(first: usize, ranks: usize) -> RankEnds<T, E> {
        let ends = Mutex::new((0..ranks).map(|_| None).collect());
        RankEnds { first, ends, failures: AtomicUsize::new(0) }
    }

    fn put(&self, rank: usize, end: Result<T, Cause<E>>) {
        let end = match end {
            Ok(value) => RankEnd::Returned(value),
            Err(cause) => RankEnd::Failed(self.failures.fetch_add(1, Ordering::Relaxed), cause),
        };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)[rank - self.first] = Some(end);
    }

    /// The results, when all ranks have ended.
    fn result(&self) -> Result<Vec<T>, Failure<E>> {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let mut values = Vec::with_capacity(ends.len());
        let mut failures = Vec::new();
        for (rank, end) in ends.into_iter().enumerate() {
            match end.expect("the scope has waited for every rank") {
                RankEnd::Returned(value) => values.push(value),
                RankEnd::Failed(order, cause) => failures.push((order, self.first + rank, cause)),
            }
        }
        if failures.is_empty() {
            return Ok(values);
        }
        failures.sort_unstable_by_key(|&(order, ..)| order);
        Err(Failure { ranks: failures.into_iter().map(|(_, rank, cause)| (rank, cause)).collect() })
    }
}

impl<E> Failure<E> {
    /// The rank that failed first.
    pub fn rank(&self) -> usize {
        self.ranks[0].0
    }

    /// Why it failed.
    pub fn cause(&self) -> &Cause<E> {
        &self.ranks[0].1
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Error(error) => error.fmt(f),
            Cause::Exception(exception) => exception.fmt(f),
            Cause::Engine(error) => error.fmt(f),
            Cause::Process(status) => write!(f, "its process ended with {status}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} has failed: {}", self.rank(), self.cause())?;
        for (rank, cause) in &self.ranks[1..] {
            write!(f, "\n  then rank {rank}: {cause}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Display> fmt::Debug for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes what `Display` writes, because a `main` that returns a `Result` prints its error with
/// `Debug`.
impl<E: fmt::Display> fmt::Debug for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: fmt::Display> Error for Failure<E> {}
