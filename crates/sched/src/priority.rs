//! A scheduler that runs urgent threads first and lets no thread wait for ever: [`Priority`], with
//! [`priority`] as its short form; and the system calls by which threads set their rank
//! ([`set_priority`], [`set_deadline`]).
//!
//! Programs call it. It is built of the public interface of `core` alone, so it is also the example
//! of a scheduler with a system call of its own (`SetRank`). A thread's place in the queue is the
//! time at which it is due, which no later event moves back; that is why none starves.

use selvedge_core::{Cpu, Events, JoinError, Request, RunError, Syscall, Thread, Time, Trace, call};
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::future::Future;
use std::time::Duration;

/// The least urgent level; 0 is the most urgent.
pub const LEVEL_MAX: u8 = 7;

/// The level of the main thread, and so of every thread that sets no other level.
pub const LEVEL_DEFAULT: u8 = 4;

/// Runs `main` and the threads it creates on the calling OS thread, the urgent ones first, until
/// `main` has ended; returns its result. The threads that are left are cancelled.
///
/// It is [`Priority::run`] with an ageing of 100 ms.
///
/// # Errors
/// See [`RunError`]; most often a deadlock.
///
/// # Panics
/// If `main` panics.
///
/// # Examples
/// ```
/// use selvedge::{NoEvents, fork, yield_now};
/// use selvedge::{priority, set_priority};
///
/// priority(&mut NoEvents::new(), async {
///     fork(async { println!("second") }).await;
///     set_priority(0).await;
///     yield_now().await;
///     println!("first");
///     set_priority(7).await;
///     yield_now().await;
///     println!("third");
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn priority<F: Future + 'static>(events: &mut impl Events, main: F) -> Result<F::Output, RunError> {
    Priority::new().run(events, main)
}

/// A scheduler of strict levels with ageing, and by the earliest deadline within a level.
///
/// A thread [has a level](set_priority) from 0, the most urgent, to [`LEVEL_MAX`], and may have [a
/// deadline](set_deadline). A new thread has the level and the deadline of its creator. When a
/// thread becomes ready it gets a **due time**. The scheduler runs the ready thread with the
/// earliest due time next. Among equal due times, it runs the thread that has been ready longest.
/// With *A* for the [ageing](Priority::ageing), a thread at level *l* that becomes ready at time
/// *t* is due at
///
/// - its deadline, but at *t* if the deadline has passed, and at *t* + *A*/2 if the thread has no
///   deadline or a later one;
/// - plus *l* times *A*.
///
/// It follows:
/// - **Strict levels.** While a thread has been ready for less than *A*/2, all threads of more
///   urgent levels run before it.
/// - **Ageing.** A thread at level *l* waits for no thread that becomes ready later than (*l* +
///   1/2) *A* after it, of any level and deadline. So threads that are always ready starve no other
///   thread.
/// - **Earliest deadline first.** Of two threads of one level that have deadlines within *A*/2, the
///   thread with the earlier deadline runs first.
///
/// The scheduler reads the time once a turn. A turn has at most 64 steps.
///
/// # Complexity
/// A step costs O(log n) for n ready threads, and a lookup in a table for each time that a thread
/// waits.
#[derive(Debug, Clone)]
pub struct Priority {
    ageing: Duration,
}

impl Default for Priority {
    fn default() -> Self {
        Priority::new()
    }
}

impl Priority {
    /// A scheduler with an ageing of 100 ms.
    pub fn new() -> Priority {
        Priority { ageing: Duration::from_millis(100) }
    }

    /// Sets the time after which a ready thread counts as a thread of the next more urgent level.
    /// Zero makes all levels equal.
    pub fn ageing(mut self, ageing: Duration) -> Priority {
        self.ageing = ageing;
        self
    }

    /// Runs `main` and the threads it creates on the calling OS thread until `main` has ended;
    /// returns its result. The threads that are left are cancelled.
    ///
    /// # Errors
    /// See [`RunError`].
    ///
    /// # Panics
    /// If `main` panics.
    pub fn run<F: Future + 'static>(&self, events: &mut impl Events, main: F) -> Result<F::Output, RunError> {
        let mut cpu = Cpu::new()?;
        let mut main = cpu.spawn_main_local(main)?;
        main.stays();
        let mut ready = ReadyQueue::new(self.ageing);
        let _served = Served::begin();
        let result = loop {
            if let Err(error) = ready.turn(&mut cpu, events) {
                break Err(error);
            }
            if let Some(end) = main.try_join() {
                break Ok(end);
            }
            cpu.survey(|say| say("ready", ready.queue.len()));
            if let Err(error) = cpu.poll(events, ready.queue.is_empty()) {
                break Err(error);
            }
        };
        events.cancel_all(&mut cpu);
        drop(ready);
        match result? {
            Ok(output) => Ok(output),
            Err(JoinError::Panicked(exception)) => exception.rethrow(),
            Err(JoinError::Cancelled) => Err(RunError::MainExited),
        }
    }
}

