//! Looking at a message before it is received: `probe`, and `mprobe` with [`Matched`].
//!
//! A probe is a receive that leaves the message where it is (`mailbox.rs`). Between a probe and the
//! receive another thread of the rank may take the message; a matched probe keeps it.

use crate::communicator::Communicator;
use crate::envelope::{Envelope, Status};
use crate::error::{CallSite, Error};
use crate::mailbox::{Arrived, ReceiveOutcome};
use crate::payload::{Elements, Message, MessagePayload, Value, open};
use crate::tag::{Source, Tags};
use bytemuck::Pod;
use std::fmt;

impl Communicator {
    /// Waits until a message that matches is there, and tells of it. The message stays.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv), but for the type.
    #[doc(alias = "MPI_Probe")]
    #[track_caller]
    pub fn probe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        let (call, source, tags) = (self.call("probe"), source.into(), tag.into());
        async move {
            let mut posted = self.post(call, self.own(), source, tags, false)?;
            match self.outcome(call, self.own(), &mut posted, source, tags).await? {
                ReceiveOutcome::Saw(status) => Ok(status),
                other => unreachable!("a probe takes no message: {other:?}"),
            }
        }
    }

    /// Tells of the first message that matches, if it is there.
    ///
    /// # Errors
    /// If there is no such rank.
    #[doc(alias = "MPI_Iprobe")]
    #[track_caller]
    pub fn iprobe(&self, source: impl Into<Source>, tag: impl Into<Tags>) -> Result<Option<Status>, Error> {
        self.try_see(self.call("iprobe"), source.into(), tag.into())
    }

    /// Waits until a message that matches is there, and takes it, to be opened later: when its
    /// status has told the type.
    ///
    /// # Errors
    /// As for [`probe`](Self::probe).
    #[doc(alias = "MPI_Mprobe")]
    #[track_caller]
    pub fn mprobe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<Matched, Error>> + Send {
        let (call, source, tags) = (self.call("mprobe"), source.into(), tag.into());
        async move {
            let mut posted = self.post(call, self.own(), source, tags, true)?;
            match self.outcome(call, self.own(), &mut posted, source, tags).await? {
                ReceiveOutcome::Took(arrived) => Ok(self.matched(call, arrived)),
                other => unreachable!("a receive takes its message: {other:?}"),
            }
        }
    }

    /// Takes the first message that matches, if it is there: see [`mprobe`](Self::mprobe).
    ///
    /// # Errors
    /// If there is no such rank.
    #[doc(alias = "MPI_Improbe")]
    #[track_caller]
    pub fn improbe(&self, source: impl Into<Source>, tag: impl Into<Tags>) -> Result<Option<Matched>, Error> {
        let call = self.call("improbe");
        let taken = self.try_take(call, self.own(), source.into(), tag.into())?;
        Ok(taken.map(|arrived| self.matched(call, arrived)))
    }

    fn matched(&self, call: CallSite, arrived: Arrived) -> Matched {
        Matched { communicator: self.clone(), call, arrived: Some(arrived) }
    }
}

/// A message that was taken, and is not opened yet. Dropping it puts the message back, at its place
/// in the order.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, ANY};
///
/// # selvedge::round_robin(async {
/// mpi::run(2, |world| async move {
///     if world.rank() == 0 {
///         world.send(1, 2, "warp".to_string()).await?;
///         world.send_slice(1, 1, &[1.5, 2.5]).await?;
///     } else {
///         for _ in 0..2 {
///             let message = world.mprobe(0, ANY).await?;
///             match message.status().tag.0 {
///                 1 => assert_eq!(message.recv_vec::<f64>()?, [1.5, 2.5]),
///                 _ => assert_eq!(message.recv::<String>()?, "warp"),
///             }
///         }
///     }
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[must_use = "a message that is dropped is put back"]
#[doc(alias = "MPI_Message")]
pub struct Matched {
    communicator: Communicator,
    call: CallSite,
    /// `None` when it is opened.
    arrived: Option<Arrived>,
}

impl Matched {
    /// What is known of the message.
    pub fn status(&self) -> Status {
        self.arrived.as_ref().expect("it is there until it is opened").status()
    }

    /// Its value, of the simple interface.
    ///
    /// # Errors
    /// If it holds a value of another type. The message is gone all the same.
    #[doc(alias = "MPI_Mrecv")]
    pub fn recv<T: Message>(self) -> Result<T, Error> {
        let Value(value) = self.open()?;
        Ok(value)
    }

    /// Its elements, of the fast interface.
    ///
    /// # Errors
    /// If it holds elements of another type. The message is gone all the same.
    pub fn recv_vec<T: Pod + Send>(self) -> Result<Vec<T>, Error> {
        let Elements(elements) = self.open()?;
        Ok(elements)
    }

    fn open<P: MessagePayload>(mut self) -> Result<P, Error> {
        let arrived = self.arrived.take().expect("it is there until it is opened");
        let envelope: Envelope = arrived.into_envelope();
        open(self.call, envelope).map(|(payload, _)| payload)
    }
}

impl Drop for Matched {
    fn drop(&mut self) {
        if let Some(arrived) = self.arrived.take() {
            self.communicator.put_back(arrived);
        }
    }
}

impl fmt::Debug for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Matched").field(&self.status()).finish()
    }
}
