//! [`Driver`]: carries out the orders of the threads with the library, and finds out what is done.
//!
//! `message_loop.rs` calls [`Driver::turn`] again and again, on the OS thread that has started MPI.
//! A turn never waits, with one exception: a split waits inside the library for the other ranks'
//! splits, when all of them have asked for it.
//!
//! Receives are not posted to the library, because the library looks through its posted receives
//! one by one. The driver looks for any message with one call, and finds the receive in a table
//! (`matching.rs`). A message that no thread waits for stays where it is. Its sender goes on only
//! if it was short.
//!
//! **Invariant:** the memory of a call belongs to its `Call` in `calls` until the library has said
//! that the request is done. The library has moved on from no other memory.

use super::calls::{CommHandle, Head, MessageHandle, Mpi, NewComm, RequestHandle, TESTED_MAX};
use super::collective::{Collected, Plan};
use super::completion::Completer;
use super::error::{ErrorClass, MpiError};
use super::family::Handle;
use super::matching::{Filter, Matching, Origin};
use super::memory::Memory;
use super::orders::{Arrival, CommId, NewPlace, Order, Orders, Received, Room, WORLD};
use super::scalar::Scalar;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;

/// Messages that a turn takes from one communicator at most, so that orders are not delayed.
const FOUND_MAX: usize = 64;

/// The state of one rank.
#[derive(Debug)]
pub(super) struct Driver<H: Handle> {
    mpi: Mpi<H>,
    channels: BTreeMap<CommId, Channel<H>>,
    next_comm: CommId,
    /// The requests that are not done, and in the same places the calls to which they belong.
    requests: Vec<RequestHandle<H>>,
    calls: Vec<ManuallyDrop<Call<H>>>,
    /// Where in `requests` the next test begins.
    tested: usize,
    /// What the last test found. It is kept for its allocation.
    done: Vec<(usize, Result<(), MpiError>)>,
    /// The orders of the present turn.
    orders: Vec<Order>,
    is_finishing: bool,
}

/// A communicator with the receives and the messages that wait on it.
#[derive(Debug)]
struct Channel<H> {
    comm: CommHandle<H>,
    matching: Matching<Posted, Found<H>>,
    probes: Vec<(Filter, Completer<Arrival>)>,
}

/// A receive that waits for its message.
#[derive(Debug)]
struct Posted {
    room: Room,
    completer: Completer<Received>,
}

/// A message without a receive.
#[derive(Debug)]
enum Found<H> {
    /// It is still with the library.
    There(Head, MessageHandle<H>),
    /// It was received for a thread that left meanwhile.
    Here(Memory),
}

impl<H> Found<H> {
    fn bytes(&self) -> usize {
        match self {
            Found::There(head, _) => head.bytes,
            Found::Here(memory) => memory.bytes(),
        }
    }
}

/// A call that is under way, with all that the library reads and writes for it.
#[derive(Debug)]
enum Call<H> {
    Send(Memory, Completer<Memory>),
    Receive { comm: CommId, head: Head, number: u64, memory: Memory, completer: Completer<Received> },
    /// A message that no thread will receive, because its communicator is gone.
    Discard(Memory),
    Collective(Box<Plan>, Completer<Collected>),
    Dup(Box<NewComm<H>>, Completer<NewPlace>),
    /// The barrier before a split.
    Split { comm: CommId, color: Option<i32>, key: i32, completer: Completer<Option<NewPlace>> },
}

impl<H: Handle> Driver<H> {
    /// The driver of a library that has just been started.
    pub(super) fn new(mpi: Mpi<H>) -> Driver<H> {
        let world = Channel { comm: mpi.world(), matching: Matching::new(), probes: Vec::new() };
        Driver {
            mpi,
            channels: BTreeMap::from([(WORLD, world)]),
            next_comm: WORLD + 1,
            requests: Vec::new(),
            calls: Vec::new(),
            tested: 0,
            done: Vec::new(),
            orders: Vec::new(),
            is_finishing: false,
        }
    }

    pub(super) fn mpi(&self) -> &Mpi<H> {
        &self.mpi
    }

    /// Carries out the orders that are there, and finds out what is done. Whether there was any of
    /// it.
    pub(super) fn turn(&mut self, orders: &Orders) -> bool {
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

    /// Whether a call is under way, or a thread waits for a message.
    pub(super) fn is_outstanding(&self) -> bool {
        let waits = |channel: &Channel<H>| channel.matching.waiting() > 0 || !channel.probes.is_empty();
        !self.requests.is_empty() || self.channels.values().any(waits)
    }

    /// Whether MPI can be ended: a thread has asked for it, and nothing is under way.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finishing && self.requests.is_empty()
    }

