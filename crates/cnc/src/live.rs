//! An environment that lives on while its graph runs: [`LiveEnvironment`].
//!
//! `Graph::live` makes the first handle. Each of its calls runs on the caller's OS thread, as code
//! of the environment (`StepContext::environment`), and leaves the ready steps in the `Core`.
//! `bell.rs` has the protocol by which the run learns of them, and by which it ends.
//! [`LiveGet`] waits for an item by a forked step.
//!
//! Paper: [NCM11 §2.1]: the environment.

mod wait;

pub use wait::LiveGet;

use crate::cancel::Attention;
use crate::core::Core;
use crate::error::{Halted, StepResult};
use crate::items::{ItemCol, Items};
use crate::key::ItemKey;
use crate::step::StepContext;
use crate::stuck::Stuck;
use crate::tags::TagCol;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// A handle of the environment of a graph, for the time in which the graph runs. OS threads and
/// `async fn`s put items and tags with it, and wait for items.
///
/// [`Graph::run`](crate::Graph::run) does not return while a handle is open, unless the run fails
/// or is cancelled. A handle is open until it is dropped. So no step of the graph may own one, and
/// the graph's own OS thread drops its handle before it calls `run`, or hands it over.
///
/// The result of the graph is determined by the items and tags that the environment puts. It does
/// not depend on the times of the puts. An environment that decides by the time, or by which of two
/// items comes first, is not determined itself.
///
/// A put waits until a run has begun, because the graph's own OS thread may look at the items
/// between two runs.
///
/// # Complexity
/// A call of [`puts`](LiveEnvironment::puts) takes three locks and some allocations, for any number
/// of puts, and the locks of the scheduler if it wakes a worker. Its steps run as soon as a worker
/// begins its next step, and a worker that sleeps is woken for them. The workers of `Stealing`,
/// `TaskPool` and `Affine` stay while the graph is at rest, and sleep. The workers of the other
/// schedulers, and of a scheduler of the program that does not call
/// [`GraphJob::stay`](crate::schedulers::GraphJob::stay), end at a rest and begin again at a put.
///
/// # Paper
/// [NCM11 §2.1]: the environment.
///
/// # Differences
/// 1. The paper's environment puts before the run, and gets after it.
///
/// # Examples
/// ```
/// use std::thread;
/// use selvedge::cnc::{self, schedulers::Stealing};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let sum = cnc::graph(|graph| {
///     let numbers = graph.tags::<u64>("numbers");
///     let squares = graph.items::<u64, u64>("squares");
///     graph.prescribe(numbers, "square", move |n, step| step.put(squares, n, n * n));
///     let live = graph.live();
///     thread::scope(|scope| {
///         let user = scope.spawn(move || {
///             live.put_tag(numbers, 3)?;
///             let nine = live.get(squares, 3).wait_blocking()?;
///             live.put_tag(numbers, nine)?;
///             live.get(squares, 9).wait_blocking()
///         });
///         // It ends when the user has dropped the handle.
///         graph.run(&Stealing::new(2))?;
///         Ok::<_, cnc::GraphError>(user.join().unwrap().unwrap())
///     })
/// })?;
/// assert_eq!(sum, 81);
/// # Ok(())
/// # }
/// ```
pub struct LiveEnvironment<'g> {
    core: &'g Core<'g>,
    /// The drop of a handle uses this alone, because an item may have the handle.
    attention: Arc<Attention>,
    /// The OS thread of the graph.
    thread: ThreadId,
}

