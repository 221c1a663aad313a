//! The blocking pool: OS threads for calls that may block for long.
//!
//! Opening a file, reading its status, looking up a host name: Linux offers no readiness for these,
//! and a worker that made them itself would stop all its threads. They run here instead, on OS
//! threads that do nothing else.
//!
//! # The recipe
//!
//! 1. **System call and node.** A thread awaits [`blocking`]`(f)`. The request holds `f`; the
//!    thread waits behind its [`Waker`] ([`Trace::Blocked`](selvedge_core::Trace::Blocked)), so the
//!    same call serves threads of a foreign executor.
//! 2. **Interpret and register.** The request puts `f` and a cell for its answer into the pool's
//!    queue. When the queue is full, the request waits in line for room: a pool that cannot keep up
//!    slows its callers down.
//! 3. **Event loop.** `PoolShared::work` below: each OS thread of the pool takes a job, runs it,
//!    leaves the answer in the cell and wakes the waiter.
//!
//! OS threads start on demand up to a bound, and leave when they have found nothing to do for a
//! while.
//!
//! # Paper
//! [LZ07 §4.2]: "blocking calls on a separate OS thread" (`worker_file_open`).

use crate::sys;
use selvedge_core::observe::{self, Errand, Object};
use selvedge_core::{PerProcess, Quiet, SleepUntil, quietly};
use std::any::{Any, type_name};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Runs `f` on an OS thread of the process's blocking pool and returns what it returned.
///
/// The pool has at most 64 OS threads and 1,024 jobs in its queue; beyond that the caller waits for
/// room. A `selvedge::Runner` and [`Pool::set_limits`] change these bounds. (What this crate itself
/// has OS threads do, files above all, goes by others, and does not wait behind `f`.) Dropping the
/// future before `f` has started removes the job; afterwards `f` runs to its end and its result is
/// dropped.
///
/// # Errors
///
/// [`Lost`] when `f` panicked, with the payload, or when no OS thread could be started: then `f`
/// has been dropped, and was not run.
///
/// # Examples
///
/// ```
/// # futures::executor::block_on(async {
/// let length = selvedge::blocking(|| std::fs::metadata("Cargo.toml").map(|m| m.len())).await??;
/// assert!(length > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// # Complexity
///
/// Two allocations and, on an idle pool, two switches between OS threads: some 10 µs.
///
/// # Paper
/// [LZ07 §4.2]; [HMP05 §2.2]: a call that blocks does so on another OS thread, so that threads run
/// on.
#[doc(alias = "spawn_blocking")]
pub fn blocking<T, F>(f: F) -> Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    shared().run(f)
}

/// The process's blocking pool, which [`blocking`] runs on. The child of a `fork(2)` has another
/// than its parent.
pub fn shared() -> &'static Pool {
    static POOL: PerProcess<Pool> = PerProcess::new();
    POOL.get(|| Pool::new(Limits::default()))
}

/// What a [`Pool`] has to do, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// OS threads that the pool has.
    pub threads: usize,
    /// Those of them that have no job.
    pub idle: usize,
    /// Jobs that wait for an OS thread.
    pub queued: usize,
    /// Callers that wait for room in the queue.
    pub in_line: usize,
    /// Jobs that OS threads have taken since the pool began.
    pub taken: u64,
    /// The most OS threads it ever had at once.
    pub threads_most: usize,
}

/// What all pools of the process's own have to do: that of [`blocking`], and those of the calls
/// that this crate makes itself.
pub fn load() -> Load {
    let lanes = [Lane::Files, Lane::Lookups].map(|lane| lane.pool().load());
    lanes.into_iter().fold(shared().load(), |sum, load| Load {
        threads: sum.threads + load.threads,
        idle: sum.idle + load.idle,
        queued: sum.queued + load.queued,
        in_line: sum.in_line + load.in_line,
        taken: sum.taken + load.taken,
        threads_most: sum.threads_most + load.threads_most,
    })
}

/// The pools of the calls that this crate makes itself. Each has OS threads of its own, so that no
/// such call waits for the end of what the program does in [`blocking`], and none on files for a
/// slow name server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// What a file system does: names, and operations where there is no ring.
    Files,
    /// Host names, and the start of child processes.
    Lookups,
}

