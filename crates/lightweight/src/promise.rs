//! The promise monad: an operation returns at once, with a promise of its result.
//!
//! A promise is `Ready` with the value, `Blocked` with what waits for it, or `Linked` to another
//! promise, which it stands for. [`bind`](Monad::bind) goes on at once if the promise is ready.
//! Otherwise it returns a second promise, and leaves in the first one what will make the second.
//!
//! # What it teaches
//! The program may hold a computation that has begun, and give it away. The price is a promise for
//! each operation and each `bind`, and the links between them. This is the core of Lwt, and a
//! future of JavaScript is no more.
//!
//! # Paper
//! [Del §5.3], [Del Figure 7], [Del Figure 8]; [Del Figure 9] has a picture of the links.
//!
//! # Differences
//! 1. `bind` takes the promise, so only one waiter is left in a promise, and the value moves. The
//!    paper has a list of waiters.
//! 2. A spawned thread waits for a promise of its own, which the queue fulfils, instead of one
//!    `wait_start` for all: so a thread that is spawned in a thread does not run at once.
//! 3. As in `tramp`, a long chain of ready promises bounces.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::system::{Name, System};
use crate::{Monad, RunEnd};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What runs with the value of a promise.
type OnReady<A> = Box<dyn FnOnce(A)>;

enum PromiseNow<A> {
    Ready(A),
    /// With what waits for it, if `bind` has been called.
    Blocked(Option<OnReady<A>>),
    Linked(PromiseEnd<A>),
    /// `bind` has taken the value.
    Taken,
}

/// The end of a promise that fulfils it. A waiting thread leaves it in an MVar.
pub struct PromiseEnd<A>(Rc<RefCell<PromiseNow<A>>>);

impl<A> fmt::Debug for PromiseEnd<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromiseEnd")
    }
}

impl<A> Clone for PromiseEnd<A> {
    fn clone(&self) -> Self {
        PromiseEnd(Rc::clone(&self.0))
    }
}

/// A value that is there, or will be.
#[derive(Debug)]
pub struct LinkedPromise<A>(PromiseEnd<A>);

impl<A> PromiseEnd<A> {
    fn new(state: PromiseNow<A>) -> Self {
        PromiseEnd(Rc::new(RefCell::new(state)))
    }

    /// The promise at the end of the links.
    fn repr(&self) -> PromiseEnd<A> {
        match &*self.0.borrow() {
            PromiseNow::Linked(other) => other.repr(),
            _ => self.clone(),
        }
    }

    /// Makes a blocked promise ready, and runs what waits for it.
    fn fulfil(&self, value: A) {
        let promise = self.repr();
        let state = promise.0.replace(PromiseNow::Taken);
        match state {
            PromiseNow::Blocked(Some(waiter)) => waiter(value),
            PromiseNow::Blocked(None) => drop(promise.0.replace(PromiseNow::Ready(value))),
            _ => panic!("fulfil: the promise is not blocked"),
        }
    }

    /// This promise will be what `other` will be.
    fn connect(&self, other: LinkedPromise<A>) {
        let other = other.0.repr();
        let state = other.0.replace(PromiseNow::Taken);
        match state {
            PromiseNow::Ready(value) => self.fulfil(value),
            PromiseNow::Blocked(waiter) => {
                let promise = self.repr();
                if let (Some(_), PromiseNow::Blocked(own)) = (&waiter, &mut *promise.0.borrow_mut()) {
                    assert!(own.is_none(), "connect: two threads wait for one promise");
                    *own = waiter;
                }
                other.0.replace(PromiseNow::Linked(promise));
            }
            _ => panic!("connect: the promise is not blocked"),
        }
    }
}

fn blocked<A>() -> PromiseEnd<A> {
    PromiseEnd::new(PromiseNow::Blocked(None))
}

type Deferred = Box<dyn FnOnce()>;

thread_local! {
    static SYSTEM: System<Deferred> = const { System::new() };
}

/// A promise that the queue fulfils when its turn comes.
fn turn() -> LinkedPromise<()> {
    let promise = blocked();
    let later = promise.clone();
    SYSTEM.with(|system| system.enqueue(Box::new(move || later.fulfil(()))));
    LinkedPromise(promise)
}

fn wake<A: 'static>(promise: PromiseEnd<A>, value: A) {
    SYSTEM.with(|system| system.wake(Box::new(move || promise.fulfil(value))));
}

