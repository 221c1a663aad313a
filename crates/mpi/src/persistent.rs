//! Sends and receives that are made once and started again and again: [`PersistentSend`] and
//! [`PersistentReceive`].
//!
//! Their messages are those of `fast.rs`, so either side may be any other call. A send keeps the
//! memory of its messages (`shared_payload.rs`), a receive that of its elements.

use crate::communicator::Communicator;
use crate::engine::SendMode;
use crate::envelope::{Envelope, Status};
use crate::error::{CallSite, Error};
use crate::mailbox::ReceiveOutcome;
use crate::payload::{bytes_of_elements, open_with, pack};
use crate::shared_payload::BodyPool;
use crate::tag::{Source, Tag, Tags};
use bytemuck::Pod;
use std::fmt;

/// A send of elements to one rank that is started again and again.
///
/// # Complexity
/// To a rank of the same process a start allocates nothing after the first ones, as long as the
/// number of elements stays and the receiver is at most 8 messages behind. To another process the
/// bytes of the message are allocated.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(2, |world| async move {
///     let other = 1 - world.rank();
///     let mut sends = world.send_init(other, (), vec![0.0; 3]);
///     let mut receives = world.recv_init::<f64>(other, ());
///     for step in 0..10 {
///         sends.own_mut()[0] = f64::from(step);
///         let (going, coming) = (sends.start(), receives.start());
///         // The rank may compute here.
///         going.await?;
///         let (elements, _) = coming.await?;
///         assert_eq!(elements, [f64::from(step), 0.0, 0.0]);
///     }
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[must_use = "it does nothing until it is started"]
#[doc(alias = "MPI_Request")]
pub struct PersistentSend<T> {
    communicator: Communicator,
    call: CallSite,
    to: usize,
    tag: Tag,
    mode: SendMode,
    own: Vec<T>,
    pool: BodyPool<Vec<T>>,
}

/// A receive of elements that is started again and again.
///
/// # Cancellation
/// A start is given up if its future is dropped, and no message is lost.
///
/// # Complexity
/// A start allocates nothing, as long as there is room for the elements from the start before.
///
/// # Examples
/// See [`PersistentSend`].
#[must_use = "it does nothing until it is started"]
#[doc(alias = "MPI_Request")]
pub struct PersistentReceive<T> {
    communicator: Communicator,
    call: CallSite,
    source: Source,
    tags: Tags,
    elements: Vec<T>,
}

/// # Persistent sends and receives
/// Each of these makes an operation, and sends nothing. An error, such as that of a rank which is
/// not there, comes with the start.
impl Communicator {
    /// A [`send_slice`](Self::send_slice) that is started again and again. The elements are those
    /// of the first start; later ones are put into their place.
    ///
    /// # Examples
    /// See [`PersistentSend`].
    #[doc(alias = "MPI_Send_init")]
    #[track_caller]
    pub fn send_init<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: Vec<T>,
    ) -> PersistentSend<T> {
        self.persistent_send(self.call("send_init"), to, tag.into(), elements, SendMode::Standard)
    }

    /// As [`send_init`](Self::send_init), of sends that wait until a receive has taken the message:
    /// [`ssend_slice`](Self::ssend_slice). Each start allocates an event for that.
    #[doc(alias = "MPI_Ssend_init")]
    #[track_caller]
    pub fn ssend_init<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: Vec<T>,
    ) -> PersistentSend<T> {
        self.persistent_send(self.call("ssend_init"), to, tag.into(), elements, SendMode::Synchronous)
    }

    fn persistent_send<T>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        own: Vec<T>,
        mode: SendMode,
    ) -> PersistentSend<T> {
        let communicator = self.clone();
        PersistentSend { communicator, call, to, tag, mode, own, pool: BodyPool::default() }
    }

    /// A [`recv_vec`](Self::recv_vec) that is started again and again.
    ///
    /// # Examples
    /// See [`PersistentSend`].
    #[doc(alias = "MPI_Recv_init")]
    #[track_caller]
    pub fn recv_init<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> PersistentReceive<T> {
        PersistentReceive {
            communicator: self.clone(),
            call: self.call("recv_init"),
            source: source.into(),
            tags: tag.into(),
            elements: Vec::new(),
        }
    }
}

impl<T: Pod + Send + Sync> PersistentSend<T> {
    /// The elements that the next start sends.
    pub fn own(&self) -> &[T] {
        &self.own
    }

    /// The place of the elements that the next start sends.
    pub fn own_mut(&mut self) -> &mut Vec<T> {
        &mut self.own
    }

    /// Starts to send the elements that are there, which are copied before the call returns. The
    /// future ends when they are on their way, or taken; the message goes its way also if the
    /// future is dropped.
    ///
    /// # Errors
    /// As for [`send_slice`](Communicator::send_slice); the future has the error.
    #[doc(alias = "MPI_Start")]
    #[track_caller]
    pub fn start(&mut self) -> impl Future<Output = Result<(), Error>> + Send + use<'_, T> {
        let call = CallSite::here(self.call.name, self.call.rank);
        let (world, to) = (&self.communicator, self.to);
        let begun = world.check_peer(to, call).and_then(|()| {
            let body = pack(call, self.pool.copied(&self.own), world.moves_values(to))?;
            world.start_send(call, world.own(), to, self.tag, body, self.mode)
        });
        async move { world.end_send(call, to, begun?).await }
    }
}

impl<T: Pod + Send> PersistentReceive<T> {
    /// The elements of the last message.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// Posts the receive, and returns at once. The future gives the elements of the message,
    /// however many they are.
    ///
    /// # Errors
    /// As for [`recv_vec`](Communicator::recv_vec); the future has the error.
    #[doc(alias = "MPI_Start")]
    #[track_caller]
    pub fn start(&mut self) -> impl Future<Output = Result<(&[T], Status), Error>> + Send {
        let call = CallSite::here(self.call.name, self.call.rank);
        let PersistentReceive { communicator, source, tags, elements, .. } = self;
        let (source, tags, own) = (*source, *tags, communicator.own());
        let posted = communicator.post(call, own, source, tags, true);
        async move {
            match communicator.outcome(call, own, &mut posted?, source, tags).await? {
                ReceiveOutcome::Took(arrived) => replace(call, arrived.into_envelope(), elements),
                other => unreachable!("a receive takes its message: {other:?}"),
            }
        }
    }
}

/// Opens a message into a vector, in place of its elements.
fn replace<T: Pod + Send>(
    call: CallSite,
    envelope: Envelope,
    elements: &mut Vec<T>,
) -> Result<(&[T], Status), Error> {
    let ((), status) = open_with(call, envelope, |body| {
        let bytes = bytes_of_elements::<T>(&body)?;
        elements.resize(bytes.len().checked_div(size_of::<T>()).unwrap_or(0), T::zeroed());
        bytemuck::cast_slice_mut(elements).copy_from_slice(bytes);
        Ok(())
    })?;
    Ok((elements, status))
}

impl<T> fmt::Debug for PersistentSend<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PersistentSend({}, {} elements to rank {})", self.call, self.own.len(), self.to)
    }
}

impl<T> fmt::Debug for PersistentReceive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PersistentReceive({}, from {} with {})", self.call, self.source, self.tags)
    }
}
