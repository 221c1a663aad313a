//! Trampolined style: an operation gets its continuation as a closure, and calls it or keeps it.
//!
//! The whole of a thread that waits is that closure, on the heap. Nothing captures it: the program
//! wrote it. The scheduler is a queue of closures and a loop that calls them.
//!
//! # What it teaches
//! A thread is what it will do next. If the program names that, a thread costs one small
//! allocation, and a switch costs one call through a pointer.
//!
//! # Paper
//! [Del §5.1], [Del Figure 5].
//!
//! # Differences
//! 1. A call in tail position is a call in Rust, and takes stack. After 64 of them without a
//!    blocking operation, the rest of the thread bounces: the loop calls it, before all others.
//! 2. `take_mvar` is polymorphic without a cast.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::system::{Name, System};
use crate::{Indirect, RunEnd};

/// A thread that is ready: a closure without arguments.
type Closure = Box<dyn FnOnce()>;
/// A thread that waits for a value.
type ClosureFor<T> = Box<dyn FnOnce(T)>;

thread_local! {
    static SYSTEM: System<Closure> = const { System::new() };
}

/// The implementation `tramp`.
#[derive(Debug)]
pub enum Tramp {}

fn enqueue(thread: Closure) {
    SYSTEM.with(|system| system.enqueue(thread));
}

fn block() {
    SYSTEM.with(System::block);
}

fn wake(thread: Closure) {
    SYSTEM.with(|system| system.wake(thread));
}

fn with<C: 'static, A>(name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
    SYSTEM.with(|system| system.with(name, with))
}

/// Goes on with the running thread.
fn go_on(rest: impl FnOnce() + 'static) {
    match SYSTEM.with(System::may_nest) {
        true => rest(),
        false => SYSTEM.with(|system| system.bounce(Box::new(rest))),
    }
}

impl Indirect for Tramp {
    type Rest = ();
    type MVar<T: 'static> = Name<MVarRecord<T, ClosureFor<T>, Closure>>;
    type Fifo<T: 'static> = Name<FifoRecord<T, ClosureFor<T>>>;

    fn spawn(thread: impl FnOnce() + 'static) {
        enqueue(Box::new(thread));
    }

    fn skip(rest: impl FnOnce() + 'static) {
        go_on(rest);
    }

    fn yield_(rest: impl FnOnce() + 'static) {
        SYSTEM.with(|system| system.insist("yield"));
        enqueue(Box::new(rest));
    }

    fn halt() {
        SYSTEM.with(|system| system.insist("halt"));
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

    fn stop() {
        SYSTEM.with(System::stop);
    }

    fn make_mvar<T: 'static>() -> Self::MVar<T> {
        SYSTEM.with(|system| system.keep(MVarRecord::new()))
    }

    fn put_mvar<T: 'static>(out: Self::MVar<T>, value: T, rest: impl FnOnce() + 'static) {
        match with(out, |out| out.put(value)) {
            PutFound::Done => go_on(rest),
            PutFound::Reader(reader, value) => {
                wake(Box::new(move || reader(value)));
                go_on(rest);
            }
            PutFound::Full(value) => {
                block();
                with(out, |out| out.wait_to_put(Box::new(rest), value));
            }
        }
    }

    fn take_mvar<T: 'static>(inp: Self::MVar<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, MVarRecord::take) {
            TakeFound::Value(value, writer) => {
                writer.into_iter().for_each(wake);
                go_on(move || rest(value));
            }
            TakeFound::Empty => {
                block();
                with(inp, |inp| inp.wait_to_take(Box::new(rest)));
            }
        }
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        SYSTEM.with(|system| system.keep(FifoRecord::new()))
    }

    fn put_fifo<T: 'static>(out: Self::Fifo<T>, value: T) {
        if let Some((reader, value)) = with(out, |out| out.put(value)) {
            wake(Box::new(move || reader(value)));
        }
    }

    fn take_fifo<T: 'static>(inp: Self::Fifo<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, FifoRecord::take) {
            Some(value) => go_on(move || rest(value)),
            None => {
                block();
                with(inp, |inp| inp.wait_to_take(Box::new(rest)));
            }
        }
    }
}
