//! The queue of an event loop's disk operations: each operation from its request to its answer.
//!
//! The *performer* of an operation is the event loop with its [ring](crate::uring), or the
//! [blocking pool](crate::pool).
//!
//! ```text
//!            submit            begin              complete          take
//!   future ──────────▶ Queued ───────▶ Performed ──────────▶ Done ───────▶ future
//!                        │ withdraw       │ withdraw           │ withdraw
//!                        ▼                ▼                    ▼
//!                    Withdrawn        Orphaned ──complete──▶ free
//!                        └────begin────────────────────────▶ free
//! ```
//!
//! 1. `submit`: the first poll of the future (`operation_future.rs`) moves the operation, with its
//!    buffers, into a slot, and appends the slot to the list. The list is served first come, first
//!    served.
//! 2. `begin`: the performer takes the first slot of the list. From then on the kernel may read and
//!    write the operation's buffers, so only `complete` lets go of them.
//! 3. `complete`: the performer leaves the outcome in the slot, and wakes the waiting future.
//! 4. `take`: the future fetches outcome and operation.
//! 5. `withdraw`: the future is dropped. An operation that has not begun is dropped at once, and
//!    `begin` skips its slot. An operation that has begun belongs to the performer, and the queue
//!    asks the event loop to cancel it. An operation that is done is dropped.
//!
//! A future may be polled and dropped on another OS thread than the performer's. So all of this is
//! under one lock. The holder of the lock wakes no waker, drops no operation and does not call the
//! kernel.
//!
//! A waiting thread costs its slot of 88 bytes and its future. The buffer of a
//! [`File::read_aligned_at`](super::File::read_aligned_at) is taken when the operation begins.

use super::operation::{Operation, RawOutcome};
use crate::pool::Lane;
use crate::sys::Fd;
use rustix::io::Errno;
use selvedge_core::internal::quietly;
use selvedge_core::observe::{self, Object, WaitReason};
use selvedge_core::{Unpark, in_thread};
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The end of a list of slots.
const NONE: u32 = u32::MAX;

/// How many operations of one queue the blocking pool performs at once.
const RUNNERS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Queued,
    Withdrawn,
    Performed,
    Orphaned,
    Done,
}

#[derive(Debug)]
struct OperationSlot {
    stage: Stage,
    /// Counts the operations that have had this slot.
    turn: u32,
    /// The next slot in the list of waiting operations, or in the list of free slots.
    next: u32,
    outcome: RawOutcome,
    operation: Option<Operation>,
    waker: Option<Waker>,
}

const _: () = assert!(size_of::<OperationSlot>() <= 88, "a million threads may wait for the disk");

/// One operation of a queue, as its performer names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    slot: u32,
    turn: u32,
}

impl Ticket {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_bits(bits: u64) -> Ticket {
        Ticket { slot: bits as u32, turn: (bits >> 32) as u32 }
    }
}

/// The performer of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Performer {
    /// The event loop, when it polls.
    Loop,
    /// The blocking pool.
    Pool,
}

/// See the [module](self).
pub(crate) struct OperationQueue {
    state: Mutex<QueueState>,
    /// Wakes the event loop that performs. `None` if the pool has performed from the beginning.
    unparker: Option<Arc<dyn Unpark>>,
}

#[derive(Debug)]
pub(crate) struct QueueState {
    slots: Vec<OperationSlot>,
    free: u32,
    first: u32,
    last: u32,
    /// The number of slots in the list.
    listed: usize,
    /// The number of operations that a future waits for.
    awaited: usize,
    /// The number of operations that are done and not yet taken.
    unseen: usize,
    performer: Performer,
    /// The operations that the event loop has begun and must cancel.
    cancel: Vec<Ticket>,
    /// The number of jobs of the pool that take operations from the list.
    runners: usize,
}

