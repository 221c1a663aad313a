//! [`Comm`]: a communicator as threads use it. Each method is a call that the message loop makes,
//! and gives a future.

use super::collective::{Collected, Collective, Plan};
use super::completion::{Completion, completion};
use super::error::{ErrorClass, MpiError};
use super::matching::Filter;
use super::memory::Memory;
use super::orders::{Arrival, CommId, NewPlace, Order, Orders, Received, Room};
use super::scalar::Scalar;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A communicator: ranks, and messages that stay among them. A clone is the same communicator. The
/// last one frees it.
///
/// Any thread, and any OS thread, may use it. Calls of one thread reach MPI in their order.
#[derive(Clone)]
pub struct Comm {
    shared: Arc<SharedComm>,
}

struct SharedComm {
    orders: Arc<Orders>,
    place: NewPlace,
    tag_max: i32,
}

impl Drop for SharedComm {
    fn drop(&mut self) {
        self.orders.put(Order::Free { comm: self.place.id });
    }
}

impl Comm {
    pub(super) fn new(orders: Arc<Orders>, place: NewPlace, tag_max: i32) -> Comm {
        Comm { shared: Arc::new(SharedComm { orders, place, tag_max }) }
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
    pub fn send(&self, dest: usize, tag: i32, memory: Memory) -> Completion<Memory> {
        self.send_in_mode(dest, tag, memory, false)
    }

    /// As [`send`](Comm::send), and it is not done before the other rank receives the message.
    pub fn send_synchronously(&self, dest: usize, tag: i32, memory: Memory) -> Completion<Memory> {
        self.send_in_mode(dest, tag, memory, true)
    }

    fn send_in_mode(&self, dest: usize, tag: i32, memory: Memory, synchronous: bool) -> Completion<Memory> {
        let call = if synchronous { "MPI_Issend" } else { "MPI_Isend" };
        let checked = self.rank_of(call, dest).and_then(|dest| Ok((dest, self.tag_of(call, tag)?)));
        let (dest, tag) = match checked {
            Ok(checked) => checked,
            Err(error) => return Completion::refused(error),
        };
        let (completer, sent) = completion(call);
        self.put(Order::Send { comm: self.id(), dest, tag, synchronous, memory, completer });
        sent
    }

    /// Receives the next message from a rank, or from any, with a tag, or with any. Its memory is
    /// made to fit.
    ///
    /// Dropping the future loses no message: the message that it would have received goes to the
    /// next receive.
    ///
    /// # Errors
    /// When there is no such rank, the tag is out of range, the message holds no whole number of
    /// numbers of this kind (it stays then, for another receive), or MPI fails.
    pub fn receive(&self, source: Option<usize>, tag: Option<i32>, scalar: Scalar) -> Receiving {
        self.receive_in(source, tag, Room::Fitting(scalar))
    }

    /// As [`receive`](Comm::receive), into the given memory, which is shortened to the message.
    ///
    /// # Errors
    /// Also when the message is longer than the memory. It stays then, for another receive.
    pub fn receive_into(&self, source: Option<usize>, tag: Option<i32>, memory: Memory) -> Receiving {
        self.receive_in(source, tag, Room::Given(memory))
    }

    fn receive_in(&self, source: Option<usize>, tag: Option<i32>, room: Room) -> Receiving {
        let filter = match self.filter("MPI_Imrecv", source, tag) {
            Ok(filter) => filter,
            Err(error) => return Receiving { completion: Completion::refused(error), posted: None },
        };
        let comm = self.id();
        let (completer, completion) = completion("MPI_Imrecv");
        let order = |ticket| Order::Receive { comm, filter, ticket, room, completer };
        let ticket = self.shared.orders.put_with(order);
        Receiving { completion, posted: Some((self.clone(), filter, ticket)) }
    }

    /// Waits until a message is there, and leaves it there. A receive that was posted before gets
    /// the message first.
    ///
    /// # Errors
    /// When there is no such rank, the tag is out of range, or MPI fails.
    pub fn probe(&self, source: Option<usize>, tag: Option<i32>) -> Completion<Arrival> {
        let filter = match self.filter("MPI_Improbe", source, tag) {
            Ok(filter) => filter,
            Err(error) => return Completion::refused(error),
        };
        let (completer, arrival) = completion("MPI_Improbe");
        self.put(Order::Probe { comm: self.id(), filter, completer });
        arrival
    }

    /// Takes this rank's part in a collective call.
    ///
    /// # Errors
    /// When the root is no rank, a count does not agree with the memory, the operation is not
    /// defined for the numbers, or MPI fails.
    pub fn collective(&self, collective: Collective, memory: Memory) -> Completion<Collected> {
        let call = collective.name();
        match Plan::new(collective, (self.rank(), self.size()), memory) {
            Err(error) => Completion::refused(error),
            Ok(plan) => {
                let (completer, collected) = completion(call);
                self.put(Order::Collective { comm: self.id(), plan: Box::new(plan), completer });
                collected
            }
        }
    }

    /// Makes a communicator of the same ranks, on which messages are apart from those of this one.
    /// All ranks make the call.
    ///
    /// # Errors
    /// When MPI fails.
    pub async fn dup(&self) -> Result<Comm, MpiError> {
        let (completer, made) = completion("MPI_Comm_idup");
        self.put(Order::Dup { comm: self.id(), completer });
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
    /// When a colour or a key is greater than [`i32::MAX`], or MPI fails.
    pub async fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Comm>, MpiError> {
        let number = |number: u32| {
            i32::try_from(number).map_err(|_| {
                let text = format!("{number} is greater than {}", i32::MAX);
                MpiError::refused("MPI_Comm_split", ErrorClass::Arg, text)
            })
        };
        let (color, key) = (color.map(number).transpose()?, number(key)?);
        let (completer, made) = completion("MPI_Comm_split");
        self.put(Order::Split { comm: self.id(), color, key, completer });
        Ok(made.await?.map(|place| self.sibling(place)))
    }

    fn sibling(&self, place: NewPlace) -> Comm {
        Comm::new(self.shared.orders.clone(), place, self.tag_max())
    }

    fn id(&self) -> CommId {
        self.shared.place.id
    }

    fn put(&self, order: Order) {
        self.shared.orders.put(order);
    }

    fn rank_of(&self, call: &'static str, rank: usize) -> Result<i32, MpiError> {
        match i32::try_from(rank) {
            Ok(number) if rank < self.size() => Ok(number),
            _ => {
                let text = format!("there is no rank {rank}, because there are {} ranks", self.size());
                Err(MpiError::refused(call, ErrorClass::Rank, text))
            }
        }
    }

    fn tag_of(&self, call: &'static str, tag: i32) -> Result<i32, MpiError> {
        if (0..=self.tag_max()).contains(&tag) {
            return Ok(tag);
        }
        let text = format!("the tag {tag} is not between 0 and {}", self.tag_max());
        Err(MpiError::refused(call, ErrorClass::Tag, text))
    }

    fn filter(&self, call: &'static str, source: Option<usize>, tag: Option<i32>) -> Result<Filter, MpiError> {
        Ok(Filter {
            source: source.map(|rank| self.rank_of(call, rank)).transpose()?,
            tag: tag.map(|tag| self.tag_of(call, tag)).transpose()?,
        })
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewPlace { id, rank, size } = self.shared.place;
        write!(f, "Comm({id}, rank {rank} of {size})")
    }
}

/// A receive that waits for its message: what [`Comm::receive`] gives.
#[derive(Debug)]
#[must_use = "a receive that is dropped receives nothing"]
pub struct Receiving {
    completion: Completion<Received>,
    /// What the message loop knows of it. `None` when it is over.
    posted: Option<(Comm, Filter, u64)>,
}

impl Receiving {
    /// Whether the future is ready.
    pub fn is_done(&self) -> bool {
        self.completion.is_done()
    }
}

impl Future for Receiving {
    type Output = Result<Received, MpiError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Received, MpiError>> {
        let received = ready!(Pin::new(&mut self.completion).poll(context));
        self.posted = None;
        Poll::Ready(received)
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let Some((comm, filter, ticket)) = self.posted.take() else { return };
        let id = comm.id();
        comm.put(match self.completion.abandon() {
            None => Order::GiveUp { comm: id, filter, ticket },
            Some(Received { source, tag, memory, number }) => {
                Order::ComeBack { comm: id, origin: (source as i32, tag), number, memory }
            }
        });
    }
}
