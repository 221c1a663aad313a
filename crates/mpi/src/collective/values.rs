//! The operations on values from their first message to their last, for `simple.rs`, which waits
//! for them, and `started.rs`, which does not; and for `inter.rs`.

use super::CollectiveRound;
use crate::error::Error;
use crate::payload::{Message, Value};

impl CollectiveRound {
    pub(super) async fn barrier_of_values(mut self) -> Result<(), Error> {
        self.barrier(Value(())).await?;
        self.end().await
    }

    /// The root has `Some`.
    pub(crate) async fn bcast_value<T: Message + Clone>(
        mut self,
        root: usize,
        own: Option<T>,
    ) -> Result<T, Error> {
        let Value(value) = self.bcast(root, own.map(Value)).await?;
        self.end().await?;
        Ok(value)
    }

    pub(super) async fn gather_values<T: Message>(
        mut self,
        root: usize,
        own: T,
    ) -> Result<Option<Vec<T>>, Error> {
        let gathered = self.gather(root, Value(own)).await?;
        self.end().await?;
        Ok(gathered.map(values))
    }

    /// The root has `Some`.
    pub(super) async fn scatter_values<T: Message>(
        mut self,
        root: usize,
        all: Option<Vec<T>>,
    ) -> Result<T, Error> {
        let Value(value) = self.scatter(root, all.map(payloads)).await?;
        self.end().await?;
        Ok(value)
    }

    pub(crate) async fn allgather_values<T: Message + Clone>(mut self, own: T) -> Result<Vec<T>, Error> {
        let all = self.allgather(Value(own)).await?;
        self.end().await?;
        Ok(values(all))
    }

    pub(super) async fn alltoall_values<T: Message>(mut self, own: Vec<T>) -> Result<Vec<T>, Error> {
        let all = self.alltoall(payloads(own)).await?;
        self.end().await?;
        Ok(values(all))
    }

    pub(super) async fn reduce_values<T: Message>(
        self,
        root: usize,
        own: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> Result<Option<T>, Error> {
        let gathered = self.gather_values(root, own).await?;
        Ok(gathered.and_then(|all| all.into_iter().reduce(op)))
    }

    pub(super) async fn allreduce_values<T: Message + Clone>(
        mut self,
        own: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> Result<T, Error> {
        let gathered = self.gather(0, Value(own)).await?;
        let combined = gathered.and_then(|all| values(all).into_iter().reduce(op));
        self.bcast_value(0, combined).await
    }

    pub(super) async fn reduce_scatter_values<T: Message>(
        self,
        own: Vec<T>,
        op: impl Fn(T, T) -> T + Send,
    ) -> Result<T, Error> {
        let mine = self.alltoall_values(own).await?;
        Ok(mine.into_iter().reduce(op).expect("there is a value of each rank"))
    }

    pub(super) async fn scan_values<T: Message + Clone>(
        mut self,
        own: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> Result<T, Error> {
        let upto = match self.received_before().await? {
            Some(Value(before)) => op(before, own),
            None => own,
        };
        self.pass_on(|_| Ok(Value(upto.clone())))?;
        self.end().await?;
        Ok(upto)
    }

    pub(super) async fn exscan_values<T: Message + Clone>(
        mut self,
        own: T,
        op: impl Fn(T, T) -> T + Send,
    ) -> Result<Option<T>, Error> {
        let before = self.received_before().await?.map(|Value(before)| before);
        self.pass_on(|_| {
            Ok(Value(match before.clone() {
                Some(before) => op(before, own),
                None => own,
            }))
        })?;
        self.end().await?;
        Ok(before)
    }
}

fn values<T>(payloads: Vec<Value<T>>) -> Vec<T> {
    payloads.into_iter().map(|Value(value)| value).collect()
}

fn payloads<T>(values: Vec<T>) -> Vec<Value<T>> {
    values.into_iter().map(Value).collect()
}
