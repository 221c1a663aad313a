//! [`Run`]: a scheduler in which sparks were made, with the number of its converters.
//!
//! `rings.rs` says which run the values in a ring belong to. `converter.rs` hires the converters of
//! a run, and drops the values of a run that ends.

use selvedge_core::Adopt;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A scheduler in which sparks were made. It has a converter, or it has no sparks.
pub(super) struct Run {
    /// Also a scheduler that has ended keeps its address, as long as this is there.
    scheduler: Weak<dyn Adopt>,
    converters: AtomicUsize,
}

impl Run {
    /// A run without converters.
    pub(super) fn of(scheduler: &Arc<dyn Adopt>) -> Run {
        Run { scheduler: Arc::downgrade(scheduler), converters: AtomicUsize::new(0) }
    }

    pub(super) fn is_of(&self, scheduler: &Arc<dyn Adopt>) -> bool {
        ptr::addr_eq(self.scheduler.as_ptr(), Arc::as_ptr(scheduler))
    }

    /// The scheduler, unless it is gone.
    pub(super) fn scheduler(&self) -> Option<Arc<dyn Adopt>> {
        self.scheduler.upgrade()
    }

    /// Whether the scheduler is gone.
    pub(super) fn is_over(&self) -> bool {
        self.scheduler.strong_count() == 0
    }

    #[inline(always)]
    pub(super) fn has_converter(&self) -> bool {
        self.converters.load(Ordering::Relaxed) != 0
    }

    /// Counts one more converter, if none is there or fewer than `max()`. One may always be there,
    /// so `max` is not called for the first one.
    pub(super) fn admit(&self, max: impl Fn() -> usize) -> bool {
        let more = |there: usize| (there == 0 || there < max()).then_some(there + 1);
        self.converters.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more).is_ok()
    }

    /// Takes a converter off the count. Returns whether it was the last one.
    pub(super) fn dismiss(&self) -> bool {
        self.converters.fetch_sub(1, Ordering::SeqCst) == 1
    }
}
