//! The deterministic scheduler: one OS thread, a virtual clock, and a choice among the ready threads that can be repeated.
//!
//! What a program does under it depends on the program and on a seed, and on nothing else: the same seed is the same run, step by
//! step. So a test tries thousands of seeds, and one that fails is a number that can be written down. Four ways to choose:
//!
//! - at random ([`Simulation::new`]), which is the best for most programs;
//! - by priorities that change a few times ([`Simulation::pct`]), which finds what takes few but rare events;
//! - all, one after the other ([`Explorer`]), for programs of a few threads and a few steps;
//! - as it was before ([`Simulation::replay`]).
//!
//! Threads are cooperative, so they are interleaved at their system calls. A test that wants more places to switch at has its
//! threads [yield](selvedge_core::yield_now) there.
//!
//! # What it takes to be the same run
//! The program must not ask anybody else: no OS threads of its own, no clock but [`Time`](selvedge_core::Time), no `HashMap` order.
//! Descriptors and time are the event source's: `selvedge-io` has a simulated network; [`VirtualTime`] is enough for
//! programs without descriptors.

mod choice;
mod explore;
mod random;
mod time;

use choice::{Chooser, Pct, Ready, Replay};
use selvedge_core::{Cpu, Deadlock, Events, JoinError, RunError, ThreadInfo, Time, Trace, VirtualClock};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::ops::Range;
use std::time::Duration;

pub use explore::{Explored, Explorer};
pub use random::Random;
pub use time::VirtualTime;

/// Runs `main` and the threads it creates until `main` has ended, in an order that `seed` determines, with a virtual clock; returns
/// its result. The threads that are left are cancelled.
///
/// # Errors
/// [`Failed`], which says how to repeat the run: a panic in any thread that nobody joins, a deadlock, too many steps.
///
/// # Examples
/// A program that is right in most orders:
/// ```
/// use selvedge_core::{spawn_local, yield_now};
/// use selvedge_sched::{VirtualTime, simulated};
/// use std::{cell::Cell, rc::Rc};
///
/// async fn lost_update() -> u32 {
///     let counter = Rc::new(Cell::new(0));
///     let add_one = |counter: Rc<Cell<u32>>| async move {
///         let seen = counter.get();
///         yield_now().await;
///         counter.set(seen + 1);
///     };
///     let threads = [spawn_local(add_one(counter.clone())), spawn_local(add_one(counter.clone()))];
///     for thread in threads {
///         thread.await.unwrap();
///     }
///     counter.get()
/// }
///
/// let run = |seed| simulated(seed, &mut VirtualTime::new(), lost_update()).unwrap();
/// let wrong = (0..100).find(|&seed| run(seed) == 1).expect("some order loses an update");
/// assert_eq!(run(wrong), 1, "and it does so again");
/// ```
///
/// # Complexity
/// Some 50 ns a step.
pub fn simulated<F: Future + 'static>(
    seed: u64,
    events: &mut impl Events,
    main: F,
) -> Result<F::Output, Failed> {
    Simulation::new(seed).run(events, main).map(|run| run.output)
}

/// How a program is to be simulated.
#[derive(Clone, Debug)]
pub struct Simulation {
    order: Order,
    steps_max: u64,
}

#[derive(Clone, Debug)]
enum Order {
    Random(u64),
    Pct { seed: u64, depth: usize, steps: u64 },
    Replay { choices: Vec<u32>, preemptions_max: u32 },
}

/// The virtual time that a step takes.
const STEP: Duration = Duration::from_micros(1);

/// The event source is looked at after so many steps at most, while threads are ready.
const STEPS_BETWEEN_POLLS_MAX: u64 = 16;

impl Simulation {
    /// Chooses at random among the ready threads.
    pub fn new(seed: u64) -> Simulation {
        Simulation { order: Order::Random(seed), steps_max: 10_000_000 }
    }

    /// Lets the thread with the highest priority run, where priorities are drawn at random and change at `depth - 1` of the first
    /// `steps` steps (probabilistic concurrency testing: Burckhardt et al., ASPLOS 2010). It finds bugs that take `depth` events in a certain order.
    pub fn pct(seed: u64, depth: usize, steps: u64) -> Simulation {
        Simulation { order: Order::Pct { seed, depth, steps }, ..Simulation::new(seed) }
    }

