//! The loop of the deterministic scheduler: `Running`, one run in progress. `Simulation`
//! (`scheduler.rs`) makes one for each run.
//!
//! The loop gathers the threads that were woken, lets `Chooser` choose one (or one of the
//! `Arrivals` of a simulated kernel), runs its step, and passes the node that remains to the event
//! source. It is an ordinary scheduler over `core`'s `Cpu`, with one rule more: nothing that
//! differs between two runs may influence it, so it numbers the threads itself and does not use
//! their ids.

use super::choice::{Chooser, NextStep, ReadyThread};
use super::spare::Spare;
use super::{Random, Run, Why};
use crate::digest::Digest;
use selvedge_core::{Cpu, Events, JoinError, RunError, Time, Trace, VirtualClock, draw};
use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::time::Duration;

/// The virtual time that a step takes.
const STEP: Duration = Duration::from_micros(1);

/// While threads are ready, the run polls the event source after this number of steps at most.
const STEPS_BETWEEN_POLLS_MAX: u64 = 16;

/// The events of a simulated kernel that are due, in a run with given choices: the scheduler
/// chooses their order too. In other runs the kernel lets them happen when the event source is
/// polled, in the order of their times.
pub(crate) trait Arrivals {
    /// How many events can happen next.
    fn due(&self) -> usize;
    /// Lets one of the due events happen.
    fn happen(&self, nth: usize);
}

/// A simulated run in progress.
pub(super) struct Running<'a> {
    chooser: Chooser,
    arrivals: Option<&'a dyn Arrivals>,
    /// Draws after how many steps the run polls the event source while threads are ready.
    polls: Random,
    ready: Vec<ReadyThread>,
    /// The number of each thread, by its id. The run numbers threads in the order in which they
    /// first become ready, because an id is a place in memory, which differs between runs.
    numbers: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    threads: u32,
    /// The number of the thread that made the last step.
    last: u32,
    steps: u64,
    digest: Digest,
}

impl<'a> Running<'a> {
    pub(super) fn new(chooser: Chooser, polls: Random, arrivals: Option<&'a dyn Arrivals>) -> Running<'a> {
        Running {
            chooser,
            arrivals,
            polls,
            ready: Vec::new(),
            numbers: HashMap::default(),
            threads: 0,
            last: u32::MAX,
            steps: 0,
            digest: Digest::default(),
        }
    }

    /// How many steps all threads have made.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The choices that a replay has made, each with the number of its alternatives.
    pub(super) fn into_choices(self) -> Option<Vec<(u32, u32)>> {
        match self.chooser {
            Chooser::Replay(replay) => Some(replay.made),
            Chooser::Random(_) | Chooser::Pct(_) => None,
        }
    }

    /// Runs `main` until it ends. The threads that are left are cancelled when the CPU is dropped.
    pub(super) fn run<F: Future + 'static>(
        &mut self,
        events: &mut impl Events,
        main: F,
        steps_max: u64,
    ) -> Result<Run<F::Output>, Why> {
        let start = Time::now();
        let mut cpu = Spare::take().map_or_else(Cpu::new, Ok).map_err(RunError::from)?;
        draw::begin(self.polls.clone().bits());
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
        // The CPU need not look for threads if each thread that ever ran has ended, and no thread
        // waits.
        let over = self.numbers.is_empty() && cpu.waiting() == 0 && events.armed() == 0;
        let left = if over { Vec::new() } else { cpu.threads() };
        self.ready.clear();
        events.cancel_all(&mut cpu);
        Spare::give(cpu, left.is_empty());
        match ended? {
            Ok(output) => {
                let time = Time::now().since(start);
                Ok(Run { output, steps: self.steps, time, digest: self.digest.value(), left })
            }
            Err(JoinError::Cancelled) => Err(RunError::MainExited.into()),
            Err(JoinError::Panicked(exception)) => {
                let message = exception.message().unwrap_or("a thrown value").to_owned();
                Err(Why::Panic { thread: std::any::type_name::<F>().into(), message })
            }
        }
    }

    /// Makes some steps, and polls the event source.
    fn turn(&mut self, cpu: &mut Cpu, events: &mut impl Events, steps_max: u64) -> Result<(), Why> {
        self.gather(cpu);
        if self.ready.is_empty() && self.due() == 0 {
            return self.idle(cpu, events);
        }
        for _ in 0..=self.polls.below(STEPS_BETWEEN_POLLS_MAX) {
            let due = self.due();
            if self.ready.is_empty() && due == 0 {
                return Ok(());
            }
            if self.steps == steps_max {
                return Err(Why::TooManySteps);
            }
            match self.chooser.take(&mut self.ready, due, self.last) {
                NextStep::Step(ready, choice) => self.step(ready, choice, cpu, events)?,
                NextStep::Arrival(nth) => self.arrive(nth, cpu, events)?,
            }
            self.gather(cpu);
        }
        if events.armed() > 0 {
            events.poll(cpu, Some(Duration::ZERO)).map_err(RunError::from)?;
        }
        Ok(())
    }

    /// How many arrivals the scheduler can choose.
    #[inline]
    fn due(&self) -> usize {
        self.arrivals.map_or(0, Arrivals::due)
    }

    /// Lets an arrival happen, and the event source wake the threads that waited for it.
    fn arrive(&mut self, nth: usize, cpu: &mut Cpu, events: &mut impl Events) -> Result<(), Why> {
        if let Some(arrivals) = self.arrivals {
            arrivals.happen(nth);
        }
        self.digest.add(nth as u64 | 1 << 63);
        events.poll(cpu, Some(Duration::ZERO)).map_err(RunError::from)?;
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
    fn step(
        &mut self,
        (thread, number): ReadyThread,
        choice: u32,
        cpu: &mut Cpu,
        events: &mut impl Events,
    ) -> Result<(), Why> {
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
            Trace::Detached => 7,
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

    /// Waits for the next event, because no thread is ready.
    fn idle(&mut self, cpu: &mut Cpu, events: &mut impl Events) -> Result<(), Why> {
        // A thread that panicked, or a destructor, may have left requests.
        match events.submit(cpu, Trace::Detached) {
            Ok(()) | Err(Trace::Detached) => {}
            Err(node) => return Err(RunError::from(node).into()),
        }
        self.gather(cpu);
        if !self.ready.is_empty() {
            return Ok(());
        }
        let deadlock = |cpu: &mut Cpu| Err(Why::Deadlock(cpu.deadlock()));
        if events.armed() == 0 {
            // The main thread has no result yet: `run` looks for it before it calls this function.
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

/// A hasher that spreads ids, which are multiples of small numbers.
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
