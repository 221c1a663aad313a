//! [`MpiDriver`]: carries out the orders of the threads with the library, and finds out what is
//! done.
//!
//! `message_loop.rs` calls [`MpiDriver::turn`] again and again, on the OS thread that has started
//! MPI. A turn never waits, with one exception: a split waits inside the library for the other
//! ranks' splits, when all of them have asked for it.
//!
//! Receives are not posted to the library, because the library looks through its posted receives
//! one by one. The driver looks for any message with one call, receives it into memory of its
//! length, and hands it over to the communicator's listener. The engine above has the receives of
//! the threads in a table.
//!
//! **Invariant:** the memory of a call belongs to its `Undone` in `calls` until the library has
//! said that the request is done. The library uses no other memory when `turn` returns.

use super::calls::{CommHandle, MessageHandle, MessageHead, Mpi, NewComm, RequestHandle, TESTED_MAX};
use super::collective::{CallPlan, Collected};
use super::error::{MpiError, MpiErrorClass};
use super::family::MpiHandle;
use super::in_order::SourceOrder;
use super::memory::MpiMemory;
use super::ongoing::CallEnd;
use super::orders::{CommId, LoopOrder, LoopOrders, NewPlace, WORLD};
use super::received::{CommListener, Received};
use crate::processes::Doorbells;
use selvedge_core::quietly;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// A message of this length or a longer one goes in several steps, for which MPI needs the sender
/// too.
const LONG_MESSAGE: usize = 1024;

/// Messages that a turn takes from one communicator at most, so that orders are not delayed.
const FOUND_MAX: usize = 64;

/// The state of one rank.
#[derive(Debug)]
pub(super) struct MpiDriver<H: MpiHandle> {
    mpi: Mpi<H>,
    lines: BTreeMap<CommId, CommLine<H>>,
    next_comm: CommId,
    /// The requests that are not done, and in the same places the calls to which they belong.
    requests: Vec<RequestHandle<H>>,
    calls: Vec<ManuallyDrop<Undone<H>>>,
    /// Where in `requests` the next test begins.
    tested: usize,
    /// What the last test found. It is kept for its allocation.
    done: Vec<(usize, Result<(), MpiError>)>,
    /// The orders of the present turn.
    orders: Vec<LoopOrder>,
    is_finishing: bool,
    /// This rank's bell, with those of the others.
    doorbells: Option<Arc<Doorbells>>,
}

/// A communicator.
#[derive(Debug)]
struct CommLine<H> {
    comm: CommHandle<H>,
    listener: Option<Arc<dyn CommListener>>,
    incoming: SourceOrder<Received>,
    doorbells: Option<Arc<Doorbells>>,
}

impl<H> CommLine<H> {
    fn new(comm: CommHandle<H>) -> CommLine<H> {
        CommLine { comm, listener: None, incoming: SourceOrder::new(), doorbells: None }
    }

    /// Whether the driver looks for messages.
    fn wants_messages(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| {
            let mut wants = false;
            quietly(|| wants = listener.wants_messages());
            wants
        })
    }

    /// MPI has something for another rank, which may sleep.
    fn ring(&self, rank: i32) {
        if let (Some(doorbells), Ok(rank)) = (&self.doorbells, usize::try_from(rank)) {
            doorbells.ring(rank);
        }
    }

    /// A message is there, or lost.
    fn end(&mut self, source: i32, ticket: u64, result: Result<Received, MpiError>) {
        let Some(listener) = &self.listener else { return };
        let message = match result {
            Ok(message) => Some(message),
            Err(error) => {
                quietly(|| listener.failed(error));
                None
            }
        };
        self.incoming.end(source, ticket, message, |message| quietly(|| listener.message(message)));
    }
}

/// A call that is under way, with all that the library reads and writes for it.
#[derive(Debug)]
enum Undone<H> {
    Send(MpiMemory, CallEnd<MpiMemory>),
    Receive {
        comm: CommId,
        head: MessageHead,
        ticket: u64,
        memory: MpiMemory,
    },
    Collective(Box<CallPlan>, CallEnd<Collected>),
    Dup(Box<NewComm<H>>, CallEnd<NewPlace>),
    /// The barrier before a split.
    Split {
        comm: CommId,
        color: Option<i32>,
        key: i32,
        end: CallEnd<Option<NewPlace>>,
    },
}

impl<H> Undone<H> {
    /// The call's name in MPI's standard.
    fn name(&self) -> &'static str {
        match self {
            Undone::Send(_, end) => end.call(),
            Undone::Receive { .. } => "MPI_Imrecv",
            Undone::Collective(_, end) => end.call(),
            Undone::Dup(_, end) => end.call(),
            Undone::Split { end, .. } => end.call(),
        }
    }
}

impl<H: MpiHandle> MpiDriver<H> {
    /// The driver of a library that has just been started.
    pub(super) fn new(mpi: Mpi<H>) -> MpiDriver<H> {
        let world = CommLine::new(mpi.world());
        MpiDriver {
            mpi,
            lines: BTreeMap::from([(WORLD, world)]),
            next_comm: WORLD + 1,
            requests: Vec::new(),
            calls: Vec::new(),
            tested: 0,
            done: Vec::new(),
            orders: Vec::new(),
            is_finishing: false,
            doorbells: None,
        }
    }

