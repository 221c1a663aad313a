//! The collectives of an [`InterCommunicator`]: data go from one group to the other, or both ways.
//!
//! Within a group they go as in a communicator, to rank 0 or from there, and one message goes
//! across for each way. So a collective takes few messages between groups that are far apart.

use super::content::{CallContent, value_of};
use super::{CollectiveKind, CollectiveRound};
use crate::error::{CallSite, Error, ErrorClass};
use crate::intercommunicator::InterCommunicator;
use crate::payload::{Message, Value};

/// The root of a collective between two groups. The ranks of its own group say that it is
/// [`Here`](InterRoot::Here), and those of the other group [`There`](InterRoot::There).
///
/// # Paper
/// [HMPI "Many-to-one communications"]: the root names itself. MPI has `MPI_ROOT` and
/// `MPI_PROC_NULL` for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "theRoot")]
#[doc(alias = "MPI_ROOT")]
pub enum InterRoot {
    /// This rank of this rank's group.
    Here(usize),
    /// This rank of the other group.
    There(usize),
}

/// # Collectives between the groups
/// Every rank of both groups makes the same calls in the same order. Where there is a root, the
/// data go between it and the ranks of the other group. The ranks beside the root have no part, and
/// their closures are not called.
impl InterCommunicator {
    /// Waits until every rank of both groups has called it.
    ///
    /// # Errors
    /// If a rank has ended, or calls another collective.
    #[track_caller]
    pub fn barrier(&self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.local.call("barrier");
        self.all_come(call, CollectiveKind::Barrier)
    }

    /// Waits until every rank of both groups has come to the same call.
    pub(crate) async fn all_come(&self, call: CallSite, kind: CollectiveKind) -> Result<(), Error> {
        self.compare_calls(call, kind, None, CallContent::default()).await?;
        let come = self.here(call, kind)?.gather_values(0, ()).await?;
        self.between_leaders(call, kind, come.map(|_| ())).await
    }

