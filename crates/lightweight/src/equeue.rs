//! Events: a thread that waits is a handler, and whatever makes it go on is an event.
//!
//! An event is offered to the handlers in turn until one accepts it; an event that none accepts is
//! dropped. A handler is used once: it runs the rest of the thread, which sets up the next handler.
//! Each wait has an event of its own, which is known by the number of the handler.
//!
//! # What it teaches
//! Programming with events is trampolined style with another scheduler: the text of the programs is
//! the same. What costs time is the search for the handler, and that is a choice of the scheduler:
//! the parameter [`OfferOrder`].
//!
//! | Implementation | Which handlers an event is offered to |
//! |---|---|
//! | `equeue` | all, in the order in which they were set up |
//! | `equeue-after` | first the handlers that were set up after the handler that made the event |
//! | `equeue-directed` | the handler that waits for it |
//!
//! # Paper
//! [Del §5.4]; [Del §6] has the order of `equeue-after` as a remark.
//!
//! # Differences
//! 1. The paper's events carry an integer, so all MVars have one type. Here the value is boxed, and
//!    the handler, which knows the type, opens the box.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::event_system::{EventId, SYSTEM, add_handler, clear, deliver, event};
use crate::system::{Name, System};
use crate::{Indirect, RunEnd};
use std::marker::PhantomData;

pub use crate::event_system::{After, Directed, InTurn, OfferOrder};

/// The implementations `equeue`, `equeue-after` and `equeue-directed`.
#[derive(Debug)]
pub struct Equeue<O>(PhantomData<O>);

fn add_event<T: 'static>(id: EventId, value: T) {
    SYSTEM.with(|system| system.enqueue(event(id, value)));
}

fn wake<T: 'static>(id: EventId, value: T) {
    SYSTEM.with(|system| system.wake(event(id, value)));
}

fn with<C: 'static, A>(name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
    SYSTEM.with(|system| system.with(name, with))
}

/// Sets up a handler that goes on with the value for which it waits, and leaves its number.
fn wait<C: 'static, T: 'static>(
    name: Name<C>,
    rest: impl FnOnce(T) + 'static,
    leave: impl FnOnce(&mut C, EventId),
) {
    SYSTEM.with(System::block);
    let id = add_handler(rest);
    with(name, |record| leave(record, id));
}

/// Goes on with the running thread, by way of an event when the stack has grown.
fn go_on(rest: impl FnOnce() + 'static) {
    match SYSTEM.with(System::may_nest) {
        true => rest(),
        false => {
            let id = add_handler(|()| rest());
            SYSTEM.with(|system| system.bounce(event(id, ())));
        }
    }
}

impl<O: OfferOrder> Indirect for Equeue<O> {
    type Rest = ();
    type MVar<T: 'static> = Name<MVarRecord<T, EventId, EventId>>;
    type Fifo<T: 'static> = Name<FifoRecord<T, EventId>>;

    fn spawn(thread: impl FnOnce() + 'static) {
        add_event(add_handler(|()| thread()), ());
    }

    fn skip(rest: impl FnOnce() + 'static) {
        go_on(rest);
    }

    fn yield_(rest: impl FnOnce() + 'static) {
        SYSTEM.with(|system| system.insist("yield"));
        add_event(add_handler(|()| rest()), ());
    }

    fn halt() {
        SYSTEM.with(|system| system.insist("halt"));
    }

    fn start() -> RunEnd {
        let ended = SYSTEM.with(|system| {
            system.start(|| {
                while let Some(event) = system.dequeue() {
                    deliver::<O>(event);
                }
            })
        });
        clear();
        ended
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
                wake(reader, value);
                go_on(rest);
            }
            PutFound::Full(value) => wait(out, |()| rest(), |out, id| out.wait_to_put(id, value)),
        }
    }

    fn take_mvar<T: 'static>(inp: Self::MVar<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, MVarRecord::take) {
            TakeFound::Value(value, writer) => {
                writer.into_iter().for_each(|writer| wake(writer, ()));
                go_on(move || rest(value));
            }
            TakeFound::Empty => wait(inp, rest, |inp, id| inp.wait_to_take(id)),
        }
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        SYSTEM.with(|system| system.keep(FifoRecord::new()))
    }

    fn put_fifo<T: 'static>(out: Self::Fifo<T>, value: T) {
        if let Some((reader, value)) = with(out, |out| out.put(value)) {
            wake(reader, value);
        }
    }

    fn take_fifo<T: 'static>(inp: Self::Fifo<T>, rest: impl FnOnce(T) + 'static) {
        match with(inp, FifoRecord::take) {
            Some(value) => go_on(move || rest(value)),
            None => wait(inp, rest, |inp, id| inp.wait_to_take(id)),
        }
    }
}
