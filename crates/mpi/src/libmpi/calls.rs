//! [`Mpi`]: the calls of the library, each a method that returns a `Result`.
//!
//! `driver.rs` makes the calls. MPI is started at the level at which OS threads make calls one at a
//! time, or at the level at which one OS thread makes all of them, if the library has no more
//! ([`Mpi::is_serialized`]). `shared_driver.rs` keeps to the level. Handles are values of this file
//! ([`CommHandle`], [`RequestHandle`], [`MessageHandle`]) which no other file can make, so each is
//! one that the library gave. A method that hands memory to the library is `unsafe`, because the
//! library reads or writes it until the request is done.

use super::collective::{CallPlan, Collective};
use super::error::{MpiError, MpiErrorClass};
use super::family::{AbiTable, MpiHandle, STATUS_BYTES_MAX};
use super::functions::MpiFunctions;
use super::memory::MpiMemory;
use super::scalar::{ReduceOp, Scalar};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Calls a function of the library, and makes its error one with its name.
macro_rules! ask {
    ($self:ident.$field:ident($($argument:expr),* $(,)?)) => {{
        let named = &$self.functions.$field;
        $self.check(named.name, (named.function)($($argument),*))
    }};
}

mod dead_ranks;
mod large;

/// A communicator.
#[derive(Debug)]
pub(super) struct CommHandle<H>(H);

/// A request. After a call has found it done it is the library's null request.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct RequestHandle<H>(H);

/// A message that was found, and that no other receive can find.
#[derive(Debug)]
pub(super) struct MessageHandle<H>(H);

/// A message that has arrived, as far as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHead {
    pub(super) source: i32,
    pub(super) tag: i32,
    /// The length in bytes.
    pub(super) bytes: usize,
}

/// Room for a status of any family.
type StatusRoom = [u64; STATUS_BYTES_MAX / 8];

/// Requests that one call tests at most. The cost of the call grows with the number of requests.
pub(super) const TESTED_MAX: usize = 64;

/// The longest text that a library writes: the version of MPICH.
const TEXT_MAX: usize = 8192;

/// MPI, which has been started. At any time one OS thread at most has this value.
#[derive(Debug)]
pub(super) struct Mpi<H> {
    functions: MpiFunctions<H>,
    table: AbiTable<H>,
    is_serialized: bool,
}

impl<H: MpiHandle> Mpi<H> {
    /// Starts MPI. From then on a call that fails returns its error, and does not end the job.
    ///
    /// # Safety
    /// `functions` and `table` are those of one library, which has handles of the type `H`. MPI has
    /// been started at most by other code, which the call notices.
    pub(super) unsafe fn start(functions: MpiFunctions<H>, table: AbiTable<H>) -> Result<Mpi<H>, MpiError> {
        let mut mpi = Mpi { functions, table, is_serialized: false };
        let mut started = 0;
        // SAFETY: the call is allowed at any time, and the place can be written.
        unsafe { ask!(mpi.initialized(&mut started)) }?;
        if started != 0 {
            let text = "another part of the program has started MPI".to_string();
            return Err(MpiError::refused("MPI_Init_thread", MpiErrorClass::Other, text));
        }
        let (numbers, mut level) = (mpi.table.numbers, 0);
        // SAFETY: MPI has not been started. The arguments of `main` may be missing.
        unsafe { ask!(mpi.init_thread(null_mut(), null_mut(), numbers.serialized, &mut level)) }?;
        mpi.is_serialized = level >= numbers.serialized;
        if level < numbers.funneled {
            let text = "the library cannot be used in a process with several OS threads".to_string();
            return Err(MpiError::refused("MPI_Init_thread", MpiErrorClass::Other, text));
        }
        for comm in [mpi.table.world, mpi.table.own] {
            mpi.return_errors(comm)?;
        }
        for &scalar in Scalar::ALL {
            let mut bytes = 0;
            // SAFETY: MPI is started, the handle is a constant, and the place can be written.
            unsafe { ask!(mpi.type_size(mpi.table.scalar(scalar), &mut bytes)) }?;
            if bytes as usize != scalar.bytes() {
                let text = format!("the library says {bytes} for {}", scalar.name());
                return Err(MpiError::refused("MPI_Type_size", MpiErrorClass::Type, text));
            }
        }
        Ok(mpi)
    }

