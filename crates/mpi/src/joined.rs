//! Two groups of ranks that did not start together, over one engine of their own: [`JoinedGroups`].
//!
//! `spawn.rs` and `port.rs` make them. Each rank keeps its world, and has a second number in the
//! engine of both groups: the ranks of the first group come first. So messages between the groups,
//! and those of a communicator that is [merged](InterCommunicator::merge) of both, are messages
//! within one engine, and contexts of the two worlds cannot meet.
//!
//! There are two such engines ([`JoinWay`]). Where all ranks are threads of this process it is
//! [`RankThreads`]. Otherwise it is a job over shared memory, in which each rank takes its seat,
//! whatever the engine of its world.
//!
//! # The ends of ranks
//! When a rank ends in its world, the mailbox there tells the engine of both groups
//! (`Mailbox::when_closed`). So the other group hears of it as the rank's own world does. A process
//! that is killed tells nothing: in a job over shared memory each process watches the others.
//! `disconnect.rs` separates the groups before that.

use crate::collective::CollectiveRound;
use crate::communicator::{Communicator, hand_revocations_on};
use crate::completion::{EndedRank, HearsEnd};
use crate::disconnect::{GroupConnection, JoinedSeat};
use crate::engine::Engine;
use crate::error::{CallSite, Error, ErrorClass};
use crate::group::Group;
use crate::intercommunicator::InterCommunicator;
use crate::job::{JobLink, JobRank};
use crate::mailbox::Mailbox;
use crate::payload::Value;
use crate::processes::{JobSegment, LocalJob, ProcessRank};
use crate::tag::Tag;
use crate::threads::RankThreads;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two groups of ranks that send to one another, and their engine.
#[derive(Clone)]
pub(crate) struct JoinedGroups {
    engine: Arc<dyn Engine>,
    /// The same engine.
    hears: Arc<dyn HearsEnd>,
    /// The number of ranks of the first group.
    first: usize,
}

/// The side of a rank that was spawned: it is kept with its world.
pub(crate) struct ParentSide(pub(crate) InterCommunicator);

/// The context of messages from one group to the other.
const ACROSS: u64 = 0;

/// In each group, its first rank has proposed these: for the group, and for the world of ranks that
/// were spawned.
const LOCAL: u64 = 1;
const WORLD: u64 = 2;

impl JoinedGroups {
    pub(crate) fn new<E: Engine + HearsEnd>(engine: Arc<E>, first: usize) -> JoinedGroups {
        JoinedGroups { engine: engine.clone(), hears: engine, first }
    }

    /// Makes a rank of this process ready, by its number in the engine: before it is used.
    pub(crate) fn begin(&self, rank: usize) {
        hand_revocations_on(&self.engine, rank);
        if rank == 0 || rank == self.first {
            // No later proposal is one of these.
            let proposed = [(); 2].map(|()| self.engine.mailbox(rank).propose());
            debug_assert_eq!(proposed, [LOCAL, WORLD]);
        }
    }

    /// The number in the engine of a rank of a group.
    fn number(&self, is_first: bool, rank: usize) -> usize {
        if is_first { rank } else { self.first + rank }
    }

    /// The numbers in the engine of a group's ranks.
    fn numbers(&self, is_first: bool) -> Range<u32> {
        let (first, all) = (self.first as u32, self.engine.size() as u32);
        if is_first { 0..first } else { first..all }
    }

    fn group(&self, is_first: bool) -> Group {
        Group::of(self.numbers(is_first).collect::<Vec<_>>())
    }

    /// The intercommunicator of a rank, by its number in its group. A rank has a seat if its
    /// world is of another engine.
    fn side(&self, is_first: bool, rank: usize, seat: Option<JoinedSeat>) -> InterCommunicator {
        let local = self.communicator(is_first, LOCAL, rank);
        let across = local.to_group(ACROSS, self.group(!is_first));
        let (own, others) = (self.number(is_first, rank) as u32, self.numbers(!is_first));
        let connection = GroupConnection::new(self.hears.clone(), own, others, seat);
        InterCommunicator::of(across, local, is_first, connection)
    }

    /// The world of a rank of the second group, which was spawned.
    pub(crate) fn spawned_world(&self, rank: usize) -> Communicator {
        let world = self.communicator(false, WORLD, rank);
        world.kept_values().keep(ParentSide(self.side(false, rank, None)));
        world
    }

    fn communicator(&self, is_first: bool, context: u64, rank: usize) -> Communicator {
        let leader = self.number(is_first, 0) as u64;
        Communicator::new(self.engine.clone(), leader << 32 | context, self.group(is_first), rank)
    }
}

/// Two groups of ranks of this process.
#[derive(Clone)]
pub(crate) struct JoinedWorlds {
    threads: Arc<RankThreads>,
    groups: JoinedGroups,
}

impl JoinedWorlds {
    /// Groups of `first` and `second` ranks.
    pub(crate) fn new(first: usize, second: usize, moves_values: bool) -> JoinedWorlds {
        let threads = Arc::new(RankThreads::new(first + second, moves_values));
        let groups = JoinedGroups::new(threads.clone(), first);
        (0..first + second).for_each(|rank| groups.begin(rank));
        JoinedWorlds { threads, groups }
    }