    /// Makes the choices that a [failed](Failed::schedule) run of an [`Explorer`] made.
    ///
    /// # Panics
    /// If `schedule` is none.
    pub fn replay(schedule: &str) -> Simulation {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{schedule} is no schedule"));
        let choices = schedule.split('.').filter(|text| !text.is_empty()).map(number).collect();
        Simulation::given(choices, u32::MAX)
    }

    fn given(choices: Vec<u32>, preemptions_max: u32) -> Simulation {
        Simulation { order: Order::Replay { choices, preemptions_max }, ..Simulation::new(0) }
    }

    /// A run of more steps than this (ten million, if nothing is said) is taken for one that never ends.
    pub fn steps_max(self, steps_max: u64) -> Simulation {
        Simulation { steps_max, ..self }
    }

    /// Runs `main` as [`simulated`] does. If this OS thread has no [virtual clock](VirtualClock), it has one meanwhile.
    ///
    /// # Errors
    /// As for [`simulated`].
    pub fn run<F: Future + 'static>(
        &self,
        events: &mut impl Events,
        main: F,
    ) -> Result<Run<F::Output>, Failed> {
        self.run_noting(events, main, &mut Vec::new())
    }

    /// Leaves the choices that were made, and among how many, in `made` if they were given.
    fn run_noting<F: Future + 'static>(
        &self,
        events: &mut impl Events,
        main: F,
        made: &mut Vec<(u32, u32)>,
    ) -> Result<Run<F::Output>, Failed> {
        let _clock = VirtualClock::now().is_none().then(VirtualClock::install);
        let (seed, chooser) = match &self.order {
            &Order::Random(seed) => (seed, Chooser::Random(Random::new(seed))),
            &Order::Pct { seed, depth, steps } => {
                (seed, Chooser::Pct(Pct::new(Random::new(seed), depth, steps)))
            }
            Order::Replay { choices, preemptions_max } => {
                (0, Chooser::Replay(Replay::new(choices.clone(), *preemptions_max)))
            }
        };
        let mut world = World {
            chooser,
            polls: Random::new(!seed),
            ready: Vec::new(),
            numbers: HashMap::default(),
            threads: 0,
            last: u32::MAX,
            steps: 0,
            digest: Digest::default(),
        };
        let result = world.run(events, main, self.steps_max);
        if let Chooser::Replay(replay) = world.chooser {
            *made = replay.made;
        }
        result.map_err(|why| Failed {
            why,
            steps: world.steps,
            seed: if let Order::Replay { .. } = self.order { None } else { Some(seed) },
            // Choice 0 is what is made where none is given.
            choices: made[..made.iter().rposition(|made| made.0 > 0).map_or(0, |last| last + 1)]
                .iter()
                .map(|made| made.0)
                .collect(),
        })
    }
}

/// A simulated run that has come to its end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run<T> {
    /// What the main thread returned.
    pub output: T,
    /// How many steps all threads made.
    pub steps: u64,
    /// What time passed for the program.
    pub time: Duration,
    /// A digest of all that happened: which thread made which step, what it asked for, what was chosen, and when. Two runs
    /// with the same digest are the same run.
    pub digest: u64,
    /// The threads that were left, and were cancelled.
    pub left: Vec<ThreadInfo>,
}

/// Why a simulated run came to no good end, and how to repeat it.
#[derive(Clone)]
pub struct Failed {
    why: Why,
    steps: u64,
    seed: Option<u64>,
    choices: Vec<u32>,
}

/// What is wrong with a simulated program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Why {
    /// A thread panicked: the main thread, or one that nobody joins.
    Panic {
        /// The type name of the thread's future.
        thread: String,
        /// The panic's message.
        message: String,
    },
    /// All threads that are left wait, and nothing will happen any more.
    Deadlock(Deadlock),
    /// It made more steps than it was [allowed](Simulation::steps_max).
    TooManySteps,
    /// The scheduler could not go on: see [`RunError`].
    Error(String),
}

