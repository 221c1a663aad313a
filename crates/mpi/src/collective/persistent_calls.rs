//! The calls that make a [`PersistentCollective`]: `bcast_init`, `allreduce_init` and so on.

use super::content::{CallContent, count_of, counts_of, elements_of};
use super::persistent::PersistentCollective;
use super::{CollectiveKind, CollectiveRound, Parts};
use crate::communicator::Communicator;
use crate::shared_payload::{BodyPool, SharedPayload};
use bytemuck::Pod;
use std::sync::Arc;

/// # Persistent collectives
/// Each of these makes a [`PersistentCollective`], and sends nothing. The elements are those of the
/// first start; later ones are put into their place. Where only the root gives elements, those of
/// the other ranks are not looked at. An error, such as that of a root which is not there, comes
/// with the start.
///
/// # Panics
/// Outside of a Selvedge thread.
impl Communicator {
    /// A [`barrier`](Self::barrier) that is started again and again.
    #[doc(alias = "MPI_Barrier_init")]
    #[track_caller]
    pub fn barrier_init(&self) -> PersistentCollective<(), ()> {
        let go = |round: CollectiveRound, _, (), ()| async { (round.barrier_of_values().await, ()) };
        let call = self.call("barrier_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Barrier, 0),
            |()| CallContent::default(),
            false,
            (),
            go,
        )
    }

