//! [`RankPool::map`] with work stealing between the ranks: [`MapRun`] is the side of the rank that
//! maps, [`MapWork`] the side of a rank that executes, and [`MapShare`] the tasks that such a rank
//! has not begun.
//!
//! The rank that maps cuts the tasks into a share for each rank. A rank executes its share from the
//! front. When the share is empty, the rank asks the others in turn, and the first that has tasks
//! gives up the last half of them. A rank that finds none says that it has ended. Such a rank gets
//! no tasks any more, because a rank gets tasks by its own request alone. So the run is over when
//! each rank has said it, or has failed.
//!
//! Where the tasks of a failed rank are is not known: other ranks may have stolen some, and the
//! failed rank may have stolen some. So the rank that maps begins another run with all tasks that
//! have no result. A task is executed at least once.
//!
//! A rank answers the requests for tasks in a thread of its own, which `functions.rs` starts with
//! the pool.

use super::{
    BusyRank, CallResult, Executable, PoolInside, RankPool, RemoteFunction, encoded, lock, next_answer,
};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::Message;
use crate::tag::Tag;
use crate::wire;
use selvedge_core::{JoinHandle, spawn, yield_now};
use selvedge_scope::join_all;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The tag of what the ranks ask of one another for a map.
pub(super) const MAPS: Tag = Tag(1);

/// How many tasks of its share a rank executes side by side, so that it has one to do while another
/// one waits.
const LANES: usize = 2;

/// How many results a rank sends together.
const RESULTS_TOGETHER: usize = 8;

/// A run: the rank that maps, and the tag of the results there.
type RunNumber = (u32, u32);

/// Serialised arguments, each with its place among all.
type Tasks = Vec<(u32, Vec<u8>)>;

/// The share with which a rank begins: the number of the function, the ranks of the run, and the
/// tasks.
type FirstShare = (u32, Vec<u32>, Tasks);

/// What a rank is to do for a run: to begin with a share; or to give up tasks in an answer with a
/// tag; or, without both, to begin no task any more. A rank's own pool sends `None` to end its
/// thread.
pub(super) type MapMessage = Option<(RunNumber, Option<FirstShare>, Option<u32>)>;

/// Results with their places, and whether the rank has ended its part.
type MapResults = (Vec<(u32, CallResult)>, bool);

/// The tasks of a run that a rank has, and has not begun.
struct MapShare {
    tasks: Mutex<VecDeque<(u32, Vec<u8>)>>,
    /// The rank that maps wants no results any more.
    is_given_up: AtomicBool,
}

impl MapShare {
    fn next(&self) -> Option<(u32, Vec<u8>)> {
        lock(&self.tasks).pop_front()
    }

    /// Takes the last half of the tasks; of one task, that one.
    fn half(&self) -> Tasks {
        let mut tasks = lock(&self.tasks);
        let kept = tasks.len() / 2;
        tasks.split_off(kept).into()
    }

    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        lock(&self.tasks).clear();
    }
}

/// The runs in which a rank takes part.
type Shares = Arc<Mutex<HashMap<RunNumber, Arc<MapShare>>>>;

/// What a rank does for the runs of all ranks.
pub(super) struct MapServer {
    comm: Communicator,
    functions: Arc<[Executable]>,
    /// The number of the next answer.
    next: Arc<AtomicU32>,
    shares: Shares,
}

impl MapServer {
    pub(super) fn new(comm: Communicator, functions: Arc<[Executable]>, next: Arc<AtomicU32>) -> MapServer {
        MapServer { comm, functions, next, shares: Shares::default() }
    }

    /// Does what a rank asks for.
    pub(super) fn serve(&self, from: usize, (run, first, answer): <MapMessage as IntoIterator>::Item) {
        if let Some((function, ranks, tasks)) = first {
            let share = MapShare { tasks: Mutex::new(tasks.into()), is_given_up: AtomicBool::new(false) };
            let share = Arc::new(share);
            lock(&self.shares).insert(run, share.clone());
            let work = MapWork {
                comm: self.comm.clone(),
                next: self.next.clone(),
                run,
                ranks,
                function: self.functions.get(function as usize).cloned(),
                share,
                results: Mutex::default(),
            };
            let shares = self.shares.clone();
            drop(spawn(async move {
                Arc::new(work).until_no_rank_has_tasks(shares).await;
            }));
            return;
        }
        let share = lock(&self.shares).get(&run).cloned();
        if let Some(answer) = answer {
            // A rank that has ended its part, or has not begun it, has none to give.
            let tasks = share.map_or(Tasks::new(), |share| share.half());
            let comm = self.comm.clone();
            // A rank that has ended waits for no answer, and the tasks are in the next run.
            drop(spawn(async move { comm.send(from, Tag(answer), tasks).await }));
        } else if let Some(share) = share {
            share.give_up();
        }
    }
}