impl Lane {
    fn pool(self) -> &'static Pool {
        static FILES: PerProcess<Pool> = PerProcess::new();
        static LOOKUPS: PerProcess<Pool> = PerProcess::new();
        let pool = match self {
            Lane::Files => &FILES,
            Lane::Lookups => &LOOKUPS,
        };
        pool.get(|| Pool::new(Limits::default()))
    }

    /// Runs `f` on an OS thread of this lane. As [`blocking`] otherwise.
    pub(crate) fn run<T, F>(self, f: F) -> Blocking<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.pool().run(f)
    }

    /// Runs `f` on an OS thread of this lane, for no caller that waits. It must not panic.
    ///
    /// # Errors
    /// If no OS thread could be started.
    pub(crate) fn aside(self, f: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let job = Job { run: Box::new(f), id: std::ptr::null() };
        let pool = &self.pool().shared;
        let submitted = pool.submit(&mut lock(&pool.state), job);
        submitted.map_err(|(error, _)| error)
    }
}

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most OS threads at once.
    pub threads_max: NonZeroUsize,
    /// The most jobs that wait for an OS thread; the callers of further ones wait for room.
    pub queue_max: NonZeroUsize,
    /// How long an OS thread without a job stays.
    pub idle: Duration,
}

impl Default for Limits {
    /// 64 OS threads, 1,024 jobs, 5 seconds.
    fn default() -> Limits {
        const {
            Limits {
                threads_max: NonZeroUsize::new(64).unwrap(),
                queue_max: NonZeroUsize::new(1024).unwrap(),
                idle: Duration::from_secs(5),
            }
        }
    }
}

/// A pool of OS threads apart from the process's own, for jobs that must not queue behind others.
///
/// Dropping it lets the jobs that wait run to their end, then its OS threads leave.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<PoolShared>,
}

impl Pool {
    /// A pool that starts its first OS thread with its first job.
    pub fn new(limits: Limits) -> Pool {
        let state = Mutex::new(PoolState { limits, ..PoolState::default() });
        Pool { shared: Arc::new(PoolShared { state, work: Condvar::new() }) }
    }

    /// The pool's bounds now.
    pub fn limits(&self) -> Limits {
        lock(&self.shared.state).limits
    }

    /// Sets other bounds. With fewer OS threads than there are, those in surplus leave when they
    /// have no job or have ended their job. Jobs that are in the queue stay there when the queue
    /// becomes shorter.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pool::{self, Limits};
    ///
    /// let limits = Limits { threads_max: 8.try_into().unwrap(), ..pool::shared().limits() };
    /// pool::shared().set_limits(limits);
    /// assert_eq!(pool::shared().limits(), limits);
    /// ```
    pub fn set_limits(&self, limits: Limits) {
        let mut state = lock(&self.shared.state);
        state.limits = limits;
        // Jobs that wait for an OS thread may have one now. If none can be started, the OS threads
        // that there are come to them later.
        let waiting = state.jobs.len().saturating_sub(state.idle);
        let _ = (0..waiting).try_for_each(|_| self.shared.start_thread(&mut state));
        let room = limits.queue_max.get().saturating_sub(state.jobs.len()).min(state.line.len());
        let next: Vec<_> = state.line.drain(..room).collect();
        drop(state);
        self.shared.work.notify_all();
        next.into_iter().for_each(|next| wake_next(Some(next)));
    }

    /// Runs `f` on an OS thread of this pool. As [`blocking`] otherwise.
    pub fn run<T, F>(&self, f: F) -> Blocking<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Blocking {
            pool: self.shared.clone(),
            stage: JobStage::Unsent(f),
            cell: Arc::new(AnswerCell::default()),
        }
    }

    /// The number of OS threads the pool has now.
    pub fn threads(&self) -> usize {
        lock(&self.shared.state).threads
    }

    /// What the pool has to do now.
    ///
    /// # Examples
    /// ```
    /// # futures::executor::block_on(async {
    /// selvedge::blocking(|| ()).await.unwrap();
    /// let load = selvedge::pool::shared().load();
    /// assert!(load.taken >= 1 && load.threads_most >= 1);
    /// # })
    /// ```
    pub fn load(&self) -> Load {
        let state = lock(&self.shared.state);
        Load {
            threads: state.threads,
            idle: state.idle,
            queued: state.jobs.len(),
            in_line: state.line.len(),
            taken: state.taken,
            threads_most: state.threads_most,
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.closed = true;
        state.settle();
        drop(state);
        self.shared.work.notify_all();
    }
}

