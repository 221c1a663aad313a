//! A graph of Concurrent Collections in the middle of a pipeline: [`through_graph`].
//!
//! ```text
//! upstream ─▶ the thread of `ahead` ─▶ Environment ─▶ puts, gets ─▶ the graph
//! downstream ◀─ `next` ◀─ results in order ◀────┘
//! ```
//!
//! A graph lives on the stack of one OS thread, which runs its scheduler. So the stage has two OS
//! threads besides the workers of the scheduler. The first one makes the graph and runs it. The
//! second one is the `Environment`: it takes the items of the pipeline, puts them into the graph
//! with a `LiveEnvironment`, and waits for the results.
//!
//! `Environment::converse` never waits for a result that needs more input. It waits for the next
//! result only by waiting until the graph is at rest. A graph at rest without the result wants more
//! input, or the result never comes. So the stage cannot deadlock, and which of the two it is does
//! not depend on the schedule.

use crate::beside::{Beside, run_ahead};
use crate::items::{FromGenerator, Stores, failed, made, stores};
use crate::role::{AfterSource, FlowSource, Source, Upstream};
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{
    Canceller, Graph, GraphError, ItemCol, LiveEnvironment, LiveGet, LivePuts, StepResult, graph,
};
use selvedge_core::spawn;
use selvedge_io::blocking;
use selvedge_io::pool::BlockingError;
use selvedge_pipeline::{AfterGenerator, Generate, Generator, Item, StageError, Store, Transduce, Unchanged};
use selvedge_sync::{BoundedFifo, Event, Putter, Taker};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

/// How many chunks wait on their way into the graph, and how many on their way out.
const QUEUED: usize = 1;

/// What a graph puts for an item of a pipeline.
type PutsItem<'g, A> = Box<dyn FnMut(&LivePuts<'_, 'g>, u64, &A) -> StepResult + Send + 'g>;

/// Where a pipeline enters a graph, and where it leaves it.
pub struct GraphEnds<'g, A: ?Sized, B> {
    put: PutsItem<'g, A>,
    results: ItemCol<'g, u64, B>,
}

impl<'g, A: ?Sized, B> GraphEnds<'g, A, B> {
    /// `put` is called for each item of the pipeline, with the number of the item, from 0. It puts
    /// items and tags. The stage yields the item of `results` that has the same number as its key.
    pub fn new<F>(put: F, results: ItemCol<'g, u64, B>) -> GraphEnds<'g, A, B>
    where
        F: FnMut(&LivePuts<'_, 'g>, u64, &A) -> StepResult + Send + 'g,
    {
        GraphEnds { put: Box::new(put), results }
    }
}

impl<A: ?Sized, B> fmt::Debug for GraphEnds<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphEnds").field("results", &self.results.name()).finish_non_exhaustive()
    }
}

/// What [`through_graph`] returns: it stands between a source and the stages after it.
pub struct ThroughGraph<A: ?Sized, B, K, F> {
    under_way: usize,
    scheduler: K,
    build: F,
    items: PhantomData<fn(&A) -> B>,
}

impl<A: ?Sized, B, K, F> fmt::Debug for ThroughGraph<A, B, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThroughGraph").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