/// The part of a rank in a run.
struct MapWork {
    comm: Communicator,
    next: Arc<AtomicU32>,
    run: RunNumber,
    ranks: Vec<u32>,
    /// `None` if no function has the number.
    function: Option<Executable>,
    share: Arc<MapShare>,
    /// What the rank that maps has not been sent yet.
    results: Mutex<Vec<(u32, CallResult)>>,
}

impl MapWork {
    /// Executes tasks until no rank has any, and says so to the rank that maps.
    async fn until_no_rank_has_tasks(self: Arc<Self>, shares: Shares) {
        loop {
            let lanes: Vec<JoinHandle<()>> = (0..LANES).map(|_| spawn(self.clone().lane())).collect();
            for lane in lanes {
                // A panic of a function is a result, and the lane itself has none.
                let _ = lane.await;
            }
            self.send_results(false).await;
            match self.steal().await {
                Some(tasks) => lock(&self.share.tasks).extend(tasks),
                None => break,
            }
        }
        lock(&shares).remove(&self.run);
        self.send_results(true).await;
    }

    /// Executes tasks of the share, one after another.
    async fn lane(self: Arc<Self>) {
        while let Some((place, argument)) = self.share.next() {
            let result = match &self.function {
                Some(function) => function(argument).await,
                None => Err("the function is not registered".to_string()),
            };
            let has_failed = result.is_err();
            if self.keep_result(place, result) >= RESULTS_TOGETHER || has_failed {
                self.send_results(false).await;
            }
            // A function that never waits lets the rank answer between two tasks.
            yield_now().await;
        }
    }

    /// Keeps a result for the rank that maps, and tells how many are kept.
    fn keep_result(&self, place: u32, result: CallResult) -> usize {
        let mut results = lock(&self.results);
        results.push((place, result));
        results.len()
    }

    /// Sends the results that are there, if there are any or the part has ended.
    async fn send_results(&self, is_end: bool) {
        let results = std::mem::take(&mut *lock(&self.results));
        if results.is_empty() && !is_end {
            return;
        }
        let message: MapResults = (results, is_end);
        let (to, tag) = self.run;
        if self.comm.send(to as usize, Tag(tag), message).await.is_err() {
            // The rank that maps has ended.
            self.share.give_up();
        }
    }

    /// Tasks of the next rank that gives up some. `None` if no rank has any.
    async fn steal(&self) -> Option<Tasks> {
        let own = self.comm.rank() as u32;
        let behind = self.ranks.iter().filter(|&&rank| rank > own);
        for &other in behind.chain(self.ranks.iter().filter(|&&rank| rank < own)) {
            if self.share.is_given_up.load(Ordering::Relaxed) {
                return None;
            }
            let answer = next_answer(&self.next);
            let request: MapMessage = Some((self.run, None, Some(answer.0)));
            // A rank that has ended gives up none.
            if self.comm.send(other as usize, MAPS, request).await.is_ok()
                && let Ok((tasks, _)) = self.comm.recv::<Tasks>(other as usize, answer).await
                && !tasks.is_empty()
            {
                return Some(tasks);
            }
        }
        None
    }
}

/// A run of the rank that maps. If it is dropped before its end, the ranks begin no more tasks.
struct MapRun<'p> {
    comm: &'p Communicator,
    number: RunNumber,
    ranks: Vec<usize>,
    is_over: bool,
}

impl MapRun<'_> {
    /// Tells the ranks that they are to begin no more tasks.
    fn give_up(&self) {
        for &rank in &self.ranks {
            let order: MapMessage = Some((self.number, None, None));
            // The message goes its way by itself, and a rank that has ended need not hear of it.
            drop(self.comm.isend(rank, MAPS, order));
        }
    }
}

impl Drop for MapRun<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.give_up();
        }
    }
}

impl RankPool {
    /// Calls a function for each of these arguments, and gives the results in their order. Each
    /// rank gets a share of the tasks, and a rank that has done its share steals half of what
    /// another one has not begun. So a slow rank executes few. The tasks of a rank that fails are
    /// done by others.
    ///
    /// A rank executes two tasks side by side, and gives up tasks when a task waits or ends.
    ///
    /// # Errors
    /// [`ErrorClass::Function`] if the function panics for one of them; [`ErrorClass::Ended`] if
    /// all ranks have ended but this one and this one too.
    ///
    /// # Cancellation
    /// If the future is dropped, the ranks begin no more tasks. Results of tasks that they have
    /// begun are thrown away.
    ///
    /// # Complexity
    /// With `p` ranks, `n` tasks and `s` thefts, about `n / 8 + 2 p + 2 s + 2 p²` messages: results
    /// go by eights, and at its end each rank hears of each other one that it has no tasks. Two
    /// messages for each task, as `submit` takes, would be `2 n`.
    #[track_caller]
    pub fn map<A: Message, R: Message>(
        &self,
        function: RemoteFunction<A, R>,
        arguments: impl IntoIterator<Item = A>,
    ) -> impl Future<Output = Result<Vec<R>, Error>> + Send {
        let (pool, call) = (self.clone(), self.shared.comm.call("map"));
        let tasks: Result<Tasks, Error> =
            (0..).zip(arguments).map(|(place, argument)| Ok((place, encoded(call, &argument)?))).collect();
        async move { pool.map_all(call, function, tasks?).await }
    }