    /// The world of a rank of the second group, which was spawned.
    pub(crate) fn spawned_world(&self, rank: usize) -> Communicator {
        self.groups.spawned_world(rank)
    }

    /// A rank of the second group, by its number there, has ended.
    pub(crate) fn spawned_rank_ended(&self, ended: EndedRank) {
        let rank = self.groups.number(false, ended.rank as usize) as u32;
        self.threads.end(EndedRank { rank, ..ended });
    }

    /// The ranks of the second group will not come.
    pub(crate) fn second_group_stays_away(&self) {
        for rank in self.groups.first..self.threads.size() {
            self.threads.end(EndedRank { rank: rank as u32, failed: true });
        }
    }

    /// The mailbox of a rank of the second group, by its number there.
    pub(crate) fn spawned_mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        self.threads.mailbox(self.groups.number(false, rank))
    }

    /// The ends of the ranks of a communicator, in their world, are ends of these ranks too.
    fn tie(&self, communicator: &Communicator, is_first: bool) {
        let engine: Arc<dyn HearsEnd> = self.threads.clone();
        for (rank, &world_rank) in communicator.group().world_ranks().iter().enumerate() {
            let home: &Mailbox = communicator.engine().mailbox(world_rank as usize);
            home.when_closed(Arc::downgrade(&engine), self.groups.number(is_first, rank) as u32);
        }
    }
}

impl HearsEnd for RankThreads {
    fn rank_ended(&self, ended: EndedRank) {
        self.end(ended);
    }

    fn other_ended_for(&self, own: u32, other: EndedRank) {
        self.mailbox(own as usize).ended(other);
    }
}

impl<L: JobLink> HearsEnd for JobRank<L> {
    fn rank_ended(&self, ended: EndedRank) {
        self.end(ended);
    }

    fn other_ended_for(&self, own: u32, other: EndedRank) {
        debug_assert_eq!(own as usize, self.rank(), "the other ranks run elsewhere");
        self.ended(other);
    }
}

/// How the ranks of two groups are joined: what the root of a collective operation has made.
pub(crate) enum JoinWay {
    /// All ranks are threads of this process.
    Here(JoinedWorlds),
    /// Each rank takes its seat in a job over shared memory, in which the first group has this
    /// number of ranks. The rank `leader` of this group meets the leader of the other one.
    Segment { segment: Arc<JobSegment>, first: usize, leader: usize },
}

/// What a root tells its group: the number of an entry in the table, or the path of a segment, the
/// number of ranks of the first group, and the leader of this group. Or whether it is not
/// supported, and what has failed.
type ToldWay = Result<(Option<u64>, String, u64, u64), (bool, String)>;

/// What roots have made for ranks of this process, until every rank of their group has taken it.
static MADE: Mutex<Option<HashMap<u64, JoinedWorlds>>> = Mutex::new(None);

static NEXT: AtomicU64 = AtomicU64::new(0);

fn made() -> MutexGuard<'static, Option<HashMap<u64, JoinedWorlds>>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry of the table, until it is dropped.
struct Shown(u64);

impl Shown {
    fn new(joined: JoinedWorlds) -> Shown {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        made().get_or_insert_default().insert(number, joined);
        Shown(number)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let joined = made().as_mut().and_then(|made| made.remove(&self.0));
        drop(joined);
    }
}

/// Gives every rank of a communicator its side of what the root has made.
///
/// # Errors
/// On every rank, that of the root.
pub(crate) async fn sides(
    mut round: CollectiveRound,
    call: CallSite,
    communicator: &Communicator,
    root: usize,
    is_first: bool,
    own: Option<Result<JoinWay, Error>>,
) -> Result<InterCommunicator, Error> {
    let (mut shown, mut expected, mut failed, mut told) = (None, None, None, None);
    match own {
        Some(Ok(JoinWay::Here(joined))) => {
            joined.tie(communicator, is_first);
            let entry = Shown::new(joined);
            told = Some(Value(Ok((Some(entry.0), String::new(), 0, 0))));
            shown = Some(entry);
        }
        Some(Ok(JoinWay::Segment { segment, first, leader })) => {
            told = Some(Value(Ok((None, segment.path(), first as u64, leader as u64))));
            // The others open it by the descriptor of this process, so it is kept until they have.
            let begin = if is_first { 0 } else { first };
            expected = Some(ExpectedGroup::new(segment, begin..begin + communicator.size()));
        }
        Some(Err(error)) => {
            let is_unsupported = error.class() == ErrorClass::Unsupported;
            told = Some(Value(Err((is_unsupported, error.to_string()))));
            failed = Some(error);
        }
        None => {}
    }
    let Value(told): Value<ToldWay> = round.bcast(root, told).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    let join = |text: String| call.error(ErrorClass::Join, text);
    let (number, path, first, leader) = told.map_err(|(is_unsupported, text)| {
        let class = if is_unsupported { ErrorClass::Unsupported } else { ErrorClass::Join };
        call.error(class, format!("on rank {root}: {text}"))
    })?;
    let side = match number {
        Some(number) => {
            let joined = made().as_ref().and_then(|made| made.get(&number).cloned());
            let joined = joined.ok_or_else(|| join(format!("rank {root} has ended")))?;
            round.allgather(Value(())).await?;
            let seat = JoinedSeat { home: communicator.mailbox().clone(), process: None };
            joined.groups.side(is_first, communicator.rank(), Some(seat))
        }
        None => {
            let numbers = (first as usize, leader as usize);
            in_segment(&mut round, call, communicator, is_first, path, numbers).await?
        }
    };
    if let Some(expected) = expected {
        expected.has_come();
    }
    round.end().await?;
    drop(shown);
    Ok(side)
}

