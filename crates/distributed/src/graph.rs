//! The program's interface to a graph over ranks: [`graph()`] makes a [`DistributedGraph`] on each
//! rank, and the program defines and runs it.
//!
//! A graph lives in a call of `cnc::graph`, on a stack of its own, because its driver waits for
//! messages in the middle of the run (`driver.rs`).

use crate::definitions::Definitions;
use crate::driver::{DriverParts, RankDriver, RankTraffic};
use crate::error::DistributedError;
use crate::finished::FinishedRanks;
use crate::item_collection::{DistributedItems, ItemsOfRanks, MissedItems, PutScope};
use crate::outbox::Outbox;
use crate::outcome::{FETCH, agree};
use crate::placement::ItemPlacement;
use crate::ports::{Ports, ReceivedQueue};
use crate::step::{DistributedNeeds, DistributedStep};
use crate::tag_collection::{DistributedTags, TagPlacement, TagsOfRanks};
use selvedge_cnc::{Graph, ItemKey, Items, StepResult, TagCol};
use selvedge_core::{JoinError, spawn_local};
use selvedge_direct::{Options, wait};
use selvedge_mpi::{Communicator, Message};
use selvedge_sched::{Handle, Spawned};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stack on which a rank runs its steps. Only what is touched takes memory.
const STACK_BYTES: usize = 2 << 20;

/// The most steps of a turn, unless the program says otherwise.
const TURN_STEPS: u32 = 32;

/// Gives `build` a new graph of all ranks to define, to run and to look at; returns what `build`
/// returns. All ranks of the communicator make the call, and define the same collections and steps
/// in the same order.
///
/// Each tag goes to the rank that its collection names, and runs the steps there. Each item goes to
/// the ranks that get it. Because no item ever changes, the items are the same as on one rank, bit
/// for bit, for any number of ranks.
///
/// `build` runs in a thread in direct style, which stays on its OS thread. It runs the steps one by
/// one, so a machine with several cores has a rank for each. The graphs of a process begin on its
/// workers in turn, so ranks that are threads compute at the same time. While a rank waits for
/// others, the threads beside it run, and no CPU time is used.
///
/// # Errors
/// What `build` returns, and if a rank has failed.
///
/// # Panics
/// A panic of `build` goes on here. A panic in a step is a fault of the run.
///
/// # Cancellation
/// If the future is dropped, the rank takes part no more. The others wait until it has ended.
///
/// # Complexity
/// A put for another rank is a part of a message; the puts of up to 32 steps, or of 50 us, to one
/// rank and collection are one message. The end of a run takes two to three messages for each rank.
///
/// # Paper
/// [NCM11 §2]: the model.
///
/// # Differences
/// 1. The paper's graphs run on one machine.
///
/// # Examples
/// Pascal's triangle, a diagonal for each rank in turn:
/// ```
/// use selvedge::distributed::{self, ItemPlacement};
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// let rows = mpi::run(3, |world| async move {
///     let ranks = world.size();
///     distributed::graph(&world, move |graph| {
///         let cells = graph.tags("cells", move |&(_, j): &(u32, u32)| j as usize % ranks);
///         let readers = move |&(_, j): &(u32, u32)| [j, j + 1].map(|j| j as usize % ranks);
///         let triangle = graph.items::<_, u32>("triangle", ItemPlacement::consumed_on(readers));
///         graph.prescribe(cells, "add", move |(i, j), step| {
///             let sum = match j {
///                 0 => 1,
///                 _ if i == j => 1,
///                 _ => step.get(triangle, (i - 1, j - 1))? + step.get(triangle, (i - 1, j))?,
///             };
///             step.put(triangle, (i, j), sum)
///         });
///         // Each rank names all cells, and puts its own.
///         graph.initialize_everywhere(|env| {
///             let mut all = (0..12_u32).flat_map(|i| (0..=i).map(move |j| (i, j)));
///             all.try_for_each(|cell| env.put_tag(cells, cell))
///         })?;
///         let all = graph.run()?.gather(0, triangle)?;
///         Ok(all.map(|all| all.iter().rev().take(12).map(|(_, sum)| *sum).collect::<Vec<_>>()))
///     })
///     .await
/// });
/// let last = rows.await.unwrap()[0].take();
/// assert_eq!(last.unwrap(), [1, 11, 55, 165, 330, 462, 462, 330, 165, 55, 11, 1]);
/// # })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn graph<R, F>(world: &Communicator, build: F) -> Result<R, DistributedError>
where
    F: for<'g, 'env> FnOnce(&DistributedGraph<'g, 'env>) -> Result<R, DistributedError> + Send + 'static,
    R: Send + 'static,
{
    let comm = world.dup().await?;
    let options = Options::new().name("a rank of a graph").stack_bytes(STACK_BYTES);
    let mut thread = RankThread::begin(move || options.direct(move || on_this_stack(comm, build)));
    match (&mut thread.0).await {
        Ok(result) => result,
        Err(JoinError::Panicked(panic)) => panic.rethrow(),
        Err(JoinError::Cancelled) => Err(DistributedError::Cancelled),
    }
}