    async fn map_all<A: Message, R: Message>(
        &self,
        call: CallSite,
        function: RemoteFunction<A, R>,
        mut tasks: Tasks,
    ) -> Result<Vec<R>, Error> {
        let results = Mutex::new((0..tasks.len()).map(|_| None).collect::<Vec<Option<R>>>());
        let mut ranks: Vec<usize> = (0..self.size()).collect();
        while !tasks.is_empty() {
            for (lost, error) in self.map_once(call, function, &tasks, &ranks, &results).await? {
                ranks.retain(|&rank| rank != lost);
                if ranks.is_empty() {
                    return Err(error);
                }
            }
            let results = lock(&results);
            tasks.retain(|(place, _)| results[*place as usize].is_none());
        }
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results.into_iter().map(|result| result.expect("each task has been done")).collect())
    }

    /// Gives these tasks to these ranks, and waits for the results. Gives the ranks that have
    /// failed meanwhile, each with its error.
    async fn map_once<A: Message, R: Message>(
        &self,
        call: CallSite,
        function: RemoteFunction<A, R>,
        tasks: &[(u32, Vec<u8>)],
        ranks: &[usize],
        results: &Mutex<Vec<Option<R>>>,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let PoolInside { comm, next, busy, .. } = &*self.shared;
        let ranks = &ranks[..ranks.len().min(tasks.len())];
        let tag = next_answer(next);
        let number = (comm.rank() as u32, tag.0);
        let mut run = MapRun { comm, number, ranks: ranks.to_vec(), is_over: false };
        let names: Vec<u32> = ranks.iter().map(|&rank| rank as u32).collect();
        let failed = Mutex::new(None);
        let parts = ranks.iter().enumerate().map(|(part, &rank)| {
            let cut = |part: usize| part * tasks.len() / ranks.len();
            let share = tasks[cut(part)..cut(part + 1)].to_vec();
            let first: MapMessage = Some((number, Some((function.number, names.clone(), share)), None));
            let (run, failed) = (&run, &failed);
            async move {
                let _busy = BusyRank::new(&busy[rank]);
                comm.send(rank, MAPS, first).await?;
                loop {
                    let ((came, is_end), _) = comm.recv::<MapResults>(rank, tag).await?;
                    for (place, result) in came {
                        let result =
                            result.and_then(|bytes| wire::decode(&bytes).map_err(|it| it.to_string()));
                        match result {
                            Ok(result) => lock(results)[place as usize] = Some(result),
                            Err(what) => {
                                let text = format!("on rank {rank}: {what}");
                                lock(failed).get_or_insert(call.error(ErrorClass::Function, text));
                                run.give_up();
                            }
                        }
                    }
                    if is_end {
                        return Ok(());
                    }
                }
            }
        });
        let ends: Vec<Result<(), Error>> = join_all(parts).await;
        run.is_over = true;
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut lost = Vec::new();
        for (&rank, end) in ranks.iter().zip(ends) {
            match end {
                Err(error) if error.class() == ErrorClass::Ended => lost.push((rank, error)),
                end => end?,
            }
        }
        Ok(lost)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::error::Error;
    use crate::functions::Functions;
    use crate::op;
    use selvedge_core::{round_robin, yield_now};
    use std::sync::atomic::Ordering;

    /// A call or a theft takes a number. With a call for each task there would be as many as tasks.
    #[test]
    fn few_thefts_share_many_tasks() {
        round_robin(crate::run(4, |world| async move {
            let own = world.rank();
            let mut functions = Functions::new();
            let slow = functions.register("slow", move |number: u32| async move {
                // All tasks of the first share take long.
                for _ in 0..if number < 250 { 40 } else { 0 } {
                    yield_now().await;
                }
                (number, own)
            });
            let pool = functions.start(&world).await?;
            if own == 0 {
                let results = pool.map(slow, 0..1000).await?;
                assert!(results.iter().map(|result| result.0).eq(0..1000));
                let here = results[..250].iter().filter(|result| result.1 == 0).count();
                assert!((1..125).contains(&here), "rank 0 has done {here} of its 250 tasks");
            }
            world.barrier().await?;
            let numbers = pool.shared.next.load(Ordering::Relaxed);
            let numbers = world.allreduce(numbers, op::sum).await?;
            assert!((5..100).contains(&numbers), "{numbers}");
            pool.finish().await?;
            Ok::<_, Error>(())
        }))
        .unwrap()
        .unwrap();
    }
}