/// A group of ranks that the other group of a job expects. If this value goes before
/// [`has_come`](Self::has_come), the other group hears that these ranks have failed. So it does not
/// wait for ever when a rank has ended in the middle of the call, or the call was given up.
struct ExpectedGroup {
    segment: Arc<JobSegment>,
    /// The numbers of its ranks in the job. None of them if the group has come.
    ranks: Range<usize>,
}

impl ExpectedGroup {
    fn new(segment: Arc<JobSegment>, ranks: Range<usize>) -> ExpectedGroup {
        ExpectedGroup { segment, ranks }
    }

    fn has_come(mut self) {
        self.ranks = 0..0;
    }
}

impl Drop for ExpectedGroup {
    fn drop(&mut self) {
        let job = LocalJob::of(self.segment.clone());
        self.ranks.clone().for_each(|rank| job.departed(rank));
    }
}

/// Takes the seat of this rank in the job of both groups, as all ranks of the group do. The numbers
/// are how many ranks the first group has, and the leader of this group.
async fn in_segment(
    round: &mut CollectiveRound,
    call: CallSite,
    communicator: &Communicator,
    is_first: bool,
    path: String,
    (first, leader): (usize, usize),
) -> Result<InterCommunicator, Error> {
    let (me, size) = (communicator.rank(), communicator.size());
    let begin = if is_first { 0 } else { first };
    let joined = ProcessRank::join_worlds(path, begin + me).map_err(|error| error.to_string());
    let told = joined.as_ref().err().cloned();
    let expected = joined
        .as_ref()
        .ok()
        .map(|joined| ExpectedGroup::new(joined.job.link().segment().clone(), begin..begin + size));
    let all = round.allgather(Value(told)).await?;
    if let Some((rank, text)) =
        all.into_iter().enumerate().find_map(|(rank, Value(told))| Some((rank, told?)))
    {
        return Err(call.error(ErrorClass::Join, format!("rank {rank} cannot join: {text}")));
    }
    let joined = joined.expect("no rank has failed");
    let groups = JoinedGroups::new(joined.job.clone(), first);
    groups.begin(begin + me);
    let hears: Arc<dyn HearsEnd> = joined.job.clone();
    communicator.mailbox().when_closed(Arc::downgrade(&hears), (begin + me) as u32);
    let joined = Arc::new(joined);
    let seat = JoinedSeat { home: communicator.mailbox().clone(), process: Some(joined.clone()) };
    let side = groups.side(is_first, me, Some(seat));
    let mut met = None;
    if me == leader {
        met = Some(Value(leaders_meet(&side, 0).await.err().map(|error| error.to_string())));
    }
    let Value(met) = round.bcast(leader, met).await?;
    if let Some(text) = met {
        return Err(call.error(ErrorClass::Join, format!("the other group does not come: {text}")));
    }
    joined.watch_others().map_err(|error| call.error(ErrorClass::Join, error.to_string()))?;
    // After a failure the run waits for nothing: the root may be killed, and its processes with it,
    // and no other process would tell that these have ended.
    let waited = joined.clone();
    communicator
        .mailbox()
        .wait_before_end(Box::pin(async move { waited.finish().await.map_err(|error| error.to_string()) }));
    if let Some(expected) = expected {
        expected.has_come();
    }
    Ok(side)
}

/// The leaders of both groups tell one another that the ranks of their groups have taken their
/// seats: from then on each can be watched. The leader of the other group has the number `other`
/// there.
///
/// The leader of ranks that spawn is the root. It hears of the ends of the processes that it has
/// started, and these end with it. So neither leader waits for one that has been killed.
///
/// # Errors
/// If the other leader has ended.
pub(crate) async fn leaders_meet(side: &InterCommunicator, other: usize) -> Result<(), Error> {
    let nothing_else = Tag::MAX;
    side.send(other, nothing_else, ()).await?;
    side.recv::<()>(other, nothing_else).await.map(drop)
}

/// # Errors
/// If ranks of the communicator run in other processes.
pub(crate) fn check_all_here(communicator: &Communicator, call: CallSite) -> Result<(), Error> {
    match (0..communicator.size()).all(|rank| communicator.is_here(rank)) {
        true => Ok(()),
        false => {
            let engine = communicator.engine_name();
            let text = format!("it is possible between ranks of one process, and not over {engine}");
            Err(call.error(ErrorClass::Unsupported, text))
        }
    }
}
