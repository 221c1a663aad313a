//! The view that a step has of its graph: [`StepContext`]. There is one for each worker, inside its
//! [`Worker`].
//!
//! `run.rs` runs an instance and ends it, and `settle.rs` is called when no step is ready.
//! `get.rs`, `put.rs` and `declare.rs` are the operations that the program calls in a step.
//! `attend.rs` handles cancelled, recorded and monitored steps, and `worker.rs` is the interface of
//! schedulers.
//!
//! `entry`, `word` and `flags` describe the instance that runs now. `StepContext::run_once` sets
//! them at its begin. A get that misses an item notes that in `flags` and `missed`; after that,
//! each operation returns an error, and `end_otherwise` makes the instance wait for the item. The
//! program has its own code between the get and the end, and that code may drop the error. So a
//! miss is noted here, and is not a part of the error. The word may be dangling after the instance
//! has ended, so only code of the running instance may report a fault with it.
//!
//! This file is in the knot of three files that the head of `ready_step.rs` explains.
//!
//! Paper: [NCM11 §2.1, §2.2].

mod attend;
mod declare;
mod flags;
mod get;
mod polls;
mod put;
mod run;
mod settle;
mod worker;

pub(crate) use flags::Phase;
pub(crate) use polls::{PollEntry, PollGuard};
pub use worker::Worker;

use crate::any_items::{AnyItems, GetClaim};
use crate::cancel::Attention;
use crate::core::Core;
use crate::error::{FaultCause, Halted, StepFault};
use crate::faults::FaultOrder;
use crate::frames::FramePool;
use crate::held_steps::HeldSteps;
use crate::in_use::InUse;
use crate::monitor::MissedItem;
use crate::ready_step::{ReadyStep, StepEntry};
use crate::record::WorkerRecord;
use crate::slot::{SlotState, WokenSteps};
use crate::storage::{ItemPlace, PageUse};
use crate::waiters::WaiterPool;
use crate::worker_memory::SERIALS;
use flags::InstanceFlags;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::iter;
use std::sync::Arc;

/// The way on which a worker gives steps to the other workers of its scheduler.
pub trait Outlet<'g>: Send + Sync {
    /// Whether a worker has nothing to do. A worker asks when a step becomes ready while it holds
    /// another one, and before it cuts the range of a range step.
    fn is_wanted(&self) -> bool;

    /// Takes steps of a worker that is in the middle of a step.
    fn give(&self, ready: Vec<ReadyStep<'g>>);
}

/// An item that a step has declared.
#[derive(PartialEq, Eq)]
struct DeclaredItem {
    slot: *const (),
    /// The step will take it.
    takes: bool,
}

/// What a suspended step waits for.
///
/// The use of a page lasts until the step waits, so that the slot is not one of another key by
/// then.
enum MissedGet<'g> {
    Item(&'g SlotState<ReadyStep<'g>>, Option<PageUse<'g>>),
    InUse(&'g dyn AnyItems<'g, ReadyStep<'g>>, *const (), InUse, Option<PageUse<'g>>),
}

/// The number of ready steps with which a worker gives the older half of them to its `Outlet`.
const HELD_MAX: usize = 4096;