#[derive(Debug)]
struct PoolShared {
    state: Mutex<PoolState>,
    /// Signalled when a job comes in while an OS thread is idle, when the pool closes, and when its
    /// bounds change.
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    limits: Limits,
    jobs: VecDeque<Job>,
    /// Callers that wait for room in `jobs`, each with its ticket; tickets ascend.
    line: VecDeque<(u64, Waker)>,
    /// The ticket of the next caller that has to wait.
    next_ticket: u64,
    threads: usize,
    threads_most: usize,
    idle: usize,
    /// One for each OS thread that is idle and will stay so: see [`settle`](PoolState::settle).
    quiet: Vec<Quiet>,
    taken: u64,
    closed: bool,
}

impl fmt::Debug for PoolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolState {
            limits,
            jobs,
            line,
            next_ticket: _,
            threads,
            threads_most: _,
            idle,
            quiet: _,
            taken: _,
            closed,
        } = self;
        f.debug_struct("State")
            .field("limits", limits)
            .field("jobs", &jobs.len())
            .field("line", &line.len())
            .field("threads", threads)
            .field("idle", idle)
            .field("closed", closed)
            .finish()
    }
}

impl PoolState {
    /// To be called, before the lock is released, whenever the number of jobs or of idle OS threads
    /// has changed: each job that waits keeps one of the idle OS threads from being quiet. It does
    /// not matter which. So the submitter of a job ends the quiet of the OS thread that will run
    /// it.
    fn settle(&mut self) {
        let quiet = if self.closed { 0 } else { self.idle.saturating_sub(self.jobs.len()) };
        self.quiet.resize_with(quiet, Quiet::new);
    }

    /// The caller that has waited longest, if there is room for its job.
    fn next_in_line(&mut self) -> Option<(u64, Waker)> {
        let has_room = self.jobs.len() < self.limits.queue_max.get();
        if has_room { self.line.pop_front() } else { None }
    }

    /// Where in line a ticket stands.
    fn position(&self, ticket: u64) -> Result<usize, usize> {
        self.line.binary_search_by_key(&ticket, |(ticket, _)| *ticket)
    }
}

/// A job: the call and where its answer goes, with the types forgotten.
struct Job {
    run: Box<dyn FnOnce() + Send>,
    /// The address of the job's cell, to find it when its caller goes away.
    id: *const (),
}

// SAFETY: `id` is compared, never followed.
unsafe impl Send for Job {}

impl PoolShared {
    /// Puts a job into the queue and sees to it that an OS thread will take it. The error is why
    /// there is none, with the job, which is to be dropped when the lock is released: it is code of
    /// the caller's.
    fn submit(self: &Arc<PoolShared>, state: &mut PoolState, job: Job) -> Result<(), (std::io::Error, Job)> {
        if state.jobs.len() >= state.idle
            && let Err(error) = self.start_thread(state)
            && state.threads == 0
        {
            return Err((error, job));
        }
        state.jobs.push_back(job);
        state.settle();
        self.work.notify_one();
        Ok(())
    }

    /// Starts one more OS thread, if there may be one more.
    fn start_thread(self: &Arc<PoolShared>, state: &mut PoolState) -> std::io::Result<()> {
        if state.threads < state.limits.threads_max.get() {
            let shared = self.clone();
            std::thread::Builder::new().name("selvedge-pool".into()).spawn(move || shared.work())?;
            state.threads += 1;
            state.threads_most = state.threads_most.max(state.threads);
        }
        Ok(())
    }

    /// The event loop of this source: what every OS thread of the pool does.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if state.threads > state.limits.threads_max.get() {
                // Another takes the job that this OS thread may have been woken for.
                self.work.notify_one();
                break;
            }
            if let Some(job) = state.jobs.pop_front() {
                let next = state.next_in_line();
                state.taken += 1;
                state.settle();
                drop(state);
                quietly(|| wake_next(next));
                quietly(job.run);
                state = lock(&self.state);
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            state.settle();
            let limits = state.limits;
            let stays =
                |state: &mut PoolState| state.jobs.is_empty() && !state.closed && state.limits == limits;
            let (woken, timeout) = self
                .work
                .wait_timeout_while(state, limits.idle, stays)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        state.settle();
    }
}

/// The place where a job leaves its answer, with the waker of the waiter.
struct AnswerCell<T> {
    answer: Mutex<JobAnswer<T>>,
}