/// The number of graphs that have begun in this process.
static GRAPHS: AtomicUsize = AtomicUsize::new(0);

/// The thread of a graph. It is cancelled if the program waits for it no more.
struct RankThread<R>(Spawned<R>);

impl<R: Send + 'static> RankThread<R> {
    /// Begins the thread that runs what `make` makes. The graphs of a process are on its workers in
    /// turn, so ranks that are threads run their graphs at the same time.
    fn begin<F>(make: impl FnOnce() -> F + Send + 'static) -> RankThread<R>
    where
        F: Future<Output = R> + 'static,
    {
        RankThread(match Handle::of_workers() {
            Some(workers) => {
                let worker = GRAPHS.fetch_add(1, Ordering::Relaxed) % workers.workers();
                workers.spawn_on(worker, make)
            }
            None => spawn_local(make()).into(),
        })
    }
}

impl<R> Drop for RankThread<R> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn on_this_stack<R, F>(comm: Communicator, build: F) -> Result<R, DistributedError>
where
    F: for<'g, 'env> FnOnce(&DistributedGraph<'g, 'env>) -> Result<R, DistributedError>,
{
    let definitions = Definitions::default();
    selvedge_cnc::graph(|graph| build(&DistributedGraph::new(graph, &definitions, comm)))
}

/// A graph of all ranks, as one of them sees it.
///
/// # Paper
/// [NCM11 §2.1]: `GraphCode`.
///
/// # Differences
/// 1. A collection says on which ranks its tags run, and its items are.
pub struct DistributedGraph<'g, 'env: 'g> {
    graph: &'g Graph<'g, 'env>,
    definitions: &'g Definitions,
    comm: Communicator,
    outbox: Arc<Outbox>,
    ports: RefCell<Ports<'g>>,
    queue: Arc<ReceivedQueue<'g>>,
    /// The tags of the step "received": the ranks from which something was received.
    received: TagCol<'g, u32>,
    missed: RefCell<Vec<&'g dyn MissedItems>>,
    turn_steps: Cell<u32>,
    traffic: Cell<RankTraffic>,
    /// The ranks have compared their collections.
    is_compared: Cell<bool>,
}

impl<'g, 'env> DistributedGraph<'g, 'env> {
    fn new(graph: &'g Graph<'g, 'env>, definitions: &'g Definitions, comm: Communicator) -> Self {
        let queue = Arc::new(ReceivedQueue::new(comm.size()));
        let received = graph.tags("received");
        let of_step = queue.clone();
        graph.prescribe(received, "received", move |from, step| of_step.put_next(from, step));
        DistributedGraph {
            graph,
            definitions,
            comm,
            outbox: Arc::default(),
            ports: RefCell::default(),
            queue,
            received,
            missed: RefCell::default(),
            turn_steps: Cell::new(TURN_STEPS),
            traffic: Cell::default(),
            is_compared: Cell::new(false),
        }
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.comm.size()
    }