impl QueueState {
    fn insert(&mut self, operation: Operation, waker: Option<Waker>) -> u32 {
        let filled = OperationSlot {
            stage: if waker.is_some() { Stage::Queued } else { Stage::Orphaned },
            turn: 0,
            next: NONE,
            outcome: 0,
            operation: Some(operation),
            waker,
        };
        let index = match self.free {
            NONE => {
                assert!(self.slots.len() < NONE as usize, "there are four billion slots");
                self.slots.push(filled);
                self.slots.len() as u32 - 1
            }
            index => {
                let slot = &mut self.slots[index as usize];
                self.free = slot.next;
                *slot = OperationSlot { turn: slot.turn, ..filled };
                index
            }
        };
        match self.last {
            NONE => self.first = index,
            last => self.slots[last as usize].next = index,
        }
        self.last = index;
        self.listed += 1;
        index
    }

    fn set_free(&mut self, index: u32) -> Option<Operation> {
        let slot = &mut self.slots[index as usize];
        slot.stage = Stage::Free;
        slot.turn = slot.turn.wrapping_add(1);
        slot.next = self.free;
        self.free = index;
        slot.operation.take()
    }

    /// Takes the first operation of the list. The caller performs and completes it.
    pub(crate) fn begin(&mut self) -> Option<Ticket> {
        loop {
            let index = self.first;
            if index == NONE {
                return None;
            }
            let slot = &mut self.slots[index as usize];
            self.first = slot.next;
            if self.first == NONE {
                self.last = NONE;
            }
            self.listed -= 1;
            match slot.stage {
                Stage::Queued => slot.stage = Stage::Performed,
                // It was submitted without a future.
                Stage::Orphaned => {}
                Stage::Withdrawn => {
                    self.set_free(index);
                    continue;
                }
                stage => unreachable!("{stage:?} in the list"),
            }
            return Some(Ticket { slot: index, turn: slot.turn });
        }
    }

    pub(crate) fn performer(&self) -> Performer {
        self.performer
    }

    /// The number of slots in the list, with the slots that `begin` will skip.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// The number of operations that are done and not taken. They still hold their buffers.
    pub(crate) fn unseen(&self) -> usize {
        self.unseen
    }

    /// The next operation that the event loop must cancel.
    pub(crate) fn take_cancelled(&mut self) -> Option<Ticket> {
        loop {
            let ticket = self.cancel.pop()?;
            let slot = &self.slots[ticket.slot as usize];
            if slot.turn == ticket.turn && slot.stage == Stage::Orphaned {
                return Some(ticket);
            }
        }
    }

    /// An operation that has begun and is not complete.
    pub(crate) fn operation(&mut self, ticket: Ticket) -> &mut Operation {
        let slot = &mut self.slots[ticket.slot as usize];
        debug_assert_eq!(slot.turn, ticket.turn);
        slot.operation.as_mut().expect("it is not complete")
    }

    /// Leaves the outcome of an operation that has begun in its slot.
    pub(crate) fn complete(&mut self, ticket: Ticket, outcome: RawOutcome) -> Completed {
        let slot = &mut self.slots[ticket.slot as usize];
        debug_assert_eq!(slot.turn, ticket.turn);
        match slot.stage {
            Stage::Performed => {
                slot.stage = Stage::Done;
                slot.outcome = outcome;
                let waker = slot.waker.take();
                self.awaited -= 1;
                self.unseen += 1;
                Completed { waker, unwanted: None }
            }
            Stage::Orphaned => Completed { waker: None, unwanted: self.set_free(ticket.slot) },
            stage => unreachable!("{stage:?} is not performed"),
        }
    }
}

/// The waker to wake and the operation to drop after the queue is unlocked.
#[derive(Debug)]
#[must_use = "the waiting thread is to be woken"]
pub(crate) struct Completed {
    pub(crate) waker: Option<Waker>,
    pub(crate) unwanted: Option<Operation>,
}

impl fmt::Debug for OperationQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Queue")
            .field("listed", &state.listed)
            .field("awaited", &state.awaited)
            .field("performer", &state.performer)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// The queue of this OS thread's event loop.
    static HERE: RefCell<Option<Arc<OperationQueue>>> = const { RefCell::new(None) };
}

