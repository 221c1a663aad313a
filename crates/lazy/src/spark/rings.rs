//! [`Rings`]: the rings and the counts of one OS thread, and the registry of all of them.
//!
//! `join.rs` and `par` push into the rings of the running OS thread, and the converters take from
//! those of others. An OS thread is in the registry from its first spark until its end. The ring of
//! halves has addresses of halves on the stack, and the ring of values has handles.
//!
//! # The values in a ring belong to one run
//! The registry says to which: [`Listed::run`]. Only the owner of the ring changes that, in
//! [`move_in`], when it is about to push the first value of another run. It sets the values of the
//! former run aside, with that run. So a push notes nothing about its run, and the end of a run
//! finds its values: in the rings that belong to it, and among the values set aside. Values
//! are set aside only where an OS thread has two runs at once, one of them in a step of the other,
//! because the end of a run leaves no values.

use super::counts::{RingCounts, SparkCounts};
use super::join::Half;
use super::run::Run;
use crate::node::NodeHandle;
use crate::primitives::learn;
use crate::ring::SparkRing;
use selvedge_core::internal::running_cpu;
use selvedge_core::{Adopt, adopter};
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

/// The rings of an OS thread in the registry.
struct Listed {
    rings: Arc<Rings>,
    /// The run to which the values belong. `None` before the first.
    run: Option<Arc<Run>>,
}

impl Listed {
    fn is(&self, rings: *const Rings) -> bool {
        ptr::eq(Arc::as_ptr(&self.rings), rings)
    }

    fn is_of(&self, run: &Arc<Run>) -> bool {
        self.run.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, run))
    }
}

/// The rings of all OS threads.
#[derive(Default)]
pub(super) struct RingRegistry {
    listed: Vec<Listed>,
    /// The values that lay in a ring when its owner went on in another run, each with its own run.
    set_aside: Vec<(Arc<Run>, NodeHandle)>,
    /// The runs in which sparks were made, and that are not over.
    runs: Vec<Arc<Run>>,
    /// The counts of OS threads that have ended.
    gone: SparkCounts,
}

impl RingRegistry {
    pub(super) fn rings(&self) -> impl Iterator<Item = &Arc<Rings>> {
        self.listed.iter().map(|listed| &listed.rings)
    }

    /// Whether there seems to be a spark.
    pub(super) fn has_items(&self) -> bool {
        !self.set_aside.is_empty() || self.rings().any(|rings| rings.has_items())
    }

    /// Takes a value that was set aside.
    pub(super) fn take_aside(&mut self) -> Option<NodeHandle> {
        self.set_aside.pop().map(|(_, handle)| handle)
    }

    /// The counts of all OS threads.
    pub(super) fn counts(&self) -> SparkCounts {
        let mut sum = self.gone;
        self.rings().for_each(|rings| rings.add_to(&mut sum));
        sum
    }

    /// The run with this scheduler.
    fn run_of(&mut self, scheduler: &Arc<dyn Adopt>) -> Arc<Run> {
        self.runs.retain(|run| !run.is_over());
        if let Some(run) = self.runs.iter().find(|run| run.is_of(scheduler)) {
            return run.clone();
        }
        let run = Arc::new(Run::of(scheduler));
        self.runs.push(run.clone());
        run
    }
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
        HOME.set(Home::NONE);
        let mut registry = registry();
        registry.listed.retain(|listed| !listed.is(Arc::as_ptr(&self.0)));
        self.0.add_to(&mut registry.gone);
    }
}

std::thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
    /// The rings in `MINE`, or null. It has no destructor, so a look at it is one load.
    static RINGS: Cell<*const Rings> = const { Cell::new(ptr::null()) };
    static HOME: Cell<Home> = const { Cell::new(Home::NONE) };
}

/// A copy of what the registry says of the ring of this OS thread, and where that was asked.
#[derive(Clone, Copy)]
struct Home {
    /// The CPU that ran then. Null before the first spark.
    cpu: *const (),
    /// The run to which the values in the ring belong.
    run: *const Run,
}

impl Home {
    const NONE: Home = Home { cpu: ptr::null(), run: ptr::null() };
}

/// Whether this OS thread made its last spark on the CPU that runs now. The caller is in a step.
///
/// If so, the values in its ring belong to the run that runs now, or there are none in it: another
/// CPU at the same address is gone, and its run with it.
#[inline(always)]
pub(super) fn is_at_home() -> bool {
    HOME.get().cpu == running_cpu()
}

/// Whether the run to which the values in the ring of this OS thread belong has a converter.
#[inline(always)]
pub(super) fn has_converter() -> bool {
    // SAFETY: it is null, or the registry has it as the run of this OS thread's ring. Only
    // `move_in` on this OS thread changes that, and it changes `HOME` with it.
    unsafe { HOME.get().run.as_ref() }.is_some_and(Run::has_converter)
}

/// Makes the ring of values of this OS thread belong to the run that runs here, and returns that
/// run. `None` outside of a step.
pub(super) fn move_in() -> Option<Arc<Run>> {
    let scheduler = adopter()?;
    let rings = with_mine(ptr::from_ref);
    let was_at_home = is_at_home();
    let mut registry = registry();
    let run = registry.run_of(&scheduler);
    let RingRegistry { listed, set_aside, .. } = &mut *registry;
    let mine = listed.iter_mut().find(|listed| listed.is(rings)).expect("it is listed to its end");
    HOME.set(Home { cpu: running_cpu(), run: Arc::as_ptr(&run) });
    let former = mine.run.replace(run.clone());
    if let Some(former) = former.filter(|former| !was_at_home && !Arc::ptr_eq(former, &run)) {
        while let Some(item) = mine.rings.values.pop() {
            // SAFETY: the ring of values has handles, and this one was taken from it.
            set_aside.push((former.clone(), unsafe { handle_of(item) }));
        }
    }
    // Before `scheduler`, because the drop of the last reference to it is foreign code.
    drop(registry);
    Some(run)
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
    registry().listed.push(Listed { rings: rings.clone(), run: None });
    RINGS.set(Arc::as_ptr(&rings));
    Mine(rings)
}

/// Takes the values of a run out of the rings of all OS threads. The caller drops them.
#[must_use = "dropping them may need the lock"]
pub(super) fn take_values(run: &Arc<Run>) -> Vec<NodeHandle> {
    let (mine, mut registry) = (RINGS.get(), registry());
    let RingRegistry { listed, set_aside, .. } = &mut *registry;
    let aside = set_aside.extract_if(.., |(of, _)| Arc::ptr_eq(of, run));
    let mut values: Vec<_> = aside.map(|(_, handle)| handle).collect();
    for Listed { rings, .. } in listed.iter().filter(|listed| listed.is_of(run)) {
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
