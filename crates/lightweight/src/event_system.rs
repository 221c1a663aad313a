//! The event system under `equeue`: events ([`OwnEvent`]), handlers, and the orders in which an
//! event is offered to them ([`OfferOrder`]).
//!
//! It stands where the paper has the module Equeue of OCamlNet. A handler is asked about every
//! event that is offered to it, and accepts its own.

use crate::system::System;
use std::any::Any;
use std::cell::{Cell, RefCell};

/// The number of a handler, and of the event that it waits for.
pub(crate) type EventId = u64;

/// `Go`, `Written` and `Read` are one kind here: what is written carries `()`.
pub(crate) struct OwnEvent {
    id: EventId,
    /// The handler that made it.
    by: EventId,
    value: Option<Box<dyn Any>>,
}

/// What a handler says of an event.
#[derive(PartialEq)]
enum Offered {
    /// Not mine.
    Reject,
    /// Accepted; the handler is removed.
    Terminate,
}

type OwnHandler = Box<dyn FnMut(&mut OwnEvent) -> Offered>;

thread_local! {
    /// Its queue has the events.
    pub(crate) static SYSTEM: System<OwnEvent> = const { System::new() };
    /// The handlers by number. A place without a handler is cleared later.
    static HANDLERS: RefCell<Vec<(EventId, Option<OwnHandler>)>> = const { RefCell::new(Vec::new()) };
    static LAST: Cell<EventId> = const { Cell::new(0) };
    static RUNNING: Cell<EventId> = const { Cell::new(0) };
    static REMOVED: Cell<usize> = const { Cell::new(0) };
}

/// Sets up a one-shot handler for an event of its own.
pub(crate) fn add_handler<T: 'static>(rest: impl FnOnce(T) + 'static) -> EventId {
    let id = LAST.get() + 1;
    LAST.set(id);
    let mut rest = Some(rest);
    let handler = move |event: &mut OwnEvent| {
        if event.id != id {
            return Offered::Reject;
        }
        let value = event.value.take().and_then(|value| value.downcast().ok());
        if let (Some(rest), Some(value)) = (rest.take(), value) {
            rest(*value);
        }
        Offered::Terminate
    };
    HANDLERS.with_borrow_mut(|handlers| handlers.push((id, Some(Box::new(handler)))));
    id
}

/// An event that the running handler makes.
pub(crate) fn event<T: 'static>(id: EventId, value: T) -> OwnEvent {
    OwnEvent { id, by: RUNNING.get(), value: Some(Box::new(value)) }
}

/// The place of the first handler with at least this number.
fn place(id: EventId) -> usize {
    HANDLERS.with_borrow(|handlers| handlers.partition_point(|(other, _)| *other < id))
}

/// Offers the event to the handler at a place, and says whether it has been accepted.
fn offer(place: usize, event: &mut OwnEvent) -> bool {
    let taken = HANDLERS.with_borrow_mut(|handlers| {
        let (id, handler) = handlers.get_mut(place)?;
        Some((*id, handler.take()?))
    });
    let Some((id, mut handler)) = taken else { return false };
    RUNNING.set(id);
    if handler(event) == Offered::Reject {
        HANDLERS.with_borrow_mut(|handlers| handlers[place].1 = Some(handler));
        return false;
    }
    true
}

/// Forgets the places without a handler when they are the larger part.
fn removed() {
    REMOVED.set(REMOVED.get() + 1);
    HANDLERS.with_borrow_mut(|handlers| {
        if REMOVED.get() > handlers.len() / 2 {
            handlers.retain(|(_, handler)| handler.is_some());
            REMOVED.set(0);
        }
    });
}

/// To which handlers an event is offered, and in which order.
pub trait OfferOrder: 'static {
    /// The places to begin at, one after the other, for the event `id` that the handler `by` made.
    #[doc(hidden)]
    fn from(id: u64, by: u64) -> [Option<usize>; 2];
    /// How many handlers are asked from there.
    #[doc(hidden)]
    const SOME: usize;
}

/// All handlers, in the order in which they were set up.
#[derive(Debug)]
pub enum InTurn {}

impl OfferOrder for InTurn {
    fn from(_: u64, _: u64) -> [Option<usize>; 2] {
        [Some(0), None]
    }
    const SOME: usize = usize::MAX;
}

/// First the handlers that were set up after the handler that made the event.
#[derive(Debug)]
pub enum After {}

impl OfferOrder for After {
    fn from(_: u64, by: u64) -> [Option<usize>; 2] {
        [Some(place(by + 1)), Some(0)]
    }
    const SOME: usize = usize::MAX;
}

/// The handler that waits for the event.
#[derive(Debug)]
pub enum Directed {}

impl OfferOrder for Directed {
    fn from(id: u64, _: u64) -> [Option<usize>; 2] {
        [Some(place(id)), None]
    }
    const SOME: usize = 1;
}

/// Offers an event to the handlers until one accepts it.
pub(crate) fn deliver<O: OfferOrder>(mut event: OwnEvent) {
    let handlers = HANDLERS.with_borrow(Vec::len);
    for first in O::from(event.id, event.by).into_iter().flatten() {
        let end = first.saturating_add(O::SOME).min(handlers);
        if (first..end).any(|place| offer(place, &mut event)) {
            return removed();
        }
    }
}

/// Drops all handlers.
pub(crate) fn clear() {
    drop(HANDLERS.take());
    REMOVED.set(0);
}
