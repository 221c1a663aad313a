//! Several workers on the same threads: each has its own, and takes from the others when it has
//! none.

mod desk;

use crate::{Crew, Failure, Handle};
use desk::{Desk, Lookout, Seat};
use selvedge_core::observe::Note;
use selvedge_core::{
    Adopt, Birth, Cpu, Deadlock, Events, Group, Inside, JoinError, JoinHandle, Owner, RunError, RunQueue,
    SendThread, Thread, ThreadInfo, Time, Trace, Unpark, quietly,
};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

/// Runs `main` and the threads it creates on several OS threads, the calling one among them, until
/// `main` has ended; returns its result. The threads that are left are cancelled.
///
/// `workers` is how many OS threads; 0 stands for as many as the machine runs at once. Each has a
/// CPU and an event source, which `events(worker)` makes on the worker's OS thread.
///
/// It is [`WorkStealing`] in one call; see there how threads are shared out.
///
/// # Errors
/// The first worker that fails stops the others. A deadlock of all workers is a failure: no thread
/// is ready, nothing is awaited from outside, and no other OS thread of the process could wake one.
///
/// # Panics
/// If `main` panics, with its payload.
///
/// # Paper
/// [LZ07 §4.4, Figure 17]: several `worker_main` loops. [HMP05 §2.2]: many threads on few OS threads, one for each processor.
///
/// # Differences
/// 1. Each worker has a queue of its own, and an event loop of its own; the paper's share one
///    queue, and the event loops are OS threads besides.
///
/// # Examples
/// ```
/// use selvedge::{NoEvents, spawn};
/// use selvedge::work_stealing;
///
/// let sum = work_stealing(2, |_| Ok(NoEvents::new()), async {
///     let squares: Vec<_> = (0..100u64).map(|n| spawn(async move { n * n })).collect();
///     let mut sum = 0;
///     for square in squares {
///         sum += square.await.unwrap();
///     }
///     sum
/// })?;
/// assert_eq!(sum, 328_350);
/// # Ok::<(), selvedge::Failure>(())
/// ```
pub fn work_stealing<E, F>(
    workers: usize,
    events: impl Fn(usize) -> io::Result<E> + Sync,
    main: F,
) -> Result<F::Output, Failure>
where
    E: Events,
    F: Future + Send + 'static,
    F::Output: Send,
{
    WorkStealing::new(workers).run(events, main)
}

/// A scheduler whose workers take threads from one another.
///
/// - A thread created by [`spawn`](selvedge_core::spawn) or [`fork`](selvedge_core::fork) is ready
///   on the worker where it was created or woken. A worker that has nothing to do takes half of
///   what another has ready; if nobody has anything, it sleeps in its event source. A thread of
///   [`spawn_local`](selvedge_core::spawn_local) stays on its worker.
/// - What a step makes ready is offered to the others when the step ends.
/// - A thread that is woken alone runs next on the same worker, before those that were ready
///   already, but only three times in a row while others are ready there. One that is woken alone
///   by the last step of a thread, for whose end it most likely waits, lets those run before that
///   the worker has taken out of its queue already, 15 at most: it may then find that all its
///   children have ended, and need not wait for each. Until then it is offered to nobody else. All
///   others are served first come, first served; local ones and those that may move, in turn.
/// - Threads on two workers that keep waking each other through the kernel, over a pipe or a
///   socket, are brought together on one, and then stay there. Where every worker has enough to do
///   that is the only reason for a ready thread to move.
/// - The event source is looked at after 256 steps, or when 200 µs have passed, whatever is ready;
///   a thread that always is starves neither other threads nor the event source.
/// - A single step that takes longer keeps its worker. What that worker had ready when the step
///   began goes to others: what is in its queue at once, and the rest within some 20 ms (not where
///   the kernel has no membarrier(2)). So do those that wait for a descriptor or a point in time in
///   the worker's event loop, once that has come. The threads of
///   [`spawn_local`](selvedge_core::spawn_local), those that the step itself makes ready, and those
///   that wait for a disk operation of the worker's ring, wait for the end of the step.
///
/// # Examples
/// A program with work that comes from an ordinary OS thread:
/// ```
/// use selvedge::NoEvents;
/// use selvedge::{WorkStealing, block_on};
/// use selvedge::sync::MVar;
/// use std::sync::Arc;
///
/// let scheduler = WorkStealing::new(2);
/// let handle = scheduler.handle();
/// let done = Arc::new(MVar::empty());
/// let signal = done.clone();
/// let outside = std::thread::spawn(move || {
///     let answer = block_on(handle.spawn(async { 6 * 7 })).unwrap();
///     block_on(signal.put(answer));
/// });
/// let answer = scheduler.run(|_| Ok(NoEvents::new()), async move { done.take().await })?;
/// assert_eq!(answer, 42);
/// # outside.join().unwrap();
/// # Ok::<(), selvedge::Failure>(())
/// ```
pub struct WorkStealing {
    shared: Arc<Shared>,
    desks: Vec<Owner<Desk>>,
    /// What the workers' OS threads are called, but for their numbers.
    name: String,
}