enum JobAnswer<T> {
    /// The answer is not there yet. The waker to call when it is.
    Awaited(Option<Waker>),
    Here(Result<T, Lost>),
    /// Taken, or not wanted any more.
    Gone,
}

impl<T> Default for AnswerCell<T> {
    fn default() -> AnswerCell<T> {
        AnswerCell { answer: Mutex::new(JobAnswer::Awaited(None)) }
    }
}

impl<T> AnswerCell<T> {
    fn put(&self, result: Result<T, Lost>) {
        let mut answer = lock(&self.answer);
        // What is replaced is dropped or woken without the lock held: it may run code of the
        // caller's.
        match std::mem::replace(&mut *answer, JobAnswer::Gone) {
            JobAnswer::Awaited(waker) => {
                *answer = JobAnswer::Here(result);
                drop(answer);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            JobAnswer::Here(_) | JobAnswer::Gone => drop(answer),
        }
    }
}

/// The future of [`blocking`]: a call on its way to the pool, in it, or on its way back.
#[must_use = "the call is made when this is awaited"]
pub struct Blocking<T, F> {
    pool: Arc<PoolShared>,
    stage: JobStage<F>,
    cell: Arc<AnswerCell<T>>,
}

#[derive(Debug)]
enum JobStage<F> {
    Unsent(F),
    /// The queue was full; called up when the ticket is no longer in line.
    InLine(F, u64),
    /// In a simulation, where the call is made here, when it would be over.
    Simulated(F, Pin<Box<SleepUntil>>),
    Sent,
    Over,
}

impl<T, F> fmt::Debug for Blocking<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            JobStage::Unsent(_) => "unsent",
            JobStage::InLine(..) => "in line",
            JobStage::Simulated(..) => "simulated",
            JobStage::Sent => "sent",
            JobStage::Over => "over",
        };
        f.debug_tuple("Blocking").field(&stage).finish()
    }
}

// `f` is only ever moved out, never pinned.
impl<T, F> Unpin for Blocking<T, F> {}

impl<T, F> Future for Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = Result<T, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let polled = this.advance(cx);
        if polled.is_pending() {
            observe::waits_on(|| Errand { call: "run", object: Object::Code(type_name::<F>()) });
        }
        polled
    }
}

impl<T, F> Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Lost>> {
        let this = self;
        match std::mem::replace(&mut this.stage, JobStage::Over) {
            JobStage::Unsent(f) if let Some(delay) = sys::simulated_delay() => {
                this.stage = JobStage::Simulated(f, Box::pin(crate::time::sleep(delay)));
                this.advance(cx)
            }
            JobStage::Simulated(f, mut delay) => match delay.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(catch_unwind(AssertUnwindSafe(f)).map_err(Lost::panicked)),
                Poll::Pending => {
                    this.stage = JobStage::Simulated(f, delay);
                    Poll::Pending
                }
            },
            stage @ (JobStage::Unsent(_) | JobStage::InLine(..)) => {
                // Foreign code, which is not run under the lock.
                let waker = cx.waker().clone();
                let mut state = lock(&this.pool.state);
                let f = match stage {
                    JobStage::InLine(f, ticket) if let Ok(i) = state.position(ticket) => {
                        // Woken by something else; the turn has not come.
                        let replaced = std::mem::replace(&mut state.line[i].1, waker);
                        this.stage = JobStage::InLine(f, ticket);
                        drop(state);
                        // It may be foreign, and hold another call that stands in line.
                        drop(replaced);
                        return Poll::Pending;
                    }
                    JobStage::Unsent(f) | JobStage::InLine(f, _) => f,
                    _ => unreachable!("matched above"),
                };
                if state.jobs.len() >= state.limits.queue_max.get() {
                    let ticket = state.next_ticket;
                    state.next_ticket += 1;
                    state.line.push_back((ticket, waker));
                    this.stage = JobStage::InLine(f, ticket);
                    return Poll::Pending;
                }
                *lock(&this.cell.answer) = JobAnswer::Awaited(Some(waker));
                let cell = this.cell.clone();
                let run = Box::new(move || {
                    let result = catch_unwind(AssertUnwindSafe(f)).map_err(Lost::panicked);
                    cell.put(result);
                });
                let id = Arc::as_ptr(&this.cell).cast();
                let submitted = this.pool.submit(&mut state, Job { run, id });
                drop(state);
                if let Err((error, job)) = submitted {
                    drop(job);
                    return Poll::Ready(Err(Lost::no_thread(&error)));
                }
                this.stage = JobStage::Sent;
                Poll::Pending
            }
            JobStage::Sent => {
                let known = |waker: &Option<Waker>| waker.as_ref().is_some_and(|w| w.will_wake(cx.waker()));
                let is_known = matches!(&*lock(&this.cell.answer), JobAnswer::Awaited(waker) if known(waker));
                // Cloned and dropped without the lock held.
                let waker = (!is_known).then(|| cx.waker().clone());
                let mut answer = lock(&this.cell.answer);
                let replaced = match (std::mem::replace(&mut *answer, JobAnswer::Gone), waker) {
                    (JobAnswer::Here(result), _) => return Poll::Ready(result),
                    (JobAnswer::Awaited(before), None) => {
                        *answer = JobAnswer::Awaited(before);
                        None
                    }
                    (JobAnswer::Awaited(before), waker) => {
                        *answer = JobAnswer::Awaited(waker);
                        before
                    }
                    (JobAnswer::Gone, _) => {
                        unreachable!("only `poll` and `drop` leave this, and neither comes back to `Sent`")
                    }
                };
                drop(answer);
                drop(replaced);
                this.stage = JobStage::Sent;
                Poll::Pending
            }
            JobStage::Over => panic!("a call is awaited once more after its answer"),
        }
    }
}

