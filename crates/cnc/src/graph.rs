//! The program's interface to a graph: [`graph`] makes a [`Graph`], the program builds and runs it,
//! and [`FinishedGraph`] shows the items after a run that ended well.
//!
//! Below `graph/`, `prescribe.rs` and `ranges.rs` add steps, `finished.rs` shows the items, and
//! `observe.rs` shows what the graph did. All work is done elsewhere: `core.rs` has the state,
//! `kinds/` has the kinds of steps, and a [`Scheduler`] runs them. [`Graph::run`] decides how a run
//! has ended: failed, stuck, cancelled, or finished.
//!
//! `Graph` and `View` are not `Sync`, because `View` and the reports read the collections while no
//! worker runs. `'g` is a new lifetime for each graph. So a handle of one graph does not compile
//! with another graph, and the end of the graph is the end of all its handles.
//!
//! Paper: [NCM11 §2.1].

mod finished;
mod observe;
mod prescribe;
mod ranges;

pub use finished::{FinishedGraph, View};

use crate::cancel::Canceller;
use crate::core::Core;
use crate::error::{GraphError, StepResult};
use crate::first_panic::FirstPanic;
use crate::items::{ItemCol, Items};
use crate::key::ItemKey;
use crate::live::LiveEnvironment;
use crate::primitives::Ordering;
use crate::ready_step::ReadyStep;
use crate::schedulers::{GraphJob, Scheduler};
use crate::step::StepContext;
use crate::stuck::Stuck;
use crate::tags::TagCol;
use std::fmt;
use std::marker::PhantomData;

/// Gives `work` a new graph to build, to run and to look at; returns what `work` returns.
///
/// All collections, steps and items end with the graph. Their handles are bound to the lifetime
/// `'g`, which is another one for each graph. Steps may borrow what lives longer than the call.
///
/// # Paper
/// [NCM11 §2.1] `runGraph`.
///
/// # Differences
/// 1. The scheduler is an argument of [`Graph::run`].
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::Stealing};
///
/// fn is_prime(n: &u32) -> bool {
///     (3..).step_by(2).take_while(|d| d * d <= *n).all(|d| n % d != 0)
/// }
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let primes = cnc::graph(|graph| {
///     let candidates = graph.tags("candidates");
///     let primes = graph.items("primes");
///     graph.prescribe(candidates, "test", move |n, step| {
///         if is_prime(&n) { step.put(primes, n, n) } else { Ok(()) }
///     });
///     graph.initialize(|env| {
///         (3..10_000_u32).step_by(2).try_for_each(|n| env.put_tag(candidates, n))
///     })?;
///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.iter(primes).count()))
/// })?;
/// assert_eq!(primes + 1, 1_229);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "runGraph")]
#[doc(alias = "runCnC")]
pub fn graph<'env, R>(work: impl for<'g> FnOnce(&'g Graph<'g, 'env>) -> R) -> R {
    let graph = Graph { core: Core::new(), env: PhantomData, one_thread: PhantomData };
    let closing = Closing(&graph);
    graph.core.environment();
    let result = work(&graph);
    drop(closing);
    result
}

/// Closes a graph, also when `graph` unwinds.
struct Closing<'a, 'g, 'env>(&'a Graph<'g, 'env>);

impl Drop for Closing<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.core.close();
    }
}

/// A graph under construction, and between its runs.
///
/// # Paper
/// [NCM11 §2.1]: `GraphCode`, with `newTagCol`, `newItemCol`, `prescribe`, `initialize`. Table 3:
/// the nodes are stateless tasks, in a dynamic set; the channels of tags have no order.
///
/// # Differences
/// 1. The environment may put and run several times.
/// 2. `finalize` belongs to [`FinishedGraph`], which only a run that ended well returns.
#[doc(alias = "GraphCode")]
pub struct Graph<'g, 'env: 'g> {
    core: Core<'g>,
    env: PhantomData<&'env mut &'env ()>,
    /// A step cannot change the graph.
    one_thread: PhantomData<*mut ()>,
}

