//! [`InterCommunicator::disconnect`]: two groups that did not start together leave each other.
//!
//! `joined.rs` gives each side of them a [`GroupConnection`]. A rank leaves in two steps, after
//! every rank of both groups has come: the ranks of the other group are to this rank as ranks that
//! have returned; and a rank that has a [`JoinedSeat`] in the engine of both groups ends there. The
//! world of a rank that was spawned is in that engine, so it has no seat, and stays.

use crate::collective::CollectiveKind;
use crate::completion::{EndedRank, HearsEnd};
use crate::error::{CallSite, Error, ErrorClass};
use crate::intercommunicator::InterCommunicator;
use crate::mailbox::Mailbox;
use crate::processes::ProcessRank;
use std::ops::Range;
use std::sync::Arc;

/// What joins a rank to the ranks of another group. Numbers are those in the engine of both.
pub(crate) struct GroupConnection {
    engine: Arc<dyn HearsEnd>,
    own: u32,
    others: Range<u32>,
    seat: Option<JoinedSeat>,
}

/// The place of a rank in the engine of both groups, beside its world.
pub(crate) struct JoinedSeat {
    /// The mailbox in the rank's world.
    pub(crate) home: Arc<Mailbox>,
    /// The rank in the job over shared memory, if that is the engine.
    pub(crate) process: Option<Arc<ProcessRank>>,
}

impl GroupConnection {
    pub(crate) fn new(
        engine: Arc<dyn HearsEnd>,
        own: u32,
        others: Range<u32>,
        seat: Option<JoinedSeat>,
    ) -> GroupConnection {
        GroupConnection { engine, own, others, seat }
    }

    /// Leaves the other group. Over shared memory it waits until the ranks of this group leave too,
    /// and ends what has received for the rank.
    async fn leave(&self, call: CallSite) -> Result<(), Error> {
        let returned = |rank| EndedRank { rank, failed: false };
        for other in self.others.clone() {
            self.engine.other_ended_for(self.own, returned(other));
        }
        let Some(seat) = &self.seat else { return Ok(()) };
        // Before the rank ends there: it ends once.
        seat.home.leave_seat(&self.engine);
        self.engine.rank_ended(returned(self.own));
        match &seat.process {
            Some(process) => {
                process.finish().await.map_err(|error| call.error(ErrorClass::Join, error.to_string()))
            }
            None => Ok(()),
        }
    }
}

impl InterCommunicator {
    /// Separates the two groups again. Every rank of both groups calls it, after it has received
    /// what was sent to it.
    ///
    /// Where the groups did not start together ([`spawn`], [`spawn_program`], [`accept`],
    /// [`connect`]), they know nothing of each other afterwards: the failure of a rank is no error
    /// in the other group, and a run waits for no rank of the other group that its own ranks have
    /// not spawned. Clones of the intercommunicator, and communicators that were
    /// [merged](Self::merge) of it, have no other group any more: a receive from it is an error of
    /// the class [`Ended`](ErrorClass::Ended), and what is sent to it is one too, or is lost. Where
    /// both groups are of one world, the call waits for all ranks, and nothing else ends.
    ///
    /// # Errors
    /// If a rank has ended, or calls another collective. The groups are separated nevertheless.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Communicator};
    ///
    /// /// What a new rank does, long after the others have gone on.
    /// async fn helper(world: Communicator) -> Result<(), mpi::Error> {
    ///     let parent = world.parent().expect("the rank was spawned");
    ///     let (number, _) = parent.recv::<u64>(0, ()).await?;
    ///     parent.disconnect().await?;
    ///     let sum = world.allreduce(number, mpi::op::sum).await?;
    ///     assert_eq!(sum, 3);
    ///     Ok(())
    /// }
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(1, |world| async move {
    ///     let helpers = world.spawn(0, 2, helper).await?;
    ///     helpers.send(0, (), 1_u64).await?;
    ///     helpers.send(1, (), 2_u64).await?;
    ///     helpers.disconnect().await
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    ///
    /// [`spawn`]: crate::Communicator::spawn
    /// [`spawn_program`]: crate::Communicator::spawn_program
    /// [`accept`]: crate::Communicator::accept
    /// [`connect`]: crate::Communicator::connect
    #[doc(alias = "commDisconnect")]
    #[doc(alias = "MPI_Comm_disconnect")]
    #[track_caller]
    pub fn disconnect(self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.local.call("disconnect");
        async move {
            let come = self.all_come(call, CollectiveKind::Disconnect).await;
            let left = match &self.connection {
                Some(connection) => connection.leave(call).await,
                None => Ok(()),
            };
            come.and(left)
        }
    }
}
