//! [`InterCommunicator`]: two groups of ranks, of which each sends to the ranks of the other; how
//! it is made, how it becomes one communicator, and its messages.
//!
//! It is made of two communicators. One is of the ranks of this group. The other one lies between
//! the groups: it has the ranks of this group as senders and those of the other group as receivers,
//! so all of its messages go across. `collective/inter.rs` has the collectives.

use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::disconnect::GroupConnection;
use crate::engine::SendMode;
use crate::envelope::Status;
use crate::error::{CallSite, Error, ErrorClass};
use crate::group::Group;
use crate::payload::{Message, Value, open, pack};
use crate::request::Request;
use crate::tag::{Source, Tag, Tags};
use bytemuck::Pod;
use std::fmt;
use std::sync::Arc;

/// Two groups of ranks, as a rank of one of them sees it. A rank in a call, such as the receiver of
/// a message, is one of the other group.
///
/// # Paper
/// [HMPI "Many-to-one communications"]: because of them the root of `gatherRecv` names itself.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, InterRoot};
///
/// # selvedge::round_robin(async {
/// mpi::run(5, |world| async move {
///     // Two servers and three clients.
///     let is_server = world.rank() < 2;
///     let group = world.split(u32::from(is_server), 0).await?.expect("each rank has a color");
///     let other_leader = if is_server { 2 } else { 0 };
///     let inter = group.intercommunicator(0, &world, other_leader, ()).await?;
///     assert_eq!(inter.remote_size(), if is_server { 3 } else { 2 });
///
///     if is_server && group.rank() == 1 {
///         inter.send(2, (), "to the last client".to_string()).await?;
///     } else if !is_server && group.rank() == 2 {
///         let (text, status) = inter.recv::<String>(mpi::ANY, ()).await?;
///         assert_eq!((text.as_str(), status.source), ("to the last client", 1));
///     }
///     // The clients' values, at server 0.
///     let root = if is_server { InterRoot::Here(0) } else { InterRoot::There(0) };
///     let gathered = inter.gather(root, || world.rank()).await?;
///     assert_eq!(gathered, (world.rank() == 0).then(|| vec![2, 3, 4]));
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
#[doc(alias = "commTestInter")]
#[doc(alias = "MPI_Comm_test_inter")]
pub struct InterCommunicator {
    /// From this group to the other.
    pub(crate) across: Communicator,
    /// The ranks of this group.
    pub(crate) local: Communicator,
    /// Whether this group is the first of the two.
    pub(crate) is_first: bool,
    /// What joins groups that did not start together.
    pub(crate) connection: Option<Arc<GroupConnection>>,
}

impl Communicator {
    /// Makes an intercommunicator of the ranks of this communicator and those of another one, which
    /// make the same call. The two leaders, which are a rank of each communicator, have a third one
    /// in common, `peer`, in which they exchange a message with this tag. `other_leader` is the
    /// rank of the other leader in it. The ranks that are no leaders may name any communicator as
    /// `peer`.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast), and if a rank is in both groups.
    ///
    /// # Examples
    /// See [`InterCommunicator`].
    #[doc(alias = "MPI_Intercomm_create")]
    #[track_caller]
    pub fn intercommunicator(
        &self,
        leader: usize,
        peer: &Communicator,
        other_leader: usize,
        tag: impl Into<Tag>,
    ) -> impl Future<Output = Result<InterCommunicator, Error>> + Send {
        let (call, tag) = (self.call("intercommunicator"), tag.into());
        async move {
            let round = CollectiveRound::begin(self, call, CollectiveKind::Split, leader)?;
            let mut met = None;
            let mut failed = None;
            if self.rank() == leader {
                let is_first = peer.rank() < other_leader;
                match self.meet(call, peer, other_leader, tag).await {
                    Ok((theirs, across)) => {
                        met = Some(Ok((theirs, across, self.propose_context(), is_first)))
                    }
                    Err(error) => {
                        met = Some(Err(error.to_string()));
                        failed = Some(error);
                    }
                }
            }
            // The others hear of an error of the leader, so they do not wait for it.
            let met = round.bcast_value(leader, met).await?;
            if let Some(error) = failed {
                return Err(error);
            }
            let (theirs, across, local, is_first): (Vec<u32>, u64, u64, bool) = met.map_err(|told| {
                call.error(
                    ErrorClass::Group,
                    format!("the leader, rank {leader}, has not met the other: {told}"),
                )
            })?;
            if let Some(both) = theirs.iter().find(|&&rank| self.group().position(rank).is_some()) {
                return Err(
                    call.error(ErrorClass::Group, format!("rank {both} of the world is in both groups"))
                );
            }
            let own = self.group().clone();
            let local = Communicator::new(self.engine().clone(), local, own, self.rank());
            let across = local.to_group(across, Group::of(theirs));
            Ok(InterCommunicator { across, local, is_first, connection: None })
        }
    }

    /// The leaders tell one another their groups, and a context that no communicator of the world
    /// has; that of the first one holds.
    async fn meet(
        &self,
        call: CallSite,
        peer: &Communicator,
        other: usize,
        tag: Tag,
    ) -> Result<(Vec<u32>, u64), Error> {
        peer.check_rank(other, call, ErrorClass::Rank)?;
        let mine = (self.group().world_ranks().to_vec(), self.propose_context());
        let context = mine.1;
        let body = pack(call, Value(mine), peer.moves_values(other))?;
        let underway = peer.start_send(call, peer.own(), other, tag, body, SendMode::Standard)?;
        let (from, tags) = (Source::Rank(other), Tags::One(tag));
        let envelope = peer.receive(call, peer.own(), from, tags).await?;
        peer.end_send(call, other, underway).await?;
        let (Value((theirs, their_context)), _) = open::<Value<(Vec<u32>, u64)>>(call, envelope)?;
        Ok((theirs, if peer.rank() < other { context } else { their_context }))
    }
}