/// A graph in the middle of a pipeline: each item of the pipeline is put into the graph, and the
/// stage yields a result of the graph for each item, in the order of the items.
///
/// `build` makes the collections and steps when the pipeline runs, and says where the pipeline
/// enters and leaves them. The graph ends with the pipeline. So a later item may use what the graph
/// has made for an earlier one. A result may also depend on later items: the stage puts as many as
/// the graph needs. Otherwise at most `under_way` items are in the graph that have no result yet.
///
/// The results are the same under every scheduler of graphs, and under every scheduler of threads.
///
/// # Errors
/// The stage fails if the run of the graph does, with the
/// [`GraphError`](selvedge_cnc::GraphError) as its cause. How many results come before that depends
/// on the schedule. It fails also if a result never comes: the place of the failure is that of the
/// item.
///
/// # Panics
/// If `under_way` is 0. A panic of `build` goes on in the thread that runs the pipeline; a panic in
/// a step, or in what puts the items, is a fault of the graph.
///
/// # Complexity
/// Two OS threads, of which one is taken from the blocking pool, and the workers of the scheduler.
/// For each item the puts, and a step that gets the result.
///
/// # Paper
/// [NCM11 §2.1]: the pipeline is the environment of the graph. [NCM11 §5, Table 3]: a static chain
/// of nodes with state around a dynamic set of nodes without.
///
/// # Examples
/// ```
/// use selvedge::cnc::schedulers::Stealing;
/// use selvedge::pipeline::{collect, from_iter};
/// use selvedge::flow::{GraphEnds, through_graph};
///
/// // Fibonacci numbers. Each is computed once, whatever the order of the questions.
/// let answers = selvedge::run(async {
///     let questions = from_iter([50_u64, 10, 60]);
///     let graph = through_graph(64, Stealing::new(2), |graph| {
///         let wanted = graph.memoised_tags::<u64>("wanted");
///         let known = graph.items::<u64, u64>("known");
///         let (asked, answers) = (graph.tags::<(u64, u64)>("asked"), graph.items("answers"));
///         graph.prescribe(wanted, "add", move |n, step| {
///             if n < 2 {
///                 return step.put(known, n, n);
///             }
///             step.put(known, n, step.get(known, n - 1)? + step.get(known, n - 2)?)
///         });
///         graph.prescribe(wanted, "want", move |n, step| match n {
///             0 | 1 => Ok(()),
///             _ => step.put_tag(wanted, n - 1).and_then(|()| step.put_tag(wanted, n - 2)),
///         });
///         graph.prescribe(asked, "answer", move |(number, n), step| {
///             step.put(answers, number, *step.get(known, n)?)
///         });
///         // What the graph puts for a question, and where the answers are.
///         GraphEnds::new(
///             move |env, number, n: &u64| {
///                 env.put_tag(wanted, *n)?;
///                 env.put_tag(asked, (number, *n))
///             },
///             answers,
///         )
///     });
///     (questions >> graph >> collect()).run().await
/// });
/// assert_eq!(answers.unwrap().unwrap(), [12_586_269_025, 55, 1_548_008_755_920]);
/// ```
pub fn through_graph<A, B, K, F>(under_way: usize, scheduler: K, build: F) -> ThroughGraph<A, B, K, F>
where
    A: Item + ?Sized,
    K: Scheduler,
    F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, A, B>,
{
    assert!(under_way > 0, "a graph with no items under way");
    ThroughGraph { under_way, scheduler, build, items: PhantomData }
}

impl<A, B, C, S, T, K, F> AfterSource<A, B, S, T> for ThroughGraph<B, C, K, F>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    C: Clone + Send + Sync + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
    K: Scheduler + Send + 'static,
    F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, B, C> + Send + 'static,
{
    type Whole = FlowSource<C, C, ThroughGraphOf<A, B, C, S, T, K, F>, Unchanged>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        let upstream = Upstream::new(source.source, source.stages.into_stage());
        let (upstream, through) = (Some(upstream), Some(self));
        FlowSource::new(ThroughGraphOf { upstream, through, running: None, items: Vec::new() })
    }
}

impl<B, C, G, K, F> AfterGenerator<B, G> for ThroughGraph<B, C, K, F>
where
    B: Item<Store: Send> + ?Sized,
    C: Clone + Send + Sync + 'static,
    G: Generate<B> + Send + 'static,
    K: Scheduler + Send + 'static,
    F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, B, C> + Send + 'static,
{
    type Whole = FlowSource<C, C, ThroughGraphOf<B, B, C, FromGenerator<B, G>, Unchanged, K, F>, Unchanged>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The source of [`through_graph`].
pub struct ThroughGraphOf<A: ?Sized, B: ?Sized, C, S, T, K, F> {
    /// What is upstream, until the first `next` starts it.
    upstream: Option<Upstream<A, B, S, T>>,
    /// The graph, until the first `next` starts it.
    through: Option<ThroughGraph<B, C, K, F>>,
    running: Option<RunningGraph<C>>,
    /// The items that are lent.
    items: Vec<C>,
}

impl<A: ?Sized, B: ?Sized, C, S, T, K, F> fmt::Debug for ThroughGraphOf<A, B, C, S, T, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThroughGraphOf").field("begun", &self.upstream.is_none()).finish_non_exhaustive()
    }
}

/// A graph that runs. The fields are dropped in this order: see [`StopsGraph`].
struct RunningGraph<C> {
    results: Taker<Vec<C>>,
    stops: StopsGraph,
    feeder: Beside<Result<(), StageError>>,
    graph: Beside<Result<GraphOver, BlockingError>>,
}

