//! Functions as messages: [`Functions`] are registered by name, [`RankPool`] has them executed by
//! other ranks, and [`RemoteFunction`] is the handle of one.
//!
//! A call is a message with the function's number and its serialised argument. Each rank has a
//! thread that receives calls, in a communicator of its own, and spawns a thread for each.
//!
//! `functions/map.rs` has the tasks of a `map`, which the ranks steal from one another.
//!
//! All ranks must mean the same function by a number. So the start of a pool compares the names and
//! the types of all functions, and between processes the programs too, because a function of the
//! same name may do something else in another build.

mod map;

use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::Message;
use crate::tag::{ANY, Tag};
use crate::wire;
use map::{MAPS, MapMessage, MapServer};
use selvedge_core::{JoinHandle, catch, spawn};
use std::any::type_name;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a call gives back: the serialised result, or the message of a panic.
type CallResult = Result<Vec<u8>, String>;

/// A call: the function's number, the tag of the answer, and the serialised argument. A rank's own
/// pool sends `None` to end its thread.
type CallMessage = Option<(u32, u32, Vec<u8>)>;

type Execution = Pin<Box<dyn Future<Output = CallResult> + Send>>;

type Executable = Arc<dyn Fn(Vec<u8>) -> Execution + Send + Sync>;

/// The tag of calls. That of [`MAPS`] is the next one, and answers have larger ones.
const CALLS: Tag = Tag::UNIT;

/// Functions that the ranks of a program may call at one another.
///
/// Each rank registers the same functions in the same order, and [starts](Functions::start) a pool.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, Functions};
///
/// #[selvedge::main]
/// async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
///     let sums = mpi::run(3, |world| async move {
///         let mut functions = Functions::new();
///         let square = functions.register("square", async |number: u64| number * number);
///         let pool = functions.start(&world).await?;
///         let mut sum = 0;
///         if world.rank() == 0 {
///             assert_eq!(pool.call(2, square, 7).await?, 49);
///             sum = pool.map(square, 1..=10).await?.iter().sum();
///         }
///         pool.finish().await?;
///         Ok::<_, mpi::Error>(sum)
///     });
///     assert_eq!(sums.await?, [385, 0, 0]);
///     Ok(())
/// }
/// ```
#[derive(Default)]
pub struct Functions {
    entries: Vec<RegisteredFunction>,
}

struct RegisteredFunction {
    name: String,
    types: [&'static str; 2],
    execute: Executable,
}

/// A registered function, from `A` to `R`.
pub struct RemoteFunction<A, R> {
    number: u32,
    marker: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for RemoteFunction<A, R> {
    fn clone(&self) -> RemoteFunction<A, R> {
        *self
    }
}

impl<A, R> Copy for RemoteFunction<A, R> {}

impl Functions {
    /// No functions.
    pub fn new() -> Functions {
        Functions::default()
    }

    /// Registers a function by a name that no other one has.
    ///
    /// # Panics
    /// If another function has this name.
    #[track_caller]
    pub fn register<A, R, F, C>(&mut self, name: &str, function: F) -> RemoteFunction<A, R>
    where
        A: Message,
        R: Message,
        F: Fn(A) -> C + Send + Sync + 'static,
        C: Future<Output = R> + Send + 'static,
    {
        assert!(self.entries.iter().all(|entry| entry.name != name), "{name} is registered twice");
        let function = Arc::new(function);
        let execute: Executable = Arc::new(move |argument| {
            let function = function.clone();
            Box::pin(async move {
                let argument = wire::decode(&argument).map_err(|error| error.to_string())?;
                let result = catch(async move { function(argument).await }).await;
                let result = result.map_err(|exception| exception.to_string())?;
                wire::encode(&result).map_err(|error| error.to_string())
            })
        });
        let number = self.entries.len() as u32;
        let types = [type_name::<A>(), type_name::<R>()];
        self.entries.push(RegisteredFunction { name: name.to_string(), types, execute });
        RemoteFunction { number, marker: PhantomData }
    }