impl OperationQueue {
    pub(crate) fn new(performer: Performer, unparker: Option<Arc<dyn Unpark>>) -> OperationQueue {
        let state = QueueState {
            slots: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            listed: 0,
            awaited: 0,
            unseen: 0,
            performer,
            cancel: Vec::new(),
            runners: 0,
        };
        OperationQueue { state: Mutex::new(state), unparker }
    }

    /// Makes `queue` the queue of this OS thread; with `None` the OS thread has none.
    pub(crate) fn set_here(queue: Option<Arc<OperationQueue>>) {
        // `HERE` may be gone already, because an event loop in another variable of the OS thread
        // may be dropped after it.
        drop(HERE.try_with(|here| here.replace(queue)));
    }

    /// The queue for the operations that are asked for here: in a `Thread` the queue of the event
    /// loop, otherwise the queue of foreign executors.
    pub(super) fn here() -> Arc<OperationQueue> {
        static FALLBACK: LazyLock<Arc<OperationQueue>> =
            LazyLock::new(|| Arc::new(OperationQueue::new(Performer::Pool, None)));
        let here = match in_thread() {
            // While the OS thread's variables are being dropped, only the other queue is left.
            true => HERE.try_with(|here| here.borrow().clone()).ok().flatten(),
            false => None,
        };
        here.unwrap_or_else(|| FALLBACK.clone())
    }

