//! The blocking pool: OS threads for calls that may block for long.
//!
//! Linux offers no readiness for opening a file, reading its status or looking up a host name. A
//! worker that made such a call itself would stop all its threads. So OS threads that do nothing
//! else make these calls.
//!
//! # The recipe
//!
//! 1. **System call and node.** A thread awaits [`blocking`]`(f)`. The request holds `f`; the
//!    thread waits behind its [`Waker`](std::task::Waker)
//!    ([`Trace::Blocked`](selvedge_core::Trace::Blocked)), so the same call serves threads of a
//!    foreign executor.
//! 2. **Interpret and register.** The request puts `f` and a cell for its answer into the pool's
//!    queue. When the queue is full, the request waits in line for room, so a pool that cannot keep
//!    up slows its callers down.
//! 3. **Event loop.** `PoolShared::work` in `queue.rs`: each OS thread of the pool takes a job,
//!    runs it, leaves the answer in the cell and wakes the waiter.
//!
//! OS threads start on demand up to a bound, and leave when they have found nothing to do for a
//! while.
//!
//! # Paper
//! [LZ07 §4.2]: "blocking calls on a separate OS thread" (`worker_file_open`).

mod call;
mod lane;
mod limits;
mod lost;
mod process;
mod queue;

pub use call::Blocking;
pub(crate) use lane::Lane;
pub use limits::Limits;
pub use lost::BlockingError;
pub use process::{blocking, load, shared};

use queue::{PoolShared, lock, wake_next};
use std::sync::Arc;

/// The work of a [`Pool`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// OS threads that the pool has.
    pub threads: usize,
    /// OS threads without a job.
    pub idle: usize,
    /// Jobs that wait for an OS thread.
    pub queued: usize,
    /// Callers that wait for room in the queue.
    pub in_line: usize,
    /// Jobs that OS threads have taken since the pool began.
    pub taken: u64,
    /// The most OS threads that the pool ever had at once.
    pub threads_most: usize,
}

/// A pool of OS threads apart from the process's own, for jobs that must not queue behind others.
///
/// After it is dropped, its OS threads run the jobs that wait to their end, and then they leave.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<PoolShared>,
}

impl Pool {
    /// A pool that starts its first OS thread with its first job.
    pub fn new(limits: Limits) -> Pool {
        Pool { shared: Arc::new(PoolShared::new(limits)) }
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

    /// Runs `f` on an OS thread of this pool. Otherwise like [`blocking`].
    pub fn run<T, F>(&self, f: F) -> Blocking<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Blocking::new(self.shared.clone(), f)
    }

    /// The number of OS threads that the pool has now.
    pub fn threads(&self) -> usize {
        lock(&self.shared.state).threads
    }

    /// The work of the pool now.
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::future::join_all;
    use futures::task::noop_waker;
    use std::num::NonZeroUsize;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::task::{Context, Poll};
    use std::time::{Duration, Instant};

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
