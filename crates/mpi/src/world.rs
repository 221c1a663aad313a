//! [`run()`]: a program of several ranks, from its start to the end of the last rank; [`Ranks`],
//! which says how; and [`Failure`], which says which rank failed.
//!
//! Programs call it. Each rank is a thread of a scope, so no rank outlives the run.
//! [`RunningRank`], which the thread of a rank owns, tells the engine when the rank has ended,
//! however it ends.

use crate::communicator::Communicator;
use crate::completion::EndedRank;
use crate::launched::LaunchedRank;
use crate::libmpi::Launched;
use crate::threads::RankThreads;
use selvedge_core::{Exception, catch, observe};
use selvedge_scope::scope;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `body` once for each of so many ranks, side by side, and waits until all have returned.
/// Gives their results, in the order of the ranks.
///
/// If a launcher of MPI (`mpirun`, `srun`) has started this process, the process is one rank of its
/// job, and the launcher's number of ranks holds. The messages then go through the MPI library of
/// the machine, and the result is that of this rank alone. One run is possible in such a process.
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
    heeds_launcher: bool,
}

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
    /// MPI did not start or did not end, in a process that a launcher of MPI has started.
    Mpi(Box<dyn Error + Send + Sync>),
}

impl Ranks {
    /// A world of so many ranks, which are threads of this process; or if `mpirun` or the like has
    /// started this process, the ranks of that job, of which this process is one.
    ///
    /// # Panics
    /// With 0 ranks.
    #[track_caller]
    pub fn new(ranks: usize) -> Ranks {
        assert!(ranks > 0, "a world has at least one rank");
        Ranks { ranks, moves_values: true, heeds_launcher: true }
    }

    /// The ranks are threads of this process, also if a launcher has started it.
    pub fn in_process(self) -> Ranks {
        Ranks { heeds_launcher: false, ..self }
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
        if self.heeds_launcher && Launched::from_environment().is_some() {
            return run_launched(body).await;
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
}

/// Runs the one rank of the launcher's job that this process is.
async fn run_launched<T, E, F, R>(body: F) -> Result<Vec<T>, Failure<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |rank, error| Failure { ranks: vec![(rank, Cause::Mpi(error))] };
    let engine = Arc::new(LaunchedRank::start().await.map_err(|error| failure(0, error))?);
    let rank = engine.rank();
    let ends = Arc::new(RankEnds::new(rank, 1));
    scope(async |scope| {
        let world = Communicator::world(engine.clone(), rank);
        let told = engine.clone();
        let running = RunningRank::new(rank, move |ended| told.end(ended));
        drop(scope.spawn(run_rank(body(world), running, ends.clone())));
    })
    .await;
    let finished = engine.finish().await;
    let values = ends.result()?;
    finished.map_err(|error| failure(rank, error))?;
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
    /// The ends of so many ranks from `first` on.
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
            Cause::Mpi(error) => write!(f, "MPI: {error}"),
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