    fn is_here(&self) -> bool {
        let is_it = |here: &Arc<OperationQueue>| std::ptr::eq(&**here, self);
        HERE.try_with(|here| here.borrow().as_ref().is_some_and(is_it)).unwrap_or(false)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No change of the state panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of operations that a future waits for.
    pub(crate) fn awaited(&self) -> usize {
        self.lock().awaited
    }

    /// Puts an operation into the list. Returns its slot, and the number of operations that now
    /// wait for the event loop to begin them, which is 0 if the pool performs.
    pub(super) fn submit(
        self: &Arc<OperationQueue>,
        operation: Operation,
        waker: Option<Waker>,
    ) -> (u32, usize) {
        let mut state = self.lock();
        state.awaited += usize::from(waker.is_some());
        let slot = state.insert(operation, waker);
        if state.performer == Performer::Pool {
            self.start_runner(state);
            return (slot, 0);
        }
        (slot, state.listed)
    }

    /// From now on the pool performs the operations, also those in the list.
    pub(crate) fn leave_to_pool(self: &Arc<OperationQueue>) {
        let mut state = self.lock();
        state.performer = Performer::Pool;
        for _ in 0..state.listed.min(RUNNERS_MAX) {
            self.start_runner(state);
            state = self.lock();
        }
    }

    fn start_runner(self: &Arc<OperationQueue>, mut state: MutexGuard<'_, QueueState>) {
        if state.runners == RUNNERS_MAX {
            return;
        }
        state.runners += 1;
        drop(state);
        let queue = self.clone();
        if Lane::Files.aside(move || queue.perform_all()).is_ok() {
            return;
        }
        // No OS thread could be started.
        let mut state = self.lock();
        state.runners -= 1;
        if state.runners > 0 {
            return;
        }
        let mut failed = Vec::new();
        while let Some(ticket) = state.begin() {
            failed.push(state.complete(ticket, -Errno::AGAIN.raw_os_error()));
        }
        drop(state);
        failed.into_iter().for_each(Completed::settle);
    }

    /// Performs operations until the list is empty, on an OS thread of the pool.
    fn perform_all(&self) {
        let mut state = self.lock();
        while let Some(ticket) = state.begin() {
            drop(state);
            self.perform(ticket);
            state = self.lock();
        }
        state.runners -= 1;
    }

    /// Performs an operation that has begun, on an OS thread that may block.
    fn perform(&self, ticket: Ticket) {
        let taken = self.lock().slots[ticket.slot as usize].operation.take();
        let mut operation = taken.expect("it is not complete");
        let outcome = operation.perform();
        let mut state = self.lock();
        state.slots[ticket.slot as usize].operation = Some(operation);
        let completed = state.complete(ticket, outcome);
        drop(state);
        completed.settle();
    }

    /// Passes to the pool an operation that the event loop has begun and cannot perform.
    pub(crate) fn pass_on(self: &Arc<OperationQueue>, ticket: Ticket) {
        let queue = self.clone();
        if Lane::Files.aside(move || queue.perform(ticket)).is_err() {
            let completed = self.lock().complete(ticket, -Errno::AGAIN.raw_os_error());
            completed.settle();
        }
    }

    /// From now on the queue wakes no future and begins no operation. A future that is still polled
    /// gets the error that its operation was cancelled.
    pub(crate) fn cancel_all(&self) {
        let mut state = self.lock();
        let mut dropped = Vec::new();
        while let Some(ticket) = state.begin() {
            let Completed { waker, unwanted } = state.complete(ticket, -Errno::CANCELED.raw_os_error());
            dropped.push((waker, unwanted));
        }
        dropped.extend(state.slots.iter_mut().map(|slot| (slot.waker.take(), None)));
        drop(state);
        drop(dropped);
    }

    /// The outcome, if the operation is done. Otherwise `waker` replaces the earlier waker.
    pub(super) fn take(&self, index: u32, waker: &Waker) -> Option<(RawOutcome, Operation)> {
        let mut state = self.lock();
        let slot = &mut state.slots[index as usize];
        if slot.stage == Stage::Done {
            let outcome = slot.outcome;
            state.unseen -= 1;
            let operation = state.set_free(index).expect("what is done has its operation");
            return Some((outcome, operation));
        }
        let former = match &slot.waker {
            Some(former) if former.will_wake(waker) => None,
            _ => slot.waker.replace(waker.clone()),
        };
        // Each poll tells the observer the reason of the wait again. While the pool has the
        // operation, the queue does not know its kind.
        observe::waits_on(|| match &slot.operation {
            Some(operation) => operation.reason(),
            None => WaitReason { call: "finish a disk operation", object: Object::None },
        });
        drop(state);
        drop(former);
        None
    }

    /// The outcome is not wanted any more, because its future is dropped.
    pub(super) fn withdraw(&self, index: u32) {
        let mut state = self.lock();
        let slot = &mut state.slots[index as usize];
        let waker = slot.waker.take();
        let mut cancel = false;
        let dropped = match slot.stage {
            Stage::Queued => {
                slot.stage = Stage::Withdrawn;
                let dropped = slot.operation.take();
                state.awaited -= 1;
                dropped
            }
            Stage::Performed => {
                slot.stage = Stage::Orphaned;
                let ticket = Ticket { slot: index, turn: slot.turn };
                cancel = state.performer == Performer::Loop;
                if cancel {
                    state.cancel.push(ticket);
                }
                state.awaited -= 1;
                None
            }
            Stage::Done => {
                state.unseen -= 1;
                state.set_free(index)
            }
            stage => unreachable!("no future has an operation in {stage:?}"),
        };
        drop(state);
        drop((waker, dropped));
        if cancel
            && !self.is_here()
            && let Some(unparker) = &self.unparker
        {
            unparker.unpark();
        }
    }
}

impl Completed {
    fn settle(self) {
        drop(self.unwanted);
        if let Some(waker) = self.waker {
            quietly(|| waker.wake());
        }
    }
}

/// Closes a descriptor. In a `Thread` the performer of the queue closes it, because closing may
/// block.
pub(super) fn close_aside(fd: Fd) {
    let aside = in_thread() && !fd.is_simulated();
    // There is no queue while the OS thread's variables are being dropped.
    match HERE.try_with(|here| here.borrow().clone()).ok().flatten().filter(|_| aside) {
        Some(queue) => {
            queue.submit(Operation::Close(Some(fd)), None);
        }
        None => drop(fd),
    }
}