/// Cancels the graph when it is dropped, which is after the queue of the results was closed.
///
/// The OS thread of the graph sets the cell, and looks then whether the queue is closed. So one of
/// the two cancels.
struct StopsGraph(Arc<OnceLock<Canceller>>);

impl Drop for StopsGraph {
    fn drop(&mut self) {
        if let Some(canceller) = self.0.get() {
            canceller.cancel();
        }
    }
}

/// How the run of a graph has ended.
enum GraphOver {
    Ended,
    /// The run has failed, after this number of results.
    Failed(GraphError, u64),
    /// The graph came to rest without the result of this number, and there was no more input.
    Missing(String, u64),
}

impl<A, B, C, S, T, K, F> Source<C> for ThroughGraphOf<A, B, C, S, T, K, F>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    C: Clone + Send + Sync + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
    K: Scheduler + Send + 'static,
    F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, B, C> + Send + 'static,
{
    async fn next(&mut self) -> Result<Option<&[C]>, StageError> {
        if let (Some(upstream), Some(through)) = (self.upstream.take(), self.through.take()) {
            self.running = Some(RunningGraph::start(upstream, through));
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        match running.results.take().await {
            Some(items) => {
                self.items = items;
                Ok(Some(&self.items))
            }
            None => {
                let over = running.end().await;
                self.running = None;
                over.map(|()| None)
            }
        }
    }

    async fn close(mut self) {
        if let Some(upstream) = self.upstream.take() {
            upstream.close().await;
        }
        if let Some(RunningGraph { results, stops, mut feeder, mut graph }) = self.running.take() {
            drop(results);
            drop(stops);
            feeder.stop().await;
            graph.stop().await;
        }
    }
}

impl<C: Clone + Send + Sync + 'static> RunningGraph<C> {
    fn start<A, B, S, T, K, F>(
        upstream: Upstream<A, B, S, T>,
        through: ThroughGraph<B, C, K, F>,
    ) -> RunningGraph<C>
    where
        A: Item + ?Sized,
        B: Item<Store: Send> + ?Sized,
        S: Source<A> + 'static,
        T: Transduce<A, B> + Send + 'static,
        K: Scheduler + Send + 'static,
        F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, B, C> + Send + 'static,
    {
        let (filler, input) = stores::<B::Store>(QUEUED);
        let (putter, results) = BoundedFifo::ends(QUEUED);
        let (stop, canceller) = (Arc::new(Event::new()), Arc::new(OnceLock::new()));
        let feeder = Beside::that_stops(spawn(run_ahead(upstream, filler, stop.clone())), stop.clone());
        let stops = StopsGraph(canceller.clone());
        let work = move || run_graph(through, input, putter, &canceller);
        // The event does not reach the OS thread. With it, `Beside::stop` waits for the thread's
        // own end, which the canceller brings.
        let graph = Beside::that_stops(spawn(async move { blocking(work).await }), stop);
        RunningGraph { results, stops, feeder, graph }
    }

    /// Waits for the end of the graph, which has closed the queue of its results.
    ///
    /// # Errors
    /// That of the graph. An upstream that has failed is told in place of a result that is missing,
    /// because the graph may have needed more input.
    async fn end(&mut self) -> Result<(), StageError> {
        let over = match self.graph.join().await {
            Ok(over) => over,
            Err(lost) => match lost.into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(lost) => return Err(failed("through_graph", 0, lost.to_string())),
            },
        };
        let fed = self.feeder.stop_and_join().await;
        match over {
            GraphOver::Ended => fed,
            GraphOver::Failed(error @ GraphError::Stuck(_), results) => {
                fed.and(Err(failed("through_graph", results, error)))
            }
            GraphOver::Failed(error, results) => Err(failed("through_graph", results, error)),
            GraphOver::Missing(name, number) => {
                let cause = format!("the graph has put no item {number} in `{name}`");
                fed.and(Err(failed("through_graph", number, cause)))
            }
        }
    }
}

