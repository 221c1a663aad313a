//! Threads of a virtual machine: OS threads of which one runs at a time.
//!
//! The second baseline. A bytecode machine has one lock around all that it does. The thread that
//! holds it passes it on when it blocks or yields, so the machine and not the kernel decides which
//! thread runs next: here the thread that has been ready longest. So the order of a run is the same
//! each time, and it is the order of the light threads too.
//!
//! # What it teaches
//! A lock around everything takes away what OS threads are good for, two processors at once, and
//! leaves what they cost: each switch is a call into the kernel for two threads.
//!
//! # Paper
//! [Del §4], [Del §6] `vm`.
//!
//! # Differences
//! 1. The paper's machine switches threads at the tick of a clock too. Here no thread loses the
//!    lock
//!    against its will.

use crate::os::{OsKernel, SharedFifo, SharedMVar, locked, os_thread, unwind};
use crate::stack::{halt, panics};
use crate::{Direct, RunEnd};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, Thread, ThreadId};

/// The implementation `vm`.
#[derive(Debug)]
pub enum Vm {}

/// The machine: its OS threads, and which of them runs.
struct Machine {
    /// The OS thread that calls `start`. It runs when no thread is ready.
    starter: Thread,
    state: Mutex<MachineState>,
}

#[derive(Default)]
struct MachineState {
    /// The thread that holds the machine's lock; `None` is the starter.
    running: Option<ThreadId>,
    ready: VecDeque<Thread>,
    threads: HashMap<ThreadId, JoinHandle<()>>,
    blocked: usize,
    panicked: usize,
    stopped: bool,
    /// A thread that gets the lock is to unwind its stack.
    ending: bool,
}

thread_local! {
    static MACHINE: RefCell<Option<Arc<Machine>>> = const { RefCell::new(None) };
}

fn machine() -> Arc<Machine> {
    MACHINE.with_borrow_mut(|machine| {
        let new = || Arc::new(Machine { starter: thread::current(), state: Mutex::default() });
        Arc::clone(machine.get_or_insert_with(new))
    })
}

/// The machine of the running thread.
///
/// # Panics
/// If no thread calls.
fn insist(operation: &str) -> Arc<Machine> {
    let machine = machine();
    let is_thread = machine.starter.id() != thread::current().id();
    assert!(is_thread, "{operation} is for threads: the code that calls start is none");
    machine
}

impl Machine {
    /// Gives the lock to the thread that has been ready longest, or to the starter.
    fn pass(&self, state: &mut MachineState) {
        let next = match state.ending || state.stopped {
            true => None,
            false => state.ready.pop_front(),
        };
        state.running = next.as_ref().map(Thread::id);
        next.as_ref().unwrap_or(&self.starter).unpark();
    }

    /// Waits for the lock.
    fn turn(&self, own: Option<ThreadId>) {
        while locked(&self.state).running != own {
            thread::park();
        }
        if own.is_some() && locked(&self.state).ending {
            unwind();
        }
    }

    /// A thread from its first instruction to its last.
    fn run(&self, body: impl FnOnce()) {
        let own = thread::current().id();
        let panicked = panics(|| {
            self.turn(Some(own));
            body();
        });
        let mut state = locked(&self.state);
        state.panicked += usize::from(panicked);
        let handle = state.threads.remove(&own);
        self.pass(&mut state);
        drop(state);
        drop(handle);
    }
}

impl OsKernel for Machine {
    fn block(&self, _: impl Fn() -> bool) {
        let own = thread::current().id();
        assert!(self.starter.id() != own, "the code that calls start cannot block");
        let mut state = locked(&self.state);
        state.blocked += 1;
        self.pass(&mut state);
        drop(state);
        self.turn(Some(own));
    }

    fn wake(&self, thread: &Thread, give: impl FnOnce()) {
        give();
        let mut state = locked(&self.state);
        state.blocked -= 1;
        state.ready.push_back(thread.clone());
    }
}

impl Direct for Vm {
    type MVar<T: Send + 'static> = SharedMVar<T>;
    type Fifo<T: Send + 'static> = SharedFifo<T>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        let machine = machine();
        let own = Arc::clone(&machine);
        let handle = os_thread(move || {
            MACHINE.set(Some(Arc::clone(&own)));
            own.run(thread);
        });
        let mut state = locked(&machine.state);
        state.ready.push_back(handle.thread().clone());
        state.threads.insert(handle.thread().id(), handle);
    }

    fn yield_() {
        let machine = insist("yield");
        let own = thread::current();
        let id = own.id();
        let mut state = locked(&machine.state);
        state.ready.push_back(own);
        machine.pass(&mut state);
        drop(state);
        machine.turn(Some(id));
    }

    fn halt() -> ! {
        insist("halt");
        halt()
    }

    fn start() -> RunEnd {
        let machine = machine();
        assert!(machine.starter.id() == thread::current().id(), "start was called by a thread");
        machine.pass(&mut locked(&machine.state));
        machine.turn(None);
        let mut state = locked(&machine.state);
        let ended = RunEnd { blocked: state.blocked, panicked: state.panicked, stopped: state.stopped };
        state.ending = true;
        drop(state);
        // Each that is left gets the lock once more, and unwinds.
        loop {
            let mut state = locked(&machine.state);
            let Some(&id) = state.threads.keys().next() else { break };
            let handle = state.threads.remove(&id).expect("just found");
            state.running = Some(id);
            drop(state);
            handle.thread().unpark();
            // A panic of the thread has been counted.
            let _ = handle.join();
        }
        MACHINE.set(None);
        ended
    }

    fn stop() -> ! {
        locked(&insist("stop").state).stopped = true;
        halt()
    }

    fn make_mvar<T: Send + 'static>() -> Self::MVar<T> {
        SharedMVar::new()
    }

    fn put_mvar<T: Send + 'static>(out: &Self::MVar<T>, value: T) {
        out.put(&*machine(), value);
    }

    fn take_mvar<T: Send + 'static>(inp: &Self::MVar<T>) -> T {
        inp.take(&*machine())
    }

    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T> {
        SharedFifo::new()
    }

    fn put_fifo<T: Send + 'static>(out: &Self::Fifo<T>, value: T) {
        out.put(&*machine(), value);
    }

    fn take_fifo<T: Send + 'static>(inp: &Self::Fifo<T>) -> T {
        inp.take(&*machine())
    }
}
