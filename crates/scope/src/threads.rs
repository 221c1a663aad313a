//! [`Threads`]: a set of threads that gives their results in the order in which they end.
//!
//! Programs use it. It needs no scope around it, and scopes do not use it.

use selvedge_core::{JoinError, JoinHandle, Queue, Role, WaitQueue, catch, spawn, spawn_local};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// A set of threads that gives their results in the order in which they end.
///
/// Dropping the set cancels the threads that are left in it. It does not wait for their
/// destructors, as a [`scope()`](crate::scope()) does: a set within a scope, with threads that are
/// to be over when the scope is, ends them with [`cancel_all`](Self::cancel_all) and takes their
/// results.
///
/// # Cancellation
/// Dropping a `next` that waits loses nothing: the result that it was handed is the next one's.
///
/// # Complexity
/// A thread costs its block, an entry in a table, and one in a queue when it ends; each is freed
/// when its result is taken.
///
/// # Examples
/// ```
/// use selvedge::scope::Threads;
/// use selvedge::sleep;
/// use std::time::Duration;
///
/// let order = selvedge::run(async {
///     let mut threads = Threads::new();
///     for delay in [20, 1, 10] {
///         threads.spawn(async move {
///             sleep(Duration::from_millis(delay)).await;
///             delay
///         });
///     }
///     let mut order = Vec::new();
///     while let Some(delay) = threads.next().await {
///         order.push(delay.unwrap());
///     }
///     order
/// })?;
/// assert_eq!(order, [1, 10, 20]);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "JoinSet")]
#[doc(alias = "FuturesUnordered")]
pub struct Threads<T> {
    ended: Arc<FinishedQueue<T>>,
    /// Those with results that have not been taken.
    running: HashMap<u64, JoinHandle<()>>,
    next: u64,
}

/// The threads that have ended, in order. A waiter has room for one.
type FinishedQueue<T> = WaitQueue<VecDeque<Finished<T>>, Option<Finished<T>>>;

/// A thread's number in its set, and how it has ended.
type Finished<T> = (u64, Result<T, JoinError>);

impl<T: Send + 'static> Threads<T> {
    /// A set without threads.
    pub fn new() -> Threads<T> {
        Threads { ended: Arc::new(WaitQueue::new(VecDeque::new())), running: HashMap::new(), next: 0 }
    }

    /// Spawns a thread into the set, and returns its number there: how many were spawned before it.
    /// It is ready at once, behind the threads that are ready already.
    ///
    /// # Panics
    /// Outside of a thread of ours, and if the arena is full.
    pub fn spawn<F>(&mut self, future: F) -> u64
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.add(|place| spawn(run(future, place)))
    }

    /// As [`spawn`](Self::spawn), for a future that must stay on its OS thread.
    ///
    /// # Panics
    /// As [`spawn`](Self::spawn).
    pub fn spawn_local<F>(&mut self, future: F) -> u64
    where
        F: Future<Output = T> + 'static,
    {
        self.add(|place| spawn_local(run(future, place)))
    }

    fn add(&mut self, spawn: impl FnOnce(Finisher<T>) -> JoinHandle<()>) -> u64 {
        let number = self.next;
        self.next += 1;
        let place = Finisher { ended: self.ended.clone(), end: Some((number, Err(JoinError::Cancelled))) };
        self.running.insert(number, spawn(place));
        number
    }

    /// Waits for the next thread to end, and returns its result; `None` if no thread is left in the
    /// set.
    ///
    /// A thread that panics or throws ends with [`JoinError::Panicked`], and the others run on.
    pub async fn next(&mut self) -> Option<Result<T, JoinError>> {
        Some(self.next_numbered().await?.1)
    }

    /// As [`next`](Self::next), with the thread's number.
    pub async fn next_numbered(&mut self) -> Option<(u64, Result<T, JoinError>)> {
        if self.running.is_empty() {
            return None;
        }
        let end = self.ended.wait::<TakeFinished>(None).await;
        self.running.remove(&end.0);
        Some(end)
    }

    /// The result of a thread that has ended, if there is one, without waiting.
    pub fn try_next(&mut self) -> Option<Result<T, JoinError>> {
        let (number, result) = self.ended.with(|ended, _| ended.pop_front())?;
        self.running.remove(&number);
        Some(result)
    }
}

impl<T> Threads<T> {
    /// The number of threads in the set: running threads, and threads with results that have not
    /// been taken.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether no thread is in the set.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Cancels the thread with a number. Its result is [`JoinError::Cancelled`], and comes as that
    /// of any other. Nothing happens if its result was taken.
    #[doc(alias = "abort")]
    pub fn cancel(&self, number: u64) {
        if let Some(handle) = self.running.get(&number) {
            handle.cancel();
        }
    }

    /// Cancels all threads of the set.
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) {
        self.running.values().for_each(JoinHandle::cancel);
    }

    /// Lets the threads run on, unobserved, and empties the set.
    pub fn detach_all(&mut self) {
        self.running.clear();
        // Threads that end later put their results into the old queue, from which no caller takes
        // them.
        self.ended = Arc::new(WaitQueue::new(VecDeque::new()));
    }
}

impl<T> Drop for Threads<T> {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl<T: Send + 'static> Default for Threads<T> {
    fn default() -> Threads<T> {
        Threads::new()
    }
}

impl<T> fmt::Debug for Threads<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A thread's place in its set: dropping it tells how the thread has ended. A future that is
/// dropped before its end was cancelled.
struct Finisher<T> {
    ended: Arc<FinishedQueue<T>>,
    /// Until it is dropped.
    end: Option<Finished<T>>,
}

async fn run<F: Future>(future: F, mut place: Finisher<F::Output>) {
    // The future is dropped before the place is.
    let result = catch(future).await.map_err(JoinError::Panicked);
    if let Some(end) = &mut place.end {
        end.1 = result;
    }
}

impl<T> Drop for Finisher<T> {
    fn drop(&mut self) {
        let end = self.end.take();
        self.ended.with(|ended, queue| match queue.front() {
            Some(taker) => {
                *taker = end;
                queue.grant();
            }
            None => ended.extend(end),
        });
    }
}

/// Takes the first that has ended.
enum TakeFinished {}

impl<T> Role<VecDeque<Finished<T>>, Option<Finished<T>>> for TakeFinished {
    type Output = Finished<T>;

    fn attempt(
        ended: &mut VecDeque<Finished<T>>,
        _: &mut Queue<'_, Option<Finished<T>>>,
        _: &mut Option<Finished<T>>,
    ) -> Option<Finished<T>> {
        ended.pop_front()
    }

    fn granted(payload: &mut Option<Finished<T>>) -> Finished<T> {
        payload.take().expect("a taker is granted with an end")
    }

    fn abandoned(
        ended: &mut VecDeque<Finished<T>>,
        _: &mut Queue<'_, Option<Finished<T>>>,
        payload: &mut Option<Finished<T>>,
    ) {
        // The set is borrowed by each taker in turn, so that no other waits. It was the first, and
        // is so again.
        payload.take().into_iter().for_each(|end| ended.push_front(end));
    }
}
