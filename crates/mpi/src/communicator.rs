//! [`Communicator`]: one rank's handle of a group of ranks that send to one another, with the
//! operations below all others: start a send, post a receive, wait for a message.
//!
//! `simple.rs`, `fast.rs`, `probe.rs` and the collectives add its public operations, each in its
//! file. What belongs to which communicator is told apart by the context, a number that its ranks
//! have in common: see [`MessageLane`]. `communicator/receiving.rs` and
//! `communicator/sending.rs` have the two sides.

mod receiving;
mod sending;

pub(crate) use receiving::{Opened, OpensMessage};

use crate::completion::{Completion, EndedRank};
use crate::engine::{Engine, SendMode};
use crate::error::{CallSite, Error, ErrorClass};
use crate::group::{ComparisonResult, Group};
use crate::kept_values::KeptValues;
use crate::lane::{CONTEXTS, MessageLane};
use crate::mailbox::Mailbox;
use crate::revocation::Revocation;
use crate::tag::PROC_NULL;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A group of ranks that send messages to one another, as one of them sees it.
///
/// The ranks of a communicator are numbered from 0. A message that is sent in a communicator is
/// received in it alone. [`run`](crate::run()) gives each rank the communicator of the world;
/// [`dup`](Communicator::dup), [`split`](Communicator::split) and [`create`](Communicator::create)
/// make others. A clone is the same communicator: the threads of a rank may each have one.
///
/// # Paper
/// [HMPI "Point-to-point communications"]: a two-level scheme, in which the first level is the
/// communicator and the second the rank within it.
#[derive(Clone)]
#[doc(alias = "Comm")]
#[doc(alias = "commFree")]
#[doc(alias = "MPI_Comm_free")]
#[doc(alias = "commWorld")]
#[doc(alias = "MPI_COMM_WORLD")]
pub struct Communicator {
    shared: Arc<CommunicatorInside>,
}

struct CommunicatorInside {
    engine: Arc<dyn Engine>,
    /// The mailbox of this rank in its world.
    mailbox: Arc<Mailbox>,
    context: u64,
    group: Group,
    /// The ranks of the other group, if this communicator lies between two.
    other_group: Option<Group>,
    rank: usize,
    /// The number of the next collective operation.
    collective: AtomicU32,
    /// The number of the next agreement: ranks that differ in the number of collectives, because
    /// one has failed, agree in this.
    agreement: AtomicU32,
    kept_values: KeptValues,
}

/// What is left of a send that was started: nothing, or the event that ends it.
pub(crate) type Underway = Option<Arc<Completion>>;

impl Communicator {
    pub(crate) fn new(engine: Arc<dyn Engine>, context: u64, group: Group, rank: usize) -> Communicator {
        Communicator::with(engine, context, group, None, rank)
    }

    fn with(
        engine: Arc<dyn Engine>,
        context: u64,
        group: Group,
        other_group: Option<Group>,
        rank: usize,
    ) -> Communicator {
        let (collective, agreement) = (AtomicU32::new(0), AtomicU32::new(0));
        let kept_values = KeptValues::default();
        let mailbox = engine.mailbox(group.world_ranks()[rank] as usize).clone();
        let inside = CommunicatorInside {
            engine,
            mailbox,
            context,
            group,
            other_group,
            rank,
            collective,
            agreement,
            kept_values,
        };
        Communicator { shared: Arc::new(inside) }
    }

    /// What is kept with the communicator on this rank.
    pub(crate) fn kept_values(&self) -> &KeptValues {
        &self.shared.kept_values
    }

    /// A communicator from the ranks of this one to those of another group, in which messages go
    /// from one group to the other alone.
    pub(crate) fn to_group(&self, context: u64, other: Group) -> Communicator {
        Communicator::with(self.engine().clone(), context, self.group().clone(), Some(other), self.rank())
    }

    /// The communicator of all ranks of an engine's world, for a rank that runs in this process.
    pub(crate) fn world(engine: Arc<dyn Engine>, rank: usize) -> Communicator {
        let group = Group::of((0..engine.size() as u32).collect::<Vec<_>>());
        hand_revocations_on(&engine, rank);
        Communicator::new(engine, 0, group, rank)
    }

