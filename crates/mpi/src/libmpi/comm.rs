//! [`Comm`]: a communicator as threads use it. Each method is a call of MPI, which the thread makes
//! itself or another OS thread makes for it, and gives a future.

use super::collective::{CallPlan, Collected, Collective};
use super::error::{MpiError, MpiErrorClass};
use super::frames::{ANNOUNCED, FRAME, FRAME_MAX, FrameOffer, OfferedFrames};
use super::memory::MpiMemory;
use super::ongoing::{CallEnd, Ongoing, ongoing};
use super::orders::{CommId, LoopOrder, NewPlace};
use super::received::CommListener;
use super::shared_driver::SharedDriver;
use crate::processes::{Doorbells, LentBytes};
use std::fmt;
use std::sync::Arc;

/// A communicator: ranks, and messages that stay among them. A clone is the same communicator. The
/// last one frees it.
///
/// Any thread, and any OS thread, may use it. Calls of one thread reach MPI in their order.
#[derive(Clone)]
pub struct Comm {
    shared: Arc<SharedComm>,
}

struct SharedComm {
    driver: Arc<SharedDriver>,
    place: NewPlace,
    tag_max: i32,
}

impl Drop for SharedComm {
    fn drop(&mut self) {
        self.driver.put(LoopOrder::Free { comm: self.place.id });
    }
}

impl Comm {
    pub(super) fn new(driver: Arc<SharedDriver>, place: NewPlace, tag_max: i32) -> Comm {
        Comm { shared: Arc::new(SharedComm { driver, place, tag_max }) }
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.shared.place.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.shared.place.size
    }

    /// The greatest tag of a message.
    pub fn tag_max(&self) -> i32 {
        self.shared.tag_max
    }

    /// Sends numbers to a rank. The future gives the memory back when MPI has done with it, which
    /// need not mean that the message was received.
    ///
    /// # Errors
    /// When there is no such rank, the tag is out of range, or MPI fails.
    pub fn send(&self, dest: usize, tag: i32, memory: MpiMemory) -> Ongoing<MpiMemory> {
        let (end, sent) = ongoing("MPI_Isend");
        self.put_send(dest, tag, memory, false, end);
        sent
    }

    /// As [`send`](Comm::send), and it is not done before the other rank receives the message.
    ///
    /// # Errors
    /// As those of [`send`](Comm::send).
    pub fn send_synchronously(&self, dest: usize, tag: i32, memory: MpiMemory) -> Ongoing<MpiMemory> {
        let (end, sent) = ongoing("MPI_Issend");
        self.put_send(dest, tag, memory, true, end);
        sent
    }

    /// As [`send`](Comm::send), and runs `then` at the end, on the OS thread that finds the call
    /// done, which may be this one. No message moves while it runs, so it must not wait.
    pub fn send_then(
        &self,
        dest: usize,
        tag: i32,
        memory: MpiMemory,
        then: impl FnOnce(Result<MpiMemory, MpiError>) + Send + 'static,
    ) {
        self.put_send(dest, tag, memory, false, CallEnd::run("MPI_Isend", then));
    }

    /// As [`listen`](Comm::listen), on a communicator on which all ranks send by
    /// [`send_frame`](Self::send_frame) and [`send_framed`](Self::send_framed) alone.
    pub(crate) fn listen_to_frames(&self, listener: Arc<dyn CommListener>) {
        self.put(LoopOrder::Listen { comm: self.id(), listener, is_framed: true });
    }

    /// Sends a message as a frame, if that is possible at once. `false` if nothing was sent. The
    /// last byte of the message is not 255.
    pub(crate) fn send_frame(&self, dest: usize, parts: [&[u8]; 3]) -> bool {
        debug_assert_ne!(parts[2].last(), Some(&ANNOUNCED));
        let Ok(dest) = self.rank_of("MPI_Isend", dest) else { return false };
        parts.iter().map(|part| part.len()).sum::<usize>() <= FRAME_MAX
            && self.shared.driver.send_frame(self.id(), dest, &parts)
    }

    /// Sends a message, and runs `then` at the end, as [`send_then`](Comm::send_then) does. The
    /// last byte of the message is not 255.
    pub(crate) fn send_framed(
        &self,
        dest: usize,
        message: Vec<u8>,
        then: impl FnOnce(Result<MpiMemory, MpiError>) + Send + 'static,
    ) {
        debug_assert_ne!(message.last(), Some(&ANNOUNCED));
        if message.len() <= FRAME_MAX {
            return self.send_then(dest, FRAME, message.into(), then);
        }
        let end = CallEnd::run("MPI_Isend", then);
        match self.rank_of(end.call(), dest) {
            Ok(dest) => self.put(LoopOrder::SendBody { comm: self.id(), dest, memory: message.into(), end }),
            Err(error) => end.come(Err(error)),
        }
    }

    /// Tells a rank of bytes that are lent to it, and of the end of the message that they begin.
    /// `false` if that is not possible at once.
    pub(crate) fn send_loan(&self, dest: usize, lent: &LentBytes<'_>, tail: &[u8]) -> bool {
        let Ok(dest) = self.rank_of("MPI_Isend", dest) else { return false };
        self.shared.driver.send_frame(self.id(), dest, &[&lent.told(), tail, &[ANNOUNCED]])
    }

    /// Sends a message of which this rank has [told](Self::send_loan) the other one, and that has
    /// not been read there.
    pub(crate) fn send_late(&self, dest: usize, message: Vec<u8>) {
        if let Ok(dest) = self.rank_of("MPI_Isend", dest) {
            self.put(LoopOrder::SendLate { comm: self.id(), dest, memory: message.into() });
        }
    }

