//! [`SparkCounts`]: what became of sparks.
//!
//! Each OS thread counts in the [`RingCounts`] of its own rings, so a count is a load and a store.
//! [`spark_counts`](super::spark_counts) adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of sparks, since the process began.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, par, spark_counts};
///
/// selvedge::run(async {
///     let before = spark_counts();
///     let value = Lazy::new(|| 6 * 7);
///     par(&value);
///     assert_eq!(*value.force().await, 42);
///     par(&value);
///     let now = spark_counts();
///     assert_eq!((now.created - before.created, now.dud - before.dud), (1, 1));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SparkCounts {
    /// Lazy values that were put into a ring.
    pub created: u64,
    /// The sparks that a converter has evaluated.
    pub converted: u64,
    /// The sparks that a converter has found evaluated, or under evaluation.
    pub fizzled: u64,
    /// The sparks for which the ring had no room, or that were made outside of a scheduler.
    pub overflowed: u64,
    /// The values that were evaluated already when they were to be sparked.
    pub dud: u64,
    /// Halves of [`join`](super::join())s that another worker has done.
    pub halves_taken: u64,
}

/// A count that one OS thread writes.
#[derive(Default)]
pub(super) struct SparkCount(AtomicU64);

impl SparkCount {
    #[inline(always)]
    pub(super) fn add_one(&self) {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count + 1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of one OS thread.
#[derive(Default)]
pub(super) struct RingCounts {
    pub(super) created: SparkCount,
    pub(super) converted: SparkCount,
    pub(super) fizzled: SparkCount,
    pub(super) overflowed: SparkCount,
    pub(super) dud: SparkCount,
    pub(super) halves_taken: SparkCount,
}