impl<'g> LiveEnvironment<'g> {
    /// On the OS thread of the graph.
    pub(crate) fn new(core: &'g Core<'g>) -> LiveEnvironment<'g> {
        let attention = core.attention().clone();
        attention.bell().open();
        // Workers look at the bell before each step.
        attention.need();
        LiveEnvironment { core, attention, thread: thread::current().id() }
    }

    fn is_own(&self) -> bool {
        thread::current().id() == self.thread
    }

    /// Puts several items and tags at once.
    ///
    /// # Errors
    /// If the run has failed or was cancelled, or if `work` returns an error. The run ends with the
    /// fault of `work`, as in [`Graph::initialize`](crate::Graph::initialize).
    ///
    /// # Panics
    /// If the OS thread of the graph calls it between two runs, as all functions that wait for the
    /// run.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let (items, sums) = (graph.items::<u32, u32>("items"), graph.items("sums"));
    ///     graph.prescribe(tags, "add", move |n, step| {
    ///         step.put(sums, n, step.get(items, n)? + step.get(items, n + 1)?)
    ///     });
    ///     let live = graph.live();
    ///     std::thread::scope(|scope| {
    ///         scope.spawn(move || {
    ///             live.puts(|env| {
    ///                 env.put_tag(tags, 4)?;
    ///                 (4..6).try_for_each(|n| env.put(items, n, n))
    ///             })
    ///         });
    ///         graph.run(&OneByOne)
    ///     })
    ///     .map(|finished| finished.finalize(|view| view.get(sums, 4).copied()))
    /// })?;
    /// assert_eq!(sum, Some(9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn puts<A>(&self, work: impl FnOnce(&LivePuts<'_, 'g>) -> StepResult<A>) -> StepResult<A> {
        let Some(inside) = self.attention.bell().enter(|| self.is_own(), || self.core.pending.wake_worker())
        else {
            return Err(Halted(None));
        };
        let done = StepContext::environment(self.core, |step| work(&LivePuts(step)));
        // After the ready steps are in the graph.
        drop(inside);
        done.ok_or(Halted(None))
    }

    /// Puts an item, as [`StepContext::put`].
    ///
    /// # Errors
    /// As for `StepContext::put`, and if the run has failed or was cancelled.
    ///
    /// # Panics
    /// As [`puts`](LiveEnvironment::puts).
    pub fn put<K, V>(&self, items: ItemCol<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey,
        V: Send + Sync,
    {
        self.puts(|env| env.put(items, key, value))
    }

    /// Puts a tag, as [`StepContext::put_tag`].
    ///
    /// # Errors
    /// If the run has failed or was cancelled.
    ///
    /// # Panics
    /// As [`puts`](LiveEnvironment::puts).
    pub fn put_tag<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.puts(|env| env.put_tag(tags, tag))
    }

    /// [`put_tag`](LiveEnvironment::put_tag), by the paper's name.
    ///
    /// # Errors
    /// As for `put_tag`.
    ///
    /// # Panics
    /// As `put_tag`.
    pub fn putt<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.put_tag(tags, tag)
    }

    /// A clone of the item of a key, when it is there. The future is for any executor;
    /// [`LiveGet::wait_blocking`] blocks the OS thread instead. It gets the item as a step does,
    /// and so it is in the count of a counted item.
    ///
    /// # Errors
    /// The future returns an error if the run has failed or was cancelled, or if the get is a
    /// fault, as for [`StepContext::get`].
    ///
    /// # Panics
    /// As [`puts`](LiveEnvironment::puts).
    pub fn get<K, V>(&self, items: ItemCol<'g, K, V>, key: K) -> LiveGet<'g, V>
    where
        K: ItemKey + 'g,
        V: Clone + Send + Sync + 'g,
    {
        LiveGet::new(self, items, key)
    }

    /// Blocks the OS thread until no step is ready and none runs, and no other handle puts. Returns
    /// a report of the steps that wait for items then, if there are some: they go on only after a
    /// put of the environment.
    ///
    /// The caller must not be within [`puts`](LiveEnvironment::puts), or in a step of the graph.
    ///
    /// # Errors
    /// If the run has failed or was cancelled.
    ///
    /// # Panics
    /// As [`puts`](LiveEnvironment::puts).
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let items = graph.items::<u32, u32>("items");
    ///     graph.prescribe(tags, "next", move |n, step| {
    ///         step.put(items, n + 1, step.get(items, n)? + 1)
    ///     });
    ///     let live = graph.live();
    ///     std::thread::scope(|scope| {
    ///         scope.spawn(move || {
    ///             live.put_tag(tags, 7)?;
    ///             let stuck = live.wait_for_rest_blocking()?.expect("the item 7 is not there");
    ///             assert_eq!(stuck.items[0].key, "7");
    ///             live.put(items, 7, 70)?;
    ///             assert!(live.wait_for_rest_blocking()?.is_none());
    ///             cnc::StepResult::Ok(())
    ///         });
    ///         graph.run(&Stealing::new(2)).map(|_| ())
    ///     })
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "quiesce")]
    pub fn wait_for_rest_blocking(&self) -> StepResult<Option<Stuck>> {
        let Some(_rest) = self.attention.bell().at_rest(|| self.is_own()) else { return Err(Halted(None)) };
        let missing = self.core.missing();
        Ok((!missing.is_empty()).then(|| Stuck::of(missing)))
    }

    /// Waits as [`wait_for_rest_blocking`](LiveEnvironment::wait_for_rest_blocking) does, and makes
    /// no report. So it does not look at the items, and its cost does not depend on how many there
    /// are.
    ///
    /// # Errors
    /// As for `wait_for_rest_blocking`.
    ///
    /// # Panics
    /// As [`puts`](LiveEnvironment::puts).
    pub fn rest_blocking(&self) -> StepResult {
        match self.attention.bell().at_rest(|| self.is_own()) {
            Some(_rest) => Ok(()),
            None => Err(Halted(None)),
        }
    }

    /// Whether the run was cancelled, or has failed.
    pub fn is_cancelled(&self) -> bool {
        self.attention.is_stopped()
    }

    /// Closes the handle, as its drop does.
    pub fn close(self) {}
}

