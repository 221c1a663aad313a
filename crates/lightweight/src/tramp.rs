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

use crate::channel::{Fifo, MVar, Put, Take};
use crate::system::{Name, System};
use crate::{Ended, Indirect};

/// A thread that is ready: a closure without arguments.
type Thunk = Box<dyn FnOnce()>;
/// A thread that waits for a value.
type Reader<T> = Box<dyn FnOnce(T)>;

thread_local! {
    static SYSTEM: System<Thunk> = const { System::new() };
}

/// The implementation `tramp`.
#[derive(Debug)]
pub enum Tramp {}

fn enqueue(thread: Thunk) {
    SYSTEM.with(|system| system.enqueue(thread));
}

fn block() {
    SYSTEM.with(System::block);
}

fn wake(thread: Thunk) {
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
    type MVar<T: 'static> = Name<MVar<T, Reader<T>, Thunk>>;
    type Fifo<T: 'static> = Name<Fifo<T, Reader<T>>>;

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

    fn start() -> Ended {
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
        SYSTEM.with(|system| system.keep(MVar::new()))
    }

    fn put_mvar<T: 'static>(out: Self::MVar<T>, value: T, rest: impl FnOnce() + 'static) {
        match with(out, |out| out.put(value)) {
            Put::Done => go_on(rest),
            Put::Reader(reader, value) => {
                wake(Box::new(move || reader(value)));
                go_on(rest);
            }
            Put::Full(value) => {
                block();
                with(out, |out| out.wait_to_put(Box::new(rest), value));
            }
        }
    }

    fn take_mvar<T: 'static>(inp: Self::MVar<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, MVar::take) {
            Take::Value(value, writer) => {
                writer.into_iter().for_each(wake);
                go_on(move || rest(value));
            }
            Take::Empty => {
                block();
                with(inp, |inp| inp.wait_to_take(Box::new(rest)));
            }
        }
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        SYSTEM.with(|system| system.keep(Fifo::new()))
    }

    fn put_fifo<T: 'static>(out: Self::Fifo<T>, value: T) {
        if let Some((reader, value)) = with(out, |out| out.put(value)) {
            wake(Box::new(move || reader(value)));
        }
    }

    fn take_fifo<T: 'static>(inp: Self::Fifo<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, Fifo::take) {
            Some(value) => go_on(move || rest(value)),
            None => {
                block();
                with(inp, |inp| inp.wait_to_take(Box::new(rest)));
            }
        }
    }
}
