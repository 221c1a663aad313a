//! Delimited continuations: a thread is the stack above its prompt.
//!
//! The scheduler is a queue and a loop. A thread that blocks captures the stack up to its prompt,
//! leaves it in the MVar, and is back in the loop; the loop puts the next stack on top of itself.
//!
//! # What it teaches
//! The text of a program stays in direct style, because the library takes the continuation from
//! the machine. The price is a stack for each thread that has begun: pages instead of bytes. A
//! thread that has not begun is only a closure.
//!
//! # Paper
//! [Del §4.2].
//!
//! # Differences
//! 1. Continuations are one-shot, as the paper wishes in its section 6; the file `stack.rs` says
//!    why others cannot exist in Rust.
//! 2. `halt` unwinds the stack, so destructors run.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::stack::{Resumer, StackRest, halt, panics, push_prompt, shift0, shift0_for};
use crate::system::{Name, System};
use crate::{Direct, RunEnd};

thread_local! {
    static SYSTEM: System<StackRest> = const { System::new() };
}

/// The implementation `dlcont`.
#[derive(Debug)]
pub enum Dlcont {}

fn enqueue(thread: StackRest) {
    SYSTEM.with(|system| system.enqueue(thread));
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

impl Direct for Dlcont {
    type MVar<T: Send + 'static> = Name<MVarRecord<T, Resumer<T>, StackRest>>;
    type Fifo<T: Send + 'static> = Name<FifoRecord<T, Resumer<T>>>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        enqueue(push_prompt(|| {
            if panics(thread) && SYSTEM.with(System::is_running) {
                SYSTEM.with(System::panicked);
            }
        }));
    }

    fn yield_() {
        shift0(enqueue);
    }

    fn halt() -> ! {
        SYSTEM.with(|system| system.insist("halt"));
        halt()
    }

    fn start() -> RunEnd {
        SYSTEM.with(|system| {
            system.start(|| {
                while let Some(thread) = system.dequeue() {
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
                shift0(move |rest| with(out, |out| out.wait_to_put(rest, value)));
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
                shift0_for(move |rest| with(inp, |inp| inp.wait_to_take(rest)))
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
            shift0_for(move |rest| with(inp, |inp| inp.wait_to_take(rest)))
        })
    }
}
