//! Collectives of each rank with its neighbours, for `cartesian.rs` and `neighbourhood.rs`:
//! [`Neighbours`] says which ranks these are, and in which order their messages come.

use super::{CollectiveKind, CollectiveRound, Parts, value_of};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::{Message, Value};
use crate::shared_payload::SharedPayload;
use crate::tag::PROC_NULL;
use bytemuck::Pod;
use std::sync::Arc;

/// The neighbours of a rank. Each may be the null rank, and a rank may be there several times.
#[derive(Clone)]
pub(crate) struct Neighbours {
    /// The ranks from which something comes.
    pub(crate) sources: Arc<[usize]>,
    /// The ranks to which something goes.
    pub(crate) destinations: Arc<[usize]>,
    /// The places of the sources in the order in which the rank receives: of two places with the
    /// same rank, the first one gets what that rank sends first.
    order: Arc<[usize]>,
}

impl Neighbours {
    /// Those in a graph: both sides of several edges between two ranks have them in the same order.
    pub(crate) fn of_graph(sources: &[usize], destinations: &[usize]) -> Neighbours {
        let order = (0..sources.len()).collect();
        Neighbours { sources: sources.into(), destinations: destinations.into(), order }
    }

    /// Those in a grid, in pairs: for each dimension the one before and the one after.
    pub(crate) fn of_grid(pairs: Vec<usize>) -> Neighbours {
        // In a circle of two ranks, or one, both neighbours are one rank. The first value that it
        // has sent is that for the rank before it, to which it is the one after.
        let order = (0..pairs.len()).map(|place| place ^ 1).collect();
        let sources: Arc<[usize]> = pairs.into();
        Neighbours { destinations: sources.clone(), sources, order }
    }

    /// The places of the sources that are not null, in the order in which the rank receives.
    fn awaited(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied().filter(|&place| self.sources[place] != PROC_NULL)
    }
}

impl Communicator {
    /// A collective on values with these neighbours, which the program calls at `call`: each rank
    /// has a value for each of its destinations, and gets one of each of its sources.
    pub(crate) async fn exchange_with<T: Message>(
        &self,
        call: CallSite,
        kind: CollectiveKind,
        neighbours: Neighbours,
        own: Vec<T>,
    ) -> Result<Vec<Option<T>>, Error> {
        let round = CollectiveRound::begin_with(self, call, kind, 0, value_of::<T>)?;
        round.alltoall_neighbours(neighbours, own).await
    }
}

impl CollectiveRound {
    /// Each rank has a value for each of its destinations, and gets one of each of its sources;
    /// `None` of the null rank.
    pub(crate) async fn alltoall_neighbours<T: Message>(
        mut self,
        neighbours: Neighbours,
        own: Vec<T>,
    ) -> Result<Vec<Option<T>>, Error> {
        self.check_neighbours(&neighbours, own.len())?;
        for (&to, value) in neighbours.destinations.iter().zip(own) {
            if to != PROC_NULL {
                self.send(to, Value(value))?;
            }
        }
        let mut came: Vec<Option<T>> = neighbours.sources.iter().map(|_| None).collect();
        for place in neighbours.awaited() {
            let Value(value) = self.recv(neighbours.sources[place]).await?;
            came[place] = Some(value);
        }
        self.end().await?;
        Ok(came)
    }

    /// As [`alltoall_neighbours`](Self::alltoall_neighbours), with a part of elements for each
    /// destination; an empty part comes of the null rank.
    pub(crate) async fn alltoall_neighbour_parts<T: Pod + Send + Sync>(
        self,
        neighbours: Neighbours,
        own: Parts<T>,
    ) -> Result<Parts<T>, Error> {
        self.check_neighbours(&neighbours, own.len())?;
        let own = own.iter().map(|part| SharedPayload::new(part.to_vec())).collect();
        self.exchange_neighbour_parts(neighbours, own).await
    }

    /// Each rank sends the same elements to all of its destinations.
    pub(crate) async fn allgather_neighbour_elements<T: Pod + Send + Sync>(
        self,
        neighbours: Neighbours,
        own: Vec<T>,
    ) -> Result<Parts<T>, Error> {
        let own = SharedPayload::new(own);
        let all = neighbours.destinations.iter().map(|_| own.clone()).collect();
        self.exchange_neighbour_parts(neighbours, all).await
    }

    async fn exchange_neighbour_parts<T: Pod + Send + Sync>(
        mut self,
        neighbours: Neighbours,
        own: Vec<SharedPayload<Vec<T>>>,
    ) -> Result<Parts<T>, Error> {
        for (&to, part) in neighbours.destinations.iter().zip(own) {
            if to != PROC_NULL {
                self.send(to, part)?;
            }
        }
        let mut came: Vec<Option<SharedPayload<Vec<T>>>> = neighbours.sources.iter().map(|_| None).collect();
        for place in neighbours.awaited() {
            came[place] = Some(self.recv(neighbours.sources[place]).await?);
        }
        self.end().await?;
        let mut parts = Parts::default();
        for part in &came {
            parts.push(part.as_ref().map_or(&[], |part| &part.0[..]));
        }
        Ok(parts)
    }

    fn check_neighbours(&self, neighbours: &Neighbours, count: usize) -> Result<(), Error> {
        let wanted = neighbours.destinations.len();
        match count == wanted {
            true => Ok(()),
            false => {
                let text = format!("there are {count} values for {wanted} neighbours");
                Err(self.error(ErrorClass::Count, text))
            }
        }
    }
}
