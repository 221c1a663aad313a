//! Converters: threads of the scheduler that do what lies in the rings of other OS threads.
//!
//! # When a converter is there
//! The thread that makes a spark of a value hires a converter if its run has none. The thread that
//! makes one of a half does so if no run of the process has one. A converter that finds more sparks
//! than one hires another, up to one for each CPU but one in each run. A converter takes the sparks
//! of all runs. A converter that has found nothing for [`LOOKS`] looks leaves: it takes itself off
//! the two counts, passes the heavy fence, reads the registry again, and looks once more. The maker
//! enlists its rings, if it is a new OS thread, pushes its spark, passes the light fence, and loads
//! the count. So either the maker sees that no converter is there, or the last converter that
//! leaves sees the rings and the spark. A value that is [set aside](super::rings) meanwhile is
//! under the lock of the registry all the time, as that look is.
//!
//! # When a run ends
//! The scheduler drops its converters with its threads. The last converter of a run that is dropped
//! so takes the values of that run out of the rings and drops them: they would keep what they have
//! captured. The values of other runs stay, because each of these runs has a converter of its own.
//! The dropped converter passes the heavy fence between the count and that look, as a converter
//! that leaves does. So it sees the spark of a maker that does not see the count 0. A converter
//! that leaves by itself has seen empty rings, so there is nothing to drop.
//!
//! `join` calls [`hire_for_half`] after each push, `par` [`hire_for_value`].

use super::join::{Pointer, do_half};
use super::rings::{Rings, half_of, handle_of, has_converter, move_in, registry, take_values, with_mine};
use super::run::Run;
use crate::force::Settle;
use crate::node::{IDLE, NodeHandle};
use crate::primitives::{often, seldom};
use selvedge_core::{Cpu, yield_now};
use std::num::NonZeroUsize;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

/// How often a converter looks for sparks in vain before it leaves.
const LOOKS: u32 = if cfg!(miri) { 5 } else { 200 };

/// The number of converters of all runs.
static CONVERTERS: AtomicUsize = AtomicUsize::new(0);

/// The most converters of a run: one for each CPU but the caller's.
fn converters_max() -> usize {
    static MAX: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get).saturating_sub(1).max(1));
    *MAX
}

/// Sees to it that a converter looks for the half that the caller has pushed.
#[inline(always)]
pub(super) fn hire_for_half() {
    often();
    if CONVERTERS.load(Ordering::Relaxed) == 0 {
        hire_here();
    }
}

/// Sees to it that a converter of this run looks for the value that the caller has pushed. The ring
/// belongs to the run.
#[inline(always)]
pub(super) fn hire_for_value() {
    often();
    if !has_converter() {
        hire_here();
    }
}

/// Hires a converter in the run of the running thread, if there is one.
#[cold]
#[inline(never)]
fn hire_here() {
    if let Some(run) = move_in() {
        hire_one(run);
    }
}

/// Asks the scheduler of a run to start a converter, if the run has fewer than its maximum.
fn hire_one(run: Arc<Run>) {
    let Some(scheduler) = run.scheduler() else { return };
    if let Some(employed) = Employed::in_run(run, converters_max) {
        // If the scheduler has ended, it gives the remote spawn back, and its drop takes the
        // converter off the count.
        drop(scheduler.adopt(Box::new(move |cpu: &mut Cpu| {
            if let Ok(thread) = cpu.spawn(convert(employed)) {
                drop(thread);
            }
        })));
    }
}

/// A converter in the counts. It is dropped in the middle when its scheduler ends.
struct Employed {
    /// `None` once it has left.
    run: Option<Arc<Run>>,
}

impl Employed {
    /// Counts a converter, if the run has fewer than `max()`.
    fn in_run(run: Arc<Run>, max: impl Fn() -> usize) -> Option<Employed> {
        run.admit(max).then(|| {
            CONVERTERS.fetch_add(1, Ordering::SeqCst);
            Employed { run: Some(run) }
        })
    }

    fn run(&self) -> Arc<Run> {
        self.run.clone().expect("it has not left")
    }

    /// Takes it off the counts. Returns its run, and whether it was the last one there.
    fn quit(&mut self) -> Option<(Arc<Run>, bool)> {
        let run = self.run.take()?;
        CONVERTERS.fetch_sub(1, Ordering::SeqCst);
        let was_last = run.dismiss();
        seldom();
        Some((run, was_last))
    }
}

impl Drop for Employed {
    fn drop(&mut self) {
        if let Some((run, true)) = self.quit() {
            // No converter of the run is there for the sparks that are left, and what they have
            // captured must not wait for one. Their drops are code of the program, and have no lock
            // around them.
            drop(take_values(&run));
        }
    }
}

/// A converter: a thread that does what lies in the rings of others.
async fn convert(mut employed: Employed) {
    let mut vain = 0;
    loop {
        if let Some((taken, has_more)) = take_one() {
            // There may be more than one converter can do.
            if has_more {
                hire_one(employed.run());
            }
            do_taken(taken).await;
            vain = 0;
        } else {
            vain += 1;
            if vain > LOOKS {
                // An OS thread may have enlisted its rings since the last look, so `quit` comes
                // before this one.
                let left = employed.quit().filter(|_| registry().has_items());
                let again = left.and_then(|(run, _)| Employed::in_run(run, || usize::MAX));
                let Some(again) = again else { return };
                employed = again;
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
    let mut registry = registry();
    let in_ring = registry.rings().find_map(|rings| take(rings));
    let taken = in_ring.or_else(|| registry.take_aside().map(Taken::Value))?;
    Some((taken, registry.has_items()))
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
