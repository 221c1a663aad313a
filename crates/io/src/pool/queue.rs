//! [`PoolShared`]: the queue of a blocking pool, and the loop of its OS threads.
//!
//! `call.rs` submits a [`Job`] for each call. An OS thread of the pool takes the jobs in order, and
//! ends when it has been idle for long or the pool is closed.
//!
//! # The OS thread that looks
//! A program often makes its next call soon after the answer to the last one. To put an OS thread
//! to sleep and to wake it takes longer than that. So an OS thread that has ended its job and finds
//! no other **looks** for the next job for `LOOK_MAX`, before it sleeps. One OS thread of a pool
//! looks at a time. It looks only if the last job came so soon after the end of the one before it,
//! and if the process may use several CPUs, because otherwise it would only keep the CPU from the
//! OS thread that has the next job.
//!
//! No job waits for an OS thread that does not come:
//! - All decisions fall under the lock. [`PoolShared::handed`], which the OS thread looks at
//!   without the lock, only ends its look sooner. After its look it takes the lock and looks into
//!   the queue, whatever it has seen.
//! - A submitter wakes no sleeper for a job if an OS thread looks and no other job waits: the OS
//!   thread that looks comes back to the queue. For each further job it wakes a sleeper or starts
//!   an OS thread.
//! - The OS thread that looks is not quiet (`quiet.rs` of `core`), so a job that waits for it needs
//!   no end of a quiet.

use super::limits::Limits;
use selvedge_core::Quiet;
use selvedge_core::internal::{CallUnderWay, quietly};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The longest time for which an OS thread looks for its next job before it sleeps: twice what the
/// caller's worker needs to wake, to take the answer, and to give the next job.
const LOOK_MAX: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(super) struct PoolShared {
    pub(super) state: Mutex<PoolState>,
    /// Signalled when a job comes in while an OS thread is idle, when the pool closes, and when its
    /// bounds change.
    pub(super) work: Condvar,
    /// Whether a job has come since an OS thread began to look for one. Written under the lock.
    handed: AtomicBool,
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
    /// The OS threads without a job: the sleeping OS threads, and the OS thread that looks.
    pub(super) idle: usize,
    /// Whether one of the idle OS threads looks for its job, and does not sleep.
    looks: bool,
    /// When an OS thread last ended a job and found no other.
    ended: Option<Instant>,
    /// Whether the last job came soon after `ended`.
    come_soon: bool,
    /// Whether the process may use several CPUs.
    has_several_cpus: bool,
    /// One for each OS thread that sleeps and goes on sleeping: see [`settle`](PoolState::settle).
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
            looks: _,
            ended: _,
            come_soon: _,
            has_several_cpus: _,
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
    /// The OS thread that looks is not quiet, and comes for the first job. Each further job keeps
    /// one sleeping OS thread from being quiet, no matter which. So the submitter of a job ends the
    /// quiet of the OS thread that will run the job.
    pub(super) fn settle(&mut self) {
        let for_sleepers = self.jobs.len().saturating_sub(usize::from(self.looks));
        let quiet = if self.closed { 0 } else { self.asleep().saturating_sub(for_sleepers) };
        self.quiet.resize_with(quiet, Quiet::new);
    }

    /// The number of OS threads that sleep.
    fn asleep(&self) -> usize {
        self.idle - usize::from(self.looks)
    }

    /// Whether the OS thread that has just ended a job, and finds no other, looks for one. It does
    /// so from this call on.
    fn begin_look(&mut self) -> bool {
        let looks = !self.looks && self.come_soon && self.has_several_cpus && !self.closed;
        self.looks |= looks;
        looks
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
    call: CallUnderWay,
    /// The address of the job's cell. A caller that is dropped finds its job by this address.
    pub(super) id: *const (),
}

// SAFETY: `id` is compared and never dereferenced.
unsafe impl Send for Job {}

impl Job {
    pub(super) fn new(run: impl FnOnce() + Send + 'static, id: *const ()) -> Job {
        Job { run: Box::new(run), call: CallUnderWay::new(), id }
    }

    /// A job that no caller waits for.
    pub(super) fn without_caller(run: impl FnOnce() + Send + 'static) -> Job {
        Job::new(run, std::ptr::null())
    }
}

impl PoolShared {
    pub(super) fn new(limits: Limits) -> PoolShared {
        let state = Mutex::new(PoolState::new(limits));
        PoolShared { state, work: Condvar::new(), handed: AtomicBool::new(false) }
    }

    /// Puts a job into the queue, and starts an OS thread if no idle one is left for the job.
    /// Releases the lock, and then wakes an OS thread that sleeps, if the job is for it.
    ///
    /// # Errors
    /// If the pool has no OS thread and cannot start one.
    pub(super) fn submit(
        self: &Arc<PoolShared>,
        mut state: MutexGuard<'_, PoolState>,
        job: Job,
    ) -> Result<(), std::io::Error> {
        if state.jobs.len() >= state.idle
            && let Err(error) = self.start_thread(&mut state)
            && state.threads == 0
        {
            // The job holds code of the program, so it is dropped after the lock is released.
            drop(state);
            drop(job);
            return Err(error);
        }
        if state.jobs.is_empty() {
            state.come_soon = state.ended.is_some_and(|ended| ended.elapsed() < LOOK_MAX);
        }
        state.jobs.push_back(job);
        state.settle();
        let looks = state.looks;
        if looks {
            self.handed.store(true, Ordering::Relaxed);
        }
        let wakes = state.asleep() > 0 && state.jobs.len() > usize::from(looks);
        drop(state);
        // An OS thread that is woken under the lock would wait for the lock.
        if wakes {
            self.work.notify_one();
        }
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
        let has_several_cpus = has_several_cpus();
        let mut state = lock(&self.state);
        state.has_several_cpus = has_several_cpus;
        let mut has_looked = true;
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
                let Job { run, call, id: _ } = job;
                quietly(run);
                drop(call);
                state = lock(&self.state);
                if state.jobs.is_empty() {
                    state.ended = Some(Instant::now());
                }
                has_looked = false;
                continue;
            }
            if state.closed {
                break;
            }
            if !has_looked && state.begin_look() {
                state.idle += 1;
                drop(state);
                self.look();
                state = lock(&self.state);
                state.idle -= 1;
                state.looks = false;
                self.handed.store(false, Ordering::Relaxed);
                has_looked = true;
                continue;
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

    /// Looks for a job without the lock, until one has come or the time is over.
    fn look(&self) {
        let begun = Instant::now();
        while !self.handed.load(Ordering::Relaxed) && begun.elapsed() < LOOK_MAX {
            std::hint::spin_loop();
        }
    }
}

/// Whether the calling OS thread may run on several CPUs.
fn has_several_cpus() -> bool {
    // Miri runs all OS threads on one CPU.
    !cfg!(miri) && rustix::thread::sched_getaffinity(None).is_ok_and(|cpus| cpus.count() > 1)
}

/// Wakes the caller that was taken out of the line, because there is room for its job.
pub(super) fn wake_next(next: Option<(u64, Waker)>) {
    if let Some((_, waker)) = next {
        waker.wake();
    }
}

/// Locks, even if an earlier holder has panicked, because no invariant of this module spans a call
/// that can panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