    pub(super) fn mpi(&self) -> &Mpi<H> {
        &self.mpi
    }

    /// Carries out the orders that are there, and finds out what is done. Whether there was any of
    /// it.
    pub(super) fn turn(&mut self, orders: &LoopOrders) -> bool {
        let mut taken = std::mem::take(&mut self.orders);
        orders.take(&mut taken);
        let mut has_happened = !taken.is_empty();
        for order in taken.drain(..) {
            self.carry_out(order);
        }
        self.orders = taken;
        has_happened |= self.test();
        has_happened | self.find()
    }

    /// Whether a call is under way, or a listener wants messages.
    pub(super) fn is_outstanding(&self) -> bool {
        !self.requests.is_empty() || self.lines.values().any(CommLine::wants_messages)
    }

    /// The bell at which the loop may sleep.
    pub(super) fn doorbells(&self) -> Option<&Arc<Doorbells>> {
        self.doorbells.as_ref()
    }

    /// Whether all that can happen is an order, or a message of a rank that rings.
    pub(super) fn is_rung_for_all(&self) -> bool {
        let is_rung = |line: &CommLine<H>| !line.wants_messages() || line.doorbells.is_some();
        self.requests.is_empty()
            && self.doorbells.as_ref().is_some_and(|doorbells| doorbells.are_complete())
            && self.lines.values().all(is_rung)
    }

