//! [`run()`]: a program of several ranks, from its start to the end of the last rank; [`World`], which
//! says how; and [`Failure`], which says which rank failed.
//!
//! Programs call it. Each rank is a thread of a scope, so no rank outlives the run. [`Rank`], which
//! the thread of a rank owns, tells the engine when the rank has ended, however it ends.

use crate::communicator::Communicator;
use crate::completion::Ended;
use crate::threads::Threads;
use selvedge_core::{Exception, catch, observe};
use selvedge_scope::scope;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `body` once for each of so many ranks, side by side, and waits until all have returned.
/// Gives their results, in the order of the ranks.
///
/// Each rank is a thread of the running scheduler, with a [`Communicator`] of all ranks. It may
/// spawn threads of its own, which send and receive with clones of the communicator. The rank has
/// ended when `body` has returned: its threads then send and receive no more.
///
/// # Errors
/// If a rank returns an error or panics. The calls of other ranks that need a message of that rank
/// fail, so that they end too. The [`Failure`] names the rank that failed first.
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
    World::new(ranks).run(body).await
}

/// How a program of several ranks runs. [`run()`] is `World::new(ranks).run(body)`.
#[derive(Debug, Clone)]
#[must_use = "it starts nothing until it is told to run"]
pub struct World {
    ranks: usize,
    moves_values: bool,
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
}

impl World {
    /// A world of so many ranks, which are threads of this process.
    ///
    /// # Panics
    /// With 0 ranks.
    #[track_caller]
    pub fn new(ranks: usize) -> World {
        assert!(ranks > 0, "a world has at least one rank");
        World { ranks, moves_values: true }
    }

    /// Has every value serialised on its way, as between processes, instead of moved. A test that
    /// runs so shows that the program's types survive it.
    pub fn serialized(self) -> World {
        World { moves_values: false, ..self }
    }

    /// Runs `body` once for each rank: see [`run()`].
    ///
    /// # Errors
    /// If a rank returns an error or panics.
    pub async fn run<T, E, F, R>(&self, body: F) -> Result<Vec<T>, Failure<E>>
    where
        F: Fn(Communicator) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let threads = Arc::new(Threads::new(self.ranks, self.moves_values));
        let outcome = Arc::new(Outcome::new(self.ranks));
        scope(async |scope| {
            for rank in 0..self.ranks {
                let world = Communicator::world(threads.clone(), rank);
                let ending = Rank { threads: threads.clone(), rank: rank as u32, failed: true };
                let run = run_rank(body(world), ending, outcome.clone());
                drop(scope.spawn(run));
            }
        })
        .await;
        outcome.result()
    }
}

/// The thread of one rank.
async fn run_rank<T, E>(
    body: impl Future<Output = Result<T, E>>,
    mut ending: Rank,
    outcome: Arc<Outcome<T, E>>,
) {
    let name: Arc<str> = format!("rank {}", ending.rank).into();
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
    ending.failed = end.is_err();
    outcome.put(ending.rank as usize, end);
    // The others are told when `ending` is dropped, after the outcome has been put: so the failure
    // of this rank comes before those which it causes.
}

/// A rank that runs. When it is dropped, the other ranks are told that it has ended.
struct Rank {
    threads: Arc<Threads>,
    rank: u32,
    failed: bool,
}

impl Drop for Rank {
    fn drop(&mut self) {
        self.threads.end(Ended { rank: self.rank, failed: self.failed });
    }
}

/// The results of the ranks that have ended.
struct Outcome<T, E> {
    ends: Mutex<Vec<Option<Ending<T, E>>>>,
    failures: AtomicUsize,
}

enum Ending<T, E> {
    Returned(T),
    /// With the number of failures before this one.
    Failed(usize, Cause<E>),
}

impl<T, E> Outcome<T, E> {
    fn new(ranks: usize) -> Outcome<T, E> {
        let ends = Mutex::new((0..ranks).map(|_| None).collect());
        Outcome { ends, failures: AtomicUsize::new(0) }
    }

    fn put(&self, rank: usize, end: Result<T, Cause<E>>) {
        let end = match end {
            Ok(value) => Ending::Returned(value),
            Err(cause) => Ending::Failed(self.failures.fetch_add(1, Ordering::Relaxed), cause),
        };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)[rank] = Some(end);
    }

    /// The results, when all ranks have ended.
    fn result(&self) -> Result<Vec<T>, Failure<E>> {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let mut values = Vec::with_capacity(ends.len());
        let mut failures = Vec::new();
        for (rank, end) in ends.into_iter().enumerate() {
            match end.expect("the scope has waited for every rank") {
                Ending::Returned(value) => values.push(value),
                Ending::Failed(order, cause) => failures.push((order, rank, cause)),
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

impl<E: fmt::Display> std::error::Error for Failure<E> {}