impl WorkStealing {
    /// A scheduler of `workers` workers, or of as many as the machine runs at once if that is 0.
    /// They start with [`run`](WorkStealing::run).
    pub fn new(workers: usize) -> WorkStealing {
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = if workers == 0 { available() } else { workers };
        let (crew, deques) = Crew::new(workers);
        let unparkers = (0..workers).map(|_| OnceLock::new()).collect();
        let (seats, desks): (Vec<_>, Vec<_>) = deques.into_iter().map(Seat::new).unzip();
        let (stopped, deadlocked) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared =
            Shared { crew, seats: seats.into(), unparkers, stopped, deadlocked, starting: Mutex::new(()) };
        WorkStealing { shared: Arc::new(shared), desks, name: "worker".to_string() }
    }

    /// Has the workers' OS threads be called `name-1`, `name-2` and so on, and not `worker-1`. The
    /// OS thread that calls [`run`](WorkStealing::run) keeps its name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> WorkStealing {
        self.name = name.into();
        self
    }

    /// A handle to spawn threads from elsewhere. What is spawned before the scheduler runs waits
    /// for it.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }

    /// Runs `main` and the threads it creates until `main` has ended; returns its result. The
    /// calling OS thread is worker 0.
    ///
    /// # Errors
    /// See [`work_stealing`].
    ///
    /// # Panics
    /// See [`work_stealing`].
    pub fn run<E, F>(
        mut self,
        events: impl Fn(usize) -> io::Result<E> + Sync,
        main: F,
    ) -> Result<F::Output, Failure>
    where
        E: Events,
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let desks = std::mem::take(&mut self.desks);
        let workers = desks.len();
        let crew = Start {
            shared: &self.shared,
            group: &Group::new(),
            events: &events,
            all_stopped: &Together::new(workers),
            all_looked: &Together::new(workers),
        };
        let (ended, main) = std::thread::scope(|scope| {
            let mut desks = desks.into_iter().enumerate();
            let (_, first) = desks.next().expect("there is a worker");
            let started: Vec<_> = desks
                .map(|(me, desk)| {
                    let name = format!("{}-{me}", self.name);
                    let started = std::thread::Builder::new()
                        .name(name)
                        .spawn_scoped(scope, move || crew.work(me, desk));
                    started.inspect_err(|_| crew.is_missing())
                })
                .collect();
            let mut handle = None;
            let ends = Ends(self.shared.clone());
            let main = async move {
                let _ends = ends;
                main.await
            };
            let first = crew.work_with(0, first, |cpu| {
                handle = Some(cpu.spawn_main(main)?);
                Ok(())
            });
            let others = started.into_iter().map(|started| match started {
                Ok(worker) => worker.join().unwrap_or_else(Ended::panicked),
                Err(error) => Ended::failed(error.into()),
            });
            (std::iter::once(first).chain(others).collect::<Vec<_>>(), handle)
        });
        result(ended, main)
    }
}

