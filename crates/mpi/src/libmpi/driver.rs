//! [`MpiDriver`]: carries out the orders of the threads with the library, and finds out what is
//! done.
//!
//! `shared_driver.rs` lends it to one OS thread at a time, as a [`Drive`]. No call of it waits,
//! with one exception: a split waits inside the library for the other ranks' splits, when all of
//! them have asked for it.
//!
//! Receives of the threads are not posted to the library, because the library looks through its
//! posted receives one by one. The driver looks for any message, receives it, and hands it over to
//! the communicator's listener (`driver/receiving.rs`). The engine above has the receives of the
//! threads in a table. On a communicator of the engine's own, messages go in [`FrameStore`].
//!
//! **Invariant:** the memory of a call belongs to its `Undone` in `calls` until the library has
//! said that the request is done. The library uses no other memory when a call of the driver
//! returns.

mod receiving;

use super::calls::{CommHandle, MessageHead, Mpi, NewComm, RequestHandle, TESTED_MAX};
use super::collective::{CallPlan, Collected};
use super::comm_line::{CommLine, CommLines};
use super::error::{MpiError, MpiErrorClass};
use super::family::MpiHandle;
use super::frames::{ANNOUNCED, BODY, FRAME, FrameStore, LATE, OfferedFrames};
use super::memory::MpiMemory;
use super::ongoing::CallEnd;
use super::orders::{CommId, LoopOrder, LoopOrders, NewPlace, WORLD};
use super::received::Received;
use crate::processes::Doorbells;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// A message of this length or a longer one goes in several steps, for which MPI needs the sender
/// too.
const LONG_MESSAGE: usize = 1024;

/// A driver, whatever the type of the library's handles.
pub(super) trait Drive: fmt::Debug + Send {
    /// Carries out the orders that are there.
    fn carry_out_all(&mut self, orders: &LoopOrders);

    /// Finds out what is done, and takes at most this number of messages from each communicator.
    /// Whether there was any of it. Messages are offered to a thread that looks by itself.
    fn look(&mut self, messages: usize, offered: Option<&mut OfferedFrames<'_, '_>>) -> bool;

    /// Sends a frame of these parts, if no other call is under way. `false` if nothing was sent.
    fn send_frame(&mut self, comm: CommId, dest: i32, parts: &[&[u8]]) -> bool;

    /// Whether something has begun since the last call of this that goes on only if the message
    /// loop looks.
    fn has_begun(&mut self) -> bool;

    /// Whether a call is under way.
    fn has_requests(&self) -> bool;

    /// How the driver stands.
    fn standing(&self) -> DriverStanding;

    /// Ends MPI. The OS thread that has started MPI makes the call.
    fn finish(self: Box<Self>) -> Result<(), MpiError>;
}

/// What has yet to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DriverStanding {
    /// A call is under way, or a listener wants messages.
    pub(super) is_outstanding: bool,
    /// All that can happen is an order, or a message of a rank that rings.
    pub(super) is_rung_for_all: bool,
    /// MPI can be ended: a thread has asked for it, and nothing is under way.
    pub(super) is_finished: bool,
}