    /// Whether MPI can be ended: a thread has asked for it, and nothing is under way.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finishing && self.requests.is_empty()
    }

    /// Ends MPI.
    pub(super) fn finish(self) -> Result<(), MpiError> {
        self.mpi.finalize()
    }

    fn carry_out(&mut self, order: LoopOrder) {
        match order {
            LoopOrder::Send { comm, dest, tag, synchronous, memory, end } => {
                let Some(line) = self.lines.get(&comm) else { return };
                // SAFETY: the memory goes into the call, by the invariant at the head of the file.
                let sent = unsafe { self.mpi.send(&line.comm, &memory, dest, tag, synchronous) };
                line.ring(dest);
                match sent {
                    Ok(request) => self.begin(request, Undone::Send(memory, end)),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Listen { comm, listener } => {
                let Some(line) = self.lines.get_mut(&comm) else { return };
                line.listener = Some(listener);
            }
            LoopOrder::Look => {}
            LoopOrder::Doorbells { comm, doorbells } => {
                let Some(line) = self.lines.get_mut(&comm) else { return };
                line.doorbells = Some(doorbells.clone());
                self.doorbells = Some(doorbells);
            }
            LoopOrder::Collective { comm, mut plan, end } => {
                let Some(line) = self.lines.get(&comm) else { return };
                // SAFETY: the plan goes into the call, by the invariant at the head of the file. It
                // lies in a box, so it stays where it is.
                match unsafe { self.mpi.collective(&line.comm, &mut plan) } {
                    Ok(request) => self.begin(request, Undone::Collective(plan, end)),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Dup { comm, end } => {
                let Some(line) = self.lines.get(&comm) else { return };
                let mut place = Box::new(self.mpi.new_comm());
                // SAFETY: the box goes into the call, and what is in it stays where it is.
                match unsafe { self.mpi.dup(&line.comm, &mut place) } {
                    Ok(request) => self.begin(request, Undone::Dup(place, end)),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Split { comm, color, key, end } => {
                let Some(line) = self.lines.get(&comm) else { return };
                match self.mpi.barrier(&line.comm) {
                    Ok(request) => self.begin(request, Undone::Split { comm, color, key, end }),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Free { comm } => self.free(comm),
            LoopOrder::Time { end } => end.come(Ok(self.mpi.wtime())),
            LoopOrder::Abort { code, end } => end.come(Err(self.mpi.abort(code))),
            LoopOrder::Finish => {
                // Messages that arrive from now on are not received.
                self.lines.values_mut().for_each(|line| line.listener = None);
                self.is_finishing = true;
            }
        }
    }

    /// Notes a call, unless it is done already, as most sends of short messages are.
    fn begin(&mut self, mut request: RequestHandle<H>, call: Undone<H>) {
        match self.mpi.test(&mut request) {
            Ok(false) => {
                self.requests.push(request);
                self.calls.push(ManuallyDrop::new(call));
            }
            Ok(true) => self.end(call, Ok(())),
            Err(error) => self.end(call, Err(error)),
        }
    }

    /// Asks the library which calls are done.
    fn test(&mut self) -> bool {
        let len = self.requests.len();
        if len == 0 {
            return false;
        }
        let from = if self.tested < len { self.tested } else { 0 };
        let window = from..len.min(from + TESTED_MAX);
        self.tested = window.end;
        let mut done = std::mem::take(&mut self.done);
        if let Err(error) = self.mpi.test_some(&mut self.requests[window.clone()], &mut done) {
            // The library does not say which of them it means, nor whether it still uses their
            // memory. So the memory is never freed, and the threads are told.
            self.requests.drain(window.clone());
            let lost: Vec<_> = self.calls.drain(window).collect();
            for call in lost {
                self.lose(ManuallyDrop::into_inner(call), &error);
            }
            return true;
        }
        let has_happened = !done.is_empty();
        // From the last one on, because the last call of all takes the place of each that leaves.
        for (place, result) in done.drain(..).rev() {
            self.requests.swap_remove(from + place);
            let call = ManuallyDrop::into_inner(self.calls.swap_remove(from + place));
            self.end(call, result);
        }
        self.done = done;
        has_happened
    }

    /// A call is done: the library uses its memory no more.
    fn end(&mut self, call: Undone<H>, result: Result<(), MpiError>) {
        // The library's error is of the call that has told of it.
        let result = result.map_err(|error| MpiError { call: call.name(), ..error });
        match call {
            Undone::Send(memory, end) => end.come(result.map(|()| memory)),
            Undone::Collective(plan, end) => end.come(result.map(|()| plan.collected())),
            Undone::Receive { comm, head, ticket, memory } => {
                let Some(line) = self.lines.get_mut(&comm) else { return };
                if head.bytes >= LONG_MESSAGE {
                    line.ring(head.source);
                }
                let received = Received { source: head.source as usize, tag: head.tag, memory };
                line.end(head.source, ticket, result.map(|()| received));
            }
            Undone::Dup(place, end) => {
                let made = result.and_then(|()| self.mpi.made(&place));
                let none =
                    || MpiError::refused("MPI_Comm_idup", MpiErrorClass::Intern, "no communicator".into());
                end.come(made.and_then(|made| self.add(made.ok_or_else(none)?)));
            }
            Undone::Split { comm, color, key, end } => {
                let Some(line) = self.lines.get(&comm) else { return };
                let made = result.and_then(|()| self.mpi.split(&line.comm, color, key));
                end.come(made.and_then(|made| made.map(|comm| self.add(comm)).transpose()));
            }
        }
    }

    /// Tells the thread that waits for a call of which the library knows no more. The call's memory
    /// is not freed.
    fn lose(&mut self, call: Undone<H>, error: &MpiError) {
        let error = error.clone();
        match call {
            Undone::Send(memory, end) => {
                std::mem::forget(memory);
                end.come(Err(error));
            }
            Undone::Receive { comm, head, ticket, memory } => {
                std::mem::forget(memory);
                let Some(line) = self.lines.get_mut(&comm) else { return };
                line.end(head.source, ticket, Err(error));
            }
            Undone::Collective(plan, end) => {
                std::mem::forget(plan);
                end.come(Err(error));
            }
            Undone::Dup(place, end) => {
                std::mem::forget(place);
                end.come(Err(error));
            }
            Undone::Split { end, .. } => end.come(Err(error)),
        }
    }

    fn add(&mut self, comm: CommHandle<H>) -> Result<NewPlace, MpiError> {
        let (rank, size) = self.mpi.place(&comm)?;
        let id = self.next_comm;
        self.next_comm += 1;
        self.lines.insert(id, CommLine::new(comm));
        Ok(NewPlace { id, rank, size })
    }

    /// Looks for messages where listeners want some.
    fn find(&mut self) -> bool {
        let mut has_happened = false;
        let mut next = WORLD;
        while let Some((&comm, _)) = self.lines.range(next..).next() {
            next = comm + 1;
            for _ in 0..FOUND_MAX {
                let Some(line) = self.lines.get_mut(&comm).filter(|line| line.wants_messages()) else {
                    break;
                };
                match self.mpi.find_message(&line.comm) {
                    Ok(None) => break,
                    Ok(Some((head, message))) => self.receive(comm, head, message),
                    Err(error) => {
                        // The loop does not look again, because the error would come again.
                        let listener = line.listener.take().expect("it wants messages");
                        quietly(|| listener.failed(error));
                    }
                }
                has_happened = true;
            }
        }
        has_happened
    }

    fn receive(&mut self, comm: CommId, head: MessageHead, message: MessageHandle<H>) {
        let Some(line) = self.lines.get_mut(&comm) else { return };
        let ticket = line.incoming.begin(head.source);
        // SAFETY: a message that is received writes all its bytes, and `CommLine::end` hands over
        // no memory of one that has failed.
        let mut memory = unsafe { MpiMemory::unwritten(head.bytes) };
        // SAFETY: the memory goes into the call, by the invariant at the head of the file.
        match unsafe { self.mpi.receive(message, &mut memory) } {
            Ok(request) => {
                if head.bytes >= LONG_MESSAGE {
                    line.ring(head.source);
                }
                self.begin(request, Undone::Receive { comm, head, ticket, memory });
            }
            Err(error) => line.end(head.source, ticket, Err(error)),
        }
    }

    /// Gives a communicator up. The world stays with the library.
    fn free(&mut self, comm: CommId) {
        let Some(line) = self.lines.remove(&comm) else { return };
        if comm != WORLD {
            // A failure leaves the communicator to the end of MPI, and there is no thread to tell.
            let _ = self.mpi.free(line.comm);
        }
    }
}