impl Drop for WorkStealing {
    /// What was spawned from elsewhere and has not begun never will.
    fn drop(&mut self) {
        self.shared.crew.injector().close().for_each(drop);
    }
}

impl fmt::Debug for WorkStealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkStealing").field("workers", &self.shared.crew.workers()).finish_non_exhaustive()
    }
}

/// What workers and handles share.
struct Shared {
    crew: Crew<SendThread, Birth>,
    seats: Box<[Seat]>,
    /// How to wake each worker; known before it first sleeps.
    unparkers: Box<[OnceLock<Arc<dyn Unpark>>]>,
    stopped: AtomicBool,
    /// A worker has found that all wait for one another.
    deadlocked: AtomicBool,
    /// Orders the start of a worker and the stop of all: either the stop finds the worker's
    /// unparker, or the worker finds that it is to stop.
    starting: Mutex<()>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("workers", &self.crew.workers()).finish_non_exhaustive()
    }
}

impl Adopt for Shared {
    /// Hands the thread to whichever worker takes it first.
    fn adopt(&self, birth: Birth) -> Result<(), Birth> {
        self.unpark(self.crew.inject(birth)?);
        Ok(())
    }
}

impl Shared {
    fn unpark(&self, worker: Option<usize>) {
        if let Some(unparker) = worker.and_then(|worker| self.unparkers[worker].get()) {
            unparker.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// A worker is about to start.
    fn enlist(&self, worker: usize, unparker: Arc<dyn Unpark>) {
        let _starting = self.starting.lock().expect("no panic under this lock");
        self.unparkers[worker].set(unparker).expect("each worker starts once");
    }

    /// Has all workers stop at the end of their step.
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(self.starting.lock().expect("no panic under this lock"));
        (0..self.unparkers.len()).for_each(|worker| self.unpark(Some(worker)));
    }
}

/// Stops the workers when main ends, however it does.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A point that nobody passes before all have reached it.
struct Together {
    missing: Mutex<usize>,
    complete: Condvar,
}

impl Together {
    fn new(missing: usize) -> Together {
        Together { missing: Mutex::new(missing), complete: Condvar::new() }
    }

    fn arrive(&self) {
        let mut missing = self.missing.lock().expect("no panic under this lock");
        *missing -= 1;
        if *missing == 0 {
            self.complete.notify_all();
        }
    }

    fn meet(&self) {
        self.arrive();
        let missing = self.missing.lock().expect("no panic under this lock");
        drop(self.complete.wait_while(missing, |missing| *missing > 0).expect("no panic under this lock"));
    }
}

/// How a worker ended: its error or panic, and if there was a deadlock, who waits in its memory.
struct Ended {
    result: Result<Result<(), RunError>, Box<dyn Any + Send>>,
    waiting: Vec<ThreadInfo>,
}

impl Ended {
    fn failed(error: RunError) -> Ended {
        Ended { result: Ok(Err(error)), waiting: Vec::new() }
    }

    fn panicked(panic: Box<dyn Any + Send>) -> Ended {
        Ended { result: Err(panic), waiting: Vec::new() }
    }
}

/// The result of the whole, from those of the workers and of main.
fn result<T>(ended: Vec<Ended>, main: Option<JoinHandle<T>>) -> Result<T, Failure> {
    let mut failure: Option<Failure> = None;
    let mut waiting = Vec::new();
    for (worker, ended) in ended.into_iter().enumerate() {
        waiting.extend(ended.waiting);
        match ended.result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failure = failure.or(Some(Failure { worker, error })),
            Err(panic) => resume_unwind(panic),
        }
    }
    if let Some(mut failure) = failure {
        if let RunError::Deadlock(deadlock) = &mut failure.error {
            *deadlock = Deadlock { threads: waiting };
        }
        return Err(failure);
    }
    match main.and_then(|mut main| main.try_join()) {
        Some(Ok(output)) => Ok(output),
        Some(Err(JoinError::Panicked(exception))) => exception.rethrow(),
        Some(Err(JoinError::Cancelled)) | None => Err(Failure { worker: 0, error: RunError::MainExited }),
    }
}