/// A promise that is left in a record, by `leave`, for the thread that fulfils it.
fn wait<C: 'static, A>(name: Name<C>, leave: impl FnOnce(&mut C, PromiseEnd<A>)) -> LinkedPromise<A> {
    let promise = blocked();
    SYSTEM.with(|system| {
        system.block();
        system.with(name, |record| leave(record, promise.clone()));
    });
    LinkedPromise(promise)
}

fn with<C: 'static, A>(name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
    SYSTEM.with(|system| system.with(name, with))
}

/// The implementation `promise`.
#[derive(Debug)]
pub enum PromiseMonad {}

impl Monad for PromiseMonad {
    type T<A: 'static> = LinkedPromise<A>;
    type MVar<A: 'static> = Name<MVarRecord<A, PromiseEnd<A>, PromiseEnd<()>>>;
    type Fifo<A: 'static> = Name<FifoRecord<A, PromiseEnd<A>>>;

    fn ret<A: 'static>(value: A) -> LinkedPromise<A> {
        LinkedPromise(PromiseEnd::new(PromiseNow::Ready(value)))
    }

    fn bind<A: 'static, B: 'static>(
        first: LinkedPromise<A>,
        then: impl FnOnce(A) -> LinkedPromise<B> + 'static,
    ) -> LinkedPromise<B> {
        let promise = first.0.repr();
        let state = promise.0.replace(PromiseNow::Taken);
        if let PromiseNow::Ready(value) = state {
            if SYSTEM.with(System::may_nest) {
                return then(value);
            }
            let result = blocked();
            let later = result.clone();
            SYSTEM.with(|system| system.bounce(Box::new(move || later.connect(then(value)))));
            return LinkedPromise(result);
        }
        let result = blocked();
        let later = result.clone();
        let waiter: OnReady<A> = Box::new(move |value| later.connect(then(value)));
        promise.0.replace(PromiseNow::Blocked(Some(waiter)));
        LinkedPromise(result)
    }

    fn spawn(thread: impl FnOnce() -> LinkedPromise<()> + 'static) {
        Self::bind(turn(), |()| thread());
    }

    fn skip() -> LinkedPromise<()> {
        Self::ret(())
    }

    fn yield_() -> LinkedPromise<()> {
        SYSTEM.with(|system| system.insist("yield"));
        turn()
    }

    fn halt() -> LinkedPromise<()> {
        SYSTEM.with(|system| system.insist("halt"));
        Self::ret(())
    }

    fn start() -> RunEnd {
        SYSTEM.with(|system| {
            system.start(|| {
                while let Some(thread) = system.dequeue() {
                    thread();
                }
            })
        })
    }

    fn stop() -> LinkedPromise<()> {
        SYSTEM.with(System::stop);
        Self::ret(())
    }

    fn make_mvar<A: 'static>() -> Self::MVar<A> {
        SYSTEM.with(|system| system.keep(MVarRecord::new()))
    }

    fn put_mvar<A: 'static>(out: Self::MVar<A>, value: A) -> LinkedPromise<()> {
        match with(out, |out| out.put(value)) {
            PutFound::Done => Self::ret(()),
            PutFound::Reader(reader, value) => {
                wake(reader, value);
                Self::ret(())
            }
            PutFound::Full(value) => wait(out, |out, writer| out.wait_to_put(writer, value)),
        }
    }

    fn take_mvar<A: 'static>(inp: Self::MVar<A>) -> LinkedPromise<A> {
        match with(inp, MVarRecord::take) {
            TakeFound::Value(value, writer) => {
                writer.into_iter().for_each(|writer| wake(writer, ()));
                Self::ret(value)
            }
            TakeFound::Empty => wait(inp, MVarRecord::wait_to_take),
        }
    }

    fn make_fifo<A: 'static>() -> Self::Fifo<A> {
        SYSTEM.with(|system| system.keep(FifoRecord::new()))
    }

    fn put_fifo<A: 'static>(out: Self::Fifo<A>, value: A) {
        if let Some((reader, value)) = with(out, |out| out.put(value)) {
            wake(reader, value);
        }
    }

    fn take_fifo<A: 'static>(inp: Self::Fifo<A>) -> LinkedPromise<A> {
        match with(inp, FifoRecord::take) {
            Some(value) => Self::ret(value),
            None => wait(inp, FifoRecord::wait_to_take),
        }
    }
}