    /// The number of this rank: `0..size`.
    #[doc(alias = "commRank")]
    #[doc(alias = "toRank")]
    #[doc(alias = "fromRank")]
    #[doc(alias = "rankId")]
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> usize {
        self.shared.rank
    }

    /// The number of ranks.
    #[doc(alias = "commSize")]
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> usize {
        self.shared.group.size()
    }

    /// The ranks.
    #[doc(alias = "commGroup")]
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// The name of the engine that carries its messages: `threads`, `processes` or `MPI`.
    #[doc(alias = "getImplementation")]
    #[doc(alias = "getVersion")]
    #[doc(alias = "MPI_Get_library_version")]
    pub fn engine_name(&self) -> &'static str {
        self.shared.engine.name()
    }

    /// How the two are alike.
    #[doc(alias = "commCompare")]
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Communicator) -> ComparisonResult {
        match self.group().compare(other.group()) {
            ComparisonResult::Identical if self.shared.context != other.shared.context => {
                ComparisonResult::Congruent
            }
            comparison => comparison,
        }
    }

    /// The ranks of this communicator that have failed: that panicked, or returned an error.
    /// Receives of this communicator from any source bear these from now on, and do not fail
    /// because of them.
    ///
    /// A receive from any source fails when a rank has failed that could have been the source,
    /// because a program that counts on its message would wait for ever. A program that can do
    /// without that rank calls this, and receives on.
    #[doc(alias = "MPIX_Comm_failure_ack")]
    #[doc(alias = "MPI_Comm_ack_failed")]
    pub fn acknowledge_failed(&self) -> Vec<usize> {
        let failed = self.mailbox().acknowledge(self.shared.context, self.group().world_ranks());
        failed.into_iter().filter_map(|rank| self.group().position(rank)).collect()
    }

    /// The ranks to which its messages go, and of which they come: its own, but between two groups.
    pub(crate) fn peers(&self) -> &Group {
        self.shared.other_group.as_ref().unwrap_or(&self.shared.group)
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.shared.engine
    }

    /// The call of a public operation, which the program makes at this place.
    #[track_caller]
    pub(crate) fn call(&self, name: &'static str) -> CallSite {
        CallSite::here(name, self.rank())
    }

    /// The messages that the program sends itself.
    pub(crate) fn own(&self) -> MessageLane {
        MessageLane::own(self.shared.context)
    }

    /// The messages of the next collective operation.
    pub(crate) fn next_collective(&self, mark: u32) -> MessageLane {
        let number = self.shared.collective.fetch_add(1, Ordering::Relaxed);
        MessageLane::collective(self.shared.context, mark, number)
    }

    /// The messages of the next agreement.
    pub(crate) fn next_agreement(&self, mark: u32) -> MessageLane {
        let number = self.shared.agreement.fetch_add(1, Ordering::Relaxed);
        MessageLane::agreement(self.shared.context, mark, number)
    }

    /// A context that no communicator of the world has, if one rank alone uses what it proposes.
    pub(crate) fn propose_context(&self) -> u64 {
        let rank = self.own_world_rank();
        let number = self.mailbox().propose();
        assert!(number < 1 << 32, "a rank has made 2^32 communicators");
        let context = (rank as u64) << 32 | number;
        assert!(context < CONTEXTS, "the world has 2^29 ranks at most");
        context
    }

    /// The number of this rank in the world.
    pub(crate) fn own_world_rank(&self) -> usize {
        self.shared.group.world_ranks()[self.rank()] as usize
    }

    /// The number in the world of a rank to which its messages go.
    fn world_rank(&self, peer: usize) -> usize {
        self.peers().world_ranks()[peer] as usize
    }

    /// # Errors
    /// If the communicator has no such rank.
    #[inline]
    pub(crate) fn check_rank(&self, rank: usize, call: CallSite, class: ErrorClass) -> Result<(), Error> {
        let size = self.peers().size();
        if rank < size { Ok(()) } else { Err(Communicator::no_such_rank(rank, size, call, class)) }
    }

    #[cold]
    fn no_such_rank(rank: usize, size: usize, call: CallSite, class: ErrorClass) -> Error {
        let role = if class == ErrorClass::Root { "root" } else { "other side" };
        call.error(class, format!("the {role} is rank {rank}, but there are ranks 0 to {}", size - 1))
    }

    /// # Errors
    /// If the communicator is revoked, but for an agreement.
    pub(crate) fn check_revoked(&self, call: CallSite, lane: MessageLane) -> Result<(), Error> {
        match !lane.is_agreement() && self.knows_of_revocation() {
            true => Err(revoked(call)),
            false => Ok(()),
        }
    }

    /// Whether the communicator is revoked, as far as this rank knows.
    pub(crate) fn knows_of_revocation(&self) -> bool {
        self.mailbox().is_revoked(self.shared.context)
    }

    /// Ends all calls on this communicator, on every rank.
    pub(crate) fn revoke_everywhere(&self) {
        let (context, group) = (self.shared.context, self.group().world_ranks().clone());
        self.mailbox().revoke(&Revocation { context, group, from: self.own_world_rank() as u32 });
    }

    /// Whether this rank knows that another one, or itself, has ended.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        self.mailbox().has_ended(self.world_rank(rank) as u32)
    }

    /// The agreements up to this one are over: messages of theirs that come late are dropped.
    pub(crate) fn end_agreements(&self, last: MessageLane) {
        self.mailbox().end_agreements(last.context, last.number.0 + 1);
    }

    /// Whether a body for this rank may be a value that is moved. To the null rank each may,
    /// because no receive opens it.
    pub(crate) fn moves_values(&self, to: usize) -> bool {
        to == PROC_NULL || self.shared.engine.moves_values(self.world_rank(to))
    }

    /// Whether the ranks compare their calls before each collective. Between two groups
    /// `collective/inter.rs` does it, because the ranks of one group are no peers there.
    pub(crate) fn checks_collectives(&self) -> bool {
        !self.is_between_groups() && self.shared.engine.checks_collectives()
    }

    /// Whether its messages go from one group to another.
    pub(crate) fn is_between_groups(&self) -> bool {
        self.shared.other_group.is_some()
    }

    /// Whether a rank runs in this process.
    pub(crate) fn is_here(&self, rank: usize) -> bool {
        self.shared.engine.is_here(self.world_rank(rank))
    }

    /// As [`check_rank`](Self::check_rank), of the other side of a message.
    ///
    /// # Errors
    /// If it is neither a rank of the communicator nor the null rank.
    pub(crate) fn check_peer(&self, rank: usize, call: CallSite) -> Result<(), Error> {
        if rank == PROC_NULL { Ok(()) } else { self.check_rank(rank, call, ErrorClass::Rank) }
    }

    /// The error of a call that needs a rank which has ended.
    fn ended(&self, call: CallSite, ended: EndedRank, so: &str) -> Error {
        let rank = match self.peers().position(ended.rank) {
            Some(rank) => format!("rank {rank}"),
            None => format!("rank {} of the world", ended.rank),
        };
        let how = if ended.failed { "failed" } else { "returned" };
        call.error(ErrorClass::Ended, format!("{rank} has {how}: {so}"))
    }

    /// The mailbox of this rank in its world.
    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.shared.mailbox
    }
}

/// The error of a call on a communicator that is revoked.
pub(crate) fn revoked(call: CallSite) -> Error {
    call.error(ErrorClass::Revoked, "the communicator is revoked")
}

/// Lets the mailbox of a rank tell the others of the revocations that it hears of.
pub(crate) fn hand_revocations_on(engine: &Arc<dyn Engine>, rank: usize) {
    let way = Arc::downgrade(engine);
    engine.mailbox(rank).hand_revocations_on(move |revocation| {
        let Some(engine) = way.upgrade() else { return };
        let told_by = revocation.from as usize;
        // A rank of this process tells all the others itself.
        if told_by != rank && engine.is_here(told_by) {
            return;
        }
        let mine = Revocation { from: rank as u32, ..revocation.clone() };
        for other in revocation.group.iter().map(|&other| other as usize) {
            if other != rank && other != told_by {
                // A rank that has ended need not hear of it, and a message goes its way by itself.
                drop(engine.send(rank, other, mine.envelope(), SendMode::Standard));
            }
        }
    });
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Communicator(rank {} of {}, over {})", self.rank(), self.size(), self.shared.engine.name())
    }
}