/// Sets the level of the running thread, from 0, the most urgent, to [`LEVEL_MAX`]; a greater value
/// counts as `LEVEL_MAX`. Returns the level until now. The thread goes behind the other threads of
/// its new level.
///
/// Under schedulers without levels the call does nothing, and returns [`LEVEL_DEFAULT`].
pub async fn set_priority(level: u8) -> u8 {
    match SERVED.get() {
        true => call(SetRank::Level(level.min(LEVEL_MAX))).await.level,
        false => LEVEL_DEFAULT,
    }
}

/// Sets the point in time by which the running thread wants to have run again; `None` removes it.
/// The deadline counts whenever the thread becomes ready, until another deadline is set. Returns
/// the deadline until now.
///
/// The deadline is a wish that orders the threads of a level. A thread that is late runs on.
///
/// Under schedulers without deadlines the call does nothing, and returns `None`.
pub async fn set_deadline(deadline: Option<Time>) -> Option<Time> {
    match SERVED.get() {
        true => call(SetRank::Deadline(deadline)).await.deadline,
        false => None,
    }
}

/// The system call by which a thread sets its level or its deadline. The reply is its rank until
/// now.
enum SetRank {
    Level(u8),
    Deadline(Option<Time>),
}

impl Syscall for SetRank {
    type Reply = Rank;
}

/// The level and the deadline of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rank {
    level: u8,
    deadline: Option<Time>,
}

impl Rank {
    const DEFAULT: Rank = Rank { level: LEVEL_DEFAULT, deadline: None };

    /// Performs the request of a thread of this rank, and answers it. Returns the thread if it came
    /// with the call.
    fn serve(&mut self, request: SetRank, answer: selvedge_core::Answer<SetRank>) -> Option<Thread> {
        let before = *self;
        match request {
            SetRank::Level(level) => self.level = level,
            SetRank::Deadline(deadline) => self.deadline = deadline,
        }
        answer.reply(before)
    }
}

