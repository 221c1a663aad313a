//! [`PoolShared`]: the queue of a blocking pool, and the loop of its OS threads.
//!
//! `call.rs` submits a [`Job`] for each call. An OS thread of the pool takes the jobs in order, and
//! ends when it has been idle for long or the pool is closed.

use super::{Limits, lock};
use selvedge_core::{CallUnderWay, Quiet, quietly};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;

#[derive(Debug)]
pub(super) struct PoolShared {
    pub(super) state: Mutex<PoolState>,
    /// Signalled when a job comes in while an OS thread is idle, when the pool closes, and when its
    /// bounds change.
    pub(super) work: Condvar,
}

#[derive(Default)]
pub(super) struct PoolState {
    pub(super) limits: Limits,
    pub(super) jobs: VecDeque<Job>,
    /// The callers that wait for room in `jobs`, each with its ticket. The tickets ascend.
    pub(super) line: VecDeque<(u64, Waker)>,
    /// The ticket of the next caller that has to wait.
    pub(super) next_ticket: u64,
    pub(super) threads: usize,
    pub(super) threads_most: usize,
    pub(super) idle: usize,
    /// One for each OS thread that is idle and stays idle: see [`settle`](PoolState::settle).
    quiet: Vec<Quiet>,
    pub(super) taken: u64,
    pub(super) closed: bool,
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
    pub(super) fn new(limits: Limits) -> PoolState {
        PoolState { limits, ..PoolState::default() }
    }

    /// Makes the number of quiet OS threads fit. The holder of the lock calls this before it
    /// releases the lock, whenever the number of jobs or of idle OS threads has changed.
    ///
    /// Each job that waits keeps one of the idle OS threads from being quiet, no matter which. So
    /// the submitter of a job ends the quiet of the OS thread that will run the job.
    pub(super) fn settle(&mut self) {
        let quiet = if self.closed { 0 } else { self.idle.saturating_sub(self.jobs.len()) };
        self.quiet.resize_with(quiet, Quiet::new);
    }

    /// The caller that has waited longest, if there is room for its job.
    pub(super) fn next_in_line(&mut self) -> Option<(u64, Waker)> {
        let has_room = self.jobs.len() < self.limits.queue_max.get();
        if has_room { self.line.pop_front() } else { None }
    }

    /// The position of a ticket in the line.
    pub(super) fn position(&self, ticket: u64) -> Result<usize, usize> {
        self.line.binary_search_by_key(&ticket, |(ticket, _)| *ticket)
    }
}

/// A job: the call, which leaves its answer in a cell. The types are erased.
pub(super) struct Job {
    run: Box<dyn FnOnce() + Send>,
    /// The address of the job's cell. A caller that is dropped finds its job by this address.
    pub(super) id: *const (),
}

// SAFETY: `id` is compared and never dereferenced.
unsafe impl Send for Job {}

impl Job {
    pub(super) fn new(run: impl FnOnce() + Send + 'static, id: *const ()) -> Job {
        Job { run: Box::new(run), id }
    }

    /// A job that no caller waits for.
    pub(super) fn without_caller(run: impl FnOnce() + Send + 'static) -> Job {
        Job::new(run, std::ptr::null())
    }
}

impl PoolShared {
    /// Puts a job into the queue, and starts an OS thread if no idle one is left for the job.
    ///
    /// # Errors
    /// If the pool has no OS thread and cannot start one. The caller drops the job that comes with
    /// the error after it has released the lock, because a job holds code of the program.
    pub(super) fn submit(
        self: &Arc<PoolShared>,
        state: &mut PoolState,
        job: Job,
    ) -> Result<(), (std::io::Error, Job)> {
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
    pub(super) fn start_thread(self: &Arc<PoolShared>, state: &mut PoolState) -> std::io::Result<()> {
        if state.threads < state.limits.threads_max.get() {
            let shared = self.clone();
            std::thread::Builder::new().name("selvedge-pool".into()).spawn(move || shared.work())?;
            state.threads += 1;
            state.threads_most = state.threads_most.max(state.threads);
        }
        Ok(())
    }

    /// The event loop of this source: the loop of each OS thread of the pool.
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
                let call = CallUnderWay::new();
                quietly(job.run);
                drop(call);
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

/// Wakes the caller that was taken out of the line, because there is room for its job.
pub(super) fn wake_next(next: Option<(u64, Waker)>) {
    if let Some((_, waker)) = next {
        waker.wake();
    }
}