    /// Looks for messages on all communicators for a short time, until `until` is true. Only the
    /// message loop looks, if the library wants one OS thread to make all calls. `others_wait` says
    /// that other threads of this process wait for messages. The frames of this communicator are
    /// offered to `offer` first.
    pub(crate) fn watch(
        &self,
        others_wait: bool,
        offer: &mut FrameOffer<'_>,
        until: &mut dyn FnMut() -> bool,
    ) {
        let mut offered = OfferedFrames { comm: self.id(), offer };
        self.shared.driver.watch(others_wait, None, &mut offered, &|| false, until);
    }

    /// As [`watch`](Self::watch), until the receiver has noticed what is lent to it. All messages
    /// that come go to the listeners.
    pub(crate) fn watch_loan(&self, others_wait: bool, lent: &LentBytes<'_>) {
        let mut offered = OfferedFrames { comm: self.id(), offer: &mut |_, _| false };
        let (limit, is_noticed) = (Some(lent.patience()), || lent.are_noticed());
        self.shared.driver.watch(others_wait, limit, &mut offered, &is_noticed, &mut || lent.are_noticed());
    }

    fn put_send(&self, dest: usize, tag: i32, memory: MpiMemory, synchronous: bool, end: CallEnd<MpiMemory>) {
        let call = end.call();
        let checked = self.rank_of(call, dest).and_then(|dest| Ok((dest, self.tag_of(call, tag)?)));
        match checked {
            Ok((dest, tag)) => {
                self.put(LoopOrder::Send { comm: self.id(), dest, tag, synchronous, memory, end })
            }
            Err(error) => end.come(Err(error)),
        }
    }

    /// Hands all messages that arrive from now on over to `listener`, in place of an earlier one.
    /// Messages that arrived before and have no listener are handed over too. While a communicator
    /// has no listener, its messages stay where they are.
    pub fn listen(&self, listener: Arc<dyn CommListener>) {
        self.put(LoopOrder::Listen { comm: self.id(), listener, is_framed: false });
    }

    /// The ranks of this communicator ring one another's bells from now on.
    pub(crate) fn ring_by(&self, doorbells: Arc<Doorbells>) {
        // Before the order, so that no order to a loop that sleeps at the bell is missed.
        self.shared.driver.sleep_at(doorbells.clone());
        self.put(LoopOrder::Doorbells { comm: self.id(), doorbells });
    }

    /// Tells the message loop that a [listener](Comm::listen) wants messages, which it has not
    /// wanted before.
    pub fn look(&self) {
        self.put(LoopOrder::Look);
    }

    /// Takes this rank's part in a collective call.
    ///
    /// # Errors
    /// When the root is no rank, a count does not agree with the memory, the operation is not
    /// defined for the numbers, or MPI fails.
    pub fn collective(&self, collective: Collective, memory: MpiMemory) -> Ongoing<Collected> {
        let (end, collected) = ongoing(collective.name());
        match CallPlan::new(collective, (self.rank(), self.size()), memory) {
            Err(error) => end.come(Err(error)),
            Ok(plan) => self.put(LoopOrder::Collective { comm: self.id(), plan: Box::new(plan), end }),
        }
        collected
    }

    /// Makes a communicator of the same ranks, on which messages are apart from those of this one.
    /// All ranks make the call.
    ///
    /// # Errors
    /// When MPI fails.
    pub async fn dup(&self) -> Result<Comm, MpiError> {
        let (end, made) = ongoing("MPI_Comm_idup");
        self.put(LoopOrder::Dup { comm: self.id(), end });
        Ok(self.sibling(made.await?))
    }

    /// Makes a communicator of the ranks that give the same colour, in the order of their keys.
    /// `None` for a rank without a colour. All ranks make the call.
    ///
    /// The call waits inside MPI when all ranks have made it, and no other message is moved until
    /// it is over. So two splits at the same time, of two communicators that have two ranks in
    /// common, can wait for each other for ever. Threads that split at the same time agree on an
    /// order, or split one after another.
    ///
    /// # Errors
    /// When a colour is negative, or MPI fails.
    pub async fn split(&self, color: Option<i32>, key: i32) -> Result<Option<Comm>, MpiError> {
        let (end, made) = ongoing("MPI_Comm_split");
        self.put(LoopOrder::Split { comm: self.id(), color, key, end });
        Ok(made.await?.map(|place| self.sibling(place)))
    }

    fn sibling(&self, place: NewPlace) -> Comm {
        Comm::new(self.shared.driver.clone(), place, self.tag_max())
    }

    fn id(&self) -> CommId {
        self.shared.place.id
    }

    fn put(&self, order: LoopOrder) {
        self.shared.driver.put(order);
    }

    fn rank_of(&self, call: &'static str, rank: usize) -> Result<i32, MpiError> {
        match i32::try_from(rank) {
            Ok(number) if rank < self.size() => Ok(number),
            _ => {
                let text = format!("there is no rank {rank}, because there are {} ranks", self.size());
                Err(MpiError::refused(call, MpiErrorClass::Rank, text))
            }
        }
    }

    fn tag_of(&self, call: &'static str, tag: i32) -> Result<i32, MpiError> {
        if (0..=self.tag_max()).contains(&tag) {
            return Ok(tag);
        }
        let text = format!("the tag {tag} is not between 0 and {}", self.tag_max());
        Err(MpiError::refused(call, MpiErrorClass::Tag, text))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewPlace { id, rank, size } = self.shared.place;
        write!(f, "Comm({id}, rank {rank} of {size})")
    }
}