impl<T, F> Drop for Blocking<T, F> {
    fn drop(&mut self) {
        match self.stage {
            JobStage::Unsent(_) | JobStage::Simulated(..) | JobStage::Over => {}
            JobStage::InLine(_, ticket) => {
                let mut state = lock(&self.pool.state);
                // Called up but gone before it came: the room is the next one's.
                let gone = match state.position(ticket) {
                    Ok(i) => state.line.remove(i),
                    Err(_) => None,
                };
                let next = if gone.is_none() { state.next_in_line() } else { None };
                drop(state);
                drop(gone);
                wake_next(next);
            }
            JobStage::Sent => {
                let unwanted = std::mem::replace(&mut *lock(&self.cell.answer), JobAnswer::Gone);
                drop(unwanted);
                let id = Arc::as_ptr(&self.cell).cast();
                let mut state = lock(&self.pool.state);
                let unstarted =
                    state.jobs.iter().position(|job| job.id == id).and_then(|i| state.jobs.remove(i));
                state.settle();
                let next = if unstarted.is_some() { state.next_in_line() } else { None };
                drop(state);
                drop(unstarted);
                wake_next(next);
            }
        }
    }
}

fn wake_next(next: Option<(u64, Waker)>) {
    if let Some((_, waker)) = next {
        waker.wake();
    }
}

/// A call on the blocking pool came to no result.
pub struct Lost {
    why: LostCause,
}

enum LostCause {
    Panicked(Box<dyn Any + Send>),
    NoThread(String),
}

impl Lost {
    fn panicked(payload: Box<dyn Any + Send>) -> Lost {
        Lost { why: LostCause::Panicked(payload) }
    }

    fn no_thread(error: &std::io::Error) -> Lost {
        Lost { why: LostCause::NoThread(error.to_string()) }
    }

    /// Whether the call panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.why, LostCause::Panicked(_))
    }

    /// The payload of the panic, to resume it with; `Err(self)` if the call did not panic.
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, Lost> {
        match self.why {
            LostCause::Panicked(payload) => Ok(payload),
            why => Err(Lost { why }),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            LostCause::Panicked(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "a call on the blocking pool panicked: {}", text.unwrap_or("(no message)"))
            }
            LostCause::NoThread(error) => write!(f, "the blocking pool cannot start an OS thread: {error}"),
        }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lost({self})")
    }
}

impl std::error::Error for Lost {}

impl From<Lost> for std::io::Error {
    fn from(lost: Lost) -> std::io::Error {
        std::io::Error::other(lost.to_string())
    }
}