/// What a worker needs to start.
struct Start<'a, M> {
    shared: &'a Arc<Shared>,
    group: &'a Group,
    events: &'a M,
    /// No worker runs a step any more.
    all_stopped: &'a Together,
    /// No worker wants to see any more who waits.
    all_looked: &'a Together,
}

impl<M> Clone for Start<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Start<'_, M> {}

impl<M, E> Start<'_, M>
where
    M: Fn(usize) -> io::Result<E> + Sync,
    E: Events,
{
    /// A worker's OS thread could not be started.
    fn is_missing(self) {
        self.shared.stop();
        self.all_stopped.arrive();
        self.all_looked.arrive();
    }

    fn work(self, me: usize, desk: Owner<Desk>) -> Ended {
        self.work_with(me, desk, |_| Ok(()))
    }

    /// A worker's life; it begins with `first`.
    fn work_with(
        self,
        me: usize,
        mut desk: Owner<Desk>,
        first: impl FnOnce(&mut Cpu) -> Result<(), RunError>,
    ) -> Ended {
        let desk = desk.enter();
        let mut worker = None;
        let result = catch_unwind(AssertUnwindSafe(|| {
            let worker = worker.insert(Worker::new(self, me, desk)?);
            worker.cpu.adopts_by(self.shared.clone());
            first(&mut worker.cpu)?;
            worker.run()
        }));
        if matches!(result, Ok(Err(RunError::Deadlock(_)))) {
            self.shared.deadlocked.store(true, Ordering::SeqCst);
        }
        if !matches!(result, Ok(Ok(()))) {
            self.shared.stop();
        }
        self.all_stopped.meet();
        let waiting = match &worker {
            Some(worker) if self.shared.deadlocked.load(Ordering::SeqCst) => {
                worker.cpu.deadlock().threads.into_iter().filter(ThreadInfo::is_waiting).collect()
            }
            _ => Vec::new(),
        };
        self.all_looked.meet();
        if let Some(worker) = worker {
            worker.end();
        }
        Ended { result, waiting }
    }
}

/// How many steps a turn has at most before the event source is looked at.
const STEPS_PER_TURN: u32 = 256;
/// How many before the clock is looked at, and how long they may take.
const STEPS_PER_LOOK_MAX: u32 = 64;
const TURN_MAX: Duration = Duration::from_micros(200);
/// How many steps in a row go to threads that were woken alone, while others are ready.
const LIFO_MAX: u32 = 3;
/// How many threads of those that did not fit the ring are moved to it at each claim: more than are
/// claimed, and so few that what is fetched into the cache for one moved later is there by then.
const REFILL: usize = 24;
/// How many threads from outside are created at once.
const BIRTHS_MAX: usize = 64;
/// How often a searcher goes through all rings at most, and how long it waits in between.
const SEARCHES_MAX: u32 = 8;
const SPINS: u32 = 32;

/// When a worker looks for strays.
///
/// Two threads that talk to each other through the kernel, by a pipe or a socket, may be on two
/// workers, each of which wakes the other's thread with every message. If both have enough else to
/// do neither ever runs out of work, and so nothing is stolen, and the two remain apart; yet each
/// message costs what it costs two processors to share its lines and a lock of the kernel. Nobody
/// tells a worker who it was that made a descriptor ready. But if nothing has run here since the
/// event source was looked at, it was somebody else. So a worker looks twice in a row now and then,
/// and sends those that the second look has woken to another worker: to the one where their
/// partners run, if there are two workers, and otherwise maybe. Two that have come together are not
/// found again, and so stay.
///
/// A thread that is woken by another process is a stray as well, and wanders to no avail. Where
/// that is common the looks become rare.
struct Strays {
    /// Turns until the next look, and how many there are from one look to the next.
    turns_left: u32,
    turns: u32,
}

