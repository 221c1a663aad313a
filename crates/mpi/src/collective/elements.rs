//! The operations on elements from their first message to their last, for `fast.rs`, which waits
//! for them, `started_elements.rs`, which does not, and `persistent.rs`, which repeats them.
//!
//! `room` is memory for the result, with any content. A pool has the memory of messages. Both are
//! those of the time before where an operation is repeated, and else empty.

use super::CollectiveRound;
use super::parts::Parts;
use crate::error::{CallSite, Error, ErrorClass};
use crate::shared_payload::{BodyPool, PartThatCame, PartToRank, SharedPayload, alone};
use bytemuck::Pod;
use std::sync::Arc;

/// A type of elements that a collective may have.
pub(super) trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

impl CollectiveRound {
    /// The root has `Some`.
    pub(super) async fn bcast_elements<T: Element>(
        mut self,
        root: usize,
        own: Option<SharedPayload<Vec<T>>>,
    ) -> Result<SharedPayload<Vec<T>>, Error> {
        let came = self.bcast(root, own).await?;
        self.end().await?;
        Ok(came)
    }

    pub(super) async fn gather_elements<T: Element>(
        mut self,
        root: usize,
        own: SharedPayload<Vec<T>>,
        mut room: Parts<T>,
    ) -> Result<Option<Parts<T>>, Error> {
        room.clear();
        let is_root = self.gather_each(root, own, |part| room.accept(&part.0)).await?;
        self.end().await?;
        Ok(is_root.then_some(room))
    }

    /// The root has `Some`.
    pub(super) async fn scatter_elements<T: Element>(
        mut self,
        root: usize,
        all: Option<Arc<Parts<T>>>,
        mut room: Vec<T>,
    ) -> Result<Vec<T>, Error> {
        room.clear();
        match all {
            None => {
                let part: PartThatCame<T> = self.recv(root).await?;
                room.extend_from_slice(part.of(self.rank()));
            }
            Some(all) => {
                self.send_parts(&all)?;
                room.extend_from_slice(&all[root]);
            }
        }
        self.end().await?;
        Ok(room)
    }

    pub(super) async fn allgather_elements<T: Element>(
        mut self,
        own: SharedPayload<Vec<T>>,
        pool: &mut BodyPool<Parts<T>>,
    ) -> Result<SharedPayload<Parts<T>>, Error> {
        let mut all = pool.take();
        let parts = alone(&mut all);
        parts.clear();
        let is_first = self.gather_each(0, own, |part| parts.accept(&part.0)).await?;
        let all = pool.share(all);
        let all = self.bcast(0, is_first.then_some(all)).await?;
        self.end().await?;
        Ok(all)
    }

    /// As [`allgather_elements`](Self::allgather_elements), without a pool.
    pub(super) async fn allgather_once<T: Element>(self, own: Vec<T>) -> Result<Parts<T>, Error> {
        let mut pool = BodyPool::default();
        let all = self.allgather_elements(SharedPayload::new(own), &mut pool).await?;
        // The pool's handle goes first, so that the last rank has the parts without a copy.
        drop(pool);
        Ok(all.into_body())
    }

    pub(super) async fn alltoall_elements<T: Element>(
        mut self,
        own: Arc<Parts<T>>,
        mut room: Parts<T>,
    ) -> Result<Parts<T>, Error> {
        room.clear();
        self.exchange_parts(own, |part| room.accept(part)).await?;
        self.end().await?;
        Ok(room)
    }

    pub(super) async fn reduce_elements<T: Element>(
        mut self,
        root: usize,
        own: SharedPayload<Vec<T>>,
        op: impl Fn(T, T) -> T + Send,
        mut room: Vec<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        let mut fold = ElementFold::new(self.call, &mut room, op);
        let is_root = self.gather_each(root, own, |part| fold.add(&part.0)).await?;
        self.end().await?;
        Ok(is_root.then_some(room))
    }

    pub(super) async fn allreduce_elements<T: Element>(
        mut self,
        own: SharedPayload<Vec<T>>,
        op: impl Fn(T, T) -> T + Send,
        pool: &mut BodyPool<Vec<T>>,
    ) -> Result<SharedPayload<Vec<T>>, Error> {
        let mut combined = pool.take();
        let mut fold = ElementFold::new(self.call, alone(&mut combined), op);
        let is_first = self.gather_each(0, own, |part| fold.add(&part.0)).await?;
        let combined = pool.share(combined);
        self.bcast_elements(0, is_first.then_some(combined)).await
    }

