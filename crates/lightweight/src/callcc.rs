//! Whole continuations: a thread that stops chooses the next one, and throws it.
//!
//! There is no scheduler. The queue has the continuations of the threads that are ready, and `e` is
//! the continuation of the call to `start`. `yield` captures, enqueues, and throws the first of the
//! queue; when the queue is empty, `e` is thrown, and `start` returns.
//!
//! # What it teaches
//! A scheduler need not exist: its decision can be made by each thread that stops. Compare
//! `dlcont`, where the loop decides. The time is the same, because both switch stacks.
//!
//! # Paper
//! [Del §4.1].
//!
//! # Differences
//! 1. To throw is to return to the place where `start` was called, with the name of the
//!    continuation that goes on from there (`throw`). Two stacks of Selvedge cannot switch to one
//!    another. The loop in `start` decides nothing.
//! 2. A continuation is a stack and not a copy of one, so `stop` is no exception: the other stacks
//!    are unwound one by one.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::stack::{Resumer, StackRest, halt, panics, push_prompt, shift0, shift0_for};
use crate::system::{Name, System};
use crate::{Direct, RunEnd};
use std::cell::Cell;

thread_local! {
    static SYSTEM: System<StackRest> = const { System::new() };
    /// The continuation that was thrown; `None` is `e`.
    static THROWN: Cell<Option<StackRest>> = const { Cell::new(None) };
}

/// The implementation `callcc`.
#[derive(Debug)]
pub enum Callcc {}

fn enqueue(thread: StackRest) {
    SYSTEM.with(|system| system.enqueue(thread));
}

/// The next thread, or `e`.
fn dequeue() -> Option<StackRest> {
    SYSTEM.with(System::dequeue)
}

fn throw(next: Option<StackRest>) {
    THROWN.set(next);
}

/// Gives the running continuation to `keep`, and throws the next.
fn callcc(keep: impl FnOnce(StackRest) + 'static) {
    shift0(|rest| {
        keep(rest);
        throw(dequeue());
    });
}

/// As [`callcc`], for a continuation that is thrown with a value.
fn callcc_for<T: 'static>(keep: impl FnOnce(Resumer<T>) + 'static) -> T {
    shift0_for(|rest| {
        keep(rest);
        throw(dequeue());
    })
}

fn block() {
    SYSTEM.with(System::block);
}

fn wake(thread: StackRest) {
    SYSTEM.with(|system| system.wake(thread));
}

fn with<C: 'static, A>(name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
    SYSTEM.with(|system| system.with(name, with))
}

impl Direct for Callcc {
    type MVar<T: Send + 'static> = Name<MVarRecord<T, Resumer<T>, StackRest>>;
    type Fifo<T: Send + 'static> = Name<FifoRecord<T, Resumer<T>>>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        enqueue(push_prompt(|| {
            let panicked = panics(thread);
            if SYSTEM.with(System::is_running) {
                if panicked {
                    SYSTEM.with(System::panicked);
                }
                throw(dequeue());
            }
        }));
    }

    fn yield_() {
        callcc(enqueue);
    }

    fn halt() -> ! {
        SYSTEM.with(|system| system.insist("halt"));
        halt()
    }

    fn start() -> RunEnd {
        SYSTEM.with(|system| {
            system.start(|| {
                throw(dequeue());
                while let Some(thread) = THROWN.take() {
                    thread.resume();
                }
            })
        })
    }

    fn stop() -> ! {
        SYSTEM.with(System::stop);
        halt()
    }

    fn make_mvar<T: Send + 'static>() -> Self::MVar<T> {
        SYSTEM.with(|system| system.keep(MVarRecord::new()))
    }

    fn put_mvar<T: Send + 'static>(out: &Self::MVar<T>, value: T) {
        let out = *out;
        match with(out, |out| out.put(value)) {
            PutFound::Done => {}
            PutFound::Reader(reader, value) => wake(reader.with(value)),
            PutFound::Full(value) => {
                block();
                callcc(move |rest| with(out, |out| out.wait_to_put(rest, value)));
            }
        }
    }

    fn take_mvar<T: Send + 'static>(inp: &Self::MVar<T>) -> T {
        let inp = *inp;
        match with(inp, MVarRecord::take) {
            TakeFound::Value(value, writer) => {
                writer.into_iter().for_each(wake);
                value
            }
            TakeFound::Empty => {
                block();
                callcc_for(move |rest| with(inp, |inp| inp.wait_to_take(rest)))
            }
        }
    }

    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T> {
        SYSTEM.with(|system| system.keep(FifoRecord::new()))
    }

    fn put_fifo<T: Send + 'static>(out: &Self::Fifo<T>, value: T) {
        if let Some((reader, value)) = with(*out, |out| out.put(value)) {
            wake(reader.with(value));
        }
    }

    fn take_fifo<T: Send + 'static>(inp: &Self::Fifo<T>) -> T {
        let inp = *inp;
        with(inp, FifoRecord::take).unwrap_or_else(|| {
            block();
            callcc_for(move |rest| with(inp, |inp| inp.wait_to_take(rest)))
        })
    }
}
