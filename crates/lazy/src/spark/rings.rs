//! [`Rings`]: the rings and the counts of one OS thread, and the registry of all of them.
//!
//! `join.rs` and `par` push into the rings of the running OS thread, and the converters take from
//! those of others. An OS thread is in the registry from its first spark until its end. The ring of
//! halves has addresses of halves on the stack, and the ring of values has handles.

use super::counts::{RingCounts, SparkCounts};
use super::join::Half;
use crate::node::NodeHandle;
use crate::primitives::learn;
use crate::ring::SparkRing;
use std::cell::{Cell, OnceCell};
use std::ptr::{self, NonNull};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The rings of one OS thread.
pub(super) struct Rings {
    pub(super) halves: SparkRing,
    pub(super) values: SparkRing,
    pub(super) counts: RingCounts,
}

impl Rings {
    pub(super) fn has_items(&self) -> bool {
        self.halves.has_items() || self.values.has_items()
    }

    /// Adds the counts of this OS thread.
    pub(super) fn add_to(&self, sum: &mut SparkCounts) {
        sum.created += self.counts.created.get();
        sum.converted += self.counts.converted.get();
        sum.fizzled += self.counts.fizzled.get();
        sum.overflowed += self.counts.overflowed.get();
        sum.dud += self.counts.dud.get();
        sum.halves_taken += self.counts.halves_taken.get();
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        while let Some(item) = self.values.pop() {
            // SAFETY: the ring of values has handles, and this one was taken from it. The node may
            // be freed here, long after the program has dropped its handles: its value and body are
            // `'static`, by `NodeHandle::new` and `NodeHandle::ready`.
            drop(unsafe { handle_of(item) });
        }
    }
}

/// The rings of all OS threads.
#[derive(Default)]
pub(super) struct RingRegistry {
    pub(super) rings: Vec<Arc<Rings>>,
    /// The counts of OS threads that have ended.
    pub(super) gone: SparkCounts,
}

static REGISTRY: LazyLock<Mutex<RingRegistry>> = LazyLock::new(Mutex::default);

pub(super) fn registry() -> MutexGuard<'static, RingRegistry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rings of this OS thread, in the registry until it ends.
struct Mine(Arc<Rings>);

impl Drop for Mine {
    fn drop(&mut self) {
        RINGS.set(ptr::null());
        let mut registry = registry();
        registry.rings.retain(|rings| !Arc::ptr_eq(rings, &self.0));
        self.0.add_to(&mut registry.gone);
    }
}

std::thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
    /// The rings in `MINE`, or null. It has no destructor, so a look at it is one load.
    static RINGS: Cell<*const Rings> = const { Cell::new(ptr::null()) };
}

/// Passes the rings of this OS thread.
#[inline(always)]
pub(super) fn with_mine<R>(work: impl FnOnce(&Rings) -> R) -> R {
    let known = RINGS.get();
    let rings = if known.is_null() { mine() } else { known };
    // SAFETY: `MINE` keeps the rings until the OS thread ends.
    work(unsafe { &*rings })
}

/// The rings of this OS thread, which is new.
#[cold]
#[inline(never)]
fn mine() -> *const Rings {
    MINE.with(|mine| Arc::as_ptr(&mine.get_or_init(enlist).0))
}

fn enlist() -> Mine {
    learn();
    let rings =
        Arc::new(Rings { halves: SparkRing::new(), values: SparkRing::new(), counts: RingCounts::default() });
    registry().rings.push(rings.clone());
    RINGS.set(Arc::as_ptr(&rings));
    Mine(rings)
}

/// Takes the values out of the rings of all OS threads. The caller drops them.
#[must_use = "dropping them may need the lock"]
pub(super) fn take_values() -> Vec<NodeHandle> {
    let (mine, registry) = (RINGS.get(), registry());
    let mut values = Vec::new();
    for rings in &registry.rings {
        let is_owner = ptr::eq(Arc::as_ptr(rings), mine);
        while rings.values.has_items() {
            // The owner's way costs no heavy fence.
            let item = if is_owner { rings.values.pop() } else { rings.values.steal() };
            // SAFETY: the ring of values has handles, and this one was taken from it.
            values.extend(item.map(|item| unsafe { handle_of(item) }));
        }
    }
    values
}

/// # Safety
/// The word is from a ring of halves.
pub(super) unsafe fn half_of(item: usize) -> NonNull<Half> {
    // SAFETY: `join` has pushed the address of a half.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(item)) }
}

/// # Safety
/// The word was taken from a ring of values, by its one taker.
pub(super) unsafe fn handle_of(item: usize) -> NodeHandle {
    // SAFETY: `par` has pushed a handle as a word.
    unsafe { NodeHandle::from_raw(NonNull::new_unchecked(ptr::with_exposed_provenance_mut(item))) }
}
