//! More ranks at run time: `Communicator::spawn` for threads, `spawn_program` for processes, and
//! `parent`, which the new ranks have.

use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::intercommunicator::InterCommunicator;
use crate::job::on_an_os_thread;
use crate::joined::{JoinWay, JoinedWorlds, ParentSide, check_all_here, sides};
use crate::payload::Value;
use crate::processes::{LocalJob, ParentRanks, StartedRanks, this_machine};
use crate::running::run_spawned;
use std::fmt::Display;
use std::process::Command;

impl Communicator {
    /// Starts this number of new ranks, which execute `body` side by side, with a world of their
    /// own. Gives the intercommunicator of the ranks that call it, which are its first group, and
    /// the new ones. Every rank of the communicator calls it; the closure of the root alone is
    /// executed.
    ///
    /// [`parent`](Self::parent) of their world is the other side of the intercommunicator.
    ///
    /// The new ranks are threads of this process. The run of the root does not end before they have
    /// ended, and is a failure if one of them fails: see [`Cause::Spawned`](crate::Cause::Spawned).
    /// A rank that has ended is an error where another one waits for it, across the groups too.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast). If the ranks run in several processes, the class is
    /// [`Unsupported`](crate::ErrorClass::Unsupported), because a closure runs in its own process
    /// alone; [`spawn_program`](Self::spawn_program) starts processes.
    ///
    /// # Panics
    /// With 0 new ranks, and outside of a Selvedge thread.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Communicator, InterRoot, op};
    ///
    /// /// What a new rank does.
    /// async fn worker(world: Communicator) -> Result<(), mpi::Error> {
    ///     let parent = world.parent().expect("the rank was spawned");
    ///     let (number, _) = parent.recv::<u64>(0, ()).await?;
    ///     parent.reduce(InterRoot::There(0), || number * number, op::sum).await?;
    ///     Ok(())
    /// }
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(2, |world| async move {
    ///     let workers = world.spawn(0, 3, worker).await?;
    ///     if world.rank() == 0 {
    ///         for rank in 0..workers.remote_size() {
    ///             workers.send(rank, (), rank as u64 + 1).await?;
    ///         }
    ///     }
    ///     let root = InterRoot::Here(0);
    ///     let sum = workers.reduce(root, || 0_u64, op::sum).await?;
    ///     assert_eq!(sum, (world.rank() == 0).then_some(1 + 4 + 9));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "commSpawn")]
    #[doc(alias = "commSpawnSimple")]
    #[doc(alias = "argvNull")]
    #[doc(alias = "errcodesIgnore")]
    #[doc(alias = "MPI_Comm_spawn")]
    #[track_caller]
    pub fn spawn<E, F, R>(
        &self,
        root: usize,
        ranks: usize,
        body: F,
    ) -> impl Future<Output = Result<InterCommunicator, Error>> + Send
    where
        F: Fn(Communicator) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        assert!(ranks > 0, "at least one rank is spawned");
        let call = self.call("spawn");
        async move {
            check_all_here(self, call)?;
            let round = CollectiveRound::begin(self, call, CollectiveKind::Spawn, root)?;
            let mut own = None;
            if self.rank() == root {
                let joined = JoinedWorlds::new(self.size(), ranks, self.moves_values(root));
                run_spawned(self.mailbox(), &joined, ranks, body);
                own = Some(Ok(JoinWay::Here(joined)));
            }
            sides(round, call, self, root, true, own).await
        }
    }

    /// Starts a program as this number of new ranks, which are processes of this machine. Gives the
    /// intercommunicator of the ranks that call it, which are its first group, and the new ones.
    /// Every rank of the communicator calls it; the closure is called at the root alone, once for
    /// each new rank.
    ///
    /// The program calls [`run`](crate::run()), and so is the one rank of its world that it was
    /// started as; [`parent`](Self::parent) of that world is the other side. The program is of the
    /// same build of Selvedge. The run of the root does not end before the processes have ended,
    /// and is a failure if one of them fails.
    ///
    /// # Under the launcher of an MPI
    /// The call is the same there, with every MPI library, and makes no call of the library: the
    /// process of the root starts the processes, and the messages of the intercommunicator and of
    /// the new world go through shared memory. The new ranks are no ranks of the launcher's job:
    /// their world has shared memory as its engine, and they may spawn others. They inherit the
    /// environment of the root, the launcher's variables too, and its binding to CPUs, and must not
    /// start MPI by themselves.
    ///
    /// # When a process ends
    /// A process that ends before its rank has returned is an error for the ranks of both groups
    /// that wait for it. If the process of the root ends, the system kills the processes that it
    /// has started. A launcher that ends its job when a rank has died ends the root too, and so the
    /// new processes. If a rank dies in the middle of the call, the call may be an error on the
    /// other ranks. [`run`](crate::run()) is an error in the new processes then.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast). If the ranks of this communicator run on several machines,
    /// the class is [`Unsupported`](crate::ErrorClass::Unsupported) on all of them, and no process
    /// is started; the ranks of one machine can spawn. If a program cannot be started, or ends
    /// before it is a rank, the class is [`Join`](crate::ErrorClass::Join). Both groups have at
    /// most 512 ranks.
    ///
    /// # Panics
    /// With 0 new ranks.
    ///
    /// # Examples
    /// ```no_run
    /// use selvedge::mpi::{self, Communicator};
    /// use std::process::Command;
    ///
    /// async fn rank(world: Communicator) -> Result<(), mpi::Error> {
    ///     if let Some(parent) = world.parent() {
    ///         return parent.send(0, (), std::process::id()).await;
    ///     }
    ///     // This program again, as two more processes.
    ///     let program = std::env::current_exe().expect("the program has a path");
    ///     let more = world.spawn_program(0, 2, |_| Command::new(&program)).await?;
    ///     if world.rank() == 0 {
    ///         println!("process {}", more.recv::<u32>(1, ()).await?.0);
    ///     }
    ///     Ok(())
    /// }
    ///
    /// #[selvedge::main]
    /// async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
    ///     mpi::run(1, rank).await.map(drop)
    /// }
    /// ```
    #[doc(alias = "MPI_Comm_spawn")]
    #[doc(alias = "MPI_Comm_spawn_multiple")]
    #[track_caller]
    pub fn spawn_program(
        &self,
        root: usize,
        ranks: usize,
        command: impl Fn(usize) -> Command + Send,
    ) -> impl Future<Output = Result<InterCommunicator, Error>> + Send {
        assert!(ranks > 0, "at least one rank is spawned");
        let call = self.call("spawn_program");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::SpawnProgram, root)?;
            let machines = round.allgather(Value(this_machine())).await?;
            if let Some(rank) = machines.iter().position(|Value(it)| *it != machines[root].0) {
                round.end().await?;
                return Err(call.error(ErrorClass::Unsupported, apart(rank, root)));
            }
            let own = (self.rank() == root).then(|| self.started(call, ranks, command));
            sides(round, call, self, root, true, own).await
        }
    }

    /// Starts processes as new ranks, behind those of this communicator.
    fn started(
        &self,
        call: CallSite,
        ranks: usize,
        command: impl Fn(usize) -> Command,
    ) -> Result<JoinWay, Error> {
        let (parents, root) = (self.size(), self.rank());
        let job = LocalJob::new(parents + ranks)
            .map_err(|error| call.error(ErrorClass::Join, error.to_string()))?;
        let started = StartedRanks::start(&job, parents..parents + ranks, |rank| {
            let mut command = command(rank - parents);
            let (name, value) = job.spawned_variable(rank, ParentRanks { size: parents, root });
            command.env(name, value);
            command
        });
        self.mailbox().wait_before_end(Box::pin(async move {
            let ends = on_an_os_thread(move || started.wait()).await.map_err(|error| error.to_string())?;
            ends.into_iter().try_for_each(|(rank, end)| match end {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("the process of rank {} ended with {status}", rank - parents)),
                Err(error) => Err(format!("rank {} could not be started: {error}", rank - parents)),
            })
        }));
        Ok(JoinWay::Segment { segment: job.segment().clone(), first: parents, leader: root })
    }

    /// The intercommunicator to the ranks that have [spawned](Self::spawn) this one: of the world
    /// of a rank that was spawned, and of no other communicator.
    #[doc(alias = "commGetParent")]
    #[doc(alias = "MPI_Comm_get_parent")]
    pub fn parent(&self) -> Option<InterCommunicator> {
        self.kept_values().get::<ParentSide>().map(|side| side.0.clone())
    }
}

/// Why a rank of another machine than the root keeps a communicator from spawning processes.
fn apart(rank: usize, root: usize) -> String {
    format!(
        "rank {rank} is on another machine than the root, rank {root}, and new processes share memory \
         with every rank that spawns them: the ranks of one machine can spawn, or the job is started \
         with more ranks"
    )
}