impl Failed {
    /// What is wrong.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// After how many steps it came to light.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The choices that led to it, for [`Simulation::replay`]; empty unless they were an [`Explorer`]'s.
    pub fn schedule(&self) -> String {
        let choices: Vec<String> = self.choices.iter().map(u32::to_string).collect();
        choices.join(".")
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed {
            Some(seed) => write!(f, "seed {seed} fails")?,
            None => write!(f, "schedule \"{}\" fails", self.schedule())?,
        }
        write!(f, " after {} steps: ", self.steps)?;
        match &self.why {
            Why::Panic { thread, message } => write!(f, "{thread} panicked: {message}")?,
            Why::Deadlock(deadlock) => write!(f, "{deadlock}")?,
            Why::TooManySteps => f.write_str("it never ends, or was not given enough steps")?,
            Why::Error(error) => f.write_str(error)?,
        }
        match self.seed {
            Some(seed) => write!(f, "\nto see it again: {SEED}={seed}"),
            None => write!(f, "\nto see it again: Simulation::replay(\"{}\")", self.schedule()),
        }
    }
}

/// As for people: it is what a test that unwraps prints.
impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failed {}

/// The environment variable that makes [`each_seed`] run one seed only.
const SEED: &str = "SELVEDGE_SEED";

/// Calls `test` with each seed; with one only if the environment variable `SELVEDGE_SEED` says so. If it panics, the
/// seed is printed.
///
/// # Panics
/// If `test` does, or the variable is no number.
///
/// # Examples
/// ```
/// use selvedge_core::yield_now;
/// use selvedge_sched::{VirtualTime, each_seed, simulated};
///
/// each_seed(0..50, |seed| {
///     simulated(seed, &mut VirtualTime::new(), async { yield_now().await }).unwrap();
/// });
/// ```
pub fn each_seed(seeds: Range<u64>, mut test: impl FnMut(u64)) {
    /// Says which seed it was when a test unwinds.
    struct Saying(u64);
    impl Drop for Saying {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was seed {}; to see it again: {SEED}={}", self.0, self.0);
            }
        }
    }
    let _spare = Spare::keep();
    let only: Option<u64> = std::env::var(SEED)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{SEED}={text} is no number")));
    for seed in only.map_or(seeds, |only| only..only + 1) {
        let _saying = Saying(seed);
        test(seed);
    }
}

/// A simulated run in progress.
struct World {
    chooser: Chooser,
    /// Says when the event source is looked at while threads are ready.
    polls: Random,
    ready: Vec<Ready>,
    /// The threads' numbers, in the order in which they first became ready, by their ids: an id says where a thread lies in memory,
    /// which is another place in each run.
    numbers: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    threads: u32,
    /// Who made the last step.
    last: u32,
    steps: u64,
    digest: Digest,
}

