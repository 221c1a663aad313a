//! [`WorkerLoop`]: one worker of a [`WorkStealing`](super::WorkStealing) scheduler.
//!
//! [`run`](WorkerLoop::run) is the loop of the paper's `worker_main`: the worker takes the next
//! ready thread, has it make a step, and acts on the node that the step returns. Beside it a worker
//! polls its event source, looks after the other workers, and sleeps while there is nothing to do.
//! The files below have the parts that are more than a loop:
//! - `next`: which thread runs next, and where a thread goes that becomes ready.
//! - `arrivals`: which of the threads that events woke the worker keeps for itself.
//! - `crowding`: whether the worker gets a CPU when it wants one, and when it stands aside.
//! - `idle`: how a worker without threads searches and sleeps.
//! - `pairing`: when the worker looks for a thread that talks through the kernel with a thread of
//!   another worker, and `second_poll`: how the two come together on one worker.
//! - `vacancy`: whether a CPU is free on which the worker may run.

mod arrivals;
mod crowding;
mod idle;
mod next;
mod pairing;
mod second_poll;
mod vacancy;

use super::desk::{Desk, Lookout};
use super::pool::WorkerPool;
use arrivals::Arrivals;
use crowding::Crowding;
use pairing::Pairing;
use selvedge_core::internal::quietly;
use selvedge_core::{Cpu, Events, Group, Inside, RunError, RunQueue, Thread, Time, Trace};
use std::io;
use std::time::Duration;

/// The most steps of a turn, after which the worker polls its event source.
const STEPS_PER_TURN: u32 = 256;
/// The most steps after which a worker reads the clock.
const STEPS_PER_LOOK_MAX: u32 = 64;
/// The time after which a turn ends, at the next reading of the clock.
const TURN_MAX: Duration = Duration::from_micros(200);
/// How often a search goes through all rings at most.
const SEARCHES_MAX: u32 = 8;
/// The most threads from outside that a worker creates at once.
const REMOTE_SPAWNS_MAX: usize = 64;

pub(super) struct WorkerLoop<'a, E> {
    me: usize,
    pool: &'a WorkerPool,
    workers: u32,
    pub(super) cpu: Cpu,
    events: E,
    /// The thread that was woken alone.
    lifo: Option<Thread>,
    /// The number of threads that were woken alone and have run in a row.
    lifo_run: u32,
    /// The ready threads that may move.
    desk: Inside<'a, Desk>,
    /// The ready threads that stay.
    local: RunQueue,
    /// Threads that stay and that waited for the end of a thread which was claimed together with
    /// others. They run after the others.
    local_joiners: RunQueue,
    /// Whether the worker has claimed since joiners became due.
    is_batch_over: bool,
    /// Whether it is the turn of the threads that stay.
    turn_is_local: bool,
    is_searching: bool,
    /// The number of steps after which the worker reads the clock: smaller if the steps are long.
    steps_per_look: u32,
    /// The worker at which the next search begins.
    victim: usize,
    /// How often the next search goes through all rings: twice as often as the last search that
    /// found something, and half as often as the last search that found nothing.
    searches: u32,
    /// What to expect of the threads that events wake.
    arrivals: Arrivals,
    /// Whether the worker gets a CPU, and stands aside.
    crowding: Crowding,
    /// When to look for threads that another worker keeps waking.
    pairing: Pairing,
    /// Looks for workers in long steps.
    lookout: Lookout,
    /// Whether this worker was the watcher until now, and no turn has followed.
    has_watched: bool,
    /// Whether this worker has slept, and no turn has followed.
    has_slept: bool,
}

