//! Converters: threads of the scheduler that do what lies in the rings of other OS threads.
//!
//! # When a converter is there
//! The thread that makes a spark hires a converter if none is there. A converter that finds more
//! sparks than one hires another, up to one for each CPU but one. A converter that has found
//! nothing for [`LOOKS`] looks leaves: it takes itself off the count, passes the heavy fence, reads
//! the registry again, and looks once more. The maker enlists its rings, if it is a new OS thread,
//! pushes its spark, passes the light fence, and loads the count. So either the maker sees that no
//! converter is there, or the last converter that leaves sees the rings and the spark.
//!
//! # When a run ends
//! The scheduler drops its converters with its threads. The last converter of the process that is
//! dropped so takes all values out of the rings and drops them: without a converter they would keep
//! what they have captured until the OS thread ends or makes its next spark. The fence between the
//! count and that look is the one of a converter that leaves: a maker that does not see the count 0
//! has its spark seen.
//!
//! # Several runs at once
//! The count and the look are of the process, because a ring belongs to an OS thread and not to a
//! run: to know the run of a spark, each push would have to note it. So there are three cases:
//! 1. The last converter goes with its run, and another run has sparks. They are dropped too, and
//!    are evaluated by the threads that need the values. The other run's next spark finds the count
//!    0, and hires a converter of its own.
//! 2. A run ends without a converter, because one of another run does its sparks. Nothing is
//!    dropped: that converter takes the sparks, or its end drops them.
//! 3. A converter leaves by itself. It has seen empty rings, so there is nothing to drop.
//!
//! `join` and `par` call [`hire`] after each push.

use super::join::{Pointer, do_half};
use super::rings::{Rings, half_of, handle_of, registry, take_values, with_mine};
use crate::force::Settle;
use crate::node::{IDLE, NodeHandle};
use crate::primitives::{often, seldom};
use selvedge_core::{Cpu, adopter, in_thread, yield_now};
use std::num::NonZeroUsize;
use std::panic::Location;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// How often a converter looks for sparks in vain before it leaves.
const LOOKS: u32 = if cfg!(miri) { 5 } else { 200 };

/// The number of converters.
static CONVERTERS: AtomicUsize = AtomicUsize::new(0);

/// The most converters: one for each CPU but the caller's.
fn converters_max() -> usize {
    static MAX: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get).saturating_sub(1).max(1));
    *MAX
}

/// Sees to it that a converter looks for the spark that the caller has pushed.
#[inline(always)]
pub(super) fn hire() {
    often();
    if CONVERTERS.load(Ordering::Relaxed) == 0 {
        hire_one();
    }
}

/// Has the scheduler of the running thread start a converter, if fewer are there than may be.
#[cold]
#[inline(never)]
fn hire_one() {
    if !in_thread() {
        return;
    }
    let Some(scheduler) = adopter() else { return };
    // One may always be there, so the number of CPUs is not asked for in the way of the first one.
    let more = |there: usize| (there == 0 || there < converters_max()).then_some(there + 1);
    if CONVERTERS.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more).is_ok() {
        let employed = Employed;
        // If the scheduler has ended, it gives the birth back, and its drop takes the converter
        // off the count.
        drop(scheduler.adopt(Box::new(move |cpu: &mut Cpu| {
            if let Ok(thread) = cpu.spawn(convert(employed)) {
                drop(thread);
            }
        })));
    }
}

/// A converter in the count. It is dropped in the middle when its scheduler ends.
struct Employed;

impl Employed {
    /// The converter leaves, because it has found nothing for long.
    fn leave(self) {
        std::mem::forget(self);
        CONVERTERS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Employed {
    fn drop(&mut self) {
        if CONVERTERS.fetch_sub(1, Ordering::SeqCst) == 1 {
            seldom();
            // No converter is there for the sparks that are left, and what they have captured must
            // not wait for one. Their drops are code of the program, and have no lock around them.
            drop(take_values());
        }
    }
}

/// A converter: a thread that does what lies in the rings of others.
async fn convert(employed: Employed) {
    let mut employed = Some(employed);
    let mut vain = 0;
    loop {
        if let Some((taken, has_more)) = take_one() {
            // There may be more than one converter can do.
            if has_more {
                hire_one();
            }
            do_taken(taken).await;
            vain = 0;
        } else {
            vain += 1;
            if vain > LOOKS {
                employed.take().into_iter().for_each(Employed::leave);
                seldom();
                // An OS thread may have enlisted its rings since.
                if !registry().rings.iter().any(|rings| rings.has_items()) {
                    return;
                }
                CONVERTERS.fetch_add(1, Ordering::SeqCst);
                employed = Some(Employed);
                vain = 0;
            }
        }
        yield_now().await;
    }
}

/// What a converter has taken from a ring.
enum Taken {
    Half(Pointer),
    Value(NodeHandle),
}

/// Takes from the rings of all OS threads. Whether there is more is the second part.
fn take_one() -> Option<(Taken, bool)> {
    let registry = registry();
    let taken = registry.rings.iter().find_map(|rings| take(rings))?;
    Some((taken, registry.rings.iter().any(|rings| rings.has_items())))
}

fn take(rings: &Rings) -> Option<Taken> {
    if let Some(item) = rings.halves.steal() {
        // SAFETY: the ring of halves has the addresses of halves, which wait for their takers.
        return Some(Taken::Half(Pointer(unsafe { half_of(item) })));
    }
    // SAFETY: the ring of values has handles, and this one was taken from it.
    rings.values.steal().map(|item| Taken::Value(unsafe { handle_of(item) }))
}

async fn do_taken(taken: Taken) {
    match taken {
        Taken::Half(half) => do_half(half),
        Taken::Value(handle) => {
            let is_idle = handle.head().state() == IDLE;
            with_mine(|mine| if is_idle { &mine.counts.converted } else { &mine.counts.fizzled }.add_one());
            if is_idle {
                // A failure is kept with the value.
                let _ = Settle::new(&handle, Location::caller()).await;
            }
        }
    }
}