impl World {
    fn run<F: Future + 'static>(
        &mut self,
        events: &mut impl Events,
        main: F,
        steps_max: u64,
    ) -> Result<Run<F::Output>, Why> {
        let start = Time::now();
        let mut cpu = Spare::take().map_or_else(Cpu::new, Ok).map_err(RunError::from)?;
        let mut main = cpu.spawn_main_local(main).map_err(RunError::from)?;
        cpu.tick();
        let ended = loop {
            if let Err(why) = self.turn(&mut cpu, events, steps_max) {
                break Err(why);
            }
            if let Some(end) = main.try_join() {
                break Ok(end);
            }
        };
        // If each that ever ran has come to its end, and none is about to, the CPU need not look.
        let over = self.numbers.is_empty() && cpu.waiting() == 0 && events.armed() == 0;
        let left = if over { Vec::new() } else { cpu.threads() };
        self.ready.clear();
        events.cancel_all(&mut cpu);
        Spare::give(cpu, left.is_empty());
        match ended? {
            Ok(output) => {
                let time = Time::now().since(start);
                Ok(Run { output, steps: self.steps, time, digest: self.digest.0, left })
            }
            Err(JoinError::Cancelled) => Err(RunError::MainExited.into()),
            Err(JoinError::Panicked(exception)) => {
                let message = exception.message().unwrap_or("a thrown value").to_owned();
                Err(Why::Panic { thread: std::any::type_name::<F>().into(), message })
            }
        }
    }

    /// Some steps, and a look at the event source.
    fn turn(&mut self, cpu: &mut Cpu, events: &mut impl Events, steps_max: u64) -> Result<(), Why> {
        self.gather(cpu);
        if self.ready.is_empty() {
            return self.idle(cpu, events);
        }
        for _ in 0..=self.polls.below(STEPS_BETWEEN_POLLS_MAX) {
            if self.ready.is_empty() {
                return Ok(());
            }
            if self.steps == steps_max {
                return Err(Why::TooManySteps);
            }
            self.step(cpu, events)?;
            self.gather(cpu);
        }
        if events.armed() > 0 {
            events.poll(cpu, Some(Duration::ZERO)).map_err(RunError::from)?;
        }
        Ok(())
    }

    /// Takes over the threads that were woken.
    #[inline]
    fn gather(&mut self, cpu: &mut Cpu) {
        while let Some(thread) = cpu.woken() {
            let number = *self.numbers.entry(thread.id()).or_insert_with(|| {
                self.threads += 1;
                self.threads - 1
            });
            self.ready.push((thread, number));
        }
    }

    /// One step of one thread.
    #[inline]
    fn step(&mut self, cpu: &mut Cpu, events: &mut impl Events) -> Result<(), Why> {
        let ((thread, number), choice) = self.chooser.take(&mut self.ready, self.last);
        let id = thread.id();
        self.last = number;
        self.steps += 1;
        VirtualClock::advance(Time::now() + STEP);
        let node = thread.step(cpu);
        let kind = match &node {
            Trace::Yield(_) => 1,
            Trace::Fork { .. } => 2,
            Trace::Nbio(_) => 3,
            Trace::Wait(_) => 4,
            Trace::Sleep(_) => 5,
            Trace::Call(_) => 6,
            Trace::Any => 7,
            Trace::Blocked => 8,
            Trace::Ret => 9,
            Trace::Panic(_) => 10,
        };
        self.digest.add(u64::from(number) << 32 | u64::from(choice) << 4 | kind);
        match node {
            Trace::Yield(thread) => self.ready.push((thread, number)),
            Trace::Fork { child, parent } => {
                cpu.make_ready(child);
                self.ready.push((parent, number));
            }
            Trace::Nbio(action) => self.ready.push((action.perform(), number)),
            Trace::Blocked => {}
            Trace::Ret => {
                self.numbers.remove(&id);
            }
            Trace::Panic(panic) => {
                let thread = panic.thread().to_owned();
                let message = panic.into_exception().message().unwrap_or("a thrown value").to_owned();
                return Err(Why::Panic { thread, message });
            }
            request => events.submit(cpu, request).map_err(RunError::from)?,
        }
        Ok(())
    }

    /// Nobody is ready: waits for what will happen next.
    fn idle(&mut self, cpu: &mut Cpu, events: &mut impl Events) -> Result<(), Why> {
        // Requests may have been left by a thread that panicked, or by a destructor.
        match events.submit(cpu, Trace::Any) {
            Ok(()) | Err(Trace::Any) => {}
            Err(node) => return Err(RunError::from(node).into()),
        }
        self.gather(cpu);
        if !self.ready.is_empty() {
            return Ok(());
        }
        let deadlock = |cpu: &Cpu| Err(Why::Deadlock(cpu.deadlock()));
        if events.armed() == 0 {
            // The main thread is over only if it has a result, for which we are not here.
            return if cpu.waiting() == 0 { Err(RunError::MainExited.into()) } else { deadlock(cpu) };
        }
        match events.poll(cpu, None) {
            Ok(()) => {
                self.digest.add(Time::now().as_nanos());
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Deadlock => deadlock(cpu),
            Err(error) => Err(RunError::from(error).into()),
        }
    }
}

impl From<RunError> for Why {
    fn from(error: RunError) -> Why {
        match error {
            RunError::Deadlock(deadlock) => Why::Deadlock(deadlock),
            error => Why::Error(error.to_string()),
        }
    }
}

/// Keeps the CPU of one run for the next, for as long as it lives: making one takes as long as a hundred steps.
struct Spare {
    outer: bool,
}

thread_local! {
    static SPARE: RefCell<Option<Cpu>> = const { RefCell::new(None) };
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

impl Spare {
    fn keep() -> Spare {
        Spare { outer: KEPT.replace(true) }
    }

    fn take() -> Option<Cpu> {
        SPARE.take()
    }

    /// A CPU that was used; `clean` if no thread is left in it.
    fn give(mut cpu: Cpu, clean: bool) {
        if KEPT.get() && clean && cpu.waiting() == 0 && cpu.woken().is_none() && cpu.detached().is_none() {
            SPARE.set(Some(cpu));
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        KEPT.set(self.outer);
        if !self.outer {
            drop(SPARE.take());
        }
    }
}

#[derive(Debug, Default)]
struct Digest(u64);

impl Digest {
    #[inline]
    fn add(&mut self, what: u64) {
        self.0 = (self.0.rotate_left(23) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Spreads ids, which are multiples of small numbers.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
    }
}