    /// Starts a pool of all ranks of the communicator: from now on each of them executes what the
    /// others call. All ranks make the call.
    ///
    /// # Errors
    /// [`ErrorClass::Mismatch`] if the ranks have not registered the same functions, or are not the
    /// same build of the program; and if a rank has failed.
    #[track_caller]
    pub fn start(self, world: &Communicator) -> impl Future<Output = Result<RankPool, Error>> + Send + use<> {
        let call = world.call("start of functions");
        let world = world.clone();
        async move {
            let comm = world.dup().await?;
            let prints = comm.allgather(self.fingerprints(&comm)).await?;
            for (rank, theirs) in prints.iter().enumerate() {
                let own = &prints[comm.rank()];
                if theirs.0 != own.0 {
                    let text = format!("rank {rank} has registered {}, and this rank {}", theirs.1, own.1);
                    return Err(call.error(ErrorClass::Mismatch, text));
                }
                if theirs.2 != own.2 {
                    let text = format!("rank {rank} is another build of the program");
                    return Err(call.error(ErrorClass::Mismatch, text));
                }
            }
            let functions: Arc<[Executable]> =
                self.entries.iter().map(|entry| entry.execute.clone()).collect();
            let busy = (0..comm.size()).map(|_| AtomicUsize::new(0)).collect();
            let next = Arc::new(AtomicU32::new(0));
            let maps = MapServer::new(comm.clone(), functions.clone(), next.clone());
            let servers = [
                spawn(serve::<CallMessage>(comm.clone(), CALLS, execution(comm.clone(), functions))),
                spawn(serve::<MapMessage>(comm.clone(), MAPS, move |from, order| maps.serve(from, order))),
            ];
            let servers = Mutex::new(Some(servers));
            Ok(RankPool { shared: Arc::new(PoolInside { comm, next, busy, servers }) })
        }
    }

    /// A number for the names and types, their text, and a number for the program.
    fn fingerprints(&self, comm: &Communicator) -> (u64, String, u64) {
        let mut hasher = DefaultHasher::new();
        let entries = self.entries.iter();
        entries.for_each(|entry| (&entry.name, entry.types).hash(&mut hasher));
        let describe =
            |entry: &RegisteredFunction| format!("{}: {} -> {}", entry.name, entry.types[0], entry.types[1]);
        let names: Vec<String> = self.entries.iter().map(describe).collect();
        // Ranks that are threads of this process are one build.
        let is_alone = (0..comm.size()).all(|rank| comm.is_here(rank));
        let build = if is_alone { 0 } else { executable().unwrap_or(0) };
        (hasher.finish(), format!("[{}]", names.join(", ")), build)
    }
}

/// A number for the contents of this program's file.
fn executable() -> io::Result<u64> {
    let mut file = File::open("/proc/self/exe")?;
    let mut hasher = DefaultHasher::new();
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&piece[..length]),
        }
    }
}

/// Ranks that execute functions for one another. A clone is the same pool.
#[derive(Clone)]
pub struct RankPool {
    shared: Arc<PoolInside>,
}

struct PoolInside {
    comm: Communicator,
    /// The number of the next answer.
    next: Arc<AtomicU32>,
    /// How many calls of this rank each rank has not answered.
    busy: Box<[AtomicUsize]>,
    servers: Mutex<Option<[JoinHandle<()>; 2]>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call as not answered while it lives.
struct BusyRank<'p>(&'p AtomicUsize);

impl BusyRank<'_> {
    fn new(busy: &AtomicUsize) -> BusyRank<'_> {
        busy.fetch_add(1, Ordering::Relaxed);
        BusyRank(busy)
    }
}

