//! The promise monad: an operation returns at once, with a promise of its result.
//!
//! A promise is `Ready` with the value, `Blocked` with what waits for it, or `Linked` to another
//! promise, which it stands for. [`bind`](Monad::bind) goes on at once if the promise is ready. Otherwise it
//! returns a second promise, and leaves in the first one what will make the second.
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

use crate::channel::{Fifo, MVar, Put, Take};
use crate::system::{Name, System};
use crate::{Ended, Monad};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What runs with the value of a promise.
type Waiter<A> = Box<dyn FnOnce(A)>;

enum State<A> {
    Ready(A),
    /// With what waits for it, if `bind` has been called.
    Blocked(Option<Waiter<A>>),
    Linked(Shared<A>),
    /// `bind` has taken the value.
    Taken,
}

/// The end of a promise that fulfils it. A waiting thread leaves it in an MVar.
pub struct Shared<A>(Rc<RefCell<State<A>>>);

impl<A> fmt::Debug for Shared<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl<A> Clone for Shared<A> {
    fn clone(&self) -> Self {
        Shared(Rc::clone(&self.0))
    }
}

/// A value that is there, or will be.
pub struct Promise<A>(Shared<A>);

impl<A> fmt::Debug for Promise<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.0.repr().0.borrow() {
            State::Ready(_) => "Promise(ready)",
            _ => "Promise(blocked)",
        })
    }
}

impl<A> Shared<A> {
    fn new(state: State<A>) -> Self {
        Shared(Rc::new(RefCell::new(state)))
    }

    /// The promise at the end of the links.
    fn repr(&self) -> Shared<A> {
        match &*self.0.borrow() {
            State::Linked(other) => other.repr(),
            _ => self.clone(),
        }
    }

    /// Makes a blocked promise ready, and runs what waits for it.
    fn fulfil(&self, value: A) {
        let promise = self.repr();
        let state = promise.0.replace(State::Taken);
        match state {
            State::Blocked(Some(waiter)) => waiter(value),
            State::Blocked(None) => drop(promise.0.replace(State::Ready(value))),
            _ => panic!("fulfil: the promise is not blocked"),
        }
    }

    /// This promise will be what `other` will be.
    fn connect(&self, other: Promise<A>) {
        let other = other.0.repr();
        let state = other.0.replace(State::Taken);
        match state {
            State::Ready(value) => self.fulfil(value),
            State::Blocked(waiter) => {
                let promise = self.repr();
                if let (Some(_), State::Blocked(own)) = (&waiter, &mut *promise.0.borrow_mut()) {
                    assert!(own.is_none(), "connect: two threads wait for one promise");
                    *own = waiter;
                }
                other.0.replace(State::Linked(promise));
            }
            _ => panic!("connect: the promise is not blocked"),
        }
    }
}

fn blocked<A>() -> Shared<A> {
    Shared::new(State::Blocked(None))
}

type Thunk = Box<dyn FnOnce()>;

thread_local! {
    static SYSTEM: System<Thunk> = const { System::new() };
}

/// A promise that the queue fulfils when its turn comes.
fn turn() -> Promise<()> {
    let promise = blocked();
    let later = promise.clone();
    SYSTEM.with(|system| system.enqueue(Box::new(move || later.fulfil(()))));
    Promise(promise)
}

fn wake<A: 'static>(promise: Shared<A>, value: A) {
    SYSTEM.with(|system| system.wake(Box::new(move || promise.fulfil(value))));
}

/// A promise that is left in a record, by `leave`, for the thread that fulfils it.
fn wait<C: 'static, A>(name: Name<C>, leave: impl FnOnce(&mut C, Shared<A>)) -> Promise<A> {
    let promise = blocked();
    SYSTEM.with(|system| {
        system.block();
        system.with(name, |record| leave(record, promise.clone()));
    });
    Promise(promise)
}

fn with<C: 'static, A>(name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
    SYSTEM.with(|system| system.with(name, with))
}

/// The implementation `promise`.
#[derive(Debug)]
pub enum PromiseMonad {}

impl Monad for PromiseMonad {
    type T<A: 'static> = Promise<A>;
    type MVar<A: 'static> = Name<MVar<A, Shared<A>, Shared<()>>>;
    type Fifo<A: 'static> = Name<Fifo<A, Shared<A>>>;

    fn ret<A: 'static>(value: A) -> Promise<A> {
        Promise(Shared::new(State::Ready(value)))
    }

    fn bind<A: 'static, B: 'static>(
        first: Promise<A>,
        then: impl FnOnce(A) -> Promise<B> + 'static,
    ) -> Promise<B> {
        let promise = first.0.repr();
        let state = promise.0.replace(State::Taken);
        if let State::Ready(value) = state {
            if SYSTEM.with(System::may_nest) {
                return then(value);
            }
            let result = blocked();
            let later = result.clone();
            SYSTEM.with(|system| system.bounce(Box::new(move || later.connect(then(value)))));
            return Promise(result);
        }
        let result = blocked();
        let later = result.clone();
        let waiter: Waiter<A> = Box::new(move |value| later.connect(then(value)));
        promise.0.replace(State::Blocked(Some(waiter)));
        Promise(result)
    }

    fn spawn(thread: impl FnOnce() -> Promise<()> + 'static) {
        Self::bind(turn(), |()| thread());
    }

    fn skip() -> Promise<()> {
        Self::ret(())
    }

    fn yield_() -> Promise<()> {
        SYSTEM.with(|system| system.insist("yield"));
        turn()
    }

    fn halt() -> Promise<()> {
        SYSTEM.with(|system| system.insist("halt"));
        Self::ret(())
    }

    fn start() -> Ended {
        SYSTEM.with(|system| {
            system.start(|| {
                while let Some(thread) = system.dequeue() {
                    thread();
                }
            })
        })
    }

    fn stop() -> Promise<()> {
        SYSTEM.with(System::stop);
        Self::ret(())
    }

    fn make_mvar<A: 'static>() -> Self::MVar<A> {
        SYSTEM.with(|system| system.keep(MVar::new()))
    }

    fn put_mvar<A: 'static>(out: Self::MVar<A>, value: A) -> Promise<()> {
        match with(out, |out| out.put(value)) {
            Put::Done => Self::ret(()),
            Put::Reader(reader, value) => {
                wake(reader, value);
                Self::ret(())
            }
            Put::Full(value) => wait(out, |out, writer| out.wait_to_put(writer, value)),
        }
    }

    fn take_mvar<A: 'static>(inp: Self::MVar<A>) -> Promise<A> {
        match with(inp, MVar::take) {
            Take::Value(value, writer) => {
                writer.into_iter().for_each(|writer| wake(writer, ()));
                Self::ret(value)
            }
            Take::Empty => wait(inp, MVar::wait_to_take),
        }
    }

    fn make_fifo<A: 'static>() -> Self::Fifo<A> {
        SYSTEM.with(|system| system.keep(Fifo::new()))
    }

    fn put_fifo<A: 'static>(out: Self::Fifo<A>, value: A) {
        if let Some((reader, value)) = with(out, |out| out.put(value)) {
            wake(reader, value);
        }
    }

    fn take_fifo<A: 'static>(inp: Self::Fifo<A>) -> Promise<A> {
        match with(inp, Fifo::take) {
            Some(value) => Self::ret(value),
            None => wait(inp, Fifo::wait_to_take),
        }
    }
}
