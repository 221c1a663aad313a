//! Sparks: work that an idle worker may do, and that is no loss if none does. [`join`], [`par`] and
//! the counts.
//!
//! | | |
//! |---|---|
//! | `counts.rs` | what became of sparks |
//! | `run.rs` | a scheduler in which sparks were made |
//! | `rings.rs` | the rings of an OS thread, and all of them |
//! | `converter.rs` | the threads that take from the rings of others |
//! | `join.rs` | two closures at the same time |
//!
//! Each OS thread has two rings (`ring.rs`): one for the second halves of [`join`]s, which lie
//! on its stack, and one for lazy values. A **converter** is a thread of the scheduler that takes
//! from the rings of others; each scheduler's own rules say which worker runs it, and a worker that
//! sleeps is woken for it.
//!
//! # Callers
//! The program, and the maps of `strategy.rs` and `adapters.rs`, call [`join`], [`par`] and
//! [`pseq`]. A spark may be dropped at any time, so only code that forces the value itself may rely
//! on it.

mod converter;
mod counts;
mod join;
mod rings;
mod run;

pub use counts::SparkCounts;
pub use join::join;

use self::converter::hire_for_value;
use self::rings::{is_at_home, move_in, registry, with_mine};
use crate::node::{IDLE, NodeHandle};
use crate::value::Lazy;
use selvedge_core::in_thread;

/// Sparks a lazy value: an idle worker of the scheduler may evaluate it, before a thread needs it.
///
/// A spark costs a few instructions, and may be dropped: it is evaluated by the thread that needs
/// it, or never. The sparks that are left at the end of a run are dropped, with the values that
/// they have captured. [`spark_counts`] tells what became of the sparks.
///
/// # Several runs at once
/// Where two runs of a process overlap, an idle worker of either may evaluate the sparks of the
/// other. A run that ends drops its own sparks, and leaves those of the other run.
///
/// # Paper
/// [HMP05 §2.1]: `par` adds its first argument to the pool of work for unemployed processors.
///
/// # Differences
/// 1. Continuing with the second argument is the next statement of the program, or [`pseq`].
#[inline]
pub fn par<T: Send + Sync + 'static>(value: &Lazy<T>) {
    spark(value.node());
}

/// The second value, forced after the first: with [`par`] for the second before it, an idle worker
/// may have made the second meanwhile.
///
/// # Panics
/// If one of them has no value: see [`Lazy::force`].
///
/// # Paper
/// [HMP05 §9] leaves strategies to later work; this is the `pseq` that they have with `par`.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, par, pseq};
///
/// selvedge::run(async {
///     let (warp, weft) = (Lazy::new(|| 6), Lazy::new(|| 7));
///     par(&weft);
///     assert_eq!(*pseq(&warp, &weft).await * warp.get().unwrap(), 42);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[track_caller]
pub fn pseq<'a, A, B>(first: &'a Lazy<A>, second: &'a Lazy<B>) -> impl Future<Output = &'a B> {
    let (first, second) = (first.force(), second.force());
    async {
        first.await;
        second.await
    }
}

fn spark(node: &NodeHandle) {
    with_mine(|mine| {
        if node.head().state() != IDLE {
            return mine.counts.dud.add_one();
        }
        // A converter evaluates it within a step. Outside of one a body may do more: it may block.
        if !in_thread() {
            return mine.counts.overflowed.add_one();
        }
        if !is_at_home() {
            come_home();
        }
        let raw = node.clone().into_raw();
        if mine.values.push(raw.as_ptr().expose_provenance()) {
            mine.counts.created.add_one();
            hire_for_value();
        } else {
            mine.counts.overflowed.add_one();
            // SAFETY: the ring has not taken the handle.
            drop(unsafe { NodeHandle::from_raw(raw) });
        }
    });
}

/// Makes the ring of this OS thread belong to the run that runs here.
#[cold]
#[inline(never)]
fn come_home() {
    drop(move_in());
}

/// What became of the sparks of all OS threads.
pub fn spark_counts() -> SparkCounts {
    registry().counts()
}