    /// Ends MPI. Threads that still wait for messages are told so.
    pub(super) fn finish(self) -> Result<(), MpiError> {
        // The requests are done, so the library has moved on from all memory.
        debug_assert!(self.is_finished());
        self.mpi.finalize()
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Send { comm, dest, tag, synchronous, memory, completer } => {
                let Some(channel) = self.channels.get(&comm) else { return };
                // SAFETY: the memory goes into the call, by the invariant at the head of the file.
                match unsafe { self.mpi.send(&channel.comm, &memory, dest, tag, synchronous) } {
                    Ok(request) => self.begin(request, Call::Send(memory, completer)),
                    Err(error) => answer(completer, Err(error)),
                }
            }
            Order::Receive { comm, filter, ticket, room, completer } => {
                let Some(channel) = self.channels.get_mut(&comm) else { return };
                let posted = Posted { room, completer };
                if let Some((posted, origin, number, found)) = channel.matching.post(filter, ticket, posted) {
                    self.receive(comm, origin, number, found, posted);
                }
            }
            Order::GiveUp { comm, filter, ticket } => {
                let Some(channel) = self.channels.get_mut(&comm) else { return };
                // If the receive has its message already, the message comes back when it is here.
                drop(channel.matching.give_up(filter, ticket));
            }
            Order::ComeBack { comm, origin, number, memory } => self.come_back(comm, origin, number, memory),
            Order::Probe { comm, filter, completer } => {
                let Some(channel) = self.channels.get_mut(&comm) else { return };
                match channel.matching.look(filter) {
                    Some((origin, found)) => answer(completer, Ok(arrival(origin, found))),
                    None => channel.probes.push((filter, completer)),
                }
            }
            Order::Collective { comm, mut plan, completer } => {
                let Some(channel) = self.channels.get(&comm) else { return };
                // SAFETY: the plan goes into the call, by the invariant at the head of the file. It
                // lies in a box, so it stays where it is.
                match unsafe { self.mpi.collective(&channel.comm, &mut plan) } {
                    Ok(request) => self.begin(request, Call::Collective(plan, completer)),
                    Err(error) => answer(completer, Err(error)),
                }
            }
            Order::Dup { comm, completer } => {
                let Some(channel) = self.channels.get(&comm) else { return };
                let mut place = Box::new(self.mpi.new_comm());
                // SAFETY: the box goes into the call, and what is in it stays where it is.
                match unsafe { self.mpi.dup(&channel.comm, &mut place) } {
                    Ok(request) => self.begin(request, Call::Dup(place, completer)),
                    Err(error) => answer(completer, Err(error)),
                }
            }
            Order::Split { comm, color, key, completer } => {
                let Some(channel) = self.channels.get(&comm) else { return };
                match self.mpi.barrier(&channel.comm) {
                    Ok(request) => self.begin(request, Call::Split { comm, color, key, completer }),
                    Err(error) => answer(completer, Err(error)),
                }
            }
            Order::Free { comm } => self.free(comm),
            Order::Time { completer } => answer(completer, Ok(self.mpi.wtime())),
            Order::Abort { code, completer } => answer(completer, Err(self.mpi.abort(code))),
            Order::Finish => {
                let comms: Vec<CommId> = self.channels.keys().copied().collect();
                comms.into_iter().for_each(|comm| self.free(comm));
                self.is_finishing = true;
            }
        }
    }

    /// Notes a call, unless it is done already, as most sends of short messages are.
    fn begin(&mut self, mut request: RequestHandle<H>, call: Call<H>) {
        // It is not dropped if the library panics or fails to say whether it is done.
        let call = ManuallyDrop::new(call);
        match self.mpi.test(&mut request) {
            Ok(false) => {
                self.requests.push(request);
                self.calls.push(call);
            }
            Ok(true) => self.end(ManuallyDrop::into_inner(call), Ok(())),
            Err(error) => self.end(ManuallyDrop::into_inner(call), Err(error)),
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
            for call in self.calls.drain(window) {
                lose(ManuallyDrop::into_inner(call), &error);
            }
            return true;
        }
        let has_happened = !done.is_empty();
        // From the last one, because each leaves its place to the last call.
        let mut ended = Vec::with_capacity(done.len());
        for (place, result) in done.drain(..).rev() {
            self.requests.swap_remove(from + place);
            ended.push((ManuallyDrop::into_inner(self.calls.swap_remove(from + place)), result));
        }
        self.done = done;
        // The order of the requests is that in which the calls were begun, as far as it is known.
        ended.into_iter().rev().for_each(|(call, result)| self.end(call, result));
        has_happened
    }

    /// A call is done: the library has moved on from its memory.
    fn end(&mut self, call: Call<H>, result: Result<(), MpiError>) {
        match call {
            Call::Send(memory, completer) => answer(completer, named("MPI_Isend", result).map(|()| memory)),
            Call::Discard(memory) => drop(memory),
            Call::Collective(plan, completer) => {
                let name = plan.collective.name();
                answer(completer, named(name, result).map(|()| plan.collected()));
            }
            Call::Receive { comm, head, number, memory, completer } => {
                let received = Received { source: head.source as usize, tag: head.tag, memory, number };
                let reply = completer.reply(named("MPI_Imrecv", result).map(|()| received));
                if let Err(Ok(received)) = reply {
                    self.come_back(comm, (head.source, head.tag), number, received.memory);
                }
            }
            Call::Dup(place, completer) => {
                let made = named("MPI_Comm_idup", result).and_then(|()| self.mpi.made(&place));
                let lost = || MpiError::refused("MPI_Comm_idup", ErrorClass::Intern, "no communicator".into());
                let made = made.and_then(|made| self.add(made.ok_or_else(lost)?));
                self.hand_over(completer, made, |place| Some(place.id));
            }
            Call::Split { comm, color, key, completer } => {
                let Some(channel) = self.channels.get(&comm) else { return };
                let made = named("MPI_Comm_split", result).and_then(|()| self.mpi.split(&channel.comm, color, key));
                let made = made.and_then(|made| made.map(|comm| self.add(comm)).transpose());
                self.hand_over(completer, made, |place| place.map(|place| place.id));
            }
        }
    }

    /// Gives a new communicator to the thread that asked for it, or frees it if the thread has
    /// left.
    fn hand_over<T>(
        &mut self,
        completer: Completer<T>,
        made: Result<T, MpiError>,
        id: impl FnOnce(T) -> Option<CommId>,
    ) {
        if let Err(Ok(made)) = completer.reply(made)
            && let Some(id) = id(made)
        {
            self.free(id);
        }
    }

    fn add(&mut self, comm: CommHandle<H>) -> Result<NewPlace, MpiError> {
        let (rank, size) = self.mpi.place(&comm)?;
        let id = self.next_comm;
        self.next_comm += 1;
        self.channels.insert(id, Channel { comm, matching: Matching::new(), probes: Vec::new() });
        Ok(NewPlace { id, rank, size })
    }

    /// Looks for messages where threads wait for some.
    fn find(&mut self) -> bool {
        let mut has_happened = false;
        let mut next = WORLD;
        while let Some((&comm, _)) = self.channels.range(next..).next() {
            next = comm + 1;
            for _ in 0..FOUND_MAX {
                let Some(channel) = self.channels.get_mut(&comm) else { break };
                if channel.matching.waiting() == 0 && channel.probes.is_empty() {
                    break;
                }
                match self.mpi.find_message(&channel.comm) {
                    Ok(None) => break,
                    Ok(Some((head, message))) => self.arrive(comm, head, message),
                    Err(error) => {
                        let (receives, _) = channel.matching.clear();
                        for posted in receives {
                            answer(posted.completer, Err(error.clone()));
                        }
                        for (_, completer) in channel.probes.drain(..) {
                            answer(completer, Err(error.clone()));
                        }
                    }
                }
                has_happened = true;
            }
        }
        has_happened
    }

    fn arrive(&mut self, comm: CommId, head: Head, message: MessageHandle<H>) {
        let Some(channel) = self.channels.get_mut(&comm) else { return };
        let origin = (head.source, head.tag);
        let number = channel.matching.number();
        match channel.matching.arrive(origin, number, Found::There(head, message)) {
            Some((posted, found)) => self.receive(comm, origin, number, found, posted),
            None => channel.tell_probes(),
        }
    }

    /// A message comes back for which a receive was given up after it had been matched.
    fn come_back(&mut self, comm: CommId, origin: Origin, number: u64, memory: Memory) {
        let Some(channel) = self.channels.get_mut(&comm) else { return };
        match channel.matching.come_back(origin, number, Found::Here(memory)) {
            Some((posted, found)) => self.receive(comm, origin, number, found, posted),
            None => channel.tell_probes(),
        }
    }

    /// A receive has its message.
    fn receive(&mut self, comm: CommId, origin: Origin, number: u64, found: Found<H>, posted: Posted) {
        let Posted { room, completer } = posted;
        let mut memory = match room_for(room, origin, found.bytes()) {
            Ok(memory) => memory,
            Err(error) => {
                answer(completer, Err(error));
                // The message waits for a receive that has room for it.
                if let Some(channel) = self.channels.get_mut(&comm)
                    && let Some((posted, found)) = channel.matching.come_back(origin, number, found)
                {
                    self.receive(comm, origin, number, found, posted);
                }
                return;
            }
        };
        let (source, tag) = origin;
        match found {
            Found::Here(here) => {
                memory.copy_bytes(&here);
                let received = Received { source: source as usize, tag, memory, number };
                if let Err(Ok(received)) = completer.reply(Ok(received)) {
                    self.come_back(comm, origin, number, received.memory);
                }
            }
            // SAFETY: the memory goes into the call, by the invariant at the head of the file.
            Found::There(head, message) => match unsafe { self.mpi.receive(message, &mut memory) } {
                Ok(request) => self.begin(request, Call::Receive { comm, head, number, memory, completer }),
                Err(error) => answer(completer, Err(error)),
            },
        }
    }

    /// Gives a communicator up, with the messages on it that no thread has received. The world
    /// stays.
    fn free(&mut self, comm: CommId) {
        let Some(mut channel) = self.channels.remove(&comm) else { return };
        let (_, messages) = channel.matching.clear();
        for found in messages {
            if let Found::There(head, message) = found {
                let mut memory = Memory::zeroed(Scalar::U8, head.bytes);
                // SAFETY: the memory goes into the call, by the invariant at the head of the file.
                if let Ok(request) = unsafe { self.mpi.receive(message, &mut memory) } {
                    self.begin(request, Call::Discard(memory));
                }
            }
        }
        if comm != WORLD {
            // A failure leaves the communicator to the end of MPI, and there is no thread to tell.
            let _ = self.mpi.free(channel.comm);
        }
    }
}

