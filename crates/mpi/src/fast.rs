//! The fast interface: messages that are elements of plain data, in one piece of memory.
//!
//! Nothing is serialised: a message is the bytes of its elements, and nothing before them. A vector
//! that is sent to a rank of the same process is moved; a slice is copied once, and once more into
//! the slice of the receiver. Between processes the two copies may be one.

use crate::communicator::{Communicator, Opened, OpensMessage};
use crate::engine::{ReceiveRoom, SendMode};
use crate::envelope::{Envelope, MessageContent, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::{ElementSlice, Elements, bytes_of_elements, open, wrong_body};
use crate::request::Request;
use crate::spare_memory::spare;
use crate::tag::{Source, Tag, Tags};
use bytemuck::Pod;

impl Communicator {
    /// Sends the elements of a slice to a rank, and waits until they are on their way.
    ///
    /// # Errors
    /// If there is no such rank or tag, or if the rank has ended.
    ///
    /// # Complexity
    /// One copy of the elements.
    ///
    /// # Paper
    /// [HMPI "The Simple and Fast interfaces of Haskell-MPI"]: data that are contiguous in memory,
    /// without serialisation.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(2, |world| async move {
    ///     if world.rank() == 0 {
    ///         world.send_slice(1, (), &[1.5, 2.5]).await?;
    ///     } else {
    ///         let mut row = [0.0; 4];
    ///         let status = world.recv_into(0, (), &mut row).await?;
    ///         assert_eq!((row, status.count::<f64>()), ([1.5, 2.5, 0.0, 0.0], Some(2)));
    ///     }
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Send")]
    #[doc(alias = "sendBS")]
    #[track_caller]
    pub fn send_slice<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("send_slice");
        self.send_payload(call, to, tag.into(), ElementSlice(elements), SendMode::Standard)
    }

    /// As [`send_slice`](Self::send_slice), of a vector that the program gives away. To a rank of
    /// the same process it is moved: no element is copied, unless the receiver wants it in a slice.
    ///
    /// # Errors
    /// As for [`send_slice`](Self::send_slice).
    #[track_caller]
    pub fn send_vec<T: Pod + Send>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: Vec<T>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.send_payload(self.call("send_vec"), to, tag.into(), Elements(elements), SendMode::Standard)
    }

    /// As [`send_slice`](Self::send_slice), and waits until a receive has taken the message.
    ///
    /// # Errors
    /// As for [`send_slice`](Self::send_slice), and if the receiver ends without taking the
    /// message.
    #[doc(alias = "MPI_Ssend")]
    #[track_caller]
    pub fn ssend_slice<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("ssend_slice");
        self.send_payload(call, to, tag.into(), ElementSlice(elements), SendMode::Synchronous)
    }

    /// Waits for the first message that matches, and puts its elements into the slice, from the
    /// front. The status tells how many there were.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv); and if the message has more elements than the slice, which is
    /// then as it was. The message is taken all the same.
    ///
    /// # Cancellation
    /// No message is lost. The elements may be others than before.
    #[doc(alias = "MPI_Recv")]
    #[track_caller]
    pub fn recv_into<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
        buffer: &mut [T],
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        let (call, source, tags) = (self.call("recv_into"), source.into(), tag.into());
        self.receive_with(call, self.own(), source, tags, Filled { call, buffer })
    }

    /// Waits for the first message that matches, and takes its elements, however many there are.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv).
    ///
    /// # Cancellation
    /// No message is lost.
    #[doc(alias = "intoNewArray")]
    #[doc(alias = "intoNewArray_")]
    #[doc(alias = "intoNewBS")]
    #[doc(alias = "intoNewBS_")]
    #[doc(alias = "intoNewVal")]
    #[doc(alias = "intoNewVal_")]
    #[doc(alias = "recvBS")]
    #[track_caller]
    pub fn recv_vec<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<(Vec<T>, Status), Error>> + Send {
        let (call, source, tags) = (self.call("recv_vec"), source.into(), tag.into());
        let open = move |envelope| {
            let (Elements(elements), status) = open(call, envelope)?;
            Ok((elements, status))
        };
        self.receive_with(call, self.own(), source, tags, Opened(open))
    }

    /// Sends the elements of one slice and receives into another, at the same time. So ranks that
    /// exchange borders do not wait for one another in a circle.
    ///
    /// # Errors
    /// As for [`send_slice`](Self::send_slice) and [`recv_into`](Self::recv_into).
    #[doc(alias = "MPI_Sendrecv")]
    #[track_caller]
    pub fn sendrecv_into<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
        source: impl Into<Source>,
        source_tag: impl Into<Tags>,
        buffer: &mut [T],
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        let (call, tag, source, tags) =
            (self.call("sendrecv_into"), tag.into(), source.into(), source_tag.into());
        async move {
            let underway = self.begin_payload(call, to, tag, ElementSlice(elements), SendMode::Standard)?;
            let envelope = self.receive(call, self.own(), source, tags).await?;
            self.end_send(call, to, underway).await?;
            fill(call, &envelope, buffer)
        }
    }

    /// Starts to send the elements of a buffer, and returns at once. The request owns the buffer,
    /// and gives it back.
    ///
    /// # Errors
    /// As for [`send_slice`](Self::send_slice); the request has the error.
    #[doc(alias = "MPI_Isend")]
    #[doc(alias = "isendBS")]
    #[doc(alias = "isendPtr")]
    #[track_caller]
    pub fn isend_vec<T: Pod + Send>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        buffer: Vec<T>,
    ) -> Request<Vec<T>> {
        let call = self.call("isend_vec");
        let payload = Elements(spare().filled(&buffer));
        let begun = self.begin_payload(call, to, tag.into(), payload, SendMode::Standard);
        Request::of_send(self, call, to, begun, buffer)
    }

    /// Posts a receive into a buffer, and returns at once. The request owns the buffer, and gives
    /// it back with the elements at its front.
    ///
    /// # Errors
    /// As for [`recv_into`](Self::recv_into); the request has the error.
    #[doc(alias = "irecvPtr")]
    #[doc(alias = "MPI_Irecv")]
    #[track_caller]
    pub fn irecv_into<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
        mut buffer: Vec<T>,
    ) -> Request<(Vec<T>, Status)> {
        let call = self.call("irecv_into");
        Request::of_receive(self, call, source.into(), tag.into(), move |envelope| {
            let status = fill(call, &envelope, &mut buffer)?;
            Ok((buffer, status))
        })
    }
}