    /// Whether every OS thread may make calls, one at a time. Else the OS thread that has started
    /// MPI makes all calls.
    pub(super) fn is_serialized(&self) -> bool {
        self.is_serialized
    }

    /// Ends MPI. All ranks that live make this call, each on the OS thread that has started MPI.
    pub(super) fn finalize(self, has_deaths: bool) -> Result<(), MpiError> {
        if has_deaths && let Some(switch) = &self.table.ends_alone {
            // The launcher may wait for the dead at the end, for ever.
            switch.turn_on();
        }
        // SAFETY: MPI is started, the message loop calls this on the OS thread that has started it,
        // and `self` is gone after the call.
        unsafe { ask!(self.finalize()) }
    }

    /// Ends all ranks of the job.
    pub(super) fn abort(&self, code: i32) -> MpiError {
        // SAFETY: MPI is started, and the world is a constant.
        let outcome = unsafe { ask!(self.abort(self.table.world, code)) };
        let text = "the library came back".to_string();
        outcome.err().unwrap_or_else(|| MpiError::refused("MPI_Abort", MpiErrorClass::Other, text))
    }

    /// The communicator of all ranks.
    pub(super) fn world(&self) -> CommHandle<H> {
        CommHandle(self.table.world)
    }

    /// The rank of this process in a communicator, and the communicator's size.
    pub(super) fn place(&self, comm: &CommHandle<H>) -> Result<(usize, usize), MpiError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is started, the handle is of a communicator, and the places can be written.
        unsafe {
            ask!(self.comm_rank(comm.0, &mut rank))?;
            ask!(self.comm_size(comm.0, &mut size))?;
        }
        Ok((rank as usize, size as usize))
    }

    /// The greatest tag.
    pub(super) fn tag_max(&self) -> Result<i32, MpiError> {
        // The least that MPI promises.
        Ok(self.attribute(self.table.numbers.tag_max)?.unwrap_or(32_767))
    }

    /// A number that is an attribute of the library, if the library has it.
    fn attribute(&self, key: c_int) -> Result<Option<c_int>, MpiError> {
        let (mut value, mut found): (*const c_int, c_int) = (null(), 0);
        let place = (&raw mut value).cast::<c_void>();
        // SAFETY: MPI is started, and the call writes the attribute's address to `value`.
        unsafe { ask!(self.comm_get_attr(self.table.world, key, place, &mut found)) }?;
        if found == 0 || value.is_null() {
            return Ok(None);
        }
        // SAFETY: the library says that the attribute is there. It lies in the library, and the
        // callers name attributes that are numbers.
        Ok(Some(unsafe { *value }))
    }

    /// The name of the machine on which the rank runs.
    pub(super) fn processor_name(&self) -> Result<String, MpiError> {
        // SAFETY: MPI is started, and the room is larger than any library's text.
        self.text(|room, length| unsafe { ask!(self.get_processor_name(room, length)) })
    }

    /// The library's name and version in its own words.
    pub(super) fn library_version(&self) -> Result<String, MpiError> {
        // SAFETY: the call is allowed at any time, and the room is larger than any library's text.
        self.text(|room, length| unsafe { ask!(self.get_library_version(room, length)) })
    }

    /// The library's clock, in seconds.
    pub(super) fn wtime(&self) -> f64 {
        // SAFETY: MPI is started.
        unsafe { (self.functions.wtime.function)() }
    }

    /// Begins to make a communicator of the same ranks. The new one may be used when the request is
    /// done.
    ///
    /// # Safety
    /// `place` stays where it is until the request is done.
    pub(super) unsafe fn dup(
        &self,
        comm: &CommHandle<H>,
        place: &mut NewComm<H>,
    ) -> Result<RequestHandle<H>, MpiError> {
        // SAFETY: MPI is started, and the handle is of a communicator. The caller's contract is
        // about the place.
        self.begin(|request| unsafe { ask!(self.comm_idup(comm.0, &raw mut place.0, request)) })
    }

    /// Room for a communicator.
    pub(super) fn new_comm(&self) -> NewComm<H> {
        NewComm(self.table.no_comm)
    }

    /// The communicator that a call has made. `None` if the rank is in none.
    pub(super) fn made(&self, new: &NewComm<H>) -> Result<Option<CommHandle<H>>, MpiError> {
        if new.0 == self.table.no_comm {
            return Ok(None);
        }
        self.return_errors(new.0)?;
        Ok(Some(CommHandle(new.0)))
    }

    /// Makes a communicator of the ranks with the same colour, in the order of `key`. It returns
    /// when all ranks of `comm` have made the call. The result is `None` without a colour.
    pub(super) fn split(
        &self,
        comm: &CommHandle<H>,
        color: Option<i32>,
        key: i32,
    ) -> Result<Option<CommHandle<H>>, MpiError> {
        let color = color.unwrap_or(self.table.numbers.undefined);
        let mut new = self.new_comm();
        // SAFETY: MPI is started, the handle is of a communicator, and the place can be written.
        unsafe { ask!(self.comm_split(comm.0, color, key, &raw mut new.0)) }?;
        self.made(&new)
    }

    /// Gives a communicator up.
    pub(super) fn free(&self, mut comm: CommHandle<H>) -> Result<(), MpiError> {
        // SAFETY: MPI is started, and the handle is of a communicator that the caller has no more.
        unsafe { ask!(self.comm_free(&mut comm.0)) }
    }

    /// Begins to send. A synchronous send is done when the message is being received, another one
    /// when the memory can be used again.
    ///
    /// # Safety
    /// The memory stays, and is not written, until the request is done.
    pub(super) unsafe fn send(
        &self,
        comm: &CommHandle<H>,
        memory: &MpiMemory,
        dest: i32,
        tag: i32,
        synchronous: bool,
    ) -> Result<RequestHandle<H>, MpiError> {
        let name = if synchronous { self.functions.issend.name } else { self.functions.isend.name };
        let start = memory.start().cast_const().cast();
        let sent = self.counted(name, memory, |count, kind| {
            self.begin(|request| {
                // SAFETY: MPI is started, the handles are of the library, and `count` numbers lie
                // at `start`. The caller's contract is about the time after the call.
                unsafe {
                    if synchronous {
                        ask!(self.issend(start, count, kind, dest, tag, comm.0, request))
                    } else {
                        ask!(self.isend(start, count, kind, dest, tag, comm.0, request))
                    }
                }
            })
        });
        sent.map_err(|error| error.about(format_args!("to rank {dest} with tag {tag}")))
    }

    /// The next message of a communicator that has arrived and has not been found yet, from this
    /// rank or any, with this tag or any.
    pub(super) fn find_message(
        &self,
        comm: &CommHandle<H>,
        source: Option<i32>,
        tag: Option<i32>,
    ) -> Result<Option<(MessageHead, MessageHandle<H>)>, MpiError> {
        let numbers = self.table.numbers;
        let (source, tag) = (source.unwrap_or(numbers.any_source), tag.unwrap_or(numbers.any_tag));
        let (mut found, mut message) = (0, self.table.no_message);
        let mut room: StatusRoom = [0; _];
        let status = (&raw mut room).cast::<u8>();
        // SAFETY: MPI is started, the handle is of a communicator, and the places can be written. A
        // status of any family fits into the room.
        unsafe { ask!(self.improbe(source, tag, comm.0, &mut found, &mut message, status)) }?;
        match found {
            0 => Ok(None),
            // SAFETY: the library has just written this status.
            _ => Ok(Some((unsafe { self.head(&room) }?, MessageHandle(message)))),
        }
    }

    /// What a status tells of a message.
    ///
    /// # Safety
    /// The library has written the status.
    unsafe fn head(&self, room: &StatusRoom) -> Result<MessageHead, MpiError> {
        let mut bytes = 0;
        let status = (&raw const *room).cast::<u8>();
        // SAFETY: the caller says that the library has written the status.
        unsafe { ask!(self.get_elements_x(status, self.table.byte, &mut bytes)) }?;
        let layout = self.table.numbers.status;
        let (source, tag) = (field(room, 0, layout.source), field(room, 0, layout.tag));
        Ok(MessageHead { source, tag, bytes: bytes as usize })
    }

    /// Posts a receive of a message with this tag, from any rank.
    ///
    /// # Safety
    /// The memory stays, and is not used, until the request is done.
    pub(super) unsafe fn post(
        &self,
        comm: &CommHandle<H>,
        tag: i32,
        memory: &mut MpiMemory,
    ) -> Result<RequestHandle<H>, MpiError> {
        let count = int(self.functions.irecv.name, memory.len())?;
        let (start, kind) = (memory.start().cast(), self.moved(memory.scalar()));
        let source = self.table.numbers.any_source;
        // SAFETY: MPI is started, the handles are of the library, and there is room for `count`
        // numbers at `start`. The caller's contract is about the time after the call.
        self.begin(|request| unsafe { ask!(self.irecv(start, count, kind, source, tag, comm.0, request)) })
    }

    /// The message of a posted receive, if it has come.
    pub(super) fn arrived(&self, request: &mut RequestHandle<H>) -> Result<Option<MessageHead>, MpiError> {
        match self.tested(request)? {
            None => Ok(None),
            // SAFETY: the library has just written this status.
            Some(room) => Ok(Some(unsafe { self.head(&room) }?)),
        }
    }

    /// Gives a posted receive up. The library uses its memory no more.
    pub(super) fn withdraw(&self, mut request: RequestHandle<H>) -> Result<(), MpiError> {
        let mut room: StatusRoom = [0; _];
        let status = (&raw mut room).cast::<u8>();
        // SAFETY: MPI is started, the request is of the library, and a status of any family fits
        // into the room. The wait is over when the receive is cancelled or its message is there,
        // and does not depend on other ranks.
        unsafe {
            ask!(self.cancel(&mut request.0))?;
            ask!(self.wait(&mut request.0, status))
        }
    }

    /// Begins to receive a message that was found.
    ///
    /// # Safety
    /// The memory stays, and is not used, until the request is done.
    pub(super) unsafe fn receive(
        &self,
        message: MessageHandle<H>,
        memory: &mut MpiMemory,
    ) -> Result<RequestHandle<H>, MpiError> {
        let (start, mut message) = (memory.start().cast(), message.0);
        self.counted(self.functions.imrecv.name, memory, |count, kind| {
            // SAFETY: MPI is started, the message was found and not received, and there is room for
            // `count` numbers at `start`. The caller's contract is about the time after the call.
            self.begin(|request| unsafe { ask!(self.imrecv(start, count, kind, &mut message, request)) })
        })
    }

    /// Begins to wait until all ranks have made the call.
    pub(super) fn barrier(&self, comm: &CommHandle<H>) -> Result<RequestHandle<H>, MpiError> {
        // SAFETY: MPI is started, and the handle is of a communicator.
        self.begin(|request| unsafe { ask!(self.ibarrier(comm.0, request)) })
    }

    /// Begins this rank's part of a collective call.
    ///
    /// # Safety
    /// The plan stays where its parts lie, and its memory is not used, until the request is done.
    pub(super) unsafe fn collective(
        &self,
        comm: &CommHandle<H>,
        plan: &mut CallPlan,
    ) -> Result<RequestHandle<H>, MpiError> {
        let in_place = std::ptr::without_provenance::<c_void>(self.table.numbers.in_place as usize);
        let (given, room, size) = (plan.given.len(), plan.room.len(), plan.size);
        let reads = if plan.in_place { in_place } else { plan.given.start().cast_const().cast() };
        // The libraries refuse a room that is what they read, also an empty one.
        let writes = if room == 0 && !plan.in_place { null_mut() } else { plan.room.start().cast() };
        let (kind, name) = (self.moved(plan.scalar()), plan.collective.name());
        let (sent, received) = (&plan.sent, &plan.received);
        let (sent_counts, sent_places) = (sent.counts.as_ptr(), sent.places.as_ptr());
        let (counts, places) = (received.counts.as_ptr(), received.places.as_ptr());
        let reduced = |op: ReduceOp| (self.table.scalar(plan.scalar()), self.table.op(op));
        let root_of = |root: usize| int(name, root);
        if plan.collective == Collective::Barrier {
            return self.barrier(comm);
        }
        let comm = comm.0;
        self.begin(|request| {
            // SAFETY: MPI is started, the handles are of the library, and `CallPlan::new` has made
            // memory, counts and places as long as the call asks for, for this rank and this size.
            // The caller's contract is about the time after the call.
            unsafe {
                match plan.collective {
                    Collective::Barrier => unreachable!("it has no memory"),
                    Collective::Bcast { root } => {
                        ask!(self.ibcast(writes, int(name, room)?, kind, root_of(root)?, comm, request))
                    }
                    Collective::Reduce { root, op } => {
                        let (kind, op) = reduced(op);
                        let count = int(name, if plan.in_place { room } else { given })?;
                        ask!(self.ireduce(reads, writes, count, kind, op, root_of(root)?, comm, request))
                    }
                    Collective::Allreduce { op } => {
                        let (kind, op) = reduced(op);
                        ask!(self.iallreduce(reads, writes, int(name, room)?, kind, op, comm, request))
                    }
                    Collective::Scan { op } => {
                        let (kind, op) = reduced(op);
                        ask!(self.iscan(reads, writes, int(name, room)?, kind, op, comm, request))
                    }
                    Collective::Exscan { op } => {
                        let (kind, op) = reduced(op);
                        ask!(self.iexscan(reads, writes, int(name, room)?, kind, op, comm, request))
                    }
                    Collective::ReduceScatterBlock { op } => {
                        let (kind, op) = reduced(op);
                        let block = int(name, room)?;
                        ask!(self.ireduce_scatter_block(reads, writes, block, kind, op, comm, request))
                    }
                    Collective::Gather { root } => {
                        let count = int(name, given)?;
                        let root = root_of(root)?;
                        ask!(self.igather(reads, count, kind, writes, count, kind, root, comm, request))
                    }
                    Collective::Gatherv { root, .. } => {
                        let (count, root) = (int(name, given)?, root_of(root)?);
                        ask!(
                            self.igatherv(
                                reads, count, kind, writes, counts, places, kind, root, comm, request
                            )
                        )
                    }
                    Collective::Scatter { root, .. } => {
                        let count = int(name, room)?;
                        let root = root_of(root)?;
                        ask!(self.iscatter(reads, count, kind, writes, count, kind, root, comm, request))
                    }
                    Collective::Scatterv { root, .. } => {
                        let (count, root) = (int(name, room)?, root_of(root)?);
                        ask!(self.iscatterv(
                            reads,
                            sent_counts,
                            sent_places,
                            kind,
                            writes,
                            count,
                            kind,
                            root,
                            comm,
                            request
                        ))
                    }
                    Collective::Allgather => {
                        let count = int(name, given)?;
                        ask!(self.iallgather(reads, count, kind, writes, count, kind, comm, request))
                    }
                    Collective::Allgatherv { .. } => {
                        let count = int(name, given)?;
                        ask!(
                            self.iallgatherv(reads, count, kind, writes, counts, places, kind, comm, request)
                        )
                    }
                    Collective::Alltoall => {
                        let count = int(name, given / size)?;
                        ask!(self.ialltoall(reads, count, kind, writes, count, kind, comm, request))
                    }
                    Collective::Alltoallv { .. } => {
                        ask!(self.ialltoallv(
                            reads,
                            sent_counts,
                            sent_places,
                            kind,
                            writes,
                            counts,
                            places,
                            kind,
                            comm,
                            request
                        ))
                    }
                }
            }
        })
    }

    /// Whether a request is done. If it has failed, it is done too.
    pub(super) fn test(&self, request: &mut RequestHandle<H>) -> Result<bool, MpiError> {
        Ok(self.tested(request)?.is_some())
    }

    /// The status of a request, if it is done.
    fn tested(&self, request: &mut RequestHandle<H>) -> Result<Option<StatusRoom>, MpiError> {
        let (mut done, mut room): (c_int, StatusRoom) = (0, [0; _]);
        let status = (&raw mut room).cast::<u8>();
        // SAFETY: MPI is started, the request is of the library, and a status of any family fits
        // into the room.
        unsafe { ask!(self.test(&mut request.0, &mut done, status)) }?;
        Ok((done != 0).then_some(room))
    }

    /// Which of at most [`TESTED_MAX`] requests are done, in ascending order, each with its error.
    /// Appends them to `done`.
    pub(super) fn test_some(
        &self,
        requests: &mut [RequestHandle<H>],
        done: &mut Vec<(usize, Result<(), MpiError>)>,
    ) -> Result<(), MpiError> {
        assert!(requests.len() <= TESTED_MAX, "the arrays are as long as that");
        let (mut number, mut places) = (0, [0 as c_int; TESTED_MAX]);
        let mut room: [StatusRoom; TESTED_MAX] = [[0; _]; _];
        let status = (&raw mut room).cast::<u8>();
        let start = requests.as_mut_ptr().cast::<H>();
        let named = &self.functions.testsome;
        // SAFETY: MPI is started. A `RequestHandle` is a handle by its representation. The arrays
        // have places for as many requests as there are, with statuses of any family.
        let code = unsafe {
            (named.function)(requests.len() as c_int, start, &mut number, places.as_mut_ptr(), status)
        };
        let outcome = self.check(named.name, code);
        let numbers = self.table.numbers;
        match outcome {
            Err(error) if error.class != MpiErrorClass::InStatus => return Err(error),
            _ if number == numbers.undefined => return Ok(()),
            _ => {}
        }
        let from = done.len();
        for (index, &place) in places[..number as usize].iter().enumerate() {
            let result = match outcome {
                Ok(()) => Ok(()),
                Err(_) => {
                    let offset = index * numbers.status.bytes;
                    self.check(named.name, field(room.as_flattened(), offset, numbers.status.error))
                }
            };
            done.push((place as usize, result));
        }
        done[from..].sort_unstable_by_key(|&(place, _)| place);
        Ok(())
    }

    /// Makes a request by one call.
    fn begin(&self, call: impl FnOnce(*mut H) -> Result<(), MpiError>) -> Result<RequestHandle<H>, MpiError> {
        let mut request = self.table.no_request;
        call(&mut request)?;
        Ok(RequestHandle(request))
    }

    /// The type of data for numbers that are moved and not reduced. Bytes may be part of anything.
    fn moved(&self, scalar: Scalar) -> H {
        if scalar == Scalar::U8 { self.table.byte } else { self.table.scalar(scalar) }
    }

    fn return_errors(&self, comm: H) -> Result<(), MpiError> {
        // SAFETY: MPI is started, and the handles are a communicator and a constant.
        unsafe { ask!(self.comm_set_errhandler(comm, self.table.errors_return)) }
    }

    /// A text that the library writes.
    fn text(
        &self,
        call: impl FnOnce(*mut c_char, &mut c_int) -> Result<(), MpiError>,
    ) -> Result<String, MpiError> {
        let (mut room, mut length) = (vec![0_u8; TEXT_MAX], 0);
        call(room.as_mut_ptr().cast(), &mut length)?;
        room.truncate(length.max(0) as usize);
        Ok(String::from_utf8_lossy(&room).trim_matches(['\0', '\n', ' ']).to_string())
    }

    /// Makes an error of a code that is not 0.
    #[inline]
    fn check(&self, call: &'static str, code: c_int) -> Result<(), MpiError> {
        if code == 0 { Ok(()) } else { Err(self.error(call, code)) }
    }

    #[cold]
    fn error(&self, call: &'static str, code: c_int) -> MpiError {
        let mut number = code;
        // SAFETY: both calls take any code that the library gave, and the places can be written. A
        // failure leaves the code itself, or no text.
        let class = unsafe { (self.functions.error_class.function)(code, &mut number) };
        let class = self.table.numbers.class(if class == 0 { number } else { code });
        let text = self.text(|room, length| {
            // SAFETY: as above, and the room is larger than any library's text.
            unsafe { (self.functions.error_string.function)(code, room, length) };
            Ok(())
        });
        MpiError { call, class, code, text: text.unwrap_or_default().replace('\n', "; ") }
    }
}