impl<'g> Graph<'g, '_> {
    /// A new tag collection.
    #[doc(alias = "newTagCol")]
    pub fn tags<T: ItemKey + 'g>(&'g self, name: &str) -> TagCol<'g, T> {
        TagCol::add(&self.core, name, false)
    }

    /// A new tag collection that remembers its tags: one that is put again has no effect.
    pub fn memoised_tags<T: ItemKey + 'g>(&'g self, name: &str) -> TagCol<'g, T> {
        TagCol::add(&self.core, name, true)
    }

    /// A new item collection: hashed, and its items stay to the end.
    #[doc(alias = "newItemCol")]
    pub fn items<K: ItemKey + 'g, V: Send + Sync + 'g>(&'g self, name: &str) -> ItemCol<'g, K, V> {
        self.items_in(name, Items::hashed())
    }

    /// A new item collection that keeps its items as [`Items`] say.
    pub fn items_in<K, V>(&'g self, name: &str, items: Items<'g, K, V>) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        ItemCol::add(&self.core, name, items, false)
    }

    /// A new item collection with one item. Its key is `()`.
    pub fn item<V: Send + Sync + 'g>(&'g self, name: &str) -> ItemCol<'g, (), V> {
        self.items_in(name, Items::dense(()))
    }

    /// The tag collection of the puts of an item collection: each item that is put puts its key
    /// there, as a tag. So an item prescribes steps, as `on_put` of Intel's Concurrent Collections
    /// calls a function.
    ///
    /// A step of the collection runs after the put, and a get of the item does not miss. It is a
    /// step as any other: a get of a counted item is in the count. An item is put once, so each tag
    /// is put once, and the result is the same under every scheduler. A second put that is
    /// [allowed](Items::equal_allowed) has no effect, and puts no tag.
    ///
    /// An item that was put before the first call puts no tag.
    ///
    /// # Complexity
    /// A put of the collection costs the put of a tag more. Other collections pay nothing.
    ///
    /// # Paper
    /// [NCM11 §2]: tags prescribe steps, and steps put tags. Here the put of an item puts one.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let lengths = cnc::graph(|graph| {
    ///     let words = graph.items::<u32, &str>("words");
    ///     let lengths = graph.items("lengths");
    ///     graph.prescribe(graph.on_put(words), "measure", move |n, step| {
    ///         step.put(lengths, n, step.get(words, n)?.len())
    ///     });
    ///     // No tag is put here.
    ///     graph.initialize(|env| {
    ///         env.put(words, 1, "warp")?;
    ///         env.put(words, 2, "weft yarn")
    ///     })?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(lengths).map(|(_, n)| *n).collect::<Vec<_>>()))
    /// })?;
    /// assert_eq!(lengths, [4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_put<K: ItemKey + 'g, V>(&'g self, items: ItemCol<'g, K, V>) -> TagCol<'g, K> {
        items.0.on_put(|| TagCol::add(&self.core, &format!("puts of {}", items.name()), false).0)
    }

    /// Puts the first items and tags, as the environment of the graph.
    ///
    /// # Errors
    /// [`GraphError::Failed`], as for a step. A get of an item that is not there is an error too.
    ///
    /// # Paper
    /// [NCM11 §2.1] `initialize`.
    pub fn initialize<A>(
        &'g self,
        work: impl FnOnce(&StepContext<'g>) -> StepResult<A>,
    ) -> Result<A, GraphError> {
        if !self.core.tally.running.load(Ordering::Relaxed) {
            // `work` may get items that only cancelled steps have claimed.
            StepContext::settle_cancelled(&self.core);
        }
        StepContext::environment(&self.core, work).ok_or_else(|| self.failure())
    }

    /// What has gone wrong, if anything has.
    fn failure(&'g self) -> GraphError {
        let faults = self.core.faults.report();
        if faults.is_empty() { GraphError::Cancelled } else { GraphError::Failed(faults) }
    }

    /// Lets the run go on after a step fails: each step runs that does not depend on the failed
    /// step. Then the faults are the same under every scheduler, with one exception. If two steps
    /// put one item, or if more steps get an item than its count says, then the step that comes
    /// last in time is halted. The schedule decides which step that is, and the later puts of this
    /// step are missing.
    ///
    /// Without this call, no step begins after a fault. Then every schedule makes the run fail, and
    /// each reported fault would be reported with this call too. The schedule decides which faults
    /// are reported, and which fault is first. The graph cannot wait for the smallest fault: any
    /// step that is left may still report a smaller one, and a graph with a step that puts tags for
    /// ever always has a step left.
    pub fn finish_after_fault(&'g self) {
        self.core.faults.go_on();
    }

    pub(crate) fn core(&'g self) -> &'g Core<'g> {
        &self.core
    }

    /// A handle that stops the run.
    pub fn canceller(&'g self) -> Canceller {
        Canceller(self.core.attention().clone())
    }

    /// A handle of the environment for the time in which the graph runs. The run does not end
    /// before all handles are dropped.
    ///
    /// # Complexity
    /// O(1). On a machine with two CPUs, a put took 0.5 to 0.8 us of the caller's time, one of 100
    /// puts in one call of `puts` 0.02 to 0.04 us, and a put with the wait for its answer 9 to 30
    /// us, while other programs ran.
    ///
    /// # Examples
    /// See [`LiveEnvironment`].
    pub fn live(&'g self) -> LiveEnvironment<'g> {
        LiveEnvironment::new(&self.core)
    }

    /// Runs the graph until no step can run any more, and no [`LiveEnvironment`] is open.
    ///
    /// # Errors
    /// - [`GraphError::Stuck`] if steps wait for items that no step has put, or to take items that
    ///   have other gets left. The environment may put the items, or have steps get them, and run
    ///   again.
    /// - [`GraphError::Failed`] if a step or the environment has failed, in this run or before. A
    ///   graph that a fault has stopped runs no more steps.
    /// - [`GraphError::Failed`] with each [`LeftOver`](crate::FaultCause::LeftOver) if there is no
    ///   other fault. The environment may have steps get the rest, and run again.
    /// - [`GraphError::Cancelled`] if the run was cancelled.
    ///
    /// # Panics
    /// - If the scheduler returns while steps are ready.
    /// - If the scheduler calls it again within this run: the reports at the end of a run read the
    ///   lists of waiting steps, and no worker may run meanwhile.
    ///
    /// # Paper
    /// [NCM11 §3.1]: any scheduler. The result of the graph does not depend on it.
    pub fn run(&'g self, scheduler: &(impl Scheduler + ?Sized)) -> Result<FinishedGraph<'g>, GraphError> {
        let _running = Running::begin(&self.core);
        self.core.show_to_monitor();
        GraphJob::new(&self.core).rounds(scheduler);
        // The reports read the collections, and puts of the living environment may be under way.
        self.core.attention().bell().end();
        let lost: Vec<ReadyStep<'g>> = self.core.pending.take_all();
        if self.core.is_cancelled() {
            drop(lost);
            return Err(self.failure());
        }
        assert!(
            lost.is_empty() && self.core.tally.outstanding() == 0,
            "the scheduler has returned while {} steps were ready",
            self.core.tally.outstanding()
        );
        StepContext::settle_cancelled(&self.core);
        StepContext::get_again(&self.core, self.core.waiting());
        let mut faults = self.core.faults.report();
        if faults.is_empty() {
            let missing = self.core.missing();
            if !missing.is_empty() {
                return Err(GraphError::Stuck(Stuck::of(missing)));
            }
            faults = self.core.left_over();
        }
        if faults.is_empty() { Ok(FinishedGraph::of(&self.core)) } else { Err(GraphError::Failed(faults)) }
    }

    /// Makes the graph as it was when the program had built it, so that it runs again with other
    /// items.
    ///
    /// The items are dropped, and what is known of tags that were put, faults, cancelled steps, a
    /// cancelled run, and counts is forgotten. Steps that are ready or wait are dropped. So a graph
    /// that has failed, is stuck or was cancelled runs again too. Collections, steps and what was
    /// said about them stay, and so does the memory of the collections: a later run of the same
    /// size takes no memory for items. What was recorded stays.
    ///
    /// A collection that a step has made is empty from now on, and lasts as long as the graph. A
    /// step that makes it again makes another one.
    ///
    /// No step can reset its own graph, because `Graph` is not `Sync`:
    /// ```compile_fail,E0277
    /// use selvedge::cnc;
    ///
    /// cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     graph.prescribe(tags, "again", move |_, _| Ok(graph.reset()));
    /// });
    /// ```
    ///
    /// # Panics
    /// - Within `initialize` or `finalize`, or from a scheduler within the run, because a reference
    ///   to an item may be in use there.
    /// - If a [`LiveEnvironment`] is open.
    /// - If the program keeps the handle of an [async step](crate::AsyncStep) that has ended, or a
    ///   scheduler has lost a worker. With such a handle the graph runs no more steps.
    /// - With the panic of the first destructor that panics, when all is reset.
    ///
    /// # Complexity
    /// O(items), and O(places) for [dense](Items::dense) collections.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sums = cnc::graph(|graph| {
    ///     let numbers = graph.tags::<u64>("numbers");
    ///     let sums = graph.items_in("sums", Items::dense(101_u64));
    ///     graph.prescribe(numbers, "add", move |n, step| {
    ///         step.put(sums, n + 1, step.get(sums, n)? + n)
    ///     });
    ///     let scheduler = Stealing::new(2);
    ///     [0, 1000].map(|first| {
    ///         graph.initialize(|env| {
    ///             env.put(sums, 0, first)?;
    ///             (0..100).try_for_each(|n| env.put_tag(numbers, n))
    ///         })?;
    ///         let sum = graph.run(&scheduler)?.finalize(|view| view.get(sums, 100).copied());
    ///         graph.reset();
    ///         Ok(sum)
    ///     })
    ///     .into_iter()
    ///     .collect::<Result<Vec<_>, cnc::GraphError>>()
    /// })?;
    /// assert_eq!(sums, [Some(4950), Some(5950)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset(&'g self) {
        if let Some(when) = self.core.is_used() {
            panic!("a graph cannot be reset {when}");
        }
        let mut panics = FirstPanic::default();
        StepContext::drop_all(&self.core, &mut panics);
        // SAFETY: `is_used` has said `None`, and `drop_all` has run destructors of steps alone.
        unsafe { self.core.forget_runs(&mut panics) };
        panics.go_on();
    }
}

impl fmt::Debug for Graph<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").finish_non_exhaustive()
    }
}

/// A run of a graph, until [`Graph::run`] returns or unwinds.
struct Running<'a, 'g>(&'a Core<'g>);

impl<'a, 'g> Running<'a, 'g> {
    fn begin(core: &'a Core<'g>) -> Running<'a, 'g> {
        assert!(
            !core.tally.running.swap(true, Ordering::Relaxed),
            "a graph cannot be run within its own run"
        );
        core.pending.begin_run();
        core.attention().bell().begin();
        Running(core)
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.0.attention().bell().end();
        self.0.tally.running.store(false, Ordering::Relaxed);
    }
}
