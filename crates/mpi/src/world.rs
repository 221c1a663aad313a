//! [`run()`]: a program of several ranks, from its start to the end of the last rank; and
//! [`Ranks`], which says how.
//!
//! Programs call it. Each rank is a thread of a scope, so no rank outlives the run. `running.rs`
//! has that thread.

use crate::communicator::Communicator;
use crate::completion::EndedRank;
use crate::couriers::Couriers;
use crate::engine::Engine;
use crate::failure::{Cause, RanksError};
use crate::job::{JobLink, JobRank, on_an_os_thread};
use crate::joined::{JoinedGroups, leaders_meet};
use crate::launched::LaunchedRank;
use crate::libmpi::Launched;
use crate::processes::{LocalJob, ParentRanks, ProcessRank, RankSeat, StartedRanks};
use crate::running::{RankEnds, RunningRank, run_rank};
use crate::threads::RankThreads;
use selvedge_scope::scope;
use std::error::Error;
use std::sync::Arc;

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
/// that need a message of that rank fail, so that they end too. The [`RanksError`] names the rank
/// that failed first.
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
/// async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
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
#[doc(alias = "init")]
#[doc(alias = "finalize")]
#[doc(alias = "initThread")]
#[doc(alias = "ThreadSupport")]
#[doc(alias = "MPI_Init")]
#[doc(alias = "MPI_Finalize")]
pub async fn run<T, E, F, R>(ranks: usize, body: F) -> Result<Vec<T>, RanksError<E>>
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
    is_delayed: bool,
    checks_collectives: bool,
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

impl Ranks {
    /// A world of this number of ranks, which are threads of this process; or if `mpirun` or the
    /// like has started this process, the ranks of that job, of which this process is one.
    ///
    /// # Panics
    /// With 0 ranks.
    #[track_caller]
    pub fn new(ranks: usize) -> Ranks {
        assert!(ranks > 0, "a world has at least one rank");
        let (is_delayed, checks_collectives) = (false, false);
        Ranks { ranks, moves_values: true, is_delayed, checks_collectives, choice: EngineChoice::Open }
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
    /// async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
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

    /// Lets messages take time, as between machines. The ranks are threads of this process, and so
    /// is a courier for each pair of ranks, which keeps the order of the pair's messages. The
    /// scheduler runs the couriers when it likes: in a simulated world the seed determines how long
    /// each message takes, so that the messages of different pairs overtake one another as MPI
    /// allows. Ranks that are spawned, and worlds that meet, have no couriers.
    ///
    /// A test that runs so finds a program that counts on a message which has surely come, because
    /// a later one has come from another rank.
    pub fn delayed(self) -> Ranks {
        Ranks { is_delayed: true, ..self.in_process() }
    }

    /// Compares what the ranks call before each collective: the operation and its root, the type of
    /// its values or elements, and the number of elements where all ranks need the same. If they
    /// differ, the call is an error of class [`Mismatch`](crate::ErrorClass::Mismatch) on every
    /// rank, and names both sides. Without this a rank may wait for ever for messages that the
    /// others do not send, or go on and not notice it. Each start of a persistent collective is
    /// compared, and each call between two groups, there with all ranks of both.
    ///
    /// The check takes a message from each rank to each other one, so it is for tests. All ranks
    /// have it, or none. Groups that did not start together have it within each world alone.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, ErrorClass, Ranks};
    ///
    /// # selvedge::round_robin(async {
    /// let run = Ranks::new(2).checked().run(|world| async move {
    ///     let wrong = match world.rank() {
    ///         0 => world.bcast(0, || 1).await.map(drop),
    ///         _ => world.gather(0, 1).await.map(drop),
    ///     };
    ///     assert_eq!(wrong.unwrap_err().class(), ErrorClass::Mismatch);
    ///     Ok::<_, mpi::Error>(())
    /// });
    /// run.await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn checked(self) -> Ranks {
        Ranks { checks_collectives: true, ..self }
    }

