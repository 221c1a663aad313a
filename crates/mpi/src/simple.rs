//! The simple interface: messages that are values of any type that serde knows.
//!
//! Each call packs its value (`payload.rs`) and hands it to the communicator. The calls that return
//! at once, `isend` and the like, give a `Request` (`request.rs`).

use crate::communicator::Communicator;
use crate::engine::SendMode;
use crate::envelope::Status;
use crate::error::Error;
use crate::payload::{ComingValue, Message, Value, open};
use crate::request::Request;
use crate::tag::{Source, Tag, Tags};

impl Communicator {
    /// Sends a value to a rank, and waits until it is on its way.
    ///
    /// The value is moved to a rank of the same process, and serialised for others. Messages from
    /// one rank to another do not overtake one another. Between ranks that are threads the value is
    /// put into the receiver's mailbox at once, so a sender that is faster than its receiver fills
    /// memory: [`ssend`](Self::ssend) waits for the receiver.
    ///
    /// # Errors
    /// If there is no such rank or tag, if the rank has ended, or if the value cannot be
    /// serialised.
    ///
    /// # Cancellation
    /// If the future is dropped after its first poll, the message has been sent.
    ///
    /// # Paper
    /// [HMPI "Point-to-point communications"] `send`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     if world.rank() == 0 {
    ///         let mut sum = 0.0;
    ///         for other in 1..world.size() {
    ///             let (part, _) = world.recv::<f64>(other, ()).await?;
    ///             sum += part;
    ///         }
    ///         assert_eq!(sum, 3.0);
    ///     } else {
    ///         world.send(0, (), world.rank() as f64).await?;
    ///     }
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Send")]
    #[doc(alias = "rsend")]
    #[doc(alias = "MPI_Rsend")]
    #[doc(alias = "MPI_Bsend")]
    #[track_caller]
    pub fn send<T: Message>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        value: T,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.send_payload(self.call("send"), to, tag.into(), Value(value), SendMode::Standard)
    }

    /// As [`send`](Self::send), and waits until a receive has taken the message.
    ///
    /// # Errors
    /// As for [`send`](Self::send), and if the receiver ends without taking the message.
    ///
    /// # Paper
    /// [HMPI "Point-to-point communications"]: a `send` that waits "until the message has been
    /// successfully delivered".
    #[doc(alias = "MPI_Ssend")]
    #[track_caller]
    pub fn ssend<T: Message>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        value: T,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.send_payload(self.call("ssend"), to, tag.into(), Value(value), SendMode::Synchronous)
    }

    /// Waits for the first message that matches, and takes its value.
    ///
    /// The source is a rank or [`ANY`](crate::ANY), and so is the tag. While it waits, the thread
    /// is parked. It takes the earliest of the messages that match. A message goes to the receive
    /// that began first.
    ///
    /// # Errors
    /// If the message holds a value of another type; it is taken all the same. If there is no such
    /// rank. If the source has ended, or, from any source, if a rank has
    /// [failed](Self::acknowledge_failed), and no message is there.
    ///
    /// # Cancellation
    /// No message is lost: a message that the future has got and not returned is there for the next
    /// receive, at its place in the order.
    ///
    /// # Complexity
    /// Constant, however many messages are there and receives wait.
    ///
    /// # Paper
    /// [HMPI "Point-to-point communications"] `recv`.
    #[doc(alias = "MPI_Recv")]
    #[doc(alias = "recvFuture")]
    #[track_caller]
    pub fn recv<T: Message>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<(T, Status), Error>> + Send {
        let (call, source, tags) = (self.call("recv"), source.into(), tag.into());
        self.receive_with(call, self.own(), source, tags, ComingValue::new(call))
    }

    /// Sends one value and receives another, at the same time. So ranks that exchange values do not
    /// wait for one another in a circle.
    ///
    /// # Errors
    /// As for [`send`](Self::send) and [`recv`](Self::recv).
    #[doc(alias = "MPI_Sendrecv")]
    #[track_caller]
    pub fn sendrecv<T: Message, U: Message>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        value: T,
        source: impl Into<Source>,
        source_tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<(U, Status), Error>> + Send {
        let (call, tag, source, tags) = (self.call("sendrecv"), tag.into(), source.into(), source_tag.into());
        async move {
            let underway = self.begin_payload(call, to, tag, Value(value), SendMode::Standard)?;
            let envelope = self.receive(call, self.own(), source, tags).await?;
            self.end_send(call, to, underway).await?;
            let (Value(value), status) = open(call, envelope)?;
            Ok((value, status))
        }
    }

    /// Starts to send a value, and returns at once.
    ///
    /// # Errors
    /// As for [`send`](Self::send); the request has the error.
    #[doc(alias = "MPI_Isend")]
    #[track_caller]
    pub fn isend<T: Message>(&self, to: usize, tag: impl Into<Tag>, value: T) -> Request<()> {
        let call = self.call("isend");
        let begun = self.begin_payload(call, to, tag.into(), Value(value), SendMode::Standard);
        Request::of_send(self, call, to, begun, ())
    }

    /// As [`isend`](Self::isend); the request ends when a receive has taken the message.
    ///
    /// # Errors
    /// As for [`ssend`](Self::ssend); the request has the error.
    #[doc(alias = "MPI_Issend")]
    #[track_caller]
    pub fn issend<T: Message>(&self, to: usize, tag: impl Into<Tag>, value: T) -> Request<()> {
        let call = self.call("issend");
        let begun = self.begin_payload(call, to, tag.into(), Value(value), SendMode::Synchronous);
        Request::of_send(self, call, to, begun, ())
    }

    /// Posts a receive, and returns at once. Receives get messages in the order in which they were
    /// posted.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv); the request has the error.
    ///
    /// # Paper
    /// [HMPI "Point-to-point communications"]: a non-blocking receiver must poll. Here it may wait.
    #[doc(alias = "MPI_Irecv")]
    #[doc(alias = "recvFuture")]
    #[track_caller]
    pub fn irecv<T: Message>(&self, source: impl Into<Source>, tag: impl Into<Tags>) -> Request<(T, Status)> {
        let call = self.call("irecv");
        Request::of_receive(self, call, source.into(), tag.into(), move |envelope| {
            let (Value(value), status) = open(call, envelope)?;
            Ok((value, status))
        })
    }
}