/// The graph, as a step sees it: a step gets and puts items, and puts tags.
///
/// # Paper
/// [NCM11 §2.1]: `StepCode`, with `get`, `put` and `putt`. §2.2: `forkStep` and `newItemCol`.
///
/// # Differences
/// 1. Both of the paper's interfaces are one type.
/// 2. A step that misses an item returns an error, which it hands on with `?`. It then waits for
///    the item, and runs again from its beginning.
/// 3. A step that may run again gets before it puts. A get after a put is an error, also if the
///    item is there, so that the error does not depend on the schedule.
#[doc(alias = "StepCode")]
pub struct StepContext<'g> {
    core: &'g Core<'g>,
    entry: Cell<&'g StepEntry<'g>>,
    word: Cell<u64>,
    flags: Cell<InstanceFlags>,
    missed: Cell<Option<MissedGet<'g>>>,
    /// The program's error that the step has returned.
    error: Cell<Option<Box<Box<dyn Error + Send + Sync>>>>,
    /// The continuation of an async step, which waits instead of the step.
    rest: RefCell<Option<ReadyStep<'g>>>,
    claims: RefCell<Vec<GetClaim<'g, ReadyStep<'g>>>>,
    declared: RefCell<Vec<DeclaredItem>>,
    ready: HeldSteps<ReadyStep<'g>>,
    outlet: Option<Arc<dyn Outlet<'g> + 'g>>,
    /// Why a worker has to attend to something before it runs a step.
    attention: &'g Attention,
    waiters: WaiterPool<'g, ReadyStep<'g>>,
    pub(crate) frames: FramePool<'g>,
    /// The number of steps that were made ready here, and the number of steps that were run here.
    made: Cell<u64>,
    ran: Cell<u64>,
    /// The number of steps that were suspended here, minus the number that were woken here: it may
    /// wrap.
    suspended: Cell<u64>,
    /// The number of async steps that began here, minus the number that ended here: it may wrap.
    pub(crate) handles: Cell<u64>,
    /// The number of the next async step that begins here; see [`StepContext::new_serial`].
    serial: Cell<u64>,
    /// How often each step collection ran and missed here.
    counts: Box<[StepCounts]>,
    /// The runs and misses of the step collections that came after this worker: "fork", if the
    /// first fork of the graph is inside a step.
    late_counts: RefCell<Vec<(u64, u64)>>,
    /// The number of the next step that the running instance forks, if it has forked one.
    forks: Cell<u64>,
    /// A step that is late is told here, and does not wait.
    refuses_late: Cell<bool>,
    /// A cancelled step is being dropped.
    pub(crate) drops_cancelled: Cell<bool>,
    /// The item that the running instance has missed, for the monitor.
    missed_item: RefCell<Option<MissedItem>>,
    /// The worker has added its counts to the graph, and sleeps.
    is_paused: Cell<bool>,
    /// What is recorded of this worker, since its first step that was recorded.
    record: RefCell<Option<WorkerRecord>>,
    /// When the last recorded step ended, if the worker has had ready steps since. The next one
    /// begins then, which saves a look at the clock.
    pub(crate) last_end: Cell<Option<u64>>,
}

/// How often a step collection ran and missed.
#[derive(Default)]
struct StepCounts {
    runs: Cell<u64>,
    misses: Cell<u64>,
}