    /// Runs `body` once for each rank: see [`run()`].
    ///
    /// # Errors
    /// If a rank returns an error or panics.
    pub async fn run<T, E, F, R>(self, body: F) -> Result<Vec<T>, RanksError<E>>
    where
        F: Fn(Communicator) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let refused = |error| RanksError { ranks: vec![(0, Cause::Engine(error))] };
        match self.runner().map_err(refused)? {
            RanksRunner::Threads => {}
            RanksRunner::Seat(seat) => return run_seated(seat, self.checks_collectives, body).await,
            RanksRunner::Starter => {
                return run_and_start_others(self.ranks, self.checks_collectives, body).await;
            }
            RanksRunner::Mpi => return run_launched(self.checks_collectives, body).await,
        }
        let mut threads = RankThreads::new(self.ranks, self.moves_values);
        if self.checks_collectives {
            threads = threads.that_checks_collectives();
        }
        if self.is_delayed {
            threads = threads.with_couriers();
        }
        let threads = Arc::new(threads);
        let ends = Arc::new(RankEnds::new(0, self.ranks));
        scope(async |scope| {
            for courier in threads.couriers().into_iter().flat_map(Couriers::all) {
                drop(scope.spawn(courier.clone().run()));
            }
            for rank in 0..self.ranks {
                let world = Communicator::world(threads.clone(), rank);
                let told = threads.clone();
                let running = RunningRank::new(rank, move |ended| told.end(ended));
                let home = threads.mailbox(rank).clone();
                drop(scope.spawn(run_rank(body(world), running, ends.clone(), home)));
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

/// Runs the one rank of a job that this process is, in this world.
async fn run_in_job<L, T, E, F, R>(
    job: &Arc<JobRank<L>>,
    world: Communicator,
    checks_collectives: bool,
    body: F,
) -> Result<Vec<T>, RanksError<E>>
where
    L: JobLink,
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let rank = world.rank();
    if checks_collectives {
        job.check_collectives();
    }
    let ends = Arc::new(RankEnds::new(rank, 1));
    scope(async |scope| {
        let told = job.clone();
        let running = RunningRank::new(rank, move |ended| {
            told.end(EndedRank { rank: told.rank() as u32, ..ended });
        });
        let home = world.mailbox().clone();
        drop(scope.spawn(run_rank(body(world), running, ends.clone(), home)));
    })
    .await;
    ends.result()
}

/// Runs the rank of a job on this machine as which this process was started.
async fn run_seated<T, E, F, R>(
    seat: RankSeat,
    checks_collectives: bool,
    body: F,
) -> Result<Vec<T>, RanksError<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |error| RanksError { ranks: vec![(seat.rank, Cause::Engine(error))] };
    let rank = ProcessRank::join(seat).map_err(failure)?;
    let world = match seat.parents {
        None => Communicator::world(rank.job.clone(), seat.rank),
        Some(parents) => spawned_world(&rank, parents).await.map_err(failure)?,
    };
    let result = run_in_job(&rank.job, world, checks_collectives, body).await;
    let finished = rank.finish().await;
    let values = result?;
    finished.map_err(failure)?;
    Ok(values)
}

/// The world of a process that these ranks have spawned.
async fn spawned_world(
    rank: &ProcessRank,
    parents: ParentRanks,
) -> Result<Communicator, Box<dyn Error + Send + Sync>> {
    let groups = JoinedGroups::new(rank.job.clone(), parents.size);
    groups.begin(rank.job.rank());
    let world = groups.spawned_world(rank.job.rank() - parents.size);
    world.barrier().await?; // all have taken their ranks
    let mut met = None;
    if world.rank() == 0 {
        let parent = world.parent().expect("the rank was spawned");
        met = leaders_meet(&parent, parents.root).await.err().map(|error| error.to_string());
    }
    if let Some(text) = world.bcast(0, || met).await? {
        return Err(text.into());
    }
    rank.watch_others()?;
    Ok(world)
}

/// Starts this program again as the other ranks, and runs rank 0.
async fn run_and_start_others<T, E, F, R>(
    ranks: usize,
    checks_collectives: bool,
    body: F,
) -> Result<Vec<T>, RanksError<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |error| RanksError { ranks: vec![(0, Cause::Engine(error))] };
    let job = LocalJob::new(ranks).map_err(|error| failure(error.into()))?;
    let started = StartedRanks::start_itself(&job).map_err(|error| failure(error.into()))?;
    let rank = ProcessRank::first(&job).map_err(failure)?;
    let world = Communicator::world(rank.job.clone(), 0);
    let result = run_in_job(&rank.job, world, checks_collectives, body).await;
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
    if ranks.is_empty() { Ok(values) } else { Err(RanksError { ranks }) }
}

/// Runs the one rank of the launcher's job that this process is.
async fn run_launched<T, E, F, R>(checks_collectives: bool, body: F) -> Result<Vec<T>, RanksError<E>>
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let failure = |rank, error| RanksError { ranks: vec![(rank, Cause::Engine(error))] };
    let launched = LaunchedRank::start().await.map_err(|error| failure(0, error))?;
    let world = Communicator::world(launched.job.clone(), launched.job.rank());
    let result = run_in_job(&launched.job, world, checks_collectives, body).await;
    let finished = launched.finish().await;
    let values = result?;
    finished.map_err(|error| failure(launched.job.rank(), error))?;
    Ok(values)
}