/// Locks, whatever became of earlier holders: no invariant of this module spans a call that can
/// panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::future::join_all;
    use futures::task::noop_waker;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::time::Instant;

    fn pool(threads: usize, queue: usize) -> Pool {
        let [threads_max, queue_max] = [threads, queue].map(|n| NonZeroUsize::new(n).unwrap());
        Pool::new(Limits { threads_max, queue_max, idle: Duration::from_millis(50) })
    }

    fn poll_once<F: Future + Unpin>(f: &mut F) -> Poll<F::Output> {
        Pin::new(f).poll(&mut Context::from_waker(&noop_waker()))
    }

    fn eventually(what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(10), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn with_more_os_threads_allowed_jobs_that_wait_begin() {
        let pool = pool(1, 1);
        let (all, ended) = (Arc::new(std::sync::Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
        // Each job waits for the two others, so that one OS thread alone never ends any.
        let mut jobs: Vec<_> = (0..3)
            .map(|_| {
                let (all, ended) = (all.clone(), ended.clone());
                pool.run(move || {
                    all.wait();
                    ended.fetch_add(1, SeqCst);
                })
            })
            .collect();
        assert!(poll_once(&mut jobs[0]).is_pending());
        eventually("the first job is taken", || pool.load().taken == 1);
        assert!(jobs.iter_mut().all(|job| poll_once(job).is_pending()));
        let load = pool.load();
        assert_eq!((load.threads, load.queued, load.in_line), (1, 1, 1));
        let [threads_max, queue_max] = [3, 2].map(|n| NonZeroUsize::new(n).unwrap());
        pool.set_limits(Limits { threads_max, queue_max, ..pool.limits() });
        block_on(join_all(jobs)).into_iter().for_each(|ended| ended.unwrap());
        assert_eq!(ended.load(SeqCst), 3);
    }

    #[test]
    fn with_fewer_os_threads_allowed_those_in_surplus_leave() {
        let idle = Duration::from_secs(3600);
        let pool = pool(4, 8);
        pool.set_limits(Limits { idle, ..pool.limits() });
        let all = Arc::new(std::sync::Barrier::new(4));
        let meet = (0..4).map(|_| {
            let all = all.clone();
            pool.run(move || all.wait().is_leader())
        });
        let leaders = block_on(join_all(meet)).into_iter().filter(|leads| *leads.as_ref().unwrap());
        assert_eq!(leaders.count(), 1);
        eventually("all four are idle", || pool.load().idle == 4);
        pool.set_limits(Limits { threads_max: NonZeroUsize::MIN, ..pool.limits() });
        eventually("three have left", || pool.threads() == 1);
        assert_eq!(block_on(pool.run(|| 42)).unwrap(), 42);
        assert_eq!(pool.threads(), 1);
        // And the last one when it may not stay for an hour any more.
        pool.set_limits(Limits { idle: Duration::from_millis(1), ..pool.limits() });
        eventually("the last one has left", || pool.threads() == 0);
    }

    #[test]
    fn a_shorter_queue_lets_every_job_and_caller_through() {
        let pool = pool(1, 8);
        let (go, gate) = mpsc::channel::<()>();
        let first = pool.run(move || gate.recv().unwrap());
        let mut jobs: Vec<_> = (0..12).map(|i| pool.run(move || i)).collect();
        let mut first = Box::pin(first);
        assert!(poll_once(&mut first).is_pending());
        eventually("the first job is taken", || pool.load().taken == 1);
        assert!(jobs.iter_mut().all(|job| poll_once(job).is_pending()));
        pool.set_limits(Limits { queue_max: NonZeroUsize::MIN, ..pool.limits() });
        assert_eq!((pool.load().queued, pool.load().in_line), (8, 4));
        go.send(()).unwrap();
        let answers = block_on(join_all(jobs));
        assert!(answers.into_iter().map(Result::unwrap).eq(0..12));
        block_on(first).unwrap();
    }

    #[test]
    fn never_more_threads_than_allowed_and_every_job_runs() {
        let pool = pool(3, 2);
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let jobs = (0..200).map(|i| {
            let (running, most) = (running.clone(), most.clone());
            pool.run(move || {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::sleep(Duration::from_micros(100));
                running.fetch_sub(1, SeqCst);
                i
            })
        });
        let results: Vec<i32> = block_on(join_all(jobs)).into_iter().map(Result::unwrap).collect();
        assert_eq!(results, (0..200).collect::<Vec<_>>());
        assert!((2..=3).contains(&most.load(SeqCst)), "{most:?}");
    }

    #[test]
    fn idle_threads_leave_and_new_ones_come() {
        let pool = pool(2, 8);
        assert_eq!(pool.threads(), 0);
        assert_eq!(block_on(pool.run(|| 1)).unwrap(), 1);
        assert_eq!(pool.threads(), 1);
        let load = pool.load();
        assert_eq!((load.threads, load.queued, load.in_line, load.taken), (1, 0, 0, 1));
        eventually("the idle thread leaves", || pool.threads() == 0);
        assert_eq!(block_on(pool.run(|| 2)).unwrap(), 2);
        assert_eq!((pool.load().taken, pool.load().threads_most), (2, 1));
    }

    #[test]
    fn a_panic_reaches_the_awaiter_and_the_thread_serves_on() {
        let pool = pool(1, 8);
        let lost = block_on(pool.run(|| panic!("no such luck"))).unwrap_err();
        assert!(lost.is_panic() && lost.to_string().ends_with("no such luck"), "{lost}");
        assert_eq!(*lost.into_panic().unwrap().downcast::<&str>().unwrap(), "no such luck");
        assert_eq!(block_on(pool.run(|| 2)).unwrap(), 2);
    }

    #[test]
    fn a_dropped_caller_leaves_a_started_job_to_finish() {
        struct SetOnDrop(Arc<AtomicBool>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let pool = pool(1, 8);
        let dropped = Arc::new(AtomicBool::new(false));
        let (started, has_started) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let result = SetOnDrop(dropped.clone());
        let mut call = pool.run(move || {
            started.send(()).unwrap();
            may_go.recv().unwrap();
            result
        });
        assert!(poll_once(&mut call).is_pending());
        has_started.recv().unwrap();
        drop(call);
        assert!(!dropped.load(SeqCst));
        go.send(()).unwrap();
        eventually("the unwanted result is dropped", || dropped.load(SeqCst));
    }

    #[test]
    fn a_dropped_caller_takes_an_unstarted_job_along_and_makes_room() {
        let pool = pool(1, 1);
        let (go, may_go) = mpsc::channel::<()>();
        let mut busy = pool.run(move || may_go.recv().unwrap());
        assert!(poll_once(&mut busy).is_pending());
        eventually("the thread takes the first job", || lock(&pool.shared.state).jobs.is_empty());

        let ran = Arc::new(AtomicBool::new(false));
        let queued = ran.clone();
        let mut queued = pool.run(move || queued.store(true, SeqCst));
        assert!(poll_once(&mut queued).is_pending());
        let mut waits = pool.run(|| 3);
        assert!(poll_once(&mut waits).is_pending());
        assert_eq!(lock(&pool.shared.state).line.len(), 1);

        drop(queued);
        assert!(poll_once(&mut waits).is_pending());
        go.send(()).unwrap();
        assert_eq!(block_on(waits).unwrap(), 3);
        assert!(!ran.load(SeqCst));
    }

    #[test]
    fn room_offered_to_a_dropped_caller_goes_to_the_next() {
        let pool = pool(1, 1);
        let (go, may_go) = mpsc::channel::<()>();
        let mut busy = pool.run(move || may_go.recv().unwrap());
        assert!(poll_once(&mut busy).is_pending());
        eventually("the thread takes the first job", || lock(&pool.shared.state).jobs.is_empty());
        let mut queued = pool.run(|| 2);
        assert!(poll_once(&mut queued).is_pending());
        let [mut first, mut second, mut third] = [3, 4, 5].map(|n| pool.run(move || n));
        for call in [&mut first, &mut second, &mut third] {
            assert!(poll_once(call).is_pending());
        }
        drop(second); // while in line
        go.send(()).unwrap();
        eventually("a caller is called up", || lock(&pool.shared.state).line.len() == 1);
        assert_eq!(block_on(queued).unwrap(), 2);
        drop(first); // after it was called up
        assert_eq!(block_on(third).unwrap(), 5);
    }

    #[test]
    fn a_closed_pool_finishes_its_jobs() {
        let pool = pool(1, 8);
        let shared = pool.shared.clone();
        let ran = Arc::new(AtomicUsize::new(0));
        let mut calls: Vec<_> = (0..5)
            .map(|_| {
                let ran = ran.clone();
                pool.run(move || ran.fetch_add(1, SeqCst))
            })
            .collect();
        for call in &mut calls {
            assert!(poll_once(call).is_pending());
        }
        drop(pool);
        eventually("all jobs run", || ran.load(SeqCst) == 5);
        eventually("all threads leave", || lock(&shared.state).threads == 0);
    }
}