impl Strays {
    const TURNS_MIN: u32 = 8;
    const TURNS_MAX: u32 = 128;

    fn new() -> Strays {
        Strays { turns_left: Self::TURNS_MIN, turns: Self::TURNS_MIN }
    }

    /// Looks that mostly find something bring nothing together.
    fn looked(&mut self, found: bool) {
        let turns = if found { 2 * self.turns } else { self.turns / 2 };
        self.turns = turns.clamp(Self::TURNS_MIN, Self::TURNS_MAX);
        self.turns_left = self.turns;
    }
}

struct Worker<'a, E> {
    me: usize,
    shared: &'a Shared,
    workers: u32,
    cpu: Cpu,
    events: E,
    /// The thread that was woken alone, and how many such ran in a row.
    lifo: Option<Thread>,
    lifo_run: u32,
    /// Ready threads that may move.
    desk: Inside<'a, Desk>,
    /// Ready threads that stay.
    local: RunQueue,
    /// Threads that stay, and waited for the end of a thread that was claimed together with others:
    /// they are ready when the others have run.
    local_joiners: RunQueue,
    /// Whether there was a claim since joiners became due.
    is_batch_over: bool,
    /// Whether it is the local threads' turn.
    turn_is_local: bool,
    is_searching: bool,
    /// How many steps are made before the clock is looked at: fewer if they are long.
    steps_per_look: u32,
    /// Where the next search begins.
    victim: usize,
    /// How often the next one goes through all rings: twice as often as the last had to that found
    /// something, half as often as one that found nothing.
    searches: u32,
    /// When to look for threads that are woken from elsewhere.
    strays: Strays,
    /// Looks after workers in long steps.
    lookout: Lookout,
    /// Whether this worker was the watcher until now, and nothing has come.
    has_watched: bool,
}

impl<'a, E: Events> Worker<'a, E> {
    fn new<M>(start: Start<'a, M>, me: usize, desk: Inside<'a, Desk>) -> Result<Self, RunError>
    where
        M: Fn(usize) -> io::Result<E>,
    {
        let cpu = Cpu::new_in(start.group)?;
        let events = (start.events)(me)?;
        let shared: &Shared = start.shared;
        shared.enlist(me, cpu.unparker());
        events.relief().into_iter().for_each(|relief| shared.seats[me].set_relief(relief));
        Ok(Worker {
            me,
            shared,
            workers: shared.crew.workers() as u32,
            cpu,
            events,
            lifo: None,
            lifo_run: 0,
            desk,
            local: RunQueue::new(),
            local_joiners: RunQueue::new(),
            is_batch_over: false,
            turn_is_local: false,
            is_searching: false,
            steps_per_look: STEPS_PER_LOOK_MAX,
            victim: me + 1,
            searches: SEARCHES_MAX,
            strays: Strays::new(),
            lookout: Lookout::new(me, shared.crew.workers()),
            has_watched: false,
        })
    }

    fn run(&mut self) -> Result<(), RunError> {
        while !self.shared.is_stopped() {
            self.take_births();
            self.take_letters(false);
            self.take_woken(false);
            if self.is_ready() {
                if std::mem::take(&mut self.is_searching) {
                    self.shared.unpark(self.shared.crew.found());
                }
                self.turn()?;
            } else {
                self.idle()?;
            }
        }
        Ok(())
    }

