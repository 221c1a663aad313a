//! Going on when ranks have ended: `revoke`, `shrink` and `agree`.
//!
//! A rank that sees the error of another rank's end revokes the communicator, so that no rank waits
//! for one that has left the common path. Then the ranks that live shrink it to themselves. The
//! agreement of both is in `agreement.rs`, and the way of a revocation in `mailbox/revoked.rs`.

use crate::agreement;
use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{Error, ErrorClass};

/// # Going on without a rank that has ended
/// The collective in which a rank ends is an error on some ranks, and may succeed on others. So the
/// rank that has the error calls [`revoke`](Self::revoke), and all others get an error too. Then
/// all ranks that live call [`shrink`](Self::shrink), and go on in the new communicator.
/// [`agree`](Self::agree) tells whether all were successful.
///
/// It is so on engines on which the ranks outlive one of them: threads, and processes that share
/// memory. Over MPI a rank that returns an error or panics is borne too. A process that is killed
/// there ends the job, because the launcher does so; under `mpirun --with-ft ulfm` of Open MPI 5 it
/// is borne.
impl Communicator {
    /// Ends all calls on this communicator, on every rank: the calls that wait, and all later
    /// calls, fail with [`ErrorClass::Revoked`]. The messages that no receive has taken are
    /// dropped. [`shrink`](Self::shrink) and [`agree`](Self::agree) still work.
    ///
    /// Any rank may call it at any time; the others call nothing. The call returns at once. Each
    /// rank that lives hears of it, also if this one ends meanwhile. Other communicators of the
    /// same ranks are as they were.
    ///
    /// # Complexity
    /// A message for each rank; between processes, a message for each pair of ranks.
    ///
    /// # Examples
    /// See [`shrink`](Self::shrink).
    #[doc(alias = "MPIX_Comm_revoke")]
    #[doc(alias = "MPI_Comm_revoke")]
    pub fn revoke(&self) {
        self.revoke_everywhere();
    }

    /// Whether this rank has revoked the communicator, or has heard that another one has.
    #[doc(alias = "MPIX_Comm_is_revoked")]
    #[doc(alias = "MPI_Comm_is_revoked")]
    pub fn is_revoked(&self) -> bool {
        self.knows_of_revocation()
    }

    /// Makes a communicator of the ranks that live: they have neither returned nor failed.
    /// They keep their order. All of them call it.
    ///
    /// All get the same ranks, whichever ends meanwhile. A rank that ends during the call may be
    /// among them; the next call that needs it then fails, and the ranks shrink again.
    ///
    /// # Errors
    /// If this rank itself has ended, or if another rank calls [`agree`](Self::agree).
    ///
    /// # Complexity
    /// Four messages one after another, and in all a message for each pair of ranks.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Communicator, op};
    ///
    /// /// The sum of the ranks that live, and their number.
    /// async fn sum(world: Communicator) -> Result<(usize, usize), mpi::Error> {
    ///     if world.rank() == 1 {
    ///         panic!("the thread broke");
    ///     }
    ///     let mut comm = world;
    ///     loop {
    ///         match comm.allreduce(1, op::sum).await {
    ///             Ok(sum) => return Ok((sum, comm.size())),
    ///             Err(_) => {
    ///                 comm.revoke();
    ///                 comm = comm.shrink().await?;
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// # selvedge::round_robin(async {
    /// // `run` gives the failure of rank 1. What the others return is seen here only in that none
    /// // of them fails.
    /// let failure = mpi::run(3, |world| async move {
    ///     assert_eq!(sum(world).await?, (2, 2));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// .unwrap_err();
    /// assert_eq!((failure.rank(), failure.ranks.len()), (1, 1));
    /// # })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPIX_Comm_shrink")]
    #[doc(alias = "MPI_Comm_shrink")]
    #[track_caller]
    pub fn shrink(&self) -> impl Future<Output = Result<Communicator, Error>> + Send {
        let call = self.call("shrink");
        async move {
            let round = CollectiveRound::agreement(self, call, CollectiveKind::Shrink);
            let decide = |given: Vec<(usize, ())>| {
                let ranks = given.into_iter().map(|(rank, ())| rank as u32);
                let ranks: Vec<u32> = ranks.filter(|&rank| !self.has_ended(rank as usize)).collect();
                (ranks, self.propose_context())
            };
            let (ranks, context) = agreement::agree(round, (), decide).await?;
            let ranks: Vec<usize> = ranks.into_iter().map(|rank| rank as usize).collect();
            let made = self.made(context, self.group().include(&ranks));
            made.ok_or_else(|| call.error(ErrorClass::Ended, "this rank has ended: it takes no part"))
        }
    }

    /// Whether all ranks that live say `true`. All of them call it, and all get the same answer,
    /// whichever ends meanwhile. It works on a communicator that is revoked, and while ranks have
    /// ended of which this one does not know.
    ///
    /// What a rank has said that ends during the call counts or not, for all alike.
    ///
    /// # Errors
    /// If this rank itself has ended, or if another rank calls [`shrink`](Self::shrink).
    ///
    /// # Complexity
    /// As for [`shrink`](Self::shrink).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let step = world.barrier().await;
    ///     // No rank goes on if the step has failed on any.
    ///     assert!(world.agree(step.is_ok()).await?);
    ///     assert!(!world.agree(world.rank() != 1).await?);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPIX_Comm_agree")]
    #[doc(alias = "MPI_Comm_agree")]
    #[track_caller]
    pub fn agree(&self, flag: bool) -> impl Future<Output = Result<bool, Error>> + Send {
        let call = self.call("agree");
        async move {
            let round = CollectiveRound::agreement(self, call, CollectiveKind::Agree);
            let all = |given: Vec<(usize, bool)>| given.into_iter().all(|(_, flag)| flag);
            agreement::agree(round, flag, all).await
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::cut_short::CutShort;
    use std::sync::Arc;

    /// Rank 0 revokes and ends after a number of sends; in some worlds rank 1 ends too. Either no
    /// other rank hears of the revocation, or each that lives.
    #[test]
    fn each_rank_hears_of_a_revocation_or_none() {
        const RANKS: usize = 5;
        for (sends, others) in (0..RANKS).flat_map(|sends| [0, 1, 2, 3, 9].map(|others| (sends, others))) {
            let engine = Arc::new(CutShort::new(RANKS, &[(0, sends), (1, others)]));
            let worlds: Vec<_> = (0..RANKS).map(|rank| Communicator::world(engine.clone(), rank)).collect();
            worlds[0].revoke();
            engine.end_those_that_send_nothing();
            let heard: Vec<bool> = worlds[2..].iter().map(Communicator::is_revoked).collect();
            let expected = sends > 1 || (sends == 1 && others > 0);
            assert_eq!(heard, [expected; RANKS - 2], "{sends} and {others} sends");
        }
    }

    /// What came before a rank had a world is handed on when it has.
    #[test]
    fn a_revocation_that_comes_early() {
        let engine = Arc::new(CutShort::new(3, &[(0, 1)]));
        let first = Communicator::world(engine.clone(), 0);
        first.revoke();
        let third = Communicator::world(engine.clone(), 2);
        assert!(!third.is_revoked());
        assert!(Communicator::world(engine, 1).is_revoked());
        assert!(third.is_revoked());
    }
}
