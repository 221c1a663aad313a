//! OsSystem threads: every thread is one of the operating system's.
//!
//! The baseline. A thread that waits is parked in the kernel. The kernel decides which thread runs,
//! and several run at once.
//!
//! # What it teaches
//! The kernel's threads do all that is asked, for a stack, a record in the kernel, and system calls
//! for each switch. The kernel does not tell when all threads are blocked: a count of the active
//! threads does.
//!
//! # Paper
//! [Del §4]: the measure of how light the others are.

use crate::os::{OsKernel, SharedFifo, SharedMVar, locked, os_thread, unwind};
use crate::stack::{halt, panics};
use crate::{Direct, RunEnd};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, Thread, ThreadId};

/// The implementation `sys`.
#[derive(Debug)]
pub enum Sys {}

/// The threads that one OS thread has spawned, and the threads that these have spawned.
struct OsSystem {
    /// The OS thread that calls `start`.
    starter: Thread,
    /// The number of threads that live and are not blocked.
    active: AtomicUsize,
    panicked: AtomicUsize,
    started: AtomicBool,
    stopped: AtomicBool,
    /// Every thread is to unwind its stack.
    ending: AtomicBool,
    /// The threads that live.
    threads: Mutex<HashMap<ThreadId, JoinHandle<()>>>,
}

thread_local! {
    static SYSTEM: RefCell<Option<Arc<OsSystem>>> = const { RefCell::new(None) };
}

fn system() -> Arc<OsSystem> {
    SYSTEM.with_borrow_mut(|system| Arc::clone(system.get_or_insert_with(|| Arc::new(OsSystem::new()))))
}

/// The system of the running thread.
///
/// # Panics
/// If no thread calls.
fn insist(operation: &str) -> Arc<OsSystem> {
    let system = system();
    let is_thread = system.starter.id() != thread::current().id();
    assert!(is_thread, "{operation} is for threads: the code that calls start is none");
    system.heed();
    system
}

impl OsSystem {
    fn new() -> OsSystem {
        OsSystem {
            starter: thread::current(),
            active: AtomicUsize::new(0),
            panicked: AtomicUsize::new(0),
            started: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            threads: Mutex::default(),
        }
    }

    /// Ends the running thread if all are to end.
    fn heed(&self) {
        if self.ending.load(Ordering::Acquire) {
            unwind();
        }
    }

    /// One thread less is active. The starter looks when none is.
    fn leave(&self) {
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.starter.unpark();
        }
    }

    /// A thread from its first instruction to its last.
    fn run(&self, body: impl FnOnce()) {
        while !self.started.load(Ordering::Acquire) {
            thread::park();
        }
        let body = || {
            self.heed();
            body();
        };
        if panics(body) {
            self.panicked.fetch_add(1, Ordering::AcqRel);
        }
        let handle = locked(&self.threads).remove(&thread::current().id());
        self.leave();
        drop(handle);
    }
}

impl OsKernel for OsSystem {
    fn block(&self, has_value: impl Fn() -> bool) {
        assert!(self.starter.id() != thread::current().id(), "the code that calls start cannot block");
        self.leave();
        while !has_value() {
            if self.ending.load(Ordering::Acquire) {
                self.active.fetch_add(1, Ordering::AcqRel);
                return unwind();
            }
            thread::park();
        }
    }

    fn wake(&self, thread: &Thread, give: impl FnOnce()) {
        self.active.fetch_add(1, Ordering::AcqRel);
        give();
        thread.unpark();
    }
}

impl Direct for Sys {
    type MVar<T: Send + 'static> = SharedMVar<T>;
    type Fifo<T: Send + 'static> = SharedFifo<T>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        let system = system();
        system.active.fetch_add(1, Ordering::AcqRel);
        let own = Arc::clone(&system);
        // Locked until the thread's entry is there, because the thread removes it.
        let mut threads = locked(&system.threads);
        let handle = os_thread(move || {
            SYSTEM.set(Some(Arc::clone(&own)));
            own.run(thread);
        });
        threads.insert(handle.thread().id(), handle);
    }

    fn yield_() {
        insist("yield");
        thread::yield_now();
    }

    fn halt() -> ! {
        insist("halt");
        halt()
    }

    fn start() -> RunEnd {
        let system = system();
        assert!(system.starter.id() == thread::current().id(), "start was called by a thread");
        let unpark = || locked(&system.threads).values().for_each(|handle| handle.thread().unpark());
        system.started.store(true, Ordering::Release);
        unpark();
        while system.active.load(Ordering::Acquire) > 0 && !system.ending.load(Ordering::Acquire) {
            thread::park();
        }
        let blocked = locked(&system.threads).len().saturating_sub(system.active.load(Ordering::Acquire));
        system.ending.store(true, Ordering::Release);
        unpark();
        let left: Vec<_> = locked(&system.threads).drain().map(|(_, handle)| handle).collect();
        for handle in left {
            // A panic of the thread has been counted.
            let _ = handle.join();
        }
        SYSTEM.set(None);
        let stopped = system.stopped.load(Ordering::Acquire);
        RunEnd { blocked, panicked: system.panicked.load(Ordering::Acquire), stopped }
    }

    fn stop() -> ! {
        let system = insist("stop");
        system.stopped.store(true, Ordering::Release);
        system.ending.store(true, Ordering::Release);
        system.starter.unpark();
        halt()
    }

    fn make_mvar<T: Send + 'static>() -> Self::MVar<T> {
        SharedMVar::new()
    }

    fn put_mvar<T: Send + 'static>(out: &Self::MVar<T>, value: T) {
        let system = system();
        system.heed();
        out.put(&*system, value);
    }

    fn take_mvar<T: Send + 'static>(inp: &Self::MVar<T>) -> T {
        let system = system();
        system.heed();
        inp.take(&*system)
    }

    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T> {
        SharedFifo::new()
    }

    fn put_fifo<T: Send + 'static>(out: &Self::Fifo<T>, value: T) {
        out.put(&*system(), value);
    }

    fn take_fifo<T: Send + 'static>(inp: &Self::Fifo<T>) -> T {
        let system = system();
        system.heed();
        inp.take(&*system)
    }
}
