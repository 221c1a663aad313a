//! New communicators out of one that is there: `split`, `dup` and `create`.
//!
//! All ranks of the old one take part. Each proposes a context that no communicator of the world
//! has (`Mailbox::propose`), and all of a new communicator take the proposal of its first rank. So
//! one collective operation is enough, and ranks that are left out need not agree.

use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::group::Group;
use crate::payload::Message;

impl Communicator {
    /// Makes a communicator of the ranks with the same color, for each color. In it the ranks are
    /// in the order of their keys, and those with the same key in the order of the old ranks. A
    /// rank without a color gets `None`.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(6, |world| async move {
    ///     // A grid of two rows and three columns.
    ///     let (row, column) = (world.rank() / 3, world.rank() % 3);
    ///     let row = world.split(row as u32, 0).await?.expect("each rank has a color");
    ///     assert_eq!((row.rank(), row.size()), (column, 3));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "commNull")]
    #[doc(alias = "MPI_Comm_split")]
    #[track_caller]
    pub fn split(
        &self,
        color: impl Into<Option<u32>>,
        key: i64,
    ) -> impl Future<Output = Result<Option<Communicator>, Error>> + Send {
        let (call, color) = (self.call("split"), color.into());
        async move {
            let own = (color, key, self.propose_context());
            let all = self.exchange(call, own).await?;
            if color.is_none() {
                return Ok(None);
            }
            let same = all.iter().enumerate().filter(|(_, (other, ..))| *other == color);
            let mut ranks: Vec<(i64, usize, u64)> =
                same.map(|(rank, &(_, key, context))| (key, rank, context)).collect();
            ranks.sort_unstable();
            let (_, _, context) = ranks[0];
            let ranks: Vec<usize> = ranks.into_iter().map(|(_, rank, _)| rank).collect();
            Ok(self.made(context, self.group().include(&ranks)))
        }
    }

    /// Makes a communicator of the same ranks in the same order. Its messages are apart from those
    /// of this one, so a library can send in it without knowing the program's tags.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[doc(alias = "MPI_Comm_dup")]
    #[track_caller]
    pub fn dup(&self) -> impl Future<Output = Result<Communicator, Error>> + Send {
        let call = self.call("dup");
        async move {
            let contexts = self.exchange(call, self.propose_context()).await?;
            let made = self.made(contexts[0], self.group().clone());
            Ok(made.expect("each rank is in the group of its communicator"))
        }
    }

    /// A communicator of this rank alone. No other rank takes part.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     // Each rank opens, spawns or sums for itself.
    ///     let alone = world.alone();
    ///     assert_eq!((alone.rank(), alone.size()), (0, 1));
    ///     assert_eq!(alone.allreduce(world.rank(), mpi::op::sum).await?, world.rank());
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "commSelf")]
    #[doc(alias = "MPI_COMM_SELF")]
    pub fn alone(&self) -> Communicator {
        let group = Group::of([self.own_world_rank() as u32]);
        Communicator::new(self.engine().clone(), self.propose_context(), group, 0)
    }

    /// Makes a communicator of the ranks of a group. The ranks of the group name the same group,
    /// and the others any; they get `None`, unless they are in the group that they name.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier). If the group has a rank that this communicator does not
    /// have, or is not the same on the ranks that it has.
    #[doc(alias = "commCreate")]
    #[doc(alias = "MPI_Comm_create")]
    #[track_caller]
    pub fn create(&self, group: &Group) -> impl Future<Output = Result<Option<Communicator>, Error>> + Send {
        let (call, group) = (self.call("create"), group.clone());
        async move {
            let own = (group.world_ranks().to_vec(), self.propose_context());
            let all = self.exchange(call, own).await?;
            let mut context = None;
            for &world_rank in group.world_ranks().iter() {
                let Some(rank) = self.group().position(world_rank) else {
                    let text = format!("rank {world_rank} of the world is not in this communicator");
                    return Err(call.error(ErrorClass::Group, text));
                };
                let (named, proposed) = &all[rank];
                if **named != **group.world_ranks() {
                    let mine = group.world_ranks();
                    let text = format!(
                        "rank {rank} names the group {named:?} of world ranks, and this rank {mine:?}"
                    );
                    return Err(call.error(ErrorClass::Mismatch, text));
                }
                context.get_or_insert(*proposed);
            }
            Ok(context.and_then(|context| self.made(context, group)))
        }
    }

    /// What each rank gives, for every rank.
    pub(crate) async fn exchange<T: Message + Clone>(&self, call: CallSite, own: T) -> Result<Vec<T>, Error> {
        CollectiveRound::begin(self, call, CollectiveKind::Split, 0)?.allgather_values(own).await
    }

    /// The new communicator, if this rank is in its group.
    pub(crate) fn made(&self, context: u64, group: Group) -> Option<Communicator> {
        let me = self.group().world_ranks()[self.rank()];
        let rank = group.position(me)?;
        Some(Communicator::new(self.engine().clone(), context, group, rank))
    }
}