    /// Some steps, and a look at the event source.
    fn turn(&mut self) -> Result<(), RunError> {
        self.cpu.tick();
        let begun = self.cpu.now();
        self.shared.seats[self.me].count_turn();
        self.has_watched = false;
        let mut steps = 0;
        'turn: while !self.shared.is_stopped() {
            for _ in 0..self.steps_per_look {
                let Some(thread) = self.next() else { break 'turn };
                self.step(thread)?;
            }
            steps += self.steps_per_look;
            if Time::now().since(begun) > TURN_MAX {
                // These are long steps, of which the next turn has fewer.
                self.steps_per_look = (self.steps_per_look / 4).max(1);
                break;
            }
            if steps >= STEPS_PER_TURN {
                self.steps_per_look = (self.steps_per_look * 2).min(STEPS_PER_LOOK_MAX);
                break;
            }
        }
        self.survey();
        // The event source itself may have made one ready, as the last thread's request was
        // submitted.
        self.take_woken(false);
        if self.workers > 1 && self.lookout.is_due(begun) {
            self.look_out();
        }
        // Alone and with nothing to run, this worker sleeps in the event source at once.
        if self.is_ready() || !self.shared.crew.is_alone() {
            self.cpu.poll(&mut self.events, false)?;
            self.strays.turns_left -= 1;
            if self.strays.turns_left == 0 {
                self.look_for_strays()?;
            }
        }
        Ok(())
    }

    /// Tells how long the queues are, if somebody wants to know.
    fn survey(&self) {
        self.cpu.survey(|say| {
            let alone = usize::from(self.lifo.is_some());
            say("ready", alone + self.desk.len());
            say("local", self.local.len() + self.local_joiners.len());
            if self.me == 0 {
                say("injector", self.shared.crew.injector().len());
            }
        });
    }