    /// Gives every rank of the other group the root's value. The closure is called at the root
    /// alone; the ranks of its group get `None`.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier), and if there is no such root.
    #[track_caller]
    pub fn bcast<T: Message + Clone>(
        &self,
        root: InterRoot,
        value: impl FnOnce() -> T + Send,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send {
        let call = self.local.call("bcast");
        async move {
            self.compare_calls(call, CollectiveKind::Bcast, Some(root), value_of::<T>()).await?;
            match self.root_gives(call, CollectiveKind::Bcast, root, value).await? {
                None => Ok(None),
                Some(came) => self.here(call, CollectiveKind::Bcast)?.bcast_value(0, came).await.map(Some),
            }
        }
    }

    /// Gives the root the values of all ranks of the other group, in their order. The others get
    /// `None`.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast).
    ///
    /// # Examples
    /// See [`InterCommunicator`].
    #[track_caller]
    pub fn gather<T: Message>(
        &self,
        root: InterRoot,
        value: impl FnOnce() -> T + Send,
    ) -> impl Future<Output = Result<Option<Vec<T>>, Error>> + Send {
        let call = self.local.call("gather");
        async move {
            self.compare_calls(call, CollectiveKind::Gather, Some(root), value_of::<T>()).await?;
            let mut gathered = None;
            let across = self.across(call, CollectiveKind::Gather, root)?;
            if let InterRoot::There(_) = root {
                gathered = self.here(call, CollectiveKind::Gather)?.gather_values(0, value()).await?;
            }
            self.root_takes(across, root, gathered).await
        }
    }

    /// Gives each rank of the other group its value. The root has all, and the closure is called at
    /// the root alone; the ranks of its group get `None`.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast), and if there is not one value for each rank of the other
    /// group.
    #[track_caller]
    pub fn scatter<T: Message>(
        &self,
        root: InterRoot,
        values: impl FnOnce() -> Vec<T> + Send,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send {
        let call = self.local.call("scatter");
        async move {
            self.compare_calls(call, CollectiveKind::Scatter, Some(root), value_of::<T>()).await?;
            match self.root_gives(call, CollectiveKind::Scatter, root, values).await? {
                None => Ok(None),
                Some(all) => self.here(call, CollectiveKind::Scatter)?.scatter_values(0, all).await.map(Some),
            }
        }
    }

    /// Gives every rank the values of all ranks of the other group, in their order.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[track_caller]
    pub fn allgather<T: Message + Clone>(
        &self,
        value: T,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.local.call("allgather");
        async move {
            self.compare_calls(call, CollectiveKind::Allgather, None, value_of::<T>()).await?;
            let all = self.here(call, CollectiveKind::Allgather)?.gather_values(0, value).await?;
            self.between_leaders(call, CollectiveKind::Allgather, all).await
        }
    }

    /// Gives each rank the value that each rank of the other group has for it: the value at place
    /// `i` goes to rank `i` of the other group.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier), and if there is not one value for each rank of the other
    /// group.
    ///
    /// # Complexity
    /// A message for each pair of ranks.
    #[track_caller]
    pub fn alltoall<T: Message>(&self, values: Vec<T>) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.local.call("alltoall");
        async move {
            self.compare_calls(call, CollectiveKind::Alltoall, None, value_of::<T>()).await?;
            let mut round = self.across(call, CollectiveKind::Alltoall, InterRoot::There(0))?;
            if values.len() != self.remote_size() {
                let text = format!("there are {} values for {} ranks", values.len(), self.remote_size());
                return Err(call.error(ErrorClass::Count, text));
            }
            for (to, value) in values.into_iter().enumerate() {
                round.send(to, Value(value))?;
            }
            let mut came = Vec::with_capacity(self.remote_size());
            for from in 0..self.remote_size() {
                let Value(value) = round.recv(from).await?;
                came.push(value);
            }
            round.end().await?;
            Ok(came)
        }
    }

    /// Gives the root the values of all ranks of the other group, combined in their order. The
    /// others get `None`.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast).
    #[track_caller]
    pub fn reduce<T: Message>(
        &self,
        root: InterRoot,
        value: impl FnOnce() -> T + Send,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send {
        let call = self.local.call("reduce");
        async move {
            self.compare_calls(call, CollectiveKind::Reduce, Some(root), value_of::<T>()).await?;
            let mut combined = None;
            let across = self.across(call, CollectiveKind::Reduce, root)?;
            if let InterRoot::There(_) = root {
                combined = self.here(call, CollectiveKind::Reduce)?.reduce_values(0, value(), op).await?;
            }
            self.root_takes(across, root, combined).await
        }
    }

    /// Gives every rank the values of all ranks of the other group, combined in their order.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    #[track_caller]
    pub fn allreduce<T: Message + Clone>(
        &self,
        value: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.local.call("allreduce");
        async move {
            self.compare_calls(call, CollectiveKind::Allreduce, None, value_of::<T>()).await?;
            let combined = self.here(call, CollectiveKind::Allreduce)?.reduce_values(0, value, op).await?;
            self.between_leaders(call, CollectiveKind::Allreduce, combined).await
        }
    }

    /// Where the world is [checked](crate::Ranks::checked): compares the call of this rank with
    /// those of all ranks of both groups. Both groups are told before the first of them is heard,
    /// so a call that differs from any other is an error on every rank of both.
    ///
    /// # Errors
    /// If a call differs from this one, or there is no such root.
    async fn compare_calls(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        root: Option<InterRoot>,
        content: CallContent,
    ) -> Result<(), Error> {
        if !self.local.checks_collectives() {
            return Ok(());
        }
        let (root, content) = match root {
            None => (0, content),
            Some(root) => {
                let is_in_first = matches!(root, InterRoot::Here(_)) == self.is_first;
                let group = if is_in_first { ", root in group 1" } else { ", root in group 2" };
                (self.checked_root(call, root)?, content.with(group))
            }
        };
        let begin = |group| CollectiveRound::begin_comparison(group, call, kind, root, content.clone());
        let (here, across) = (begin(&self.local)?, begin(&self.across)?);
        // Both are awaited, so that the messages of both are taken.
        let (here, across) = (here.end().await, across.end().await);
        here.and(across)
    }

    /// Begins the part of a collective within this group.
    fn here(&self, call: CallSite, kind: CollectiveKind) -> Result<CollectiveRound, Error> {
        CollectiveRound::begin(&self.local, call, kind, 0)
    }

    /// Begins the part of a collective between the groups.
    ///
    /// # Errors
    /// If there is no such root.
    fn across(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        root: InterRoot,
    ) -> Result<CollectiveRound, Error> {
        let root = self.checked_root(call, root)?;
        CollectiveRound::begin_across(&self.across, call, kind, root, CallContent::default)
    }

    /// The number of the root in its group.
    ///
    /// # Errors
    /// If there is no such root.
    fn checked_root(&self, call: CallSite, root: InterRoot) -> Result<usize, Error> {
        let (group, root) = match root {
            InterRoot::Here(root) => (&self.local, root),
            InterRoot::There(root) => (&self.across, root),
        };
        group.check_rank(root, call, ErrorClass::Root).map(|()| root)
    }

    /// Sends the root's value to rank 0 of the other group. There each rank gets `Some`, and rank 0
    /// the value.
    async fn root_gives<T: Message>(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        root: InterRoot,
        value: impl FnOnce() -> T + Send,
    ) -> Result<Option<Option<T>>, Error> {
        let mut round = self.across(call, kind, root)?;
        let came = match root {
            InterRoot::Here(root) => {
                if root == self.rank() {
                    round.send(0, Value(value()))?;
                }
                None
            }
            InterRoot::There(root) if self.rank() == 0 => {
                let Value(value) = round.recv(root).await?;
                Some(Some(value))
            }
            InterRoot::There(_) => Some(None),
        };
        round.end().await?;
        Ok(came)
    }

    /// Sends what rank 0 has to the root in the other group, which gets it.
    async fn root_takes<T: Message>(
        &self,
        mut round: CollectiveRound,
        root: InterRoot,
        own: Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut came = None;
        match (root, own) {
            (InterRoot::There(root), Some(own)) => round.send(root, Value(own))?,
            (InterRoot::Here(root), _) if root == self.rank() => {
                let Value(value) = round.recv(0).await?;
                came = Some(value);
            }
            _ => {}
        }
        round.end().await?;
        Ok(came)
    }

    /// Gives every rank what rank 0 of the other group has. Rank 0 has `Some`.
    pub(crate) async fn between_leaders<T: Message + Clone>(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        own: Option<T>,
    ) -> Result<T, Error> {
        let mut round = self.across(call, kind, InterRoot::There(0))?;
        let mut came = None;
        if let Some(own) = own {
            round.send(0, Value(own))?;
            let Value(value) = round.recv(0).await?;
            came = Some(value);
        }
        round.end().await?;
        self.here(call, kind)?.bcast_value(0, came).await
    }
}
