//! The collectives on elements that are started and not waited for: `ibcast_into`, `igather_slice`
//! and so on. They go on as those on values do, in a thread of their own (`started.rs`).

use super::content::{count_of, counts_of, elements_of};
use super::{CollectiveKind, CollectiveRound, Parts};
use crate::communicator::Communicator;
use crate::request::Request;
use crate::shared_payload::{BodyPool, SharedPayload};
use bytemuck::Pod;
use std::sync::Arc;

/// # Collectives on elements that are not waited for
/// They start as [`ibcast`](Self::ibcast) and the others do: any number may be under way at once,
/// and each goes on if its request is dropped. A slice is copied before the call returns, so it is
/// free again. A buffer in which the result is to be belongs to the request, which gives it back.
impl Communicator {
    /// Starts a [`bcast_into`](Self::bcast_into). The request gives the buffer back, with the
    /// root's elements.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let row = world.ibcast_into(0, vec![world.rank(); 2]);
    ///     let sums = world.iallreduce_into(vec![1, world.rank()], mpi::op::sum);
    ///     // The rank may compute here.
    ///     assert_eq!(sums.await?, [3, 3]);
    ///     assert_eq!(row.await?, [0, 0]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Ibcast")]
    #[track_caller]
    pub fn ibcast_into<T: Pod + Send + Sync>(&self, root: usize, mut buffer: Vec<T>) -> Request<Vec<T>> {
        let call = self.call("ibcast_into");
        let is_root = self.rank() == root;
        let count = buffer.len();
        let go = async move |round: CollectiveRound| {
            let own = is_root.then(|| SharedPayload::new(buffer.clone()));
            let came = round.bcast_elements(root, own).await?;
            call.copy_elements(&came.0, &mut buffer)?;
            Ok(buffer)
        };
        self.start(call, CollectiveKind::Bcast, root, || count_of::<T>(count), go)
    }

    /// Starts a [`gather_slice`](Self::gather_slice).
    #[doc(alias = "MPI_Igather")]
    #[doc(alias = "MPI_Igatherv")]
    #[track_caller]
    pub fn igather_slice<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &[T],
    ) -> Request<Option<Parts<T>>> {
        let own = SharedPayload::new(elements.to_vec());
        let go = move |round: CollectiveRound| round.gather_elements(root, own, Parts::default());
        self.start(self.call("igather_slice"), CollectiveKind::Gather, root, elements_of::<T>, go)
    }

    /// Starts a [`scatter_parts`](Self::scatter_parts). The closure is called at the root alone,
    /// before the call returns.
    #[doc(alias = "MPI_Iscatter")]
    #[doc(alias = "MPI_Iscatterv")]
    #[track_caller]
    pub fn iscatter_parts<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: impl FnOnce() -> Parts<T>,
    ) -> Request<Vec<T>> {
        let all = (self.rank() == root).then(|| Arc::new(elements()));
        let go = move |round: CollectiveRound| round.scatter_elements(root, all, Vec::new());
        self.start(self.call("iscatter_parts"), CollectiveKind::Scatter, root, elements_of::<T>, go)
    }

    /// Starts an [`allgather_slice`](Self::allgather_slice).
    #[doc(alias = "MPI_Iallgather")]
    #[doc(alias = "MPI_Iallgatherv")]
    #[track_caller]
    pub fn iallgather_slice<T: Pod + Send + Sync>(&self, elements: &[T]) -> Request<Parts<T>> {
        let own = elements.to_vec();
        let go = move |round: CollectiveRound| round.allgather_once(own);
        self.start(self.call("iallgather_slice"), CollectiveKind::Allgather, 0, elements_of::<T>, go)
    }

    /// Starts an [`alltoall_parts`](Self::alltoall_parts).
    #[doc(alias = "MPI_Ialltoall")]
    #[doc(alias = "MPI_Ialltoallv")]
    #[track_caller]
    pub fn ialltoall_parts<T: Pod + Send + Sync>(&self, elements: Parts<T>) -> Request<Parts<T>> {
        let go = move |round: CollectiveRound| round.alltoall_elements(Arc::new(elements), Parts::default());
        self.start(self.call("ialltoall_parts"), CollectiveKind::Alltoall, 0, elements_of::<T>, go)
    }

    /// Starts a [`reduce_slice`](Self::reduce_slice).
    #[doc(alias = "MPI_Ireduce")]
    #[track_caller]
    pub fn ireduce_slice<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &[T],
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Option<Vec<T>>> {
        let own = SharedPayload::new(elements.to_vec());
        let go = move |round: CollectiveRound| round.reduce_elements(root, own, op, Vec::new());
        self.start(
            self.call("ireduce_slice"),
            CollectiveKind::Reduce,
            root,
            || count_of::<T>(elements.len()),
            go,
        )
    }

    /// Starts an [`allreduce_into`](Self::allreduce_into). The request gives the buffer back, with
    /// the combined elements.
    ///
    /// # Examples
    /// See [`ibcast_into`](Self::ibcast_into).
    #[doc(alias = "MPI_Iallreduce")]
    #[track_caller]
    pub fn iallreduce_into<T: Pod + Send + Sync>(
        &self,
        mut buffer: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Vec<T>> {
        let call = self.call("iallreduce_into");
        let count = buffer.len();
        let go = async move |round: CollectiveRound| {
            let own = SharedPayload::new(buffer.clone());
            let combined = round.allreduce_elements(own, op, &mut BodyPool::default()).await?;
            call.copy_elements(&combined.0, &mut buffer)?;
            Ok(buffer)
        };
        self.start(call, CollectiveKind::Allreduce, 0, || count_of::<T>(count), go)
    }

    /// Starts a [`reduce_scatter_parts`](Self::reduce_scatter_parts).
    #[doc(alias = "MPI_Ireduce_scatter")]
    #[track_caller]
    pub fn ireduce_scatter_parts<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Vec<T>> {
        let elements = Arc::new(elements);
        let own = elements.clone();
        let go = move |round: CollectiveRound| round.reduce_scatter_elements(own, op, Vec::new());
        let content = move || counts_of::<T>(elements.counts());
        self.start(self.call("ireduce_scatter_parts"), CollectiveKind::ReduceScatter, 0, content, go)
    }

    /// Starts a [`scan_into`](Self::scan_into). The request gives the buffer back.
    #[doc(alias = "MPI_Iscan")]
    #[track_caller]
    pub fn iscan_into<T: Pod + Send + Sync>(
        &self,
        buffer: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Vec<T>> {
        let count = buffer.len();
        let go = async move |round: CollectiveRound| {
            round.scan_elements(&buffer, op, &mut BodyPool::default(), Vec::new()).await
        };
        self.start(self.call("iscan_into"), CollectiveKind::Scan, 0, || count_of::<T>(count), go)
    }

    /// Starts an [`exscan_into`](Self::exscan_into). The request gives the buffer back; that of
    /// rank 0 is as it was.
    #[doc(alias = "MPI_Iexscan")]
    #[track_caller]
    pub fn iexscan_into<T: Pod + Send + Sync>(
        &self,
        buffer: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Vec<T>> {
        let count = buffer.len();
        let go = async move |round: CollectiveRound| {
            let before = round.exscan_elements(&buffer, op, &mut BodyPool::default(), Vec::new()).await?;
            Ok(before.unwrap_or(buffer))
        };
        self.start(self.call("iexscan_into"), CollectiveKind::Exscan, 0, || count_of::<T>(count), go)
    }
}
