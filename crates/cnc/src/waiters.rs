//! The memory of suspended steps: [`WaiterMemory`] for a graph, [`WaiterPool`] for a worker.
//!
//! A worker takes a place for each step that misses an item, and gets one back for each step that
//! it wakes. The places are those of `places.rs`, so a miss costs no call of the allocator.
//!
//! `WorkerMemory` has the `WaiterMemory`, and each `StepContext` has a `WaiterPool`.
//! `SlotState::wait` takes a place and links it into the item's list. `WokenSteps::pop`, on the
//! worker that has put the item, takes the step out and keeps the place in its own pool.
//!
//! # Lifetimes
//! A step that still waits at the end of the graph is dropped in `Core::close`, after the lifetime
//! `'g` of the graph, and with it its tag or, if it was forked, its closure. `StepContext::fork`
//! demands `'g` of the closure, and `Graph::tags` of the tags. As the head of `arena.rs` says, all
//! that they borrow outlives the call of `graph` then, and a shorter borrow does not compile:
//! ```compile_fail,E0597
//! use selvedge::cnc::{self, schedulers::OneByOne};
//!
//! cnc::graph(|graph| {
//!     let text = String::from("too short");
//!     let text = &text;
//!     let items = graph.items::<u32, usize>("items");
//!     graph.initialize(|env| {
//!         env.fork(move |step| step.get(items, 1).map(|n| assert_eq!(*n, text.len())))
//!     }).unwrap();
//!     let _ = graph.run(&OneByOne);
//! });
//! ```
//!
//! A place has one owner at a time: a pool, or the list of one item. The list passes the places on
//! by the exchange of the item's state word, and the pools need no atomic operation.

use crate::places::{PlaceMemory, PlacePool};
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// A suspended step, in the list of the item that it waits for; or a free place.
#[repr(align(8))]
pub(crate) struct SuspendedStep<R> {
    /// Initialised from [`WaiterPool::place`] until [`WaiterPool::take_out`].
    pub(crate) ready: MaybeUninit<R>,
    /// The address of the next one, or 0. [`SlotState::wait`](crate::slot::SlotState::wait) writes
    /// it.
    pub(crate) next: u64,
}

/// The place that has an address, which [`WaiterPool::place`] has exposed.
#[inline]
pub(crate) fn place_at<R>(address: u64) -> *mut SuspendedStep<R> {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// The places of a graph.
///
/// The type parameter is in no field with a destructor, because a graph is borrowed for the
/// lifetime that is in it.
pub(crate) struct WaiterMemory<R> {
    places: PlaceMemory,
    of: PhantomData<fn(R) -> R>,
}

impl<R> WaiterMemory<R> {
    pub(crate) fn new() -> WaiterMemory<R> {
        WaiterMemory { places: PlaceMemory::new(Layout::new::<SuspendedStep<R>>()), of: PhantomData }
    }
}

/// The free places of one worker.
pub(crate) struct WaiterPool<'m, R> {
    places: PlacePool<'m>,
    of: PhantomData<fn(R) -> R>,
}

impl<'m, R> WaiterPool<'m, R> {
    pub(crate) fn new(memory: &'m WaiterMemory<R>) -> WaiterPool<'m, R> {
        WaiterPool { places: PlacePool::new(&memory.places), of: PhantomData }
    }

    /// A place with a step.
    #[inline]
    pub(crate) fn place(&self, ready: R) -> *mut SuspendedStep<R> {
        let place: *mut SuspendedStep<R> = self.places.take().cast();
        // SAFETY: the place is for a `SuspendedStep<R>`, by `WaiterMemory::new`, and the caller's.
        unsafe { (*place).ready = MaybeUninit::new(ready) };
        place
    }

    /// Takes the step out of a place, which becomes free. Returns the address of the next one too.
    ///
    /// # Safety
    /// The place is one of [`place`](WaiterPool::place) of a pool of the same memory. The caller is
    /// its only user.
    #[inline]
    pub(crate) unsafe fn take_out(&self, place: *mut SuspendedStep<R>) -> (R, u64) {
        // SAFETY: as promised by the caller, so there is a step in the place.
        unsafe {
            let (ready, next) = ((*place).ready.assume_init_read(), (*place).next);
            self.places.give(place.cast());
            (ready, next)
        }
    }
}