thread_local! {
    /// Whether the scheduler of this OS thread answers [`SetRank`].
    static SERVED: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, the scheduler of this OS thread answers [`SetRank`].
struct Served {
    outer: bool,
}

impl Served {
    fn begin() -> Served {
        Served { outer: SERVED.replace(true) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        SERVED.set(self.outer);
    }
}

/// A ready thread. The greatest entry is due first.
struct QueuedThread {
    due: Time,
    /// Counts the entries, so that entries with equal due times are served in order.
    number: u64,
    rank: Rank,
    thread: Thread,
}

impl QueuedThread {
    fn key(&self) -> (Time, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for QueuedThread {
    fn eq(&self, other: &QueuedThread) -> bool {
        self.key() == other.key()
    }
}

impl Eq for QueuedThread {}

impl PartialOrd for QueuedThread {
    fn partial_cmp(&self, other: &QueuedThread) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedThread {
    fn cmp(&self, other: &QueuedThread) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The ready threads, and the ranks of the waiting threads.
struct ReadyQueue {
    ageing: Duration,
    queue: BinaryHeap<QueuedThread>,
    entries: u64,
    /// The ranks of the waiting threads, by the thread's id. A ready thread that is not in the map
    /// is new. A thread that has ended is not in the map.
    waiting: HashMap<u32, Rank>,
}

/// The number of steps in a turn, after which the scheduler reads the clock and the event source
/// again.
const STEPS_PER_TURN: usize = 64;

impl ReadyQueue {
    fn new(ageing: Duration) -> ReadyQueue {
        ReadyQueue { ageing, queue: BinaryHeap::new(), entries: 0, waiting: HashMap::new() }
    }

    fn turn(&mut self, cpu: &mut Cpu, events: &mut impl Events) -> Result<(), RunError> {
        cpu.tick();
        self.take_woken(cpu, Rank::DEFAULT);
        for _ in 0..STEPS_PER_TURN {
            let Some(QueuedThread { thread, rank, .. }) = self.queue.pop() else { break };
            self.step(cpu, events, thread, rank)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        cpu: &mut Cpu,
        events: &mut impl Events,
        thread: Thread,
        mut rank: Rank,
    ) -> Result<(), RunError> {
        let thread_id = thread.identity();
        let id = thread_id.get();
        let node = thread.step(cpu);
        // The threads that this step woke or created come first, because the step may have made
        // them ready before the thread itself.
        self.take_woken(cpu, rank);
        match node {
            Trace::Yield(thread) => self.push(cpu, thread, rank),
            Trace::Fork { child, parent } => {
                self.push(cpu, child, rank);
                self.push(cpu, parent, rank);
            }
            Trace::Nbio(action) => self.push(cpu, action.perform(), rank),
            Trace::Ret => {}
            Trace::Panic(panic) => panic.report(),
            Trace::Blocked => drop(self.waiting.insert(id, rank)),
            Trace::Call(request) if request.is::<SetRank>() => {
                let (request, answer) = request.take::<SetRank>().map_err(Trace::Call)?;
                if let Some(thread) = rank.serve(request, answer) {
                    self.push(cpu, thread, rank);
                }
            }
            Trace::Detached => {
                // The thread may have ended, or may be ready again already. Then its rank must not
                // stay for a later thread with the same id.
                let waits = thread_id.info().is_some_and(|thread| thread.is_waiting());
                let submitted = submit(cpu, events, Trace::Detached, &mut rank);
                if waits {
                    self.waiting.insert(id, rank);
                }
                submitted?;
            }
            request => {
                let submitted = submit(cpu, events, request, &mut rank);
                self.waiting.insert(id, rank);
                submitted?;
            }
        }
        Ok(())
    }

    fn push(&mut self, cpu: &Cpu, thread: Thread, rank: Rank) {
        self.entries += 1;
        let due = due(rank, cpu.now(), self.ageing);
        self.queue.push(QueuedThread { due, number: self.entries, rank, thread });
    }

    /// Takes in the threads that were woken, and the threads that a thread of rank `creator` has
    /// created.
    fn take_woken(&mut self, cpu: &mut Cpu, creator: Rank) {
        while let Some(thread) = cpu.woken() {
            let rank = self.waiting.remove(&thread.id()).unwrap_or(creator);
            self.push(cpu, thread, rank);
        }
    }
}

/// The due time of a thread that becomes ready now.
fn due(rank: Rank, now: Time, ageing: Duration) -> Time {
    let latest = now + ageing / 2;
    let within = rank.deadline.map_or(latest, |deadline| deadline.clamp(now, latest));
    within + ageing * u32::from(rank.level)
}

/// Passes a request on to the event source, except for requests to change the rank of the thread
/// that made them.
fn submit(cpu: &mut Cpu, events: &mut impl Events, mut node: Trace, rank: &mut Rank) -> Result<(), RunError> {
    loop {
        node = match events.submit(cpu, node) {
            Ok(()) => return Ok(()),
            Err(Trace::Call(request)) if request.is::<SetRank>() => {
                let (request, answer) = request.take::<SetRank>().map_err(Trace::Call)?;
                rank.serve(request, answer);
                Trace::Detached
            }
            // The source does not take detached requests.
            Err(Trace::Detached) => match cpu.detached().map(|detached| detached.request) {
                None => return Ok(()),
                Some(Request::Call(request)) => Trace::Call(request),
                Some(other) => {
                    return Err(RunError::UnknownCall(format!("{other:?}: there is no event source for it")));
                }
            },
            Err(node) => return Err(node.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::{NoEvents, fork_local, spawn_local, yield_now};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::task::{Context, Waker};

    /// The lines of several threads, in the order in which they are written.
    #[derive(Clone, Default)]
    struct Log(Rc<RefCell<Vec<u32>>>);

    impl Log {
        fn write(&self, line: u32) {
            self.0.borrow_mut().push(line);
        }

        fn lines(&self) -> Vec<u32> {
            self.0.borrow().clone()
        }
    }

    fn run<F: Future + 'static>(main: F) -> F::Output {
        Priority::new().ageing(Duration::from_secs(1000)).run(&mut NoEvents::new(), main).unwrap()
    }

    #[test]
    fn the_more_urgent_run_first_and_equals_in_turn() {
        let log = Log::default();
        let lines = log.clone();
        run(async move {
            set_priority(0).await;
            let threads: Vec<_> = [(5, 50), (2, 20), (5, 51), (2, 21)]
                .into_iter()
                .map(|(level, line)| {
                    let log = log.clone();
                    spawn_local(async move {
                        set_priority(level).await;
                        for round in 0..2 {
                            log.write(line + 100 * round);
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.await.unwrap();
            }
        });
        assert_eq!(lines.lines(), [20, 21, 120, 121, 50, 51, 150, 151]);
    }

    #[test]
    fn children_have_the_rank_of_their_creator_and_the_woken_keep_theirs() {
        let log = Log::default();
        let lines = log.clone();
        run(async move {
            // The sleeper waits at the default level, and an urgent thread wakes it.
            let waker = Rc::new(Cell::new(None));
            let sleeper = {
                let (log, waker) = (log.clone(), waker.clone());
                spawn_local(async move {
                    selvedge_core::park(move |w| waker.set(Some(w))).await;
                    log.write(4);
                })
            };
            yield_now().await;
            set_priority(1).await;
            waker.take().unwrap().wake();
            let child = {
                let log = log.clone();
                async move {
                    log.write(1);
                    assert_eq!(set_priority(1).await, 1);
                    log.write(11);
                }
            };
            fork_local(child).await;
            set_priority(6).await;
            log.write(6);
            sleeper.await.unwrap();
        });
        assert_eq!(lines.lines(), [1, 11, 4, 6]);
    }

    #[test]
    fn within_a_level_the_earliest_deadline_runs_first_and_none_is_last() {
        let log = Log::default();
        let lines = log.clone();
        run(async move {
            let base = Time::now() + Duration::from_secs(10);
            set_priority(0).await;
            for (seconds, line) in [(None, 9), (Some(30), 3), (Some(10), 1), (Some(20), 2)] {
                let log = log.clone();
                fork_local(async move {
                    let deadline = seconds.map(|s| base + Duration::from_secs(s));
                    assert_eq!(set_deadline(deadline).await, None);
                    set_priority(3).await;
                    log.write(line);
                })
                .await;
            }
            set_priority(LEVEL_MAX).await;
        });
        assert_eq!(lines.lines(), [1, 2, 3, 9]);
    }

    #[test]
    fn a_thread_that_is_always_ready_and_late_starves_no_other_for_longer_than_documented() {
        let ageing = Duration::from_millis(2);
        let waited = Priority::new()
            .ageing(ageing)
            .run(&mut NoEvents::new(), async {
                fork_local(async {
                    set_priority(0).await;
                    set_deadline(Some(Time::default())).await;
                    loop {
                        yield_now().await;
                    }
                })
                .await;
                set_priority(LEVEL_MAX).await;
                let since = Time::now();
                yield_now().await;
                since.since(Time::default())..Time::now().since(Time::default())
            })
            .unwrap();
        let waited = waited.end - waited.start;
        assert!(waited >= ageing * u32::from(LEVEL_MAX) - ageing / 2, "not strict: {waited:?}");
        assert!(waited < Duration::from_secs(5), "starved: {waited:?}");
    }

    #[test]
    fn a_rank_is_set_within_a_combinator_too() {
        let before = run(async {
            let (level, deadline) = futures::join!(set_priority(2), set_deadline(None));
            assert_eq!((level, deadline), (LEVEL_DEFAULT, None));
            set_priority(9).await
        });
        assert_eq!(before, 2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it forgets a call on purpose, which Miri takes for a leak")]
    fn a_thread_that_has_ended_leaves_no_rank_to_a_later_one() {
        async fn thread(leaves_a_call: bool, log: Log, line: u32) {
            if leaves_a_call {
                let mut left = Box::pin(call(SetRank::Level(0)));
                let mut context = Context::from_waker(Waker::noop());
                assert!(left.as_mut().poll(&mut context).is_pending());
                std::mem::forget(left);
            }
            log.write(line);
        }
        let log = Log::default();
        let lines = log.clone();
        run(async move {
            spawn_local(thread(true, log.clone(), 1)).await.unwrap();
            set_priority(LEVEL_MAX).await;
            let first = {
                let log = log.clone();
                // A future of another size, so that its thread gets another address.
                let ballast = [0u8; 200];
                spawn_local(async move { log.write(2 + u32::from(ballast[log.lines().len()])) })
            };
            // This thread gets the address of the thread that has ended.
            let second = spawn_local(thread(false, log.clone(), 3));
            first.await.unwrap();
            second.await.unwrap();
        });
        assert_eq!(lines.lines(), [1, 2, 3]);
    }

    #[test]
    fn elsewhere_a_rank_has_no_effect() {
        let before = selvedge_core::round_robin(async { set_priority(2).await + set_priority(3).await });
        assert_eq!(before.unwrap(), 2 * LEVEL_DEFAULT);
    }
}
