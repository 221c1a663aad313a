//! The collectives of the fast interface: on elements of plain data.
//!
//! Ranks may have different numbers of elements. The counts come with the data, so no program has
//! to exchange them before, and the displacements follow from them: [`Parts`].

use super::{CollectiveKind, CollectiveRound, Parts};
use crate::communicator::Communicator;
use crate::error::{Error, ErrorClass};
use crate::payload::Elements;
use bytemuck::Pod;

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
    pub fn bcast_into<T: Pod + Send>(
        &self,
        root: usize,
        elements: &mut [T],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("bcast_into");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Bcast, root)?;
            let own = (self.rank() == root).then(|| Elements(elements.to_vec()));
            let Elements(came) = round.bcast(root, own).await?;
            round.same_length(elements.len(), came.len())?;
            elements.copy_from_slice(&came);
            round.end().await
        }
    }

    /// Gives the root the elements of all ranks. The others get `None`.
    ///
    /// # Errors
    /// As for [`gather`](Self::gather).
    #[doc(alias = "gatherSend")]
    #[doc(alias = "gatherRecv")]
    #[doc(alias = "gathervSend")]
    #[doc(alias = "gathervRecv")]
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    #[track_caller]
    pub fn gather_slice<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: &[T],
    ) -> impl Future<Output = Result<Option<Parts<T>>, Error>> + Send {
        let call = self.call("gather_slice");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Gather, root)?;
            let gathered = round.gather(root, Elements(elements.to_vec())).await?;
            round.end().await?;
            Ok(gathered.map(parts))
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
    #[doc(alias = "scattervSend")]
    #[doc(alias = "scattervRecv")]
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    #[track_caller]
    pub fn scatter_parts<T: Pod + Send>(
        &self,
        root: usize,
        elements: impl FnOnce() -> Parts<T> + Send,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("scatter_parts");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Scatter, root)?;
            let all = (self.rank() == root).then(|| payloads(&elements()));
            let Elements(own) = round.scatter(root, all).await?;
            round.end().await?;
            Ok(own)
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
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Allgather, 0)?;
            let all = round.allgather(Elements(elements.to_vec())).await?;
            round.end().await?;
            Ok(parts(all))
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
    pub fn alltoall_parts<T: Pod + Send>(
        &self,
        elements: Parts<T>,
    ) -> impl Future<Output = Result<Parts<T>, Error>> + Send {
        let call = self.call("alltoall_parts");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Alltoall, 0)?;
            let all = round.alltoall(payloads(&elements)).await?;
            round.end().await?;
            Ok(parts(all))
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
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Reduce, root)?;
            let gathered = round.gather(root, Elements(elements.to_vec())).await?;
            let combined = gathered.map(|all| round.fold(all, &op)).transpose()?;
            round.end().await?;
            Ok(combined.map(|Elements(elements)| elements))
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
    pub fn allreduce_into<T: Pod + Send>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("allreduce_into");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Allreduce, 0)?;
            let gathered = round.gather(0, Elements(elements.to_vec())).await?;
            let combined = gathered.map(|all| round.fold(all, &op)).transpose()?;
            let Elements(combined) = round.bcast(0, combined).await?;
            round.same_length(elements.len(), combined.len())?;
            elements.copy_from_slice(&combined);
            round.end().await
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
    pub fn reduce_scatter_parts<T: Pod + Send>(
        &self,
        elements: Parts<T>,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.call("reduce_scatter_parts");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::ReduceScatter, 0)?;
            let mine = round.alltoall(payloads(&elements)).await?;
            let Elements(combined) = round.fold(mine, &op)?;
            round.end().await?;
            Ok(combined)
        }
    }

    /// Replaces the elements of each rank by those of the ranks up to itself, combined at each
    /// place.
    ///
    /// # Errors
    /// As for [`reduce_slice`](Self::reduce_slice).
    #[doc(alias = "MPI_Scan")]
    #[track_caller]
    pub fn scan_into<T: Pod + Send>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("scan_into");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Scan, 0)?;
            if let Some(before) = round.received_before().await? {
                let Elements(upto) = round.combine(before, elements, &op)?;
                elements.copy_from_slice(&upto);
            }
            round.pass_on(|_| Ok(Elements(elements.to_vec())))?;
            round.end().await
        }
    }

    /// Replaces the elements of each rank by those of the ranks before it, combined at each place.
    /// Those of rank 0 stay.
    ///
    /// # Errors
    /// As for [`reduce_slice`](Self::reduce_slice).
    #[doc(alias = "MPI_Exscan")]
    #[track_caller]
    pub fn exscan_into<T: Pod + Send>(
        &self,
        elements: &mut [T],
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.call("exscan_into");
        async move {
            let mut round = CollectiveRound::begin(self, call, CollectiveKind::Exscan, 0)?;
            let before: Option<Elements<T>> = round.received_before().await?;
            round.pass_on(|round| match before.clone() {
                Some(before) => round.combine(before, elements, &op),
                None => Ok(Elements(elements.to_vec())),
            })?;
            if let Some(Elements(before)) = before {
                round.same_length(elements.len(), before.len())?;
                elements.copy_from_slice(&before);
            }
            round.end().await
        }
    }
}

impl CollectiveRound {
    /// Combines the elements of two ranks at each place.
    fn combine<T: Copy>(
        &self,
        Elements(mut a): Elements<T>,
        b: &[T],
        op: &impl Fn(T, T) -> T,
    ) -> Result<Elements<T>, Error> {
        self.same_length(a.len(), b.len())?;
        for (a, b) in a.iter_mut().zip(b) {
            *a = op(*a, *b);
        }
        Ok(Elements(a))
    }

    /// Combines the elements of all ranks at each place, in the order of the ranks.
    fn fold<T: Copy>(&self, all: Vec<Elements<T>>, op: &impl Fn(T, T) -> T) -> Result<Elements<T>, Error> {
        let mut all = all.into_iter();
        let first = all.next().expect("there are elements of each rank");
        all.try_fold(first, |a, Elements(b)| self.combine(a, &b, op))
    }

    fn same_length(&self, mine: usize, theirs: usize) -> Result<(), Error> {
        if mine == theirs {
            return Ok(());
        }
        let text = format!("there are {mine} elements on one rank, and {theirs} on another");
        Err(self.error(ErrorClass::Count, text))
    }
}

fn parts<T>(payloads: Vec<Elements<T>>) -> Parts<T> {
    payloads.into_iter().map(|Elements(elements)| elements).collect::<Vec<_>>().into()
}

fn payloads<T: Clone>(parts: &Parts<T>) -> Vec<Elements<T>> {
    parts.iter().map(|part| Elements(part.to_vec())).collect()
}
