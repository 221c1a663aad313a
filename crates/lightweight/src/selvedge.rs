//! The threads of Selvedge, in both styles: [`Selvedge`] and [`SelvedgeDirect`].
//!
//! The compiler makes the continuation, as for `async` with a waker. But the thread says what it
//! waits for: it leaves itself in the MVar, as a number of 32 bits, and the thread that puts a
//! value moves that number to the queue of ready threads. No waker is made, nothing is counted,
//! nothing is allocated, and no lock is taken.
//!
//! # What it teaches
//! It is the trampoline again. The closure has become a state machine in a block of an arena; the
//! queue of closures a queue of numbers. Because the block of a thread stays where it is, waiting
//! allocates nothing, where `tramp` makes a new closure for each wait.
//!
//! In direct style the same thread is a stack. It waits in the same MVars, under the same
//! scheduler.
//!
//! # Paper
//! [Del §5.1], with the continuation that the compiler makes.
//!
//! # Differences
//! 1. Any number of threads may wait for an MVar. The suite leaves out the case of a second one.

use crate::system::{Name, System};
use crate::{Async, Direct, RunEnd};
use ::selvedge::direct::{direct, wait};
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
    /// Names of MVars that stay on this OS thread: a body in direct style is `Send`, and so are
    /// they.
    static NAMES: System<Infallible> = const { System::new() };
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
    NAMES.with(System::forget);
    RunEnd { blocked: ended.blocked, panicked: PANICKED.take(), stopped: ended.stopped }
}

fn named<C: 'static>(name: Name<Rc<C>>) -> Rc<C> {
    NAMES.with(|names| names.with(name, |object| Rc::clone(object)))
}

fn insist(operation: &str) {
    assert!(RUNNING.get(), "{operation} is for threads: the code that calls start is none");
}

/// The implementation `selvedge`: `async` threads of `selvedge`'s core.
#[derive(Debug)]
pub enum Selvedge {}

impl Async for Selvedge {
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

/// The implementation `selvedge-direct`: direct-style threads of `selvedge::direct`.
#[derive(Debug)]
pub enum SelvedgeDirect {}

impl Direct for SelvedgeDirect {
    type MVar<T: Send + 'static> = Name<Rc<MVar<T, Local>>>;
    type Fifo<T: Send + 'static> = Name<Rc<Fifo<T, Local>>>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        spawn(direct(thread));
    }

    fn yield_() {
        insist("yield");
        ::selvedge::direct::yield_now();
    }

    fn halt() -> ! {
        insist("halt");
        ::selvedge::direct::exit()
    }

    fn start() -> RunEnd {
        start()
    }

    fn stop() -> ! {
        insist("stop");
        match wait(::selvedge::stop()) {}
    }

    fn make_mvar<T: Send + 'static>() -> Self::MVar<T> {
        NAMES.with(|names| names.keep(Rc::new(MVar::empty_local())))
    }

    fn put_mvar<T: Send + 'static>(out: &Self::MVar<T>, value: T) {
        let out = named(*out);
        if let Err(value) = out.try_put(value) {
            wait(out.put(value));
        }
    }

    fn take_mvar<T: Send + 'static>(inp: &Self::MVar<T>) -> T {
        wait(named(*inp).take())
    }

    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T> {
        NAMES.with(|names| names.keep(Rc::new(Fifo::new_local())))
    }

    fn put_fifo<T: Send + 'static>(out: &Self::Fifo<T>, value: T) {
        named(*out).put(value);
    }

    fn take_fifo<T: Send + 'static>(inp: &Self::Fifo<T>) -> T {
        wait(named(*inp).take())
    }
}