impl Drop for BusyRank<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RankPool {
    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.shared.comm.size()
    }

    /// Calls a function on a rank, which may be this one, and gives its result.
    ///
    /// # Errors
    /// [`ErrorClass::Function`] if the function panics there, with its message;
    /// [`ErrorClass::Ended`] if that rank has ended.
    ///
    /// # Cancellation
    /// If the future is dropped, the function goes on, and its result is thrown away.
    #[track_caller]
    pub fn call<A: Message, R: Message>(
        &self,
        rank: usize,
        function: RemoteFunction<A, R>,
        argument: A,
    ) -> impl Future<Output = Result<R, Error>> + Send + use<A, R> {
        let (pool, call) = (self.clone(), self.shared.comm.call("call"));
        async move {
            let argument = encoded(call, &argument)?;
            pool.execute(call, rank, function, argument).await
        }
    }

    /// Calls a function on the rank that has the fewest calls of this one. The call begins at
    /// once, and the handle gives the result.
    ///
    /// # Errors
    /// As for [`call`](RankPool::call).
    #[track_caller]
    pub fn submit<A: Message, R: Message>(
        &self,
        function: RemoteFunction<A, R>,
        argument: A,
    ) -> JoinHandle<Result<R, Error>> {
        let busy = self.shared.busy.iter().map(|busy| busy.load(Ordering::Relaxed));
        // The next rank first, so that a rank with one task at a time uses all of them.
        let own = self.shared.comm.rank();
        let size = self.size();
        let rank = busy.enumerate().min_by_key(|&(rank, busy)| (busy, (rank + size - own - 1) % size));
        spawn(self.call(rank.map_or(own, |(rank, _)| rank), function, argument))
    }

    async fn execute<A: Message, R: Message>(
        &self,
        call: CallSite,
        rank: usize,
        function: RemoteFunction<A, R>,
        argument: Vec<u8>,
    ) -> Result<R, Error> {
        let PoolInside { comm, next, busy, .. } = &*self.shared;
        comm.check_rank(rank, call, ErrorClass::Rank)?;
        let answer = next_answer(next);
        let _busy = BusyRank::new(&busy[rank]);
        let message: CallMessage = Some((function.number, answer.0, argument));
        comm.send(rank, CALLS, message).await?;
        let (result, _) = comm.recv::<CallResult>(rank, answer).await?;
        let failed = |what: String| call.error(ErrorClass::Function, format!("on rank {rank}: {what}"));
        wire::decode(&result.map_err(failed)?).map_err(|error| failed(error.to_string()))
    }

    /// Ends the pool, when all ranks have asked for it. All ranks make the call, each after its
    /// last call of a function.
    ///
    /// # Errors
    /// If a rank has failed.
    pub async fn finish(self) -> Result<(), Error> {
        let PoolInside { comm, servers, .. } = &*self.shared;
        let all = comm.barrier().await;
        let servers = lock(servers).take();
        if let Some(servers) = servers {
            comm.send::<CallMessage>(comm.rank(), CALLS, None).await?;
            comm.send::<MapMessage>(comm.rank(), MAPS, None).await?;
            for server in servers {
                // It has ended by the message; a panic of it is told by its panic.
                let _ = server.await;
            }
        }
        all
    }
}

fn encoded<A: Message>(call: CallSite, argument: &A) -> Result<Vec<u8>, Error> {
    wire::encode(argument).map_err(|error| call.error(ErrorClass::Type, error.to_string()))
}

/// The tag of an answer that a rank waits for.
fn next_answer(next: &AtomicU32) -> Tag {
    Tag(next.fetch_add(1, Ordering::Relaxed) % (Tag::MAX.0 - MAPS.0) + MAPS.0 + 1)
}

/// Does what the ranks ask for with this tag, until a message without content comes.
async fn serve<M>(comm: Communicator, tag: Tag, answer: impl Fn(usize, M::Item) + Send)
where
    M: Message + IntoIterator,
{
    let mut failed = 0;
    loop {
        match comm.recv::<M>(ANY, tag).await {
            Ok((message, status)) => match message.into_iter().next() {
                Some(content) => answer(status.source, content),
                None => return,
            },
            // The other ranks go on.
            Err(error) if error.class() == ErrorClass::Ended => match comm.acknowledge_failed().len() {
                now if now > failed => failed = now,
                // This rank itself has ended.
                _ => return,
            },
            Err(_) => return,
        }
    }
}

/// What a rank does with a call.
fn execution(
    comm: Communicator,
    functions: Arc<[Executable]>,
) -> impl Fn(usize, <CallMessage as IntoIterator>::Item) + Send {
    move |from, (number, answer, argument)| {
        let execution = functions.get(number as usize).map(|function| function(argument));
        let comm = comm.clone();
        drop(spawn(async move {
            let result: CallResult = match execution {
                Some(execution) => execution.await,
                None => Err(format!("there is no function {number}")),
            };
            // A rank that has ended waits for no answer.
            let _ = comm.send(from, Tag(answer), result).await;
        }));
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| &entry.name)).finish()
    }
}

impl<A, R> fmt::Debug for RemoteFunction<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteFunction({})", self.number)
    }
}

impl fmt::Debug for RankPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankPool({:?})", self.shared.comm)
    }
}