/// The OS thread of the graph: makes it, and runs it beside its environment.
fn run_graph<B, C, K, F>(
    through: ThroughGraph<B, C, K, F>,
    input: Stores<B::Store>,
    results: Putter<Vec<C>>,
    canceller: &OnceLock<Canceller>,
) -> GraphOver
where
    B: Item<Store: Send> + ?Sized,
    C: Clone + Send + Sync + 'static,
    K: Scheduler,
    F: for<'g, 'env> FnOnce(&'g Graph<'g, 'env>) -> GraphEnds<'g, B, C>,
{
    let ThroughGraph { under_way, scheduler, build, .. } = through;
    graph(|graph| {
        let ends = build(graph);
        let name = ends.results.name().to_string();
        let handle = canceller.get_or_init(|| graph.canceller());
        if results.fifo().is_closed() {
            handle.cancel();
        }
        let (live, asked) = (graph.live(), VecDeque::new());
        let environment = Environment { live, ends, asked, put: 0, given: 0, results };
        thread::scope(|scope| {
            let environment = scope.spawn(move || environment.converse(&input, under_way));
            // The run ends when the environment has dropped its handle.
            let ran = graph.run(&scheduler).map(drop);
            let (given, missing) = environment.join().unwrap_or_else(|panic| resume_unwind(panic));
            match (ran, missing) {
                (Err(error), _) => GraphOver::Failed(error, given),
                (Ok(()), true) => GraphOver::Missing(name, given),
                (Ok(()), false) => GraphOver::Ended,
            }
        })
    })
}

/// The side of the pipeline that talks with the graph.
struct Environment<'g, A: ?Sized, C> {
    live: LiveEnvironment<'g>,
    ends: GraphEnds<'g, A, C>,
    /// The results that have not come, from `given` on.
    asked: VecDeque<LiveGet<'g, C>>,
    /// How many items have been put.
    put: u64,
    /// How many results have been given.
    given: u64,
    results: Putter<Vec<C>>,
}

impl<A: Item + ?Sized, C: Clone + Send + Sync + 'static> Environment<'_, A, C> {
    /// Puts the items of `input`, and gives the results. Returns how many results it has given, and
    /// whether the next one never comes.
    fn converse(mut self, input: &Stores<A::Store>, under_way: usize) -> (u64, bool) {
        // The items that came last, of which `taken` have been put. `None` after the last ones.
        let (mut items, mut taken) = (Some(A::Store::default()), 0);
        // The graph is at rest, and wants more items before it makes the next result.
        let mut hungry = false;
        loop {
            while (hungry || self.asked.len() < under_way)
                && let Some(store) = &mut items
            {
                if taken == store.count() {
                    let mut empty = std::mem::take(store);
                    empty.clear();
                    input.give_back(empty);
                    let Ok(next) = input.take_blocking(hungry || self.asked.is_empty()) else { break };
                    (items, taken) = (next, 0);
                    continue;
                }
                let room = if hungry { under_way } else { under_way - self.asked.len() };
                let end = store.count().min(taken.saturating_add(room));
                if self.put_items(store, taken..end).is_err() {
                    return (self.given, false);
                }
                (hungry, taken) = (false, end);
            }
            if self.asked.is_empty() && items.is_none() {
                return (self.given, false);
            }
            match self.give_results() {
                Ok(true) => continue,
                Ok(false) if self.live.rest().is_ok() => {}
                _ => return (self.given, false),
            }
            match self.give_results() {
                Ok(true) => {}
                Ok(false) if items.is_none() => return (self.given, true),
                Ok(false) => hungry = true,
                Err(Unwanted) => return (self.given, false),
            }
        }
    }

    /// Puts the items of a range, and asks for their results.
    fn put_items(&mut self, store: &A::Store, range: Range<usize>) -> StepResult {
        let Environment { live, ends, asked, put, .. } = self;
        let begin = *put;
        live.puts(|env| {
            range.into_iter().try_for_each(|at| {
                let number = std::mem::replace(put, *put + 1);
                (ends.put)(env, number, store.at(at))
            })
        })?;
        asked.extend((begin..*put).map(|number| live.get(ends.results, number)));
        Ok(())
    }

    /// Gives the results that are there, up to the first one that is not. Returns whether there was
    /// one.
    fn give_results(&mut self) -> Result<bool, Unwanted> {
        let mut ready = Vec::new();
        while let Some(next) = self.asked.front_mut() {
            match Pin::new(next).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => ready.push(result.map_err(|_| Unwanted)?),
                Poll::Pending => break,
            }
            self.asked.pop_front();
        }
        if ready.is_empty() {
            return Ok(false);
        }
        self.given += ready.len() as u64;
        self.results.put_blocking(ready).map(|()| true).map_err(|_| Unwanted)
    }
}

/// The pipeline wants no more results, or the run was stopped and there will be none.
struct Unwanted;
