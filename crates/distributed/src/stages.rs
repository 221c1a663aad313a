//! Stages that ranks run for one another: [`RankStages`] are registered by name, and a
//! [`StagePool`] runs them. A [`RemoteStage`] is the handle of one.
//!
//! A stage is made of functions, which do not go from process to process. So each rank registers
//! the same stages, and a pipeline names one by its number. Each rank has a thread that receives
//! the openings of streams, in a communicator of its own, and spawns a thread for each
//! (`serve.rs`).

use crate::error::DistributedError;
use crate::on_rank::OnRank;
use crate::remote_item::RemoteItem;
use crate::serve::serve_stream;
use crate::stream::{OPENINGS, StreamLink};
use crate::telling::tell;
use selvedge_core::{JoinHandle, spawn};
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass};
use selvedge_pipeline::{Transduce, Transducer};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A stream that a rank opens: the numbers of the stage and of the stream. A rank's own pool sends
/// `None` to end its thread.
type Opening = Option<(u32, u32)>;

/// Serves a stream: with its link, and the rank that serves.
type ServesStream = Arc<dyn Fn(StreamLink, usize) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Stages of pipelines that the ranks of a program run for one another.
///
/// Each rank registers the same stages in the same order, and [starts](RankStages::start) a pool.
///
/// # Examples
/// Rank 0 reads and sums up; rank 1 parses, and rank 2 squares:
/// ```
/// use selvedge::pipeline::{fold, from_chunks, group_by, lift121, line};
/// use selvedge::distributed::{RankStages, on_rank};
/// use selvedge::{flow, mpi};
///
/// # selvedge::round_robin(async {
/// let sums = mpi::run(3, |world| async move {
///     let mut stages = RankStages::new();
///     let number = |line: &[u8]| String::from_utf8_lossy(line).parse().unwrap_or(0);
///     let parse = stages.register("parse", move || group_by(line()) >> lift121(number));
///     let square = stages.register("square", || lift121(|n: &u64| n * n));
///     let pool = stages.start(&world).await?;
///     let mut sum = 0;
///     if world.rank() == 0 {
///         let numbers = flow::made(from_chunks(["1\n2\n", "3\n"])) >> on_rank(&pool, 1, parse);
///         let squares = numbers >> on_rank(&pool, 2, square);
///         sum = (squares >> fold(0, |sum, n: &u64| *sum += n)).run().await.unwrap();
///     }
///     pool.finish().await?;
///     Ok::<u64, selvedge::distributed::DistributedError>(sum)
/// });
/// assert_eq!(sums.await.unwrap(), [14, 0, 0]);
/// # })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Default)]
pub struct RankStages {
    entries: Vec<RegisteredStage>,
}

struct RegisteredStage {
    name: String,
    types: [&'static str; 2],
    serves: ServesStream,
}

/// A registered stage, from items of type `A` to items of type `B`.
pub struct RemoteStage<A: ?Sized, B: ?Sized> {
    number: u32,
    items: PhantomData<fn(&A) -> &B>,
}

impl<A: ?Sized, B: ?Sized> Clone for RemoteStage<A, B> {
    fn clone(&self) -> RemoteStage<A, B> {
        *self
    }
}

impl<A: ?Sized, B: ?Sized> Copy for RemoteStage<A, B> {}

impl RankStages {
    /// No stages.
    pub fn new() -> RankStages {
        RankStages::default()
    }

    /// Registers a stage by a name that no other one has. `recipe` makes it for each pipeline.
    ///
    /// # Panics
    /// If another stage has this name.
    #[track_caller]
    pub fn register<A, B, T, F>(&mut self, name: &str, recipe: F) -> RemoteStage<A, B>
    where
        A: RemoteItem + ?Sized,
        B: RemoteItem + ?Sized,
        T: Transduce<A, B> + Send + 'static,
        F: Fn() -> Transducer<A, B, T> + Send + Sync + 'static,
    {
        assert!(self.entries.iter().all(|entry| entry.name != name), "{name} is registered twice");
        let told = name.to_string();
        let serves: ServesStream =
            Arc::new(move |link, rank| Box::pin(serve_stream(link, recipe(), told.clone(), rank)));
        let number = self.entries.len() as u32;
        let types = [type_name::<A>(), type_name::<B>()];
        self.entries.push(RegisteredStage { name: name.to_string(), types, serves });
        RemoteStage { number, items: PhantomData }
    }