/// A slice that a receive fills.
struct Filled<'a, T> {
    call: CallSite,
    buffer: &'a mut [T],
}

impl<T: Pod + Send> OpensMessage<Status> for Filled<'_, T> {
    fn room(&mut self) -> Option<ReceiveRoom<'_>> {
        Some(ReceiveRoom::new(self.buffer))
    }

    fn open(self, envelope: Envelope) -> Result<Status, Error> {
        let status = fill(self.call, &envelope, self.buffer)?;
        match envelope.body {
            MessageContent::Bytes(bytes) => spare().keep(bytes),
            MessageContent::Moved(moved) => {
                if let Ok(elements) = moved.downcast::<Vec<T>>() {
                    spare().keep(elements);
                }
            }
        }
        Ok(status)
    }

    fn opened(self, status: Status) -> Result<Status, Error> {
        Ok(status)
    }
}

/// Opens a message into a slice.
fn fill<T: Pod + Send>(call: CallSite, envelope: &Envelope, buffer: &mut [T]) -> Result<Status, Error> {
    open_elements::<T>(call, envelope, buffer.len(), |bytes| {
        bytemuck::cast_slice_mut(buffer)[..bytes.len()].copy_from_slice(bytes);
    })
}

/// Opens a message of at most this number of elements, and gives their bytes to a function.
pub(crate) fn open_elements<T: Pod + Send>(
    call: CallSite,
    envelope: &Envelope,
    room: usize,
    take: impl FnOnce(&[u8]),
) -> Result<Status, Error> {
    let from = (envelope.source, envelope.tag);
    let bytes = bytes_of_elements::<T>(&envelope.body)
        .map_err(|what| wrong_body(call, from, envelope.sent, &what))?;
    let has = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    if has > room {
        return Err(too_many(call, from, has, room));
    }
    take(bytes);
    Ok(envelope.status())
}

/// The error of a message from this source and with this tag that has too many elements.
#[cold]
fn too_many(call: CallSite, (source, tag): (u32, u32), has: usize, room: usize) -> Error {
    let text = format!(
        "the message from rank {source} with tag {tag} has {has} elements, and there is room for {room}"
    );
    call.error(ErrorClass::Truncate, text)
}