impl InterCommunicator {
    /// That of groups which did not start together.
    pub(crate) fn of(
        across: Communicator,
        local: Communicator,
        is_first: bool,
        connection: GroupConnection,
    ) -> InterCommunicator {
        InterCommunicator { across, local, is_first, connection: Some(Arc::new(connection)) }
    }

    /// The number of this rank in its own group.
    pub fn rank(&self) -> usize {
        self.local.rank()
    }

    /// The number of ranks in its own group.
    pub fn size(&self) -> usize {
        self.local.size()
    }

    /// The number of ranks in the other group.
    #[doc(alias = "commRemoteSize")]
    #[doc(alias = "MPI_Comm_remote_size")]
    pub fn remote_size(&self) -> usize {
        self.across.peers().size()
    }

    /// The ranks of the other group.
    #[doc(alias = "MPI_Comm_remote_group")]
    pub fn remote_group(&self) -> &Group {
        self.across.peers()
    }

    /// A communicator of the ranks of this group, with messages of its own.
    pub fn local(&self) -> &Communicator {
        &self.local
    }

    /// Makes a communicator of both groups. The ranks of the group that says `true` come after
    /// those of the other. If both say the same, the group of the leader with the lower rank comes
    /// first.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier), and if the ranks of this group do not say the same.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(4, |world| async move {
    ///     let (half, is_upper) = (world.rank() % 2, world.rank() >= 2);
    ///     let group = world.split(u32::from(is_upper), 0).await?.expect("each rank has a color");
    ///     let inter = group.intercommunicator(0, &world, if is_upper { 0 } else { 2 }, ()).await?;
    ///     let all = inter.merge(!is_upper).await?; // the upper half comes first
    ///     assert_eq!((all.rank(), all.size()), (if is_upper { half } else { 2 + half }, 4));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Intercomm_merge")]
    #[track_caller]
    pub fn merge(&self, high: bool) -> impl Future<Output = Result<Communicator, Error>> + Send {
        let call = self.local.call("merge");
        async move {
            let all = self.local.exchange(call, (high, self.local.propose_context())).await?;
            if let Some(rank) = all.iter().position(|(theirs, _)| *theirs != high) {
                let text = format!("rank {rank} says {}, and this rank {high}", !high);
                return Err(call.error(ErrorClass::Mismatch, text));
            }
            let mine = all[0];
            let own = (self.rank() == 0).then_some(mine);
            let theirs = self.between_leaders(call, CollectiveKind::Split, own).await?;
            let is_first = if high == theirs.0 { self.is_first } else { theirs.0 };
            let (own, other) = (self.local.group().world_ranks(), self.across.peers().world_ranks());
            let (context, ranks) = match is_first {
                true => (mine.1, [&own[..], other].concat()),
                false => (theirs.1, [&other[..], own].concat()),
            };
            let rank = if is_first { self.rank() } else { self.remote_size() + self.rank() };
            Ok(Communicator::new(self.local.engine().clone(), context, Group::of(ranks), rank))
        }
    }

    /// [`Communicator::send`] to a rank of the other group.
    ///
    /// # Errors
    /// As that.
    #[track_caller]
    pub fn send<T: Message>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        value: T,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.across.send(to, tag.into(), value)
    }

    /// [`Communicator::recv`] from a rank of the other group.
    ///
    /// # Errors
    /// As that.
    #[track_caller]
    pub fn recv<T: Message>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<(T, Status), Error>> + Send {
        self.across.recv(source.into(), tag.into())
    }

    /// [`Communicator::isend`] to a rank of the other group.
    #[track_caller]
    pub fn isend<T: Message>(&self, to: usize, tag: impl Into<Tag>, value: T) -> Request<()> {
        self.across.isend(to, tag, value)
    }

    /// [`Communicator::irecv`] from a rank of the other group.
    #[track_caller]
    pub fn irecv<T: Message>(&self, source: impl Into<Source>, tag: impl Into<Tags>) -> Request<(T, Status)> {
        self.across.irecv(source, tag)
    }

    /// [`Communicator::send_slice`] to a rank of the other group.
    ///
    /// # Errors
    /// As that.
    #[track_caller]
    pub fn send_slice<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.across.send_slice(to, tag.into(), elements)
    }

    /// [`Communicator::recv_into`] from a rank of the other group.
    ///
    /// # Errors
    /// As that.
    #[track_caller]
    pub fn recv_into<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
        buffer: &mut [T],
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        self.across.recv_into(source.into(), tag.into(), buffer)
    }

    /// [`Communicator::recv_vec`] from a rank of the other group.
    ///
    /// # Errors
    /// As that.
    #[track_caller]
    pub fn recv_vec<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
    ) -> impl Future<Output = Result<(Vec<T>, Status), Error>> + Send {
        self.across.recv_vec(source.into(), tag.into())
    }
}

impl fmt::Debug for InterCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InterCommunicator({:?}, to {} others)", self.local, self.remote_size())
    }
}
