//! One pool of ready steps for all workers, under one lock: [`TaskPool`].
//!
//! `Graph::run` calls `TaskPool::run`. The pool is a stack, a queue, a heap by `StepCol::priority`,
//! or a line in an order that a seed determines; tests use the last one to meet many schedules.
//!
//! A worker pushes the steps that it has made and takes its next one without leaving the lock
//! between them. So a worker with one new step wakes no other worker, and the pool never holds a
//! step that no worker comes for.
//!
//! In a run that lives on, the worker that would end the others waits for steps of the environment
//! (`SharedPool::idle_in`), by the protocol of `bell.rs`.
//!
//! Paper: [NCM11 §3.2].

use super::circle::{LOOKS, pause};
use super::{GraphJob, Idle, Leave, Scheduler, Stay, run_workers};
use crate::random::random;
use crate::ready_step::ReadyStep;
use crate::step::{Outlet, Worker};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{cmp, fmt, iter, thread};

/// One stack, queue or heap of ready steps, from which all workers take.
///
/// **The end.** A worker is idle from when it finds the pool empty until it has taken a step. It
/// counts itself under the pool's lock, under which all steps are pushed and taken. If all workers
/// are idle and the pool is empty, then no step runs that could make another one ready. So the run
/// has ended, and not before: an empty pool alone ends nothing.
///
/// # Paper
/// [NCM11 §3.2]: global task pools, `workQ_busy` and `workQ_lazy`.
///
/// # Differences
/// 1. A get does not block its worker, so that workers need no replacement and none is mortal.
/// 2. An idle worker of the lazy kind sleeps, where the paper's ends and is issued again.
/// 3. An idle worker of the busy kind sleeps in the end, where the paper's does not.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::{TaskPool, Scheduler}};
///
/// let schedulers: [(&str, &dyn Scheduler); 4] = [
///     ("workQ_lazy", &TaskPool::fifo(2)),
///     ("workQ_busy", &TaskPool::fifo(2).spinning()),
///     ("a stack", &TaskPool::lifo(2)),
///     ("any order", &TaskPool::fuzz(2, 17)),
/// ];
/// for (name, scheduler) in schedulers {
///     let sum = cnc::graph(|graph| {
///         let tags = graph.tags::<u32>("tags");
///         let items = graph.items::<u32, u32>("items");
///         graph.prescribe(tags, "next", move |n, step| {
///             step.put(items, n + 1, step.get(items, n)? + 1)
///         });
///         graph.initialize(|env| {
///             (0..20).rev().try_for_each(|n| env.put_tag(tags, n))?;
///             env.put(items, 0, 0)
///         })?;
///         let finished = graph.run(scheduler)?;
///         Ok::<_, cnc::GraphError>(finished.finalize(|view| view.get(items, 20).copied()))
///     });
///     assert_eq!(sum.unwrap(), Some(20), "{name}");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TaskPool {
    workers: usize,
    order: PoolOrder,
    spins: bool,
}

/// Which step of the pool runs next.
#[derive(Clone, Copy, Debug)]
enum PoolOrder {
    Newest,
    Oldest,
    Urgent,
    Any(u64),
}

impl PoolOrder {
    /// How urgent a step is; 0 if that does not matter.
    fn rate<'g>(&self, ready: ReadyStep<'g>) -> Rated<'g> {
        (if matches!(self, PoolOrder::Urgent) { ready.priority() } else { 0 }, ready)
    }
}

impl TaskPool {
    fn new(workers: usize, order: PoolOrder) -> TaskPool {
        assert!(workers > 0, "a pool has a worker at least");
        TaskPool { workers, order, spins: false }
    }

    /// A stack.
    ///
    /// # Panics
    /// Without workers, as the other functions.
    pub fn lifo(workers: usize) -> TaskPool {
        TaskPool::new(workers, PoolOrder::Newest)
    }

    /// A queue.
    pub fn fifo(workers: usize) -> TaskPool {
        TaskPool::new(workers, PoolOrder::Oldest)
    }