impl<'g> StepContext<'g> {
    fn new(core: &'g Core<'g>, outlet: Option<Arc<dyn Outlet<'g> + 'g>>) -> StepContext<'g> {
        StepContext {
            core,
            entry: Cell::new(core.environment()),
            word: Cell::new(0),
            flags: Cell::new(InstanceFlags::begun(false)),
            missed: Cell::new(None),
            error: Cell::new(None),
            rest: RefCell::new(None),
            forks: Cell::new(0),
            refuses_late: Cell::new(false),
            drops_cancelled: Cell::new(false),
            claims: RefCell::default(),
            declared: RefCell::default(),
            ready: HeldSteps::new(),
            outlet,
            attention: core.attention(),
            waiters: WaiterPool::new(&core.memory.waiters),
            frames: FramePool::new(&core.memory.frames),
            made: Cell::new(0),
            ran: Cell::new(0),
            suspended: Cell::new(0),
            handles: Cell::new(0),
            serial: Cell::new(0),
            counts: iter::repeat_with(StepCounts::default).take(core.catalogue.steps()).collect(),
            late_counts: RefCell::default(),
            missed_item: RefCell::new(None),
            is_paused: Cell::new(false),
            record: RefCell::new(None),
            last_end: Cell::new(None),
        }
    }

    pub(crate) fn core(&self) -> &'g Core<'g> {
        self.core
    }

    /// A number that no other async step of the graph has. A worker takes a block of them from the
    /// graph; the first number of a block says that the block before it is used up.
    pub(crate) fn new_serial(&self) -> u64 {
        let serial = match self.serial.get() {
            first if first.is_multiple_of(SERIALS) => self.core.memory.new_serials(),
            next => next,
        };
        self.serial.set(serial + 1);
        serial
    }

    /// Whether the run was cancelled, or has failed. A long step may look now and then.
    pub fn is_cancelled(&self) -> bool {
        self.core.is_cancelled()
    }

    /// Whether the running instance has missed an item or failed, so that it is to return.
    pub(crate) fn is_halted(&self) -> bool {
        self.flags.get().is_halted()
    }

    #[cold]
    fn miss(&self, missed: MissedGet<'g>) -> Halted {
        self.flags.set(self.flags.get().missed());
        self.missed.set(Some(missed));
        Halted(None)
    }

    /// Ends the run with a fault of this step.
    #[cold]
    pub(crate) fn fault(&self, why: FaultCause) -> Halted {
        let (entry, word) = (self.entry.get(), self.word.get());
        // SAFETY: the word is that of the instance that runs, and is freed after its end only.
        let (order, tag) = unsafe { (entry.code.order(word), entry.code.tag(word)) };
        self.fault_of(entry, order, tag, why)
    }

    pub(crate) fn fault_of(&self, entry: &StepEntry<'g>, word: u64, tag: String, why: FaultCause) -> Halted {
        self.flags.set(self.flags.get().failed());
        let step = entry.name.clone();
        let (cause, key) = (why.cause(), String::new());
        let order = FaultOrder { cause, collection: entry.row, word, key, step, tag };
        self.core.fail(StepFault { order, puts: None, why });
        Halted(None)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        if let Phase::Declares = phase {
            self.declared.borrow_mut().clear();
        }
        self.flags.set(self.flags.get().entered(phase));
    }

    /// Makes a step ready.
    #[inline]
    pub(crate) fn push(&self, ready: ReadyStep<'g>) {
        self.made.set(self.made.get() + 1);
        let held = self.ready.push(ready);
        if held > 1 && self.outlet.is_some() {
            self.share(held);
        }
    }

    /// Gives the older half of the ready steps away, if another worker has nothing to do.
    fn share(&self, held: usize) {
        if let Some(outlet) = &self.outlet
            && (held >= HELD_MAX || outlet.is_wanted())
        {
            outlet.give(self.ready.older_half());
        }
    }

    /// Makes steps ready that waited for an item.
    fn wake(&self, mut woken: WokenSteps<ReadyStep<'g>>) {
        while let Some(ready) = woken.pop(&self.waiters) {
            self.suspended.set(self.suspended.get().wrapping_sub(1));
            self.note_no_wait(&ready);
            #[cfg(all(test, not(loom)))]
            if crate::seeded::is_seeded(crate::seeded::SeededFault::LostWakeUp) {
                continue;
            }
            self.push(ready);
        }
    }

    /// Makes another instance of the running step ready. If its word is not the tag itself, the
    /// monitor has not counted it as a part of the running one.
    pub(crate) fn push_like_this(&self, word: u64) {
        if self.flags.get().is_observed() && self.entry.get().free.is_some() {
            self.note_made(self.entry.get(), word);
        }
        self.push(ReadyStep { entry: self.entry.get(), word });
    }

    /// Gives the running instance another word, which is a tag.
    pub(crate) fn narrow(&self, word: u64) {
        self.word.set(word);
    }

    /// Whether another worker has nothing to do.
    pub(crate) fn is_wanted(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| outlet.is_wanted())
    }

    pub(crate) fn current_entry(&self) -> &'g StepEntry<'g> {
        self.entry.get()
    }

    pub(crate) fn entry_number(&self) -> usize {
        self.entry.get().number
    }

    /// Notes that the running instance goes on as another one.
    pub(crate) fn become_this(&self, ready: &ReadyStep<'g>) {
        self.entry.set(ready.entry);
        self.word.set(ready.word);
    }

    /// Notes that the running instance waits for an item. Its continuation runs when the item is
    /// there.
    pub(crate) fn wait_once<V>(&self, found: ItemPlace<'g, V, ReadyStep<'g>>) {
        let state = &found.slot.state;
        self.flags.set(self.flags.get().missed());
        self.missed.set(Some(MissedGet::Item(state, found.into_page_use())));
    }

    /// Notes that the running instance waits for the users of an item.
    pub(crate) fn wait_in_use(
        &self,
        items: &'g dyn AnyItems<'g, ReadyStep<'g>>,
        found: ItemPlace<'g, impl Sized, ReadyStep<'g>>,
        why: InUse,
    ) {
        let slot = std::ptr::from_ref(found.slot).cast();
        self.flags.set(self.flags.get().missed());
        self.missed.set(Some(MissedGet::InUse(items, slot, why, found.into_page_use())));
    }

    /// Whether the running instance may wait for a get of an item of which all gets are claimed:
    /// it has had no effect, or goes on where it was. The environment cannot wait.
    pub(crate) fn may_be_late(&self) -> bool {
        self.flags.get().may_wait() && !self.refuses_late.get()
    }

    /// Keeps the continuation that waits if the instance has missed an item.
    pub(crate) fn set_rest(&self, rest: ReadyStep<'g>) {
        *self.rest.borrow_mut() = Some(rest);
    }
}

impl fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepContext({})", self.entry.get().name)
    }
}