    /// Starts a pool of all ranks of the communicator. All ranks make the call.
    ///
    /// # Errors
    /// If the ranks have not registered the same stages, or a rank has failed.
    pub async fn start(self, world: &Communicator) -> Result<StagePool, DistributedError> {
        let comm = world.dup().await?;
        let describe =
            |entry: &RegisteredStage| format!("{}: {} -> {}", entry.name, entry.types[0], entry.types[1]);
        let own = self.entries.iter().map(describe).collect::<Vec<_>>().join(", ");
        let all = comm.allgather(own).await?;
        if let Some(rank) = all.iter().position(|other| *other != all[0]) {
            let text = format!("rank 0 has registered [{}], and rank {rank} [{}]", all[0], all[rank]);
            return Err(DistributedError::Mismatch(text));
        }
        let (names, serves): (Vec<_>, Vec<_>) =
            self.entries.into_iter().map(|entry| (entry.name, entry.serves)).unzip();
        let server = Mutex::new(Some(spawn(serve(comm.clone(), serves))));
        Ok(StagePool { shared: Arc::new(PoolOfStages { comm, names, next: AtomicU32::new(0), server }) })
    }
}

/// Ranks that run stages for one another. A clone is the same pool.
#[derive(Clone)]
pub struct StagePool {
    shared: Arc<PoolOfStages>,
}

struct PoolOfStages {
    comm: Communicator,
    names: Vec<String>,
    /// The number of the next stream that this rank opens.
    next: AtomicU32,
    server: Mutex<Option<JoinHandle<()>>>,
}

impl StagePool {
    /// The name of a stage.
    pub(crate) fn name<A: ?Sized, B: ?Sized>(&self, stage: RemoteStage<A, B>) -> &str {
        &self.shared.names[stage.number as usize]
    }

    /// Opens a stream through a stage on a rank.
    ///
    /// # Errors
    /// If there is no such rank, or it has ended.
    pub(crate) fn open<A, B>(&self, rank: usize, stage: RemoteStage<A, B>) -> Result<StreamLink, Error>
    where
        A: ?Sized,
        B: ?Sized,
    {
        let PoolOfStages { comm, next, .. } = &*self.shared;
        let stream = next.fetch_add(1, Ordering::Relaxed) % StreamLink::STREAMS_MAX;
        let opening: Opening = Some((stage.number, stream));
        tell(comm, rank, OPENINGS, opening)?;
        Ok(StreamLink::of_pipeline(comm, rank, stream))
    }

    /// Ends the pool, when all ranks have asked for it. All ranks make the call, each after the end
    /// of its last pipeline.
    ///
    /// # Errors
    /// If a rank has failed.
    pub async fn finish(self) -> Result<(), Error> {
        let PoolOfStages { comm, server, .. } = &*self.shared;
        let all = comm.barrier().await;
        let server = server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(server) = server {
            tell(comm, comm.rank(), OPENINGS, None::<(u32, u32)>)?;
            // It has ended by the message; a panic of it is told by its panic.
            let _ = server.await;
        }
        all
    }
}

/// A stage on another rank, which stands between a source and the stages after it as any stage
/// does: the source sends its chunks there, and what the stage yields comes back.
///
/// The source runs in a thread of its own. At most four chunks wait on each side, so a slow
/// consumer holds up the stage and the source. If the consumer is finished before the source, both
/// are stopped. `rank` may be this rank.
///
/// # Errors
/// The pipeline fails as if the stage stood here: with the failure of the source, or with that of
/// the stage. It fails also if the stage panics there, or if the rank ends.
///
/// # Panics
/// A panic of the source goes on in the thread that runs the pipeline.
///
/// # Complexity
/// Two messages for each chunk that goes there, and two for each chunk that comes back. Between
/// threads of one process the items are moved and not serialised.
///
/// # Examples
/// See [`RankStages`].
pub fn on_rank<A, B>(pool: &StagePool, rank: usize, stage: RemoteStage<A, B>) -> OnRank<A, B>
where
    A: RemoteItem + ?Sized,
    B: RemoteItem + ?Sized,
{
    OnRank { pool: pool.clone(), rank, stage }
}

/// Serves the streams that the ranks open.
async fn serve(comm: Communicator, stages: Vec<ServesStream>) {
    let mut failed = 0;
    loop {
        match comm.recv::<Opening>(ANY, OPENINGS).await {
            Ok((Some((stage, stream)), status)) => {
                let link = StreamLink::of_stage(&comm, status.source, stream);
                if let Some(serves) = stages.get(stage as usize) {
                    drop(spawn(serves(link, comm.rank())));
                }
            }
            Ok((None, _)) => return,
            // The streams of the other ranks go on.
            Err(error) if error.class() == ErrorClass::Ended => match comm.acknowledge_failed().len() {
                known if known > failed => failed = known,
                _ => return,
            },
            Err(_) => return,
        }
    }
}

impl fmt::Debug for RankStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| &entry.name)).finish()
    }
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for RemoteStage<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteStage({})", self.number)
    }
}

impl fmt::Debug for StagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagePool({:?})", self.shared.comm)
    }
}