    /// A heap: the most urgent step first, by [`StepCol::priority`](crate::StepCol::priority).
    pub fn priority(workers: usize) -> TaskPool {
        TaskPool::new(workers, PoolOrder::Urgent)
    }

    /// Any order, as the seed determines. With one worker the whole run is determined. Workers also
    /// give way to others at random, so that several workers meet in many ways.
    pub fn fuzz(workers: usize, seed: u64) -> TaskPool {
        TaskPool::new(workers, PoolOrder::Any(seed))
    }

    /// Idle workers look again and again for some time before they sleep: as long as 200 system
    /// calls take. While the environment of a graph lives on, they sleep at once.
    #[must_use]
    pub fn spinning(self) -> TaskPool {
        TaskPool { spins: true, ..self }
    }
}

/// The ready steps.
enum Steps<'g> {
    Line(VecDeque<ReadyStep<'g>>),
    Heap(BinaryHeap<Urgent<'g>>),
}

/// A ready step, and how urgent it is. The closure that says so is the program's, so it is called
/// before the pool is locked.
type Rated<'g> = (i64, ReadyStep<'g>);

struct Urgent<'g> {
    priority: i64,
    /// Of steps that are equally urgent, the oldest runs first.
    number: u64,
    ready: ReadyStep<'g>,
}

impl Ord for Urgent<'_> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.priority.cmp(&other.priority).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Urgent<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Urgent<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Urgent<'_> {}

struct TaskPoolState<'g> {
    steps: Steps<'g>,
    order: PoolOrder,
    pushed: u64,
    idle: usize,
    /// The sleepers that were called for steps of the environment, and have not woken up yet.
    called: usize,
    ended: bool,
}

struct SharedPool<'g> {
    state: Mutex<TaskPoolState<'g>>,
    order: PoolOrder,
    /// Where idle workers sleep.
    changed: Condvar,
    wanted: AtomicBool,
    workers: usize,
    spins: bool,
}

impl<'g> TaskPoolState<'g> {
    fn is_empty(&self) -> bool {
        match &self.steps {
            Steps::Line(line) => line.is_empty(),
            Steps::Heap(heap) => heap.is_empty(),
        }
    }

    fn push(&mut self, (priority, ready): Rated<'g>) {
        self.pushed += 1;
        match &mut self.steps {
            Steps::Line(line) => line.push_back(ready),
            Steps::Heap(heap) => heap.push(Urgent { priority, number: self.pushed, ready }),
        }
    }

    fn take(&mut self) -> Option<ReadyStep<'g>> {
        match (&mut self.steps, &mut self.order) {
            (Steps::Heap(heap), _) => heap.pop().map(|urgent| urgent.ready),
            (Steps::Line(line), PoolOrder::Oldest) => line.pop_front(),
            (Steps::Line(line), PoolOrder::Any(seed)) if !line.is_empty() => {
                let at = random(seed) as usize % line.len();
                line.swap_remove_back(at)
            }
            (Steps::Line(line), _) => line.pop_back(),
        }
    }
}

impl<'g> SharedPool<'g> {
    fn lock(&self) -> MutexGuard<'_, TaskPoolState<'g>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's loop.
    fn work(&self, worker: &mut Worker<'g>, stay: Option<&Stay<'g>>) {
        let (mut made, mut looks) = (Vec::new(), 0);
        let mut state = self.lock();
        loop {
            let ready = state.take();
            if let Some(ready) = ready {
                looks = 0;
                let gives_way = match &mut state.order {
                    PoolOrder::Any(seed) => self.workers > 1 && random(seed).is_multiple_of(4),
                    _ => false,
                };
                drop(state);
                if gives_way {
                    thread::yield_now();
                }
                worker.run(ready);
            } else if let Some(stay) = stay {
                drop(state);
                if !self.idle_in(stay, worker) {
                    return;
                }
            } else {
                state = self.idle(state, &mut looks);
                if state.ended {
                    return;
                }
                continue;
            }
            made.extend(iter::from_fn(|| worker.oldest()).map(|ready| self.order.rate(ready)));
            let several = made.len() > 1;
            state = self.lock();
            made.drain(..).for_each(|rated| state.push(rated));
            if state.idle > 0 && several {
                self.changed.notify_all();
            }
        }
    }