    /// Sends away those that are woken while nothing runs here: see [`Strays`].
    #[cold]
    fn look_for_strays(&mut self) -> Result<(), RunError> {
        let crew = &self.shared.crew;
        if self.workers == 1 || crew.does_any_sleep() {
            self.strays.turns_left = self.strays.turns;
            return Ok(());
        }
        self.take_woken(false);
        self.cpu.poll(&mut self.events, false)?;
        let mut strays = Vec::new();
        while let Some(thread) = self.cpu.woken() {
            match thread.into_send() {
                Ok(thread) => strays.push(thread),
                Err(thread) => self.local.push(thread),
            }
        }
        self.strays.looked(!strays.is_empty());
        if !strays.is_empty() {
            self.victim = self.victim.wrapping_add(1);
            let workers = self.workers as usize;
            let to = (self.me + 1 + self.victim % (workers - 1)) % workers;
            for thread in crew.send(to, strays).err().into_iter().flatten() {
                self.enqueue(thread.into_thread());
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn step(&mut self, thread: Thread) -> Result<(), RunError> {
        // A step may be long.
        let away = self.desk.leave();
        let node = thread.step(&mut self.cpu);
        drop(away);
        match node {
            // What the step has made ready comes before the thread itself, which may have let it go
            // first.
            Trace::Yield(thread) => {
                self.take_woken(false);
                self.enqueue(thread);
                Ok(())
            }
            // Nothing is in these two: forgotten, they spare a look for what to drop.
            node @ Trace::Blocked => {
                std::mem::forget(node);
                self.take_woken(false);
                Ok(())
            }
            node @ Trace::Ret => {
                std::mem::forget(node);
                self.take_woken(true);
                Ok(())
            }
            node => {
                self.take_woken(false);
                self.serve(node)
            }
        }
    }

    /// Acts on a node that is none of those with which most steps end: `Yield`, `Blocked` and
    /// `Ret`.
    fn serve(&mut self, node: Trace) -> Result<(), RunError> {
        match node {
            Trace::Fork { child, parent } => {
                self.enqueue(child);
                self.enqueue(parent);
            }
            Trace::Nbio(action) => {
                let away = self.desk.leave();
                let thread = action.perform();
                drop(away);
                self.enqueue(thread);
            }
            Trace::Panic(panic) => panic.report(),
            request => self.events.submit(&mut self.cpu, request)?,
        }
        Ok(())
    }

    /// The thread to run next.
    #[inline]
    fn next(&mut self) -> Option<Thread> {
        if self.lifo.is_some()
            && let Some(thread) = self.lifo.take()
        {
            self.lifo_run += 1;
            if self.lifo_run <= LIFO_MAX || !self.is_ready() {
                self.offer();
                return Some(thread);
            }
            self.enqueue(thread);
        }
        self.lifo_run = 0;
        if !self.local.is_empty() {
            self.turn_is_local = !self.turn_is_local;
            if self.turn_is_local {
                self.offer();
                return self.local.pop();
            }
        }
        self.next_mobile().or_else(|| self.local.pop())
    }

    #[inline]
    fn next_mobile(&mut self) -> Option<Thread> {
        if let Some(thread) = self.desk.deque.take() {
            return Some(thread.into_thread());
        }
        self.next_of_batch()
    }

    /// The next thread when all that were claimed have run: first those who waited for their ends,
    /// then the next that are claimed. Who waits for the end of one that runs in between has his
    /// turn after those, so that joiners starve nobody.
    #[inline(never)]
    fn next_of_batch(&mut self) -> Option<Thread> {
        if std::mem::take(&mut self.is_batch_over) {
            let Desk { due, joiners, .. } = &mut *self.desk;
            due.append(joiners);
            self.local.append(&mut self.local_joiners);
        }
        if let Some(joiner) = self.desk.due.pop() {
            self.offer();
            return Some(joiner.into_thread());
        }
        self.is_batch_over = true;
        let first = self.claim();
        if first.is_none() {
            let joiner = self.desk.joiners.pop();
            return joiner.map(SendThread::into_thread).or_else(|| self.local_joiners.pop());
        }
        first
    }

    fn claim(&mut self) -> Option<Thread> {
        self.desk.refill(REFILL);
        let claim = self.desk.deque.claim(self.workers);
        if claim.wanted && claim.left > 0 {
            self.shared.unpark(self.shared.crew.surplus(self.me));
        }
        self.desk.deque.take().map(SendThread::into_thread)
    }

    /// Puts a thread behind those that are ready.
    #[inline]
    fn enqueue(&mut self, thread: Thread) {
        match thread.into_send() {
            Ok(thread) => self.desk.push(thread),
            Err(thread) => self.local.push(thread),
        }
    }

    /// Takes in what has become ready, and offers it to the others if it is more than one thread.
    ///
    /// After the end of a thread that is most likely the one that waits for it: it may find the
    /// ends of several threads if it lets those run that are claimed already.
    #[inline(always)]
    fn take_woken(&mut self, at_an_end: bool) {
        let Some(first) = self.cpu.woken() else { return };
        match self.cpu.woken() {
            None if at_an_end && self.desk.deque.claimed() > 0 => match first.into_send() {
                Ok(joiner) => self.desk.joiners.push(joiner),
                Err(joiner) => self.local_joiners.push(joiner),
            },
            None if self.lifo.is_none() => self.lifo = Some(first),
            second => self.take_several(first, second),
        }
    }

    #[inline(never)]
    fn take_several(&mut self, first: Thread, second: Option<Thread>) {
        self.enqueue(first);
        second.into_iter().for_each(|thread| self.enqueue(thread));
        while let Some(thread) = self.cpu.woken() {
            self.enqueue(thread);
        }
        self.offer();
    }

    /// Wakes a sleeper if there is something to steal here, and this worker has other things to do
    /// first. (A claim does the same.)
    #[inline]
    fn offer(&self) {
        let deque = &self.desk.deque;
        if deque.is_wanted() && deque.len() > deque.claimed() {
            self.shared.unpark(self.shared.crew.surplus(self.me));
        }
    }

    /// Creates threads that were spawned from elsewhere.
    fn take_births(&mut self) {
        for birth in self.shared.crew.injector().take(self.workers as usize, BIRTHS_MAX) {
            // It may wake a foreign waker, or drop a future for which there is no room.
            quietly(|| birth(&mut self.cpu));
        }
    }

    /// Takes in what others have sent here; or all that has been sent, to anybody.
    fn take_letters(&mut self, all: bool) {
        if self.shared.crew.has_letters() {
            for thread in self.shared.crew.letters(|to| all || to == self.me) {
                self.enqueue(thread.into_thread());
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.lifo.is_some()
            || !self.desk.is_empty()
            || !self.local.is_empty()
            || !self.local_joiners.is_empty()
    }

    /// Searches, or sleeps; returns when there may be something to do.
    #[cold]
    fn idle(&mut self) -> Result<(), RunError> {
        let crew = &self.shared.crew;
        if !self.is_searching && !self.has_watched {
            self.is_searching = crew.search();
        }
        if self.is_searching && self.search() || self.workers > 1 && self.look_out() {
            return Ok(());
        }
        if !crew.fall_asleep(self.me, self.is_searching) {
            self.is_searching = true;
            return Ok(());
        }
        self.survey();
        let watches = self.workers > 1 && crew.watches(self.me, self.lookout.is_quiet());
        let polled = self.cpu.poll_for(&mut self.events, watches.then(|| self.lookout.tick()));
        self.is_searching = crew.wake_up(self.me);
        self.shared.unpark(crew.call_watcher());
        self.has_watched = watches && !self.is_searching;
        polled.map(drop)
    }

    /// Takes over what waits behind the long steps of others; true if there is something to run.
    fn look_out(&mut self) -> bool {
        let moved = self.lookout.look(&self.shared.seats, &mut self.desk, &mut self.cpu);
        if moved > 0 {
            self.cpu.note(Note::Stole(moved));
        }
        moved > 0
    }

    /// Looks for something to do; true if there may be something.
    fn search(&mut self) -> bool {
        let crew = &self.shared.crew;
        for search in 1..=self.searches {
            self.victim = self.victim.wrapping_add(1);
            if let Some(thread) = crew.steal(self.me, &mut self.desk.deque, self.victim) {
                self.cpu.note(Note::Stole(1 + self.desk.deque.len()));
                self.lifo = Some(thread.into_thread());
                self.searches = (2 * search).min(SEARCHES_MAX);
                return true;
            }
            self.take_letters(true);
            self.take_woken(false);
            if self.is_ready() || !crew.injector().is_empty() || self.shared.is_stopped() {
                return true;
            }
            if search < self.searches {
                (0..SPINS).for_each(|_| std::hint::spin_loop());
            }
        }
        self.searches = (self.searches / 2).max(1);
        false
    }

    /// The worker's threads are cancelled. No worker runs a step any more.
    fn end(self) {
        let Worker { mut cpu, mut events, lifo, mut desk, mut local, mut local_joiners, shared, .. } = self;
        events.cancel_all(&mut cpu);
        shared.crew.letters(|_| true).into_iter().for_each(|thread| cpu.make_ready(thread.into_thread()));
        // The CPU cancels what it has: so destructors find themselves on a CPU.
        lifo.into_iter().for_each(|thread| cpu.make_ready(thread));
        std::iter::from_fn(|| desk.pop()).for_each(|thread| cpu.make_ready(thread.into_thread()));
        for queue in [&mut local, &mut local_joiners] {
            std::iter::from_fn(|| queue.pop()).for_each(|thread| cpu.make_ready(thread));
        }
        drop(cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_for_strays_become_rare_where_there_always_are_some() {
        let mut strays = Strays::new();
        (0..20).for_each(|_| strays.looked(true));
        assert_eq!(strays.turns_left, Strays::TURNS_MAX);
        (0..20).for_each(|_| strays.looked(false));
        assert_eq!(strays.turns_left, Strays::TURNS_MIN);
    }
}
