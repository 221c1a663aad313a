//! The collectives of the fast interface: on elements of plain data.
//!
//! Between ranks of one process each rank copies its elements once, and each receiver what it gets:
//! the messages share the copy.
//!
//! Ranks may have different numbers of elements. The counts come with the data, so no program has
//! to exchange them before, and the displacements follow from them: [`Parts`].

use super::content::{count_of, counts_of, elements_of};
use super::{CollectiveKind, CollectiveRound, Parts};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error};
use crate::shared_payload::{BodyPool, SharedPayload};
use bytemuck::Pod;
use std::sync::Arc;

/// # Collectives on elements
/// The operations of a reduction are applied to the elements at the same place of all ranks, in the
/// order of the ranks.
impl Communicator {
    /// Gives every rank the root's elements, in a slice of the same length.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast), and if the slice has another length than the root's.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let mut row = if world.rank() == 0 { [1.5, 2.5] } else { [0.0; 2] };
    ///     world.bcast_into(0, &mut row).await?;
    ///     assert_eq!(row, [1.5, 2.5]);
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
    pub fn bcast_into<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &mut [T],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("bcast_into");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Bcast, root, || {
                count_of::<T>(elements.len())
            })?;
            let own = (self.rank() == root).then(|| SharedPayload::new(elements.to_vec()));
            let came = round.bcast_elements(root, own).await?;
            call.copy_elements(&came.0, elements)
        }
    }

    /// Gives the root the elements of all ranks. The others get `None`.
    ///
    /// # Errors
    /// As for [`gather`](Self::gather).
    #[doc(alias = "gatherSend")]
    #[doc(alias = "gatherRecv")]
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    #[doc(alias = "gatherv")]
    #[doc(alias = "gathervSend")]
    #[doc(alias = "gathervRecv")]
    #[track_caller]
    pub fn gather_slice<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &[T],
    ) -> impl Future<Output = Result<Option<Parts<T>>, Error>> + Send {
        let call = self.call("gather_slice");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::Gather, root, elements_of::<T>)?;
            round.gather_elements(root, SharedPayload::new(elements.to_vec()), Parts::default()).await
        }
    }

    /// Gives each rank its part of the root's elements. The closure is called at the root alone.
    ///
    /// # Errors
    /// As for [`scatter`](Self::scatter).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Parts};
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let own = world.scatter_parts(0, || Parts::even((0..7).collect(), 3)).await?;
    ///     assert_eq!(own, [vec![0, 1, 2], vec![3, 4], vec![5, 6]][world.rank()]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "scatterSend")]
    #[doc(alias = "scatterRecv")]
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    #[doc(alias = "scatterv")]
    #[doc(alias = "scattervSend")]
    #[doc(alias = "scattervRecv")]
    #[track_caller]
    pub fn scatter_parts<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: impl FnOnce() -> Parts<T> + Send,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("scatter_parts");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::Scatter, root, elements_of::<T>)?;
            let all = (self.rank() == root).then(|| Arc::new(elements()));
            round.scatter_elements(root, all, Vec::new()).await
        }
    }

    /// Gives every rank the elements of all.
    ///
    /// # Errors
    /// As for [`allgather`](Self::allgather).
    #[doc(alias = "allgatherv")]
    #[doc(alias = "MPI_Allgather")]
    #[doc(alias = "MPI_Allgatherv")]
    #[track_caller]
    pub fn allgather_slice<T: Pod + Send + Sync>(
        &self,
        elements: &[T],
    ) -> impl Future<Output = Result<Parts<T>, Error>> + Send {
        let call = self.call("allgather_slice");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::Allgather, 0, elements_of::<T>)?;
            round.allgather_once(elements.to_vec()).await
        }
    }

    /// Gives each rank the part that each rank has for it.
    ///
    /// # Errors
    /// As for [`alltoall`](Self::alltoall).
    #[doc(alias = "alltoallv")]
    #[doc(alias = "MPI_Alltoall")]
    #[doc(alias = "MPI_Alltoallv")]
    #[track_caller]
    pub fn alltoall_parts<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
    ) -> impl Future<Output = Result<Parts<T>, Error>> + Send {
        let call = self.call("alltoall_parts");
        async move {
            let round =
                CollectiveRound::begin_with(self, call, CollectiveKind::Alltoall, 0, elements_of::<T>)?;
            round.alltoall_elements(Arc::new(elements), Parts::default()).await
        }
    }

    /// Gives the root the elements of all ranks, combined at each place. The others get `None`.
    ///
    /// # Errors
    /// As for [`reduce`](Self::reduce), and if a rank has another number of elements.
    #[doc(alias = "reduceSend")]
    #[doc(alias = "reduceRecv")]
    #[doc(alias = "MPI_Reduce")]
    #[track_caller]
    pub fn reduce_slice<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &[T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Option<Vec<T>>, Error>> + Send {
        let call = self.call("reduce_slice");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Reduce, root, || {
                count_of::<T>(elements.len())
            })?;
            round.reduce_elements(root, SharedPayload::new(elements.to_vec()), op, Vec::new()).await
        }
    }

    /// Replaces the elements of every rank by those of all ranks, combined at each place.
    ///
    /// # Errors
    /// As for [`reduce_slice`](Self::reduce_slice).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let mut counts = [1, world.rank()];
    ///     world.allreduce_into(&mut counts, mpi::op::sum).await?;
    ///     assert_eq!(counts, [3, 0 + 1 + 2]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn allreduce_into<T: Pod + Send + Sync>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("allreduce_into");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Allreduce, 0, || {
                count_of::<T>(elements.len())
            })?;
            let own = SharedPayload::new(elements.to_vec());
            let combined = round.allreduce_elements(own, op, &mut BodyPool::default()).await?;
            call.copy_elements(&combined.0, elements)
        }
    }

    /// Combines the elements of all ranks at each place, and gives rank `i` the results of part
    /// `i`.
    ///
    /// # Errors
    /// As for [`alltoall`](Self::alltoall), and if the parts for a rank have different numbers of
    /// elements.
    #[doc(alias = "reduceScatter")]
    #[doc(alias = "MPI_Reduce_scatter")]
    #[track_caller]
    pub fn reduce_scatter_parts<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("reduce_scatter_parts");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::ReduceScatter, 0, || {
                counts_of::<T>(elements.counts())
            })?;
            round.reduce_scatter_elements(Arc::new(elements), op, Vec::new()).await
        }
    }

    /// Replaces the elements of each rank by those of the ranks up to itself, combined at each
    /// place.
    ///
    /// # Errors
    /// As for [`reduce_slice`](Self::reduce_slice).
    #[doc(alias = "MPI_Scan")]
    #[track_caller]
    pub fn scan_into<T: Pod + Send + Sync>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("scan_into");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Scan, 0, || {
                count_of::<T>(elements.len())
            })?;
            let upto = round.scan_elements(elements, op, &mut BodyPool::default(), Vec::new()).await?;
            call.copy_elements(&upto, elements)
        }
    }

    /// Replaces the elements of each rank by those of the ranks before it, combined at each place.
    /// Those of rank 0 stay.
    ///
    /// # Errors
    /// As for [`reduce_slice`](Self::reduce_slice).
    #[doc(alias = "MPI_Exscan")]
    #[track_caller]
    pub fn exscan_into<T: Pod + Send + Sync>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("exscan_into");
        async move {
            let round = CollectiveRound::begin_with(self, call, CollectiveKind::Exscan, 0, || {
                count_of::<T>(elements.len())
            })?;
            let before = round.exscan_elements(elements, op, &mut BodyPool::default(), Vec::new()).await?;
            before.map_or(Ok(()), |before| call.copy_elements(&before, elements))
        }
    }
}

impl CallSite {
    /// Puts the result of a collective into the program's slice.
    ///
    /// # Errors
    /// If it has another length.
    pub(super) fn copy_elements<T: Copy>(self, came: &[T], elements: &mut [T]) -> Result<(), Error> {
        self.same_length(elements.len(), came.len())?;
        elements.copy_from_slice(came);
        Ok(())
    }
}