impl Clone for LiveEnvironment<'_> {
    fn clone(&self) -> Self {
        self.attention.bell().open();
        LiveEnvironment { core: self.core, attention: self.attention.clone(), thread: self.thread }
    }
}

impl Drop for LiveEnvironment<'_> {
    fn drop(&mut self) {
        self.attention.bell().close();
    }
}

impl fmt::Debug for LiveEnvironment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEnvironment").finish_non_exhaustive()
    }
}

/// What [`LiveEnvironment::puts`] gives its closure: the effects of a step, and no gets, because a
/// get here would depend on the time.
pub struct LivePuts<'a, 'g>(&'a StepContext<'g>);

impl<'g> LivePuts<'_, 'g> {
    /// As [`StepContext::put`].
    ///
    /// # Errors
    /// As for `StepContext::put`.
    pub fn put<K, V>(&self, items: ItemCol<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey,
        V: Send + Sync,
    {
        self.0.put(items, key, value)
    }

    /// As [`StepContext::put_tag`].
    ///
    /// # Errors
    /// As for `StepContext::put_tag`.
    pub fn put_tag<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.0.put_tag(tags, tag)
    }

    /// [`put_tag`](LivePuts::put_tag), by the paper's name.
    ///
    /// # Errors
    /// As for `put_tag`.
    pub fn putt<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.0.put_tag(tags, tag)
    }

    /// As [`StepContext::fork`].
    ///
    /// # Errors
    /// As for `StepContext::fork`.
    pub fn fork(&self, body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g) -> StepResult {
        self.0.fork(body)
    }

    /// As [`StepContext::items`].
    pub fn items<K: ItemKey + 'g, V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, K, V> {
        self.0.items(name)
    }

    /// As [`StepContext::items_in`].
    pub fn items_in<K, V>(&self, name: &str, items: Items<'g, K, V>) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        self.0.items_in(name, items)
    }

    /// As [`StepContext::item`].
    pub fn item<V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, (), V> {
        self.0.item(name)
    }
}

impl fmt::Debug for LivePuts<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LivePuts").finish_non_exhaustive()
    }
}
