//! Collectives of each rank with its neighbours in a grid, for `cartesian.rs`.

use super::CollectiveRound;
use crate::error::Error;
use crate::payload::{Message, Value};
use crate::tag::PROC_NULL;

impl CollectiveRound {
    /// Each rank has a value for each of its neighbours, and gets one of each. The neighbours are
    /// in pairs, for each dimension the one before and the one after; `None` comes of the null
    /// rank.
    pub(crate) async fn alltoall_neighbours<T: Message>(
        mut self,
        neighbours: &[usize],
        own: Vec<T>,
    ) -> Result<Vec<Option<T>>, Error> {
        for (&to, value) in neighbours.iter().zip(own) {
            if to != PROC_NULL {
                self.send(to, Value(value))?;
            }
        }
        let mut came: Vec<Option<T>> = neighbours.iter().map(|_| None).collect();
        for before in (0..neighbours.len()).step_by(2) {
            // In a circle of two ranks, or one, both neighbours are one rank. The first value that
            // it has sent is that for the rank before it, to which it is the one after.
            for place in [before + 1, before] {
                if neighbours[place] != PROC_NULL {
                    let Value(value) = self.recv(neighbours[place]).await?;
                    came[place] = Some(value);
                }
            }
        }
        self.end().await?;
        Ok(came)
    }
}