    /// Puts a worker without a step to sleep, in a run that lives on. False at the end.
    ///
    /// The worker is idle from `leave` on. It counts itself out when it finds a step in the pool,
    /// and [`call`](SharedPool::call) counts it out for a step of the environment.
    fn idle_in(&self, stay: &Stay<'g>, worker: &mut Worker<'g>) -> bool {
        let leave = || {
            let mut state = self.lock();
            if state.ended || !state.is_empty() {
                return Leave::Back;
            }
            self.set_idle(&mut state, 1);
            if state.idle == self.workers { Leave::Last } else { Leave::Asleep }
        };
        match stay.idle(worker, leave, || self.set_idle(&mut self.lock(), -1)) {
            Idle::Work => return !self.lock().ended,
            Idle::End => {
                self.end();
                return false;
            }
            Idle::Sleep => {}
        }
        let mut state = self.lock();
        loop {
            if state.ended {
                return false;
            }
            if state.called > 0 {
                state.called -= 1;
                break;
            }
            if !state.is_empty() {
                self.set_idle(&mut state, -1);
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        stay.take(worker);
        true
    }

    /// Calls an idle worker, if there is one, to take the steps of the environment.
    fn call(&self) {
        let mut state = self.lock();
        if state.idle > 0 {
            self.set_idle(&mut state, -1);
            state.called += 1;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Counts a worker among the idle ones, or out of them.
    fn set_idle(&self, state: &mut TaskPoolState<'g>, difference: isize) {
        state.idle = state.idle.wrapping_add_signed(difference);
        self.wanted.store(state.idle > 0, Ordering::Relaxed);
    }

    /// Ends the loops of all workers: each one returns when it next finds the pool empty.
    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for a step, or for the end. `looks` counts how often the worker has looked since its
    /// last step.
    fn idle<'s>(
        &'s self,
        mut state: MutexGuard<'s, TaskPoolState<'g>>,
        looks: &mut u32,
    ) -> MutexGuard<'s, TaskPoolState<'g>> {
        if state.ended {
            return state;
        }
        self.set_idle(&mut state, 1);
        if state.idle == self.workers {
            state.ended = true;
            self.changed.notify_all();
        } else if self.spins && *looks < LOOKS {
            *looks += 1;
            drop(state);
            pause();
            state = self.lock();
        } else {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.ended {
            self.set_idle(&mut state, -1);
        }
        state
    }
}

impl<'g> Outlet<'g> for SharedPool<'g> {
    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    fn give(&self, ready: Vec<ReadyStep<'g>>) {
        let rated: Vec<_> = ready.into_iter().map(|ready| self.order.rate(ready)).collect();
        let mut state = self.lock();
        rated.into_iter().for_each(|rated| state.push(rated));
        drop(state);
        self.changed.notify_all();
    }
}

impl fmt::Debug for SharedPool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPool").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Scheduler for TaskPool {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let steps = match self.order {
            PoolOrder::Urgent => Steps::Heap(BinaryHeap::new()),
            _ => Steps::Line(VecDeque::new()),
        };
        let mut state =
            TaskPoolState { steps, order: self.order, pushed: 0, idle: 0, called: 0, ended: false };
        job.start().into_iter().for_each(|ready| state.push(self.order.rate(ready)));
        let shared = Arc::new(SharedPool {
            state: Mutex::new(state),
            order: self.order,
            changed: Condvar::new(),
            wanted: AtomicBool::new(false),
            workers: self.workers,
            spins: self.spins,
        });
        let called = shared.clone();
        let stay = job.stay(Arc::new(move || called.call()));
        let work = |_, ()| shared.work(&mut job.worker_to(shared.clone()), stay.as_ref());
        run_workers(job.core, iter::repeat_n((), self.workers), || shared.end(), work);
    }
}
