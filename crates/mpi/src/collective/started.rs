//! The collectives on values that are started and not waited for: `ibarrier`, `ibcast` and so on.
//!
//! Each takes its number among the operations of the communicator in the call, so the calls of a
//! rank have their order, and then goes on in a thread of its own. The other ranks may start the
//! same operation, or call it and wait.

use super::content::{CallContent, value_of};
use super::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error};
use crate::payload::Message;
use crate::request::Request;
use selvedge_core::spawn;

/// # Collectives that are not waited for
/// Each of these starts a collective and returns at once; the [`Request`] has the result. Any
/// number may be under way at once, beside one that is waited for: every rank starts and calls the
/// collectives of the communicator in the same order, and awaits them in any order. A rank may
/// start what another one calls and waits for.
///
/// The collective goes on in a thread of its own: while the thread that has started it waits, or on
/// another worker. It goes on also if its request is dropped, because other ranks need it. The
/// rank must not return before.
///
/// The errors are those of the collective without the `i`; the request has them. A panic of the
/// operation, such as that of a reduction, is thrown where the request is awaited. Each call costs
/// a thread.
///
/// # Panics
/// Outside of a Selvedge thread.
impl Communicator {
    /// Starts a [`barrier`](Self::barrier). The request ends when every rank has started or called
    /// it.
    #[doc(alias = "MPI_Ibarrier")]
    #[track_caller]
    pub fn ibarrier(&self) -> Request<()> {
        self.start(
            self.call("ibarrier"),
            CollectiveKind::Barrier,
            0,
            CallContent::default,
            CollectiveRound::barrier_of_values,
        )
    }

    /// Starts a [`bcast`](Self::bcast). The closure is called at the root alone, before the call
    /// returns.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(4, |world| async move {
    ///     // Two collectives are under way at once.
    ///     let steps = world.ibcast(0, || 1_000);
    ///     let sum = world.iallreduce(world.rank(), mpi::op::sum);
    ///     // The rank may compute here.
    ///     assert_eq!(sum.await?, 6);
    ///     assert_eq!(steps.await?, 1_000);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Ibcast")]
    #[track_caller]
    pub fn ibcast<T: Message + Clone>(&self, root: usize, value: impl FnOnce() -> T) -> Request<T> {
        let own = (self.rank() == root).then(value);
        let go = move |round: CollectiveRound| round.bcast_value(root, own);
        self.start(self.call("ibcast"), CollectiveKind::Bcast, root, value_of::<T>, go)
    }

    /// Starts a [`gather`](Self::gather).
    #[doc(alias = "MPI_Igather")]
    #[doc(alias = "MPI_Igatherv")]
    #[track_caller]
    pub fn igather<T: Message>(&self, root: usize, value: T) -> Request<Option<Vec<T>>> {
        let go = move |round: CollectiveRound| round.gather_values(root, value);
        self.start(self.call("igather"), CollectiveKind::Gather, root, value_of::<T>, go)
    }

    /// Starts a [`scatter`](Self::scatter). The closure is called at the root alone, before the
    /// call returns.
    #[doc(alias = "MPI_Iscatter")]
    #[doc(alias = "MPI_Iscatterv")]
    #[track_caller]
    pub fn iscatter<T: Message>(&self, root: usize, values: impl FnOnce() -> Vec<T>) -> Request<T> {
        let all = (self.rank() == root).then(values);
        let go = move |round: CollectiveRound| round.scatter_values(root, all);
        self.start(self.call("iscatter"), CollectiveKind::Scatter, root, value_of::<T>, go)
    }

    /// Starts an [`allgather`](Self::allgather).
    #[doc(alias = "MPI_Iallgather")]
    #[doc(alias = "MPI_Iallgatherv")]
    #[track_caller]
    pub fn iallgather<T: Message + Clone>(&self, value: T) -> Request<Vec<T>> {
        let go = move |round: CollectiveRound| round.allgather_values(value);
        self.start(self.call("iallgather"), CollectiveKind::Allgather, 0, value_of::<T>, go)
    }

    /// Starts an [`alltoall`](Self::alltoall).
    #[doc(alias = "MPI_Ialltoall")]
    #[doc(alias = "MPI_Ialltoallv")]
    #[track_caller]
    pub fn ialltoall<T: Message>(&self, values: Vec<T>) -> Request<Vec<T>> {
        let go = move |round: CollectiveRound| round.alltoall_values(values);
        self.start(self.call("ialltoall"), CollectiveKind::Alltoall, 0, value_of::<T>, go)
    }

    /// Starts a [`reduce`](Self::reduce).
    #[doc(alias = "MPI_Ireduce")]
    #[track_caller]
    pub fn ireduce<T: Message>(
        &self,
        root: usize,
        value: T,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Option<T>> {
        let go = move |round: CollectiveRound| round.reduce_values(root, value, op);
        self.start(self.call("ireduce"), CollectiveKind::Reduce, root, value_of::<T>, go)
    }

    /// Starts an [`allreduce`](Self::allreduce).
    #[doc(alias = "MPI_Iallreduce")]
    #[track_caller]
    pub fn iallreduce<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<T> {
        let go = move |round: CollectiveRound| round.allreduce_values(value, op);
        self.start(self.call("iallreduce"), CollectiveKind::Allreduce, 0, value_of::<T>, go)
    }

    /// Starts a [`reduce_scatter`](Self::reduce_scatter).
    #[doc(alias = "MPI_Ireduce_scatter")]
    #[doc(alias = "MPI_Ireduce_scatter_block")]
    #[track_caller]
    pub fn ireduce_scatter<T: Message>(
        &self,
        values: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<T> {
        let go = move |round: CollectiveRound| round.reduce_scatter_values(values, op);
        self.start(self.call("ireduce_scatter"), CollectiveKind::ReduceScatter, 0, value_of::<T>, go)
    }

    /// Starts a [`scan`](Self::scan).
    #[doc(alias = "MPI_Iscan")]
    #[track_caller]
    pub fn iscan<T: Message + Clone>(&self, value: T, op: impl Fn(T, T) -> T + Send + 'static) -> Request<T> {
        let go = move |round: CollectiveRound| round.scan_values(value, op);
        self.start(self.call("iscan"), CollectiveKind::Scan, 0, value_of::<T>, go)
    }

    /// Starts an [`exscan`](Self::exscan).
    #[doc(alias = "MPI_Iexscan")]
    #[track_caller]
    pub fn iexscan<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Request<Option<T>> {
        let go = move |round: CollectiveRound| round.exscan_values(value, op);
        self.start(self.call("iexscan"), CollectiveKind::Exscan, 0, value_of::<T>, go)
    }

    /// Takes the operation's number, and lets it go on in a thread.
    pub(crate) fn start<T: Send + 'static, R>(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        root: usize,
        content: impl FnOnce() -> CallContent,
        go: impl FnOnce(CollectiveRound) -> R,
    ) -> Request<T>
    where
        R: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let begun = CollectiveRound::begin_with(self, call, kind, root, content);
        Request::of_collective(self, call, begun.map(|round| spawn(go(round))))
    }
}
