//! How the messages of the collectives go between the ranks, for payloads of both interfaces.
//!
//! `simple.rs` and `fast.rs` call it. With `p` ranks, `barrier` and `bcast` take about log2(p)
//! messages one after another. In `gather` and `scatter` the root has p - 1 messages, each with the
//! data of one rank, because between ranks that move values a tree would only add stations.

use super::CollectiveRound;
use crate::error::{Error, ErrorClass};
use crate::payload::{MessagePayload, SeveralPayloads};

impl CollectiveRound {
    /// Each rank sends to those at distances 1, 2, 4 and so on behind it, and waits for those
    /// before it. After the last distance each has heard, directly or not, of every other.
    pub(super) async fn barrier<P: MessagePayload + Clone>(&mut self, nothing: P) -> Result<(), Error> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            self.send((rank + distance) % size, nothing.clone())?;
            let _: P = self.recv((rank + size - distance) % size).await?;
            distance *= 2;
        }
        Ok(())
    }

    /// The payload of the root goes down a binomial tree. The root has `Some`, the others have what
    /// comes.
    pub(crate) async fn bcast<P: MessagePayload + Clone>(
        &mut self,
        root: usize,
        own: Option<P>,
    ) -> Result<P, Error> {
        let size = self.size();
        // The tree is that of root 0, turned: a rank's number from the root on.
        let number = (self.rank() + size - root) % size;
        let at = |number: usize| (number + root) % size;
        // Below the lowest bit of a number lie the bits of its children.
        let mut bit = if number == 0 { size.next_power_of_two() } else { 1 << number.trailing_zeros() };
        let payload = match own {
            Some(payload) => payload,
            None => self.recv(at(number - bit)).await?,
        };
        while bit > 1 {
            bit /= 2;
            if number + bit < size {
                self.send(at(number + bit), payload.clone())?;
            }
        }
        Ok(payload)
    }

    /// The root gets the payloads of all ranks, in their order.
    pub(super) async fn gather<P: MessagePayload>(
        &mut self,
        root: usize,
        own: P,
    ) -> Result<Option<Vec<P>>, Error> {
        let mut all = Vec::with_capacity(if self.rank() == root { self.size() } else { 0 });
        let is_root = self
            .gather_each(root, own, |payload| {
                all.push(payload);
                Ok(())
            })
            .await?;
        Ok(is_root.then_some(all))
    }

    /// At the root, the function gets the payloads of all ranks, in their order, as they come.
    /// Tells whether this rank is the root.
    ///
    /// # Errors
    /// The first error of the function, when all payloads have come.
    pub(super) async fn gather_each<P: MessagePayload>(
        &mut self,
        root: usize,
        own: P,
        mut each: impl FnMut(P) -> Result<(), Error> + Send,
    ) -> Result<bool, Error> {
        if self.rank() != root {
            self.send(root, own)?;
            return Ok(false);
        }
        let mut own = Some(own);
        let mut taken = Ok(());
        for rank in 0..self.size() {
            let payload = match own.take_if(|_| rank == root) {
                Some(own) => own,
                None => self.recv(rank).await?,
            };
            taken = taken.and_then(|()| each(payload));
        }
        taken.map(|()| true)
    }

    /// Each rank gets its payload from the root, which has all.
    pub(super) async fn scatter<P: MessagePayload>(
        &mut self,
        root: usize,
        all: Option<Vec<P>>,
    ) -> Result<P, Error> {
        let Some(all) = all else { return self.recv(root).await };
        self.check_count(all.len())?;
        let mut own = None;
        for (rank, payload) in all.into_iter().enumerate() {
            match rank == root {
                true => own = Some(payload),
                false => self.send(rank, payload)?,
            }
        }
        Ok(own.expect("the root is one of the ranks"))
    }

    /// Each rank gets the payloads of all: they are gathered at rank 0 and sent to the others.
    pub(crate) async fn allgather<P: MessagePayload + Clone>(&mut self, own: P) -> Result<Vec<P>, Error> {
        let gathered = self.gather(0, own).await?.map(SeveralPayloads);
        let SeveralPayloads(all) = self.bcast(0, gathered).await?;
        Ok(all)
    }

    /// Each rank has a payload for each, and gets one of each.
    pub(super) async fn alltoall<P: MessagePayload>(&mut self, own: Vec<P>) -> Result<Vec<P>, Error> {
        self.check_count(own.len())?;
        let (mine, size) = (self.rank(), self.size());
        let mut kept = None;
        for (rank, payload) in own.into_iter().enumerate() {
            match rank == mine {
                true => kept = Some(payload),
                false => self.send(rank, payload)?,
            }
        }
        let mut all = Vec::with_capacity(size);
        for rank in 0..size {
            match kept.take_if(|_| rank == mine) {
                Some(payload) => all.push(payload),
                None => all.push(self.recv(rank).await?),
            }
        }
        Ok(all)
    }

    /// The payloads of the ranks before this one, combined in their order, as the rank before this
    /// one passes them on. `None` on rank 0.
    pub(super) async fn received_before<P: MessagePayload>(&self) -> Result<Option<P>, Error> {
        match self.rank().checked_sub(1) {
            Some(previous) => self.recv(previous).await.map(Some),
            None => Ok(None),
        }
    }

    /// Passes the payloads up to this rank on to the next one.
    pub(super) fn pass_on<P: MessagePayload>(
        &mut self,
        upto: impl FnOnce(&Self) -> Result<P, Error>,
    ) -> Result<(), Error> {
        let next = self.rank() + 1;
        if next < self.size() {
            let upto = upto(self)?;
            self.send(next, upto)?;
        }
        Ok(())
    }

    pub(super) fn check_count(&self, count: usize) -> Result<(), Error> {
        if count == self.size() {
            return Ok(());
        }
        Err(self.error(ErrorClass::Count, format!("there are {count} parts for {} ranks", self.size())))
    }
}