impl<H> Channel<H> {
    fn tell_probes(&mut self) {
        let matching = &self.matching;
        let told = self.probes.extract_if(.., |(filter, _)| matching.look(*filter).is_some());
        for (filter, completer) in told.collect::<Vec<_>>() {
            if let Some((origin, found)) = matching.look(filter) {
                answer(completer, Ok(arrival(origin, found)));
            }
        }
    }
}

fn arrival<H>((source, tag): Origin, found: &Found<H>) -> Arrival {
    Arrival { source: source as usize, tag, bytes: found.bytes() }
}

/// The memory for a message of `bytes` bytes.
fn room_for(room: Room, (source, tag): Origin, bytes: usize) -> Result<Memory, MpiError> {
    let refuse = |class, text: String| {
        let error = MpiError::refused("MPI_Imrecv", class, text);
        Err(error.about(format_args!("from rank {source} with tag {tag}")))
    };
    let (scalar, room) = match room {
        Room::Fitting(scalar) => (scalar, None),
        Room::Given(memory) => (memory.scalar(), Some(memory)),
    };
    if bytes % scalar.bytes() != 0 {
        return refuse(ErrorClass::Type, format!("a message of {bytes} bytes holds no {} alone", scalar.name()));
    }
    match room {
        None => Ok(Memory::zeroed(scalar, bytes / scalar.bytes())),
        Some(memory) if memory.bytes() < bytes => {
            let room = memory.bytes();
            refuse(ErrorClass::Truncate, format!("a message of {bytes} bytes does not fit into {room} bytes"))
        }
        Some(mut memory) => {
            memory.shorten(bytes / scalar.bytes());
            Ok(memory)
        }
    }
}

/// The error of a request with the name of the call that made the request.
fn named(call: &'static str, result: Result<(), MpiError>) -> Result<(), MpiError> {
    result.map_err(|error| MpiError { call, ..error })
}

/// Tells the thread that waits for a call of which the library knows no more. The call's memory is
/// not freed.
fn lose<H>(call: Call<H>, error: &MpiError) {
    let error = error.clone();
    match call {
        Call::Send(memory, completer) => {
            std::mem::forget(memory);
            answer(completer, Err(error));
        }
        Call::Receive { memory, completer, .. } => {
            std::mem::forget(memory);
            answer(completer, Err(error));
        }
        Call::Discard(memory) => std::mem::forget(memory),
        Call::Collective(plan, completer) => {
            std::mem::forget(plan);
            answer(completer, Err(error));
        }
        Call::Dup(place, completer) => {
            std::mem::forget(place);
            answer(completer, Err(error));
        }
        Call::Split { completer, .. } => answer(completer, Err(error)),
    }
}

/// Answers a thread that may have left.
fn answer<T>(completer: Completer<T>, result: Result<T, MpiError>) {
    drop(completer.reply(result));
}