/// Room for a communicator that a call makes.
#[derive(Debug)]
pub(super) struct NewComm<H>(H);

/// A field of the status that begins at `start` in `room`.
fn field(room: &[u64], start: usize, offset: usize) -> i32 {
    let at = start + offset;
    // The libraries write integers of 32 bits in the machine's order, the lower half first.
    (room[at / 8] >> (at % 8 * 8)) as i32
}

/// A number as the library's integer.
fn int(call: &'static str, number: usize) -> Result<c_int, MpiError> {
    c_int::try_from(number).map_err(|_| {
        let text = format!("{number} is more than an integer of this library holds");
        MpiError::refused(call, MpiErrorClass::Count, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_at_its_place() {
        let room = [0x0000_0002_0000_0001, 0xffff_ffff_0000_0003];
        assert_eq!([0, 4, 8, 12].map(|offset| field(&room, 0, offset)), [1, 2, 3, -1]);
        assert_eq!(field(&room, 4, 4), 3);
    }

    #[test]
    fn a_count_that_is_too_large_is_refused() {
        let error = int("MPI_Isend", 1 << 31).unwrap_err();
        assert_eq!(error.class, MpiErrorClass::Count);
        assert_eq!(error.to_string(), "MPI_Isend: 2147483648 is more than an integer of this library holds");
    }
}