impl<'a, E: Events> WorkerLoop<'a, E> {
    /// Runs threads until the workers are stopped.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        while !self.pool.is_stopped() {
            self.take_remote_spawns();
            self.take_hand_offs(false);
            self.take_woken(false);
            if self.is_ready() {
                if std::mem::take(&mut self.is_searching) {
                    self.pool.call(self.pool.idle.found());
                }
                if std::mem::take(&mut self.has_slept) {
                    self.pool.unpark(self.pool.idle.call_watcher());
                }
                self.turn()?;
            } else {
                self.idle()?;
            }
        }
        Ok(())
    }

    /// Makes some steps, and polls the event source.
    fn turn(&mut self) -> Result<(), RunError> {
        self.cpu.tick();
        let begun = self.cpu.now();
        self.pool.views[self.me].count_turn();
        self.has_watched = false;
        let mut steps = 0;
        'turn: while !self.pool.is_stopped() {
            for made in 0..self.steps_per_look {
                let Some(thread) = self.next() else {
                    steps += made;
                    break 'turn;
                };
                self.step(thread)?;
            }
            steps += self.steps_per_look;
            if Time::now().since(begun) > TURN_MAX {
                // The steps are long, so the next turn makes fewer before it reads the clock.
                self.steps_per_look = (self.steps_per_look / 4).max(1);
                break;
            }
            if steps >= STEPS_PER_TURN {
                self.steps_per_look = (self.steps_per_look * 2).min(STEPS_PER_LOOK_MAX);
                break;
            }
        }
        self.survey();
        // The event source may have made a thread ready itself, when the worker submitted the
        // request of the last step.
        self.take_woken(false);
        if self.workers > 1 && self.lookout.is_due(begun) {
            self.look_out();
        }
        // If no thread is ready and all other workers sleep, this worker sleeps in the event source
        // at once.
        if self.is_ready() || !self.pool.idle.is_alone() {
            self.cpu.poll(&mut self.events, false)?;
            if self.workers > 1 {
                self.arrivals.measured(steps, self.cpu.now().since(begun));
                self.pool.views[self.me].set_load(steps);
                self.mind_the_crowd();
                self.take_arrivals();
            }
            if self.pairing.is_due() {
                self.pair()?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn step(&mut self, thread: Thread) -> Result<(), RunError> {
        // The step may be long, so other workers may work on the desk meanwhile.
        let away = self.desk.leave();
        let node = thread.step(&mut self.cpu);
        drop(away);
        match node {
            // The threads that the step has made ready come before the thread itself, because it
            // may have yielded to let them run first.
            Trace::Yield(thread) => {
                self.take_woken(false);
                self.enqueue(thread);
                Ok(())
            }
            // `Blocked` and `Ret` hold nothing. `forget` spares the test for a value to drop.
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

    /// Acts on a node of a rarer kind than `Yield`, `Blocked` and `Ret`, with which most steps end.
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

    /// Creates threads that were spawned from elsewhere.
    fn take_remote_spawns(&mut self) {
        for spawn in self.pool.idle.injector().take(self.workers as usize, REMOTE_SPAWNS_MAX) {
            // `spawn` may wake a foreign waker, or drop a future for which the arena has no room.
            quietly(|| spawn(&mut self.cpu));
        }
    }

    /// Takes in the threads that were handed off to this worker; or to any worker, if `all`. Events
    /// have woken them.
    fn take_hand_offs(&mut self, all: bool) {
        if self.pool.idle.has_hand_offs() {
            for thread in self.pool.idle.take_hand_offs(|to| all || to == self.me) {
                self.arrive(thread.into_thread());
            }
            self.keep_or_share();
        }
    }

    /// Tells the observer the lengths of the queues, if the program is observed.
    fn survey(&self) {
        self.cpu.survey(|say| {
            let alone = usize::from(self.lifo.is_some());
            say("ready", alone + self.desk.len());
            say("local", self.local.len() + self.local_joiners.len());
            if self.me == 0 {
                say("injector", self.pool.idle.injector().len());
            }
        });
    }

    /// A worker at its start: with its CPU and its event source, and without threads.
    pub(super) fn new<M>(
        me: usize,
        pool: &'a WorkerPool,
        group: &Group,
        events: &M,
        mut desk: Inside<'a, Desk>,
    ) -> Result<Self, RunError>
    where
        M: Fn(usize) -> io::Result<E>,
    {
        let mut cpu = Cpu::new_in(group)?;
        desk.outlet = cpu.outlet();
        let events = events(me)?;
        pool.enlist(me, cpu.unparker());
        events.relief().into_iter().for_each(|relief| pool.views[me].set_relief(relief));
        Ok(WorkerLoop {
            me,
            pool,
            workers: pool.idle.workers() as u32,
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
            arrivals: Arrivals::new(),
            crowding: Crowding::new(),
            pairing: Pairing::new(),
            lookout: Lookout::new(me, pool.idle.workers()),
            has_watched: false,
            has_slept: false,
        })
    }

    /// Cancels the worker's threads. No worker runs a step any more.
    pub(super) fn end(self) {
        let WorkerLoop { mut cpu, mut events, lifo, mut desk, mut local, mut local_joiners, pool, .. } = self;
        events.cancel_all(&mut cpu);
        let handed_off = pool.idle.take_hand_offs(|_| true);
        handed_off.into_iter().for_each(|thread| cpu.make_ready(thread.into_thread()));
        // The drop of the CPU cancels the threads that it keeps, so that their destructors run on a
        // CPU.
        lifo.into_iter().for_each(|thread| cpu.make_ready(thread));
        std::iter::from_fn(|| desk.pop()).for_each(|thread| cpu.make_ready(thread.into_thread()));
        for queue in [&mut local, &mut local_joiners] {
            std::iter::from_fn(|| queue.pop()).for_each(|thread| cpu.make_ready(thread));
        }
        drop(cpu);
    }
}