    /// The graph of this rank, for collections and steps of this rank alone.
    pub fn local(&self) -> &'g Graph<'g, 'env> {
        self.graph
    }

    /// A new tag collection. `compute_on` names the rank on which the steps of a tag run.
    #[doc(alias = "compute_on")]
    pub fn tags<T>(
        &self,
        name: &str,
        compute_on: impl Fn(&T) -> usize + Send + Sync + 'static,
    ) -> DistributedTags<'g, T>
    where
        T: ItemKey + Message,
    {
        self.add_tags(self.graph.tags(name), each_on(compute_on))
    }

    /// A new tag collection that remembers its tags: a tag that is put again, on any rank, has no
    /// effect.
    pub fn memoised_tags<T>(
        &self,
        name: &str,
        compute_on: impl Fn(&T) -> usize + Send + Sync + 'static,
    ) -> DistributedTags<'g, T>
    where
        T: ItemKey + Message,
    {
        self.add_tags(self.graph.memoised_tags(name), each_on(compute_on))
    }

    /// Adds a collection over ranks to that of this rank.
    pub(crate) fn add_tags<T>(
        &self,
        local: TagCol<'g, T>,
        placement: TagPlacement<T>,
    ) -> DistributedTags<'g, T>
    where
        T: ItemKey + Message,
    {
        let mut ports = self.ports.borrow_mut();
        let tag = ports.next_tag();
        let (rank, ranks, outbox) = (self.rank(), self.ranks(), self.outbox.clone());
        let shared = self.definitions.keep(TagsOfRanks { rank, ranks, placement, outbox, tag });
        ports.add(local.name(), move |_, tag, step| step.put_tag(local, tag));
        DistributedTags { local, shared }
    }

    /// A new item collection, hashed.
    pub fn items<K, V>(&self, name: &str, placement: ItemPlacement<K>) -> DistributedItems<'g, K, V>
    where
        K: ItemKey + Message,
        V: Message + Clone + Sync,
    {
        self.items_in(name, placement, Items::hashed())
    }

    /// A new item collection, which each rank keeps as `items` say. A count of gets is that of the
    /// gets on this rank; a fetch of another rank is a get on the rank that keeps the item.
    pub fn items_in<K, V>(
        &self,
        name: &str,
        placement: ItemPlacement<K>,
        items: Items<'g, K, V>,
    ) -> DistributedItems<'g, K, V>
    where
        K: ItemKey + Message,
        V: Message + Clone + Sync,
    {
        let local = self.graph.items_in(name, items);
        let mut ports = self.ports.borrow_mut();
        let place = (self.rank(), self.ranks());
        let shared = ItemsOfRanks::new(place, name, placement, &self.outbox, ports.next_tag());
        let shared = self.definitions.keep(shared);
        ports.add(name, move |_, (key, value), step| step.put(local, key, value));
        if shared.is_fetched() {
            let fetches = self.graph.tags(&format!("fetches of {name}"));
            let fetch = move |asked, step: &selvedge_cnc::StepContext<'g>| shared.answer(local, asked, step);
            self.graph.prescribe(fetches, &format!("{FETCH}{name}"), fetch);
            ports.add(fetches.name(), move |from, key, step| step.put_tag(fetches, (from as u32, key)));
        }
        self.missed.borrow_mut().push(shared);
        DistributedItems { local, shared }
    }

    /// Prescribes a step: it runs once for each tag of a collection, on the rank of the tag.
    ///
    /// A step that misses an item runs again from its beginning when the item is there. So it gets
    /// before it puts.
    pub fn prescribe<T, F>(&self, tags: DistributedTags<'g, T>, name: &str, body: F)
    where
        T: ItemKey + Message,
        F: for<'s> Fn(T, &DistributedStep<'s, 'g>) -> StepResult + Send + Sync + 'g,
    {
        self.graph.prescribe(tags.local, name, move |tag, step| body(tag, &DistributedStep::new(step)));
    }

    /// Prescribes a step with declared items: `needs` declares them, and `body` runs when all are
    /// there. It gets before it puts for other ranks, as any step here.
    pub fn prescribe_depends<T, D, F>(&self, tags: DistributedTags<'g, T>, name: &str, needs: D, body: F)
    where
        T: ItemKey + Message,
        D: for<'n, 's> Fn(T, &DistributedNeeds<'n, 's, 'g>) -> StepResult + Send + Sync + 'g,
        F: for<'s> Fn(T, &DistributedStep<'s, 'g>) -> StepResult + Send + Sync + 'g,
    {
        self.graph.prescribe_depends(
            tags.local,
            name,
            move |tag, declared| needs(tag, &DistributedNeeds(declared)),
            move |tag, step| body(tag, &DistributedStep::new(step)),
        );
    }

    /// Puts items and tags as the environment of this rank. They go to the ranks that their
    /// collections name. So one rank alone puts an item.
    ///
    /// # Errors
    /// As for [`Graph::initialize`].
    pub fn initialize<A>(
        &self,
        work: impl for<'s> FnOnce(&DistributedStep<'s, 'g>) -> StepResult<A>,
    ) -> Result<A, DistributedError> {
        self.put_in_environment(work, PutScope::AllRanks)
    }

    /// Puts items and tags as the environment of all ranks: each rank makes the same call with the
    /// same puts, and puts what is its own. No message is sent.
    ///
    /// # Errors
    /// As for [`Graph::initialize`].
    pub fn initialize_everywhere<A>(
        &self,
        work: impl for<'s> FnOnce(&DistributedStep<'s, 'g>) -> StepResult<A>,
    ) -> Result<A, DistributedError> {
        self.put_in_environment(work, PutScope::ThisRank)
    }

    fn put_in_environment<A>(
        &self,
        work: impl for<'s> FnOnce(&DistributedStep<'s, 'g>) -> StepResult<A>,
        scope: PutScope,
    ) -> Result<A, DistributedError> {
        Ok(self.graph.initialize(|env| work(&DistributedStep::environment(env, scope)))?)
    }

    /// Lets the run go on after a step fails: each step runs that does not depend on it. Without
    /// this call, no step of any rank begins after the ranks have heard of a fault.
    pub fn finish_after_fault(&self) {
        self.graph.finish_after_fault();
    }

    /// Sets the most steps that this rank runs before it sends, receives, and lets other threads
    /// run; 32 without this call. A rank with very short steps may take more, a rank under test 1,
    /// so that its messages are in more orders.
    ///
    /// # Panics
    /// If it is 0.
    pub fn set_turn_steps(&self, steps: u32) {
        assert!(steps > 0, "a turn has a step at least");
        self.turn_steps.set(steps);
    }

    /// Runs the graph on all ranks, until no step of any rank can run and no put is under way. All
    /// ranks make the call. They may put and run again after a run that was not failed.
    ///
    /// # Errors
    /// The same on every rank: if steps wait for items that no step has put, and if steps have
    /// failed. If a rank has ended, or the ranks have not defined the same collections.
    ///
    /// # Panics
    /// Outside of the `build` of [`graph()`].
    pub fn run(&self) -> Result<FinishedRanks<'g>, DistributedError> {
        self.compare()?;
        let ports = self.ports.borrow();
        let parts = DriverParts {
            comm: &self.comm,
            ports: &ports,
            outbox: &self.outbox,
            queue: &self.queue,
            received: self.received,
            canceller: self.graph.canceller(),
            turn_steps: self.turn_steps.get(),
        };
        let driver = RankDriver::new(parts, self.graph.live());
        let (finished, ended) = match self.graph.run(&driver) {
            Ok(finished) => (Some(finished), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let (run, error) = driver.end();
        let before = self.traffic.get();
        let traffic = RankTraffic { puts: before.puts + run.puts, messages: before.messages + run.messages };
        self.traffic.set(traffic);
        if let Some(error) = error {
            return Err(error.into());
        }
        agree(&self.comm, ended, &self.missed.borrow())?;
        let finished = finished.expect("all ranks have finished, so this one has");
        Ok(FinishedRanks::new(finished, self.comm.clone(), traffic))
    }

    /// Compares the collections of the ranks, before the first run.
    fn compare(&self) -> Result<(), DistributedError> {
        if self.is_compared.replace(true) {
            return Ok(());
        }
        let own = self.ports.borrow().text().to_string();
        let all = wait(self.comm.allgather(own.clone()))?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => Err(DistributedError::Mismatch(format!(
                "the ranks have not defined the same collections: rank 0 has\n{}and rank {rank} has\n{}",
                all[0], all[rank]
            ))),
        }
    }
}

/// Each tag as a whole goes to the rank that `compute_on` names.
fn each_on<T>(compute_on: impl Fn(&T) -> usize + Send + Sync + 'static) -> TagPlacement<T> {
    Box::new(move |tag, put| put(compute_on(&tag), tag))
}

impl fmt::Debug for DistributedGraph<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributedGraph(rank {} of {})", self.rank(), self.ranks())
    }
}