    /// A [`bcast_into`](Self::bcast_into) that is started again and again. Each rank gets the
    /// root's elements, whatever their number.
    #[doc(alias = "MPI_Bcast_init")]
    #[track_caller]
    pub fn bcast_init<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: Vec<T>,
    ) -> PersistentCollective<Vec<T>, Vec<T>> {
        let go = move |round: CollectiveRound, own, room, ()| async move {
            let came = round.bcast_elements(root, own).await;
            (came.map(|came| copied(&came, room)), ())
        };
        let (call, form) = (self.call("bcast_init"), (CollectiveKind::Bcast, root));
        PersistentCollective::new(self, call, form, |_| elements_of::<T>(), self.rank() == root, elements, go)
    }

    /// A [`gather_slice`](Self::gather_slice) that is started again and again.
    #[doc(alias = "MPI_Gather_init")]
    #[doc(alias = "MPI_Gatherv_init")]
    #[track_caller]
    pub fn gather_init<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: Vec<T>,
    ) -> PersistentCollective<Vec<T>, Option<Parts<T>>> {
        let go = move |round: CollectiveRound, own, room: Option<_>, ()| async move {
            (round.gather_elements(root, given(own), room.unwrap_or_default()).await, ())
        };
        let call = self.call("gather_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Gather, root),
            |_| elements_of::<T>(),
            true,
            elements,
            go,
        )
    }

    /// A [`scatter_parts`](Self::scatter_parts) that is started again and again.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Parts};
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(2, |world| async move {
    ///     let elements = if world.rank() == 0 { vec![1, 2, 3] } else { vec![] };
    ///     let mut scatter = world.scatter_init(0, Parts::even(elements, 2));
    ///     assert_eq!(*scatter.start().await?, [vec![1, 2], vec![3]][world.rank()]);
    ///     if world.rank() == 0 {
    ///         scatter.own_mut()[1][0] = 4;
    ///     }
    ///     assert_eq!(*scatter.start().await?, [vec![1, 2], vec![4]][world.rank()]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Scatter_init")]
    #[doc(alias = "MPI_Scatterv_init")]
    #[track_caller]
    pub fn scatter_init<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: Parts<T>,
    ) -> PersistentCollective<Parts<T>, Vec<T>> {
        let go = move |round: CollectiveRound, own: Option<SharedPayload<_>>, room, ()| async move {
            (round.scatter_elements(root, own.map(|own| own.0), room).await, ())
        };
        let (call, form) = (self.call("scatter_init"), (CollectiveKind::Scatter, root));
        PersistentCollective::new(self, call, form, |_| elements_of::<T>(), self.rank() == root, elements, go)
    }

    /// An [`allgather_slice`](Self::allgather_slice) that is started again and again.
    #[doc(alias = "MPI_Allgather_init")]
    #[doc(alias = "MPI_Allgatherv_init")]
    #[track_caller]
    pub fn allgather_init<T: Pod + Send + Sync>(
        &self,
        elements: Vec<T>,
    ) -> PersistentCollective<Vec<T>, Parts<T>> {
        let go = |round: CollectiveRound, own, room, mut pool| async {
            let all = round.allgather_elements(given(own), &mut pool).await;
            (all.map(|all| copied(&all, room)), pool)
        };
        let call = self.call("allgather_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Allgather, 0),
            |_| elements_of::<T>(),
            true,
            elements,
            go,
        )
    }

    /// An [`alltoall_parts`](Self::alltoall_parts) that is started again and again.
    #[doc(alias = "MPI_Alltoall_init")]
    #[doc(alias = "MPI_Alltoallv_init")]
    #[track_caller]
    pub fn alltoall_init<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
    ) -> PersistentCollective<Parts<T>, Parts<T>> {
        let go = |round: CollectiveRound, own, room, ()| async {
            (round.alltoall_elements(given(own).0, room).await, ())
        };
        let call = self.call("alltoall_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Alltoall, 0),
            |_| elements_of::<T>(),
            true,
            elements,
            go,
        )
    }

    /// A [`reduce_slice`](Self::reduce_slice) that is started again and again.
    #[doc(alias = "MPI_Reduce_init")]
    #[track_caller]
    pub fn reduce_init<T: Pod + Send + Sync>(
        &self,
        root: usize,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> PersistentCollective<Vec<T>, Option<Vec<T>>> {
        let op = Arc::new(op);
        let go = move |round: CollectiveRound, own, room: Option<_>, ()| {
            let op = handle(&op);
            async move { (round.reduce_elements(root, given(own), op, room.unwrap_or_default()).await, ()) }
        };
        let call = self.call("reduce_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Reduce, root),
            |own| count_of::<T>(own.len()),
            true,
            elements,
            go,
        )
    }

    /// An [`allreduce_into`](Self::allreduce_into) that is started again and again.
    ///
    /// # Examples
    /// See [`PersistentCollective`].
    #[doc(alias = "MPI_Allreduce_init")]
    #[track_caller]
    pub fn allreduce_init<T: Pod + Send + Sync>(
        &self,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> PersistentCollective<Vec<T>, Vec<T>> {
        let op = Arc::new(op);
        let go = move |round: CollectiveRound, own, room, mut pool| {
            let op = handle(&op);
            async move {
                let combined = round.allreduce_elements(given(own), op, &mut pool).await;
                (combined.map(|combined| copied(&combined, room)), pool)
            }
        };
        let call = self.call("allreduce_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Allreduce, 0),
            |own| count_of::<T>(own.len()),
            true,
            elements,
            go,
        )
    }

    /// A [`reduce_scatter_parts`](Self::reduce_scatter_parts) that is started again and again.
    #[doc(alias = "MPI_Reduce_scatter_init")]
    #[doc(alias = "MPI_Reduce_scatter_block_init")]
    #[track_caller]
    pub fn reduce_scatter_init<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> PersistentCollective<Parts<T>, Vec<T>> {
        let op = Arc::new(op);
        let go = move |round: CollectiveRound, own, room, ()| {
            let op = handle(&op);
            async move { (round.reduce_scatter_elements(given(own).0, op, room).await, ()) }
        };
        let call = self.call("reduce_scatter_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::ReduceScatter, 0),
            |own| counts_of::<T>(own.counts()),
            true,
            elements,
            go,
        )
    }

    /// A [`scan_into`](Self::scan_into) that is started again and again.
    #[doc(alias = "MPI_Scan_init")]
    #[track_caller]
    pub fn scan_init<T: Pod + Send + Sync>(
        &self,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> PersistentCollective<Vec<T>, Vec<T>> {
        let op = Arc::new(op);
        let go = move |round: CollectiveRound, own, room, mut pool: BodyPool<_>| {
            let (op, own) = (handle(&op), given::<Vec<T>>(own));
            async move { (round.scan_elements(&own.0, op, &mut pool, room).await, pool) }
        };
        let call = self.call("scan_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Scan, 0),
            |own| count_of::<T>(own.len()),
            true,
            elements,
            go,
        )
    }

    /// An [`exscan_into`](Self::exscan_into) that is started again and again. Rank 0 gets `None`.
    #[doc(alias = "MPI_Exscan_init")]
    #[track_caller]
    pub fn exscan_init<T: Pod + Send + Sync>(
        &self,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> PersistentCollective<Vec<T>, Option<Vec<T>>> {
        let op = Arc::new(op);
        let go = move |round: CollectiveRound, own, room: Option<_>, mut pool: BodyPool<_>| {
            let (op, own) = (handle(&op), given::<Vec<T>>(own));
            async move {
                let room = room.unwrap_or_default();
                (round.exscan_elements(&own.0, op, &mut pool, room).await, pool)
            }
        };
        let call = self.call("exscan_init");
        PersistentCollective::new(
            self,
            call,
            (CollectiveKind::Exscan, 0),
            |own| count_of::<T>(own.len()),
            true,
            elements,
            go,
        )
    }
}

/// What a rank gives, of a collective in which each gives something.
fn given<S>(own: Option<SharedPayload<S>>) -> SharedPayload<S> {
    own.expect("each rank gives its elements")
}

/// What has come, in the room for it.
fn copied<R: Clone>(came: &SharedPayload<R>, mut room: R) -> R {
    room.clone_from(&came.0);
    room
}

/// The operation for one round.
fn handle<T, O: Fn(T, T) -> T + Send + Sync>(op: &Arc<O>) -> impl Fn(T, T) -> T + Send + use<T, O> {
    let op = op.clone();
    move |a, b| op(a, b)
}
