//! The collectives of the simple interface: on values of any type that serde knows.
//!
//! Values of different ranks may have different sizes, so there are no variants with counts.

use super::content::value_of;
use super::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::payload::Message;

/// # Collectives
/// Every rank of the communicator makes the same calls in the same order. That one rank calls
/// something else, or names another root, is an error where it is noticed, and else a deadlock. A
/// collective that is dropped half-way leaves the other ranks without its messages.
impl Communicator {
    /// Waits until every rank has called it.
    ///
    /// # Errors
    /// If a rank has ended, or calls another collective.
    #[doc(alias = "MPI_Barrier")]
    #[track_caller]
    pub fn barrier(&self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("barrier");
        async move {
            let round = CollectiveRound::begin(self, call, CollectiveKind::Barrier, 0)?;
            round.barrier_of_values().await
        }
    }

    /// Gives every rank the root's value. The closure is called at the root alone: no other rank
    /// computes a value that it would not use.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier), and if there is no such root.
    ///
    /// # Paper
    /// [HMPI "Point-to-point communications"]: in a lazy language the value is not computed where
    /// it is not used. Here a closure says so.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(4, |world| async move {
    ///     let steps = world.bcast(0, || 1_000).await?;
    ///     assert_eq!(steps, 1_000);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "bcastSend")]
    #[doc(alias = "bcastRecv")]
    #[doc(alias = "MPI_Bcast")]
    #[track_caller]
    pub fn bcast<T: Message + Clone>(
        &self,
        root: usize,
        value: impl FnOnce() -> T + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.call("bcast");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Bcast, root, value_of::<T>)?;
            let own = (self.rank() == root).then(value);
            round.bcast_value(root, own).await
        }
    }

    /// Gives the root the values of all ranks, in the order of the ranks, with its own. The others
    /// get `None`.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast).
    ///
    /// # Paper
    /// [HMPI "Many-to-one communications"] `gatherSend` and `gatherRecv`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     if let Some(names) = world.gather(0, format!("rank {}", world.rank())).await? {
    ///         assert_eq!(names, ["rank 0", "rank 1", "rank 2"]);
    ///     }
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "gatherSend")]
    #[doc(alias = "gatherRecv")]
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    #[track_caller]
    pub fn gather<T: Message>(
        &self,
        root: usize,
        value: T,
    ) -> impl Future<Output = Result<Option<Vec<T>>, Error>> + Send {
        let call = self.call("gather");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Gather, root, value_of::<T>)?;
            round.gather_values(root, value).await
        }
    }

    /// Gives each rank its value. The root has all, and the closure is called at the root alone.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast), and at the root if there is not one value for each rank.
    #[doc(alias = "scatterSend")]
    #[doc(alias = "scatterRecv")]
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    #[track_caller]
    pub fn scatter<T: Message>(
        &self,
        root: usize,
        values: impl FnOnce() -> Vec<T> + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.call("scatter");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::Scatter, root, value_of::<T>)?;
            let all = (self.rank() == root).then(values);
            round.scatter_values(root, all).await
        }
    }

    /// Gives every rank the values of all, in the order of the ranks.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[doc(alias = "MPI_Allgather")]
    #[doc(alias = "MPI_Allgatherv")]
    #[track_caller]
    pub fn allgather<T: Message + Clone>(
        &self,
        value: T,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("allgather");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Allgather, 0, value_of::<T>)?;
            round.allgather_values(value).await
        }
    }

    /// Gives each rank the value that each rank has for it: the value at place `i` goes to rank
    /// `i`, and the result has at place `i` that of rank `i`.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier), and if there is not one value for each rank.
    #[doc(alias = "MPI_Alltoall")]
    #[doc(alias = "MPI_Alltoallv")]
    #[track_caller]
    pub fn alltoall<T: Message>(&self, values: Vec<T>) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("alltoall");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Alltoall, 0, value_of::<T>)?;
            round.alltoall_values(values).await
        }
    }

    /// Gives the root the values of all ranks, combined in the order of the ranks. The others get
    /// `None`. The operation is one of [`op`](crate::op), or a function of the program.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let word = ["warp", "and", "weft"][world.rank()].to_string();
    ///     // An operation of one's own, on values that MPI itself knows nothing of.
    ///     let text = world.reduce(0, word, |a, b| a + " " + &b).await?;
    ///     assert_eq!(text.as_deref(), (world.rank() == 0).then_some("warp and weft"));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "reduceSend")]
    #[doc(alias = "reduceRecv")]
    #[doc(alias = "opCreate")]
    #[doc(alias = "opFree")]
    #[doc(alias = "MPI_Reduce")]
    #[doc(alias = "MPI_Op_create")]
    #[track_caller]
    pub fn reduce<T: Message>(
        &self,
        root: usize,
        value: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send {
        let call = self.call("reduce");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Reduce, root, value_of::<T>)?;
            round.reduce_values(root, value, op).await
        }
    }

    /// Gives every rank the values of all, combined in the order of the ranks.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn allreduce<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.call("allreduce");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Allreduce, 0, value_of::<T>)?;
            round.allreduce_values(value, op).await
        }
    }

    /// Combines the values at each place of all ranks, in the order of the ranks, and gives rank
    /// `i` the result at place `i`.
    ///
    /// # Errors
    /// As for [`alltoall`](Self::alltoall).
    #[doc(alias = "reduceScatter")]
    #[doc(alias = "MPI_Reduce_scatter")]
    #[doc(alias = "MPI_Reduce_scatter_block")]
    #[doc(alias = "reduceScatterBlock")]
    #[track_caller]
    pub fn reduce_scatter<T: Message>(
        &self,
        values: Vec<T>,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.call("reduce_scatter");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::ReduceScatter, 0, value_of::<T>)?;
            round.reduce_scatter_values(values, op).await
        }
    }

    /// Gives each rank the values of the ranks up to itself, combined in their order.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(4, |world| async move {
    ///     // The place at which this rank's rows begin, from the number of its rows.
    ///     let rows = world.rank() + 10;
    ///     let begin = world.exscan(rows, mpi::op::sum).await?.unwrap_or(0);
    ///     assert_eq!(begin, [0, 10, 21, 33][world.rank()]);
    ///     assert_eq!(world.scan(rows, mpi::op::sum).await?, begin + rows);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Scan")]
    #[track_caller]
    pub fn scan<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.call("scan");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Scan, 0, value_of::<T>)?;
            round.scan_values(value, op).await
        }
    }

    /// Gives each rank the values of the ranks before it, combined in their order. Rank 0 gets
    /// `None`.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[doc(alias = "MPI_Exscan")]
    #[track_caller]
    pub fn exscan<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send {
        let call = self.call("exscan");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Exscan, 0, value_of::<T>)?;
            round.exscan_values(value, op).await
        }
    }
}