    pub(super) async fn reduce_scatter_elements<T: Element>(
        mut self,
        own: Arc<Parts<T>>,
        op: impl Fn(T, T) -> T + Send,
        mut room: Vec<T>,
    ) -> Result<Vec<T>, Error> {
        let mut fold = ElementFold::new(self.call, &mut room, op);
        self.exchange_parts(own, |part| fold.add(part)).await?;
        self.end().await?;
        Ok(room)
    }

    pub(super) async fn scan_elements<T: Element>(
        mut self,
        own: &[T],
        op: impl Fn(T, T) -> T + Send,
        pool: &mut BodyPool<Vec<T>>,
        mut room: Vec<T>,
    ) -> Result<Vec<T>, Error> {
        let before: Option<SharedPayload<Vec<T>>> = self.received_before().await?;
        let mut fold = ElementFold::new(self.call, &mut room, op);
        if let Some(before) = before {
            fold.add(&before.0)?;
        }
        fold.add(own)?;
        self.pass_on(|_| Ok(pool.copied(&room)))?;
        self.end().await?;
        Ok(room)
    }

    /// `None` on rank 0.
    pub(super) async fn exscan_elements<T: Element>(
        mut self,
        own: &[T],
        op: impl Fn(T, T) -> T + Send,
        pool: &mut BodyPool<Vec<T>>,
        mut room: Vec<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        let before: Option<SharedPayload<Vec<T>>> = self.received_before().await?;
        if let Some(before) = &before {
            self.call.same_length(own.len(), before.0.len())?;
        }
        self.pass_on(|round| {
            let mut upto = pool.take();
            let mut fold = ElementFold::new(round.call, alone(&mut upto), op);
            if let Some(before) = &before {
                fold.add(&before.0)?;
            }
            fold.add(own)?;
            Ok(pool.share(upto))
        })?;
        self.end().await?;
        Ok(before.map(|before| {
            room.clone_from(&before.0);
            room
        }))
    }

    /// Sends each other rank its part. Between ranks of one process the parts are sent together.
    fn send_parts<T: Element>(&mut self, all: &Arc<Parts<T>>) -> Result<(), Error> {
        self.check_count(all.len())?;
        let mine = self.rank();
        for to in (0..self.size()).filter(|&to| to != mine) {
            self.send(to, PartToRank { all: all.clone(), to })?;
        }
        Ok(())
    }

    /// Sends each rank its part, and gives a function the parts for this rank, in the order of the
    /// ranks.
    async fn exchange_parts<T: Element>(
        &mut self,
        own: Arc<Parts<T>>,
        mut each: impl FnMut(&[T]) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        self.send_parts(&own)?;
        let mine = self.rank();
        let mut taken = Ok(());
        for from in 0..self.size() {
            if from == mine {
                taken = taken.and_then(|()| each(&own[mine]));
                continue;
            }
            let part: PartThatCame<T> = self.recv(from).await?;
            taken = taken.and_then(|()| each(part.of(mine)));
        }
        taken
    }
}

impl<T: Clone> Parts<T> {
    /// [`push`](Parts::push), as a step of a collective.
    fn accept(&mut self, part: &[T]) -> Result<(), Error> {
        self.push(part);
        Ok(())
    }
}

/// The elements of several ranks, combined at each place from the left.
struct ElementFold<'a, T, O> {
    call: CallSite,
    combined: &'a mut Vec<T>,
    has_begun: bool,
    op: O,
}

impl<'a, T: Copy, O: Fn(T, T) -> T> ElementFold<'a, T, O> {
    fn new(call: CallSite, combined: &'a mut Vec<T>, op: O) -> ElementFold<'a, T, O> {
        combined.clear();
        ElementFold { call, combined, has_begun: false, op }
    }

    /// Adds the elements of the next rank.
    fn add(&mut self, elements: &[T]) -> Result<(), Error> {
        if !self.has_begun {
            self.has_begun = true;
            self.combined.extend_from_slice(elements);
            return Ok(());
        }
        self.call.same_length(self.combined.len(), elements.len())?;
        for (a, b) in self.combined.iter_mut().zip(elements) {
            *a = (self.op)(*a, *b);
        }
        Ok(())
    }
}

impl CallSite {
    /// # Errors
    /// If two ranks have different numbers of elements.
    pub(super) fn same_length(self, mine: usize, theirs: usize) -> Result<(), Error> {
        if mine == theirs {
            return Ok(());
        }
        let text = format!("there are {mine} elements on one rank, and {theirs} on another");
        Err(self.error(ErrorClass::Count, text))
    }
}