/// The state of one rank.
#[derive(Debug)]
pub(super) struct MpiDriver<H: MpiHandle> {
    mpi: Mpi<H>,
    lines: CommLines<H>,
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
    /// Whether a rank has died.
    has_deaths: bool,
    /// See [`Drive::has_begun`].
    has_begun: bool,
    /// This rank's bell, with those of the others.
    doorbells: Option<Arc<Doorbells>>,
    /// The memory of the last short message that was sent.
    spare: Vec<u8>,
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
            lines: CommLines::new(world),
            requests: Vec::new(),
            calls: Vec::new(),
            tested: 0,
            done: Vec::new(),
            orders: Vec::new(),
            is_finishing: false,
            has_deaths: false,
            has_begun: false,
            doorbells: None,
            spare: Vec::new(),
        }
    }

    fn carry_out(&mut self, order: LoopOrder) {
        match order {
            LoopOrder::Send { comm, dest, tag, synchronous, memory, end } => {
                self.send(comm, dest, tag, synchronous, memory, end);
            }
            LoopOrder::SendBody { comm, dest, memory, end } => {
                let announcement = MpiMemory::from(vec![ANNOUNCED]);
                self.send(comm, dest, FRAME, false, announcement, CallEnd::of_none("MPI_Isend"));
                self.send(comm, dest, BODY, false, memory, end);
            }
            LoopOrder::SendLate { comm, dest, memory } => {
                self.send(comm, dest, LATE, false, memory, CallEnd::of_none("MPI_Isend"));
            }
            LoopOrder::Listen { comm, listener, is_framed } => {
                let Some(line) = self.lines.get_mut(comm) else { return };
                line.listener = Some(listener);
                line.frames = is_framed.then(FrameStore::new);
                self.has_begun = true;
            }
            LoopOrder::Look => self.has_begun = true,
            LoopOrder::Doorbells { comm, doorbells } => {
                let Some(line) = self.lines.get_mut(comm) else { return };
                line.doorbells = Some(doorbells.clone());
                self.doorbells = Some(doorbells);
                self.has_begun = true;
            }
            LoopOrder::Collective { comm, mut plan, end } => {
                let Some(line) = self.lines.get(comm) else { return };
                // SAFETY: the plan goes into the call, by the invariant at the head of the file. It
                // lies in a box, so it stays where it is.
                match unsafe { self.mpi.collective(&line.comm, &mut plan) } {
                    Ok(request) => self.begin(request, Undone::Collective(plan, end)),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Dup { comm, end } => {
                let Some(line) = self.lines.get(comm) else { return };
                let mut place = Box::new(self.mpi.new_comm());
                // SAFETY: the box goes into the call, and what is in it stays where it is.
                match unsafe { self.mpi.dup(&line.comm, &mut place) } {
                    Ok(request) => self.begin(request, Undone::Dup(place, end)),
                    Err(error) => end.come(Err(error)),
                }
            }
            LoopOrder::Split { comm, color, key, end } => {
                let Some(line) = self.lines.get(comm) else { return };
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
                self.lines.iter_mut().for_each(|line| line.listener = None);
                self.is_finishing = true;
                self.has_begun = true;
            }
        }
    }

    fn send(
        &mut self,
        comm: CommId,
        dest: i32,
        tag: i32,
        synchronous: bool,
        memory: MpiMemory,
        end: CallEnd<MpiMemory>,
    ) {
        let Some(line) = self.lines.get(comm) else { return };
        // SAFETY: the memory goes into the call, by the invariant at the head of the file.
        let sent = unsafe { self.mpi.send(&line.comm, &memory, dest, tag, synchronous) };
        line.ring(dest);
        match sent {
            Ok(request) => self.begin(request, Undone::Send(memory, end)),
            Err(error) => end.come(Err(error)),
        }
    }

    /// Notes a call, unless it is done already, as most sends of short messages are.
    fn begin(&mut self, mut request: RequestHandle<H>, call: Undone<H>) {
        match self.mpi.test(&mut request) {
            Ok(false) => self.note(request, call),
            Ok(true) => self.end(call, Ok(())),
            Err(error) => self.end(call, Err(error)),
        }
    }

    fn note(&mut self, request: RequestHandle<H>, call: Undone<H>) {
        self.requests.push(request);
        self.calls.push(ManuallyDrop::new(call));
        self.has_begun = true;
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
                let Some(line) = self.lines.get_mut(comm) else { return };
                if head.bytes >= LONG_MESSAGE {
                    line.ring(head.source);
                }
                let received = Received { source: head.source as usize, tag: head.tag, memory };
                line.end(head.source, ticket, MpiError::unless_dead(result.map(|()| received)));
            }
            Undone::Dup(place, end) => {
                let made = result.and_then(|()| self.mpi.made(&place));
                let none =
                    || MpiError::refused("MPI_Comm_idup", MpiErrorClass::Intern, "no communicator".into());
                end.come(made.and_then(|made| self.add(made.ok_or_else(none)?)));
            }
            Undone::Split { comm, color, key, end } => {
                let Some(line) = self.lines.get(comm) else { return };
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
                let Some(line) = self.lines.get_mut(comm) else { return };
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
        let id = self.lines.add(CommLine::new(comm));
        Ok(NewPlace { id, rank, size })
    }

    /// Gives a communicator up. The world stays with the library.
    fn free(&mut self, comm: CommId) {
        let Some(line) = self.lines.remove(comm) else { return };
        if let Some(frames) = line.frames {
            frames.withdraw(&self.mpi);
        }
        if comm != WORLD {
            // A failure leaves the communicator to the end of MPI, and there is no thread to tell.
            let _ = self.mpi.free(line.comm);
        }
    }
}

impl<H: MpiHandle> Drive for MpiDriver<H> {
    fn carry_out_all(&mut self, orders: &LoopOrders) {
        let mut taken = std::mem::take(&mut self.orders);
        orders.take(&mut taken);
        for order in taken.drain(..) {
            self.carry_out(order);
        }
        self.orders = taken;
    }

    fn look(&mut self, messages: usize, offered: Option<&mut OfferedFrames<'_, '_>>) -> bool {
        let has_happened = self.test();
        has_happened | self.find(messages, offered)
    }

    fn send_frame(&mut self, comm: CommId, dest: i32, parts: &[&[u8]]) -> bool {
        // The caller waits for the ends of its sends then, so that their number is limited.
        if !self.requests.is_empty() || self.is_finishing {
            return false;
        }
        let Some(line) = self.lines.get(comm) else { return false };
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let memory = MpiMemory::from(bytes);
        // SAFETY: the memory goes into the call, by the invariant at the head of the file, or the
        // request is done at once.
        let Ok(mut request) = (unsafe { self.mpi.send(&line.comm, &memory, dest, FRAME, false) }) else {
            return false;
        };
        line.ring(dest);
        match self.mpi.test(&mut request) {
            Ok(true) => self.spare = memory.into_vec().unwrap_or_default(),
            Ok(false) => self.note(request, Undone::Send(memory, CallEnd::of_none("MPI_Isend"))),
            // It is as a message that is lost on its way.
            Err(_) => {}
        }
        true
    }

    fn has_begun(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }

    fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    fn standing(&self) -> DriverStanding {
        let is_rung = |line: &CommLine<H>| !line.wants_messages() || line.doorbells.is_some();
        let has_requests = self.has_requests();
        DriverStanding {
            is_outstanding: has_requests || self.lines.iter().any(CommLine::wants_messages),
            is_rung_for_all: !has_requests
                && self.doorbells.as_ref().is_some_and(|doorbells| doorbells.are_complete())
                && self.lines.iter().all(is_rung),
            is_finished: self.is_finishing && !has_requests,
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(), MpiError> {
        for frames in self.lines.drain().filter_map(|line| line.frames) {
            frames.withdraw(&self.mpi);
        }
        self.mpi.finalize(self.has_deaths)
    }
}
