//! The threads of Selvedge with the MVar of the library, under the scheduler of the library:
//! [`LibraryThreads`].
//!
//! The threads are those of `selvedge.rs`. The library's MVar lets any number of threads wait, each
//! of which may give up, and it works under every scheduler and within `select!`. A thread leaves
//! itself in the MVar, with a list through the threads that wait.
//!
//! # What it teaches
//! What that costs: 96 bytes for an MVar, and some 70 in a thread that waits. No waker is made,
//! nothing is counted, nothing is allocated, and no lock is taken, so a switch costs what it costs
//! in `selvedge`.
//!
//! # Paper
//! [Del §5.1], with the continuation that the compiler makes.
//!
//! # Differences
//! 1. Any number of threads may wait for an MVar. The suite leaves out the case of a second one.

use crate::{Async, RunEnd};
use ::selvedge::sync::{Fifo, MVar};
use ::selvedge::{Cpu, Local, NoEvents, detach_local};
use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

thread_local! {
    /// The threads that are spawned before `start`. They take their memory at once.
    static SPAWNED: RefCell<Option<Cpu>> = const { RefCell::new(None) };
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static PANICKED: Cell<usize> = const { Cell::new(0) };
}

pin_project! {
    /// A thread of which a panic is counted.
    struct PanicCounted<F> {
        #[pin]
        thread: F,
    }
}

impl<F: Future<Output = ()>> Future for PanicCounted<F> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let thread = self.project().thread;
        catch_unwind(AssertUnwindSafe(|| thread.poll(cx))).unwrap_or_else(|payload| {
            PANICKED.set(PANICKED.get() + 1);
            resume_unwind(payload)
        })
    }
}

fn spawn(thread: impl Future<Output = ()> + 'static) {
    let thread = PanicCounted { thread };
    if RUNNING.get() {
        return detach_local(thread);
    }
    SPAWNED.with_borrow_mut(|cpu| {
        let cpu = cpu.get_or_insert_with(|| Cpu::new().expect("there is memory for threads"));
        let thread = cpu.thread(thread).expect("there is memory for another thread");
        cpu.make_ready(thread);
    });
}

fn start() -> RunEnd {
    assert!(!RUNNING.replace(true), "start was called by a thread");
    let ended = match SPAWNED.take() {
        Some(cpu) => ::selvedge::start_on(cpu, &mut NoEvents::new()).expect("threads wait for MVars alone"),
        None => ::selvedge::StartEnd::default(),
    };
    RUNNING.set(false);
    RunEnd { blocked: ended.blocked, panicked: PANICKED.take(), stopped: ended.stopped }
}

fn insist(operation: &str) {
    assert!(RUNNING.get(), "{operation} is for threads: the code that calls start is none");
}

/// The implementation `selvedge-library`: what a program of Selvedge has without further work.
#[derive(Debug)]
pub enum LibraryThreads {}

impl Async for LibraryThreads {
    type MVar<T: 'static> = Rc<MVar<T, Local>>;
    type Fifo<T: 'static> = Rc<Fifo<T, Local>>;

    fn spawn(thread: impl Future<Output = ()> + 'static) {
        spawn(thread);
    }

    fn yield_() -> impl Future<Output = ()> {
        insist("yield");
        ::selvedge::yield_now()
    }

    fn halt() -> impl Future<Output = Infallible> {
        insist("halt");
        ::selvedge::exit()
    }

    fn start() -> RunEnd {
        start()
    }

    fn stop() -> impl Future<Output = Infallible> {
        insist("stop");
        ::selvedge::stop()
    }

    fn make_mvar<T: 'static>() -> Self::MVar<T> {
        Rc::new(MVar::empty_local())
    }

    fn put_mvar<T: 'static>(out: &Self::MVar<T>, value: T) -> impl Future<Output = ()> {
        out.put(value)
    }

    fn take_mvar<T: 'static>(inp: &Self::MVar<T>) -> impl Future<Output = T> {
        inp.take()
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        Rc::new(Fifo::new_local())
    }

    fn put_fifo<T: 'static>(out: &Self::Fifo<T>, value: T) {
        out.put(value);
    }

    fn take_fifo<T: 'static>(inp: &Self::Fifo<T>) -> impl Future<Output = T> {
        inp.take()
    }
}
