//! [`CommLine`]: a communicator as the driver has it, with what its messages go to; and
//! [`CommLines`], those of the process.

use super::calls::CommHandle;
use super::error::MpiError;
use super::family::MpiHandle;
use super::frames::FrameStore;
use super::in_order::SourceOrder;
use super::orders::{CommId, WORLD};
use super::received::{CommListener, Received};
use crate::processes::Doorbells;
use selvedge_core::internal::quietly;
use std::sync::Arc;

/// A communicator.
#[derive(Debug)]
pub(super) struct CommLine<H> {
    pub(super) comm: CommHandle<H>,
    pub(super) listener: Option<Arc<dyn CommListener>>,
    pub(super) incoming: SourceOrder<Received>,
    pub(super) doorbells: Option<Arc<Doorbells>>,
    /// What its messages go in, if only this crate sends on it.
    pub(super) frames: Option<FrameStore<H>>,
    /// The ranks that have died, each with whether the listener has been told.
    dead: Vec<(i32, bool)>,
}

/// The communicators of the process. Each look of the driver goes through all of them, so they lie
/// side by side.
#[derive(Debug)]
pub(super) struct CommLines<H> {
    /// In the order of their numbers.
    lines: Vec<(CommId, CommLine<H>)>,
    next: CommId,
}

impl<H> CommLines<H> {
    /// The communicator of all ranks, which is [`WORLD`].
    pub(super) fn new(world: CommLine<H>) -> CommLines<H> {
        CommLines { lines: vec![(WORLD, world)], next: WORLD + 1 }
    }

    /// Adds a communicator. Gives its number.
    pub(super) fn add(&mut self, line: CommLine<H>) -> CommId {
        let id = self.next;
        self.next += 1;
        self.lines.push((id, line));
        id
    }

    pub(super) fn remove(&mut self, id: CommId) -> Option<CommLine<H>> {
        self.place(id).map(|place| self.lines.remove(place).1)
    }

    pub(super) fn get(&self, id: CommId) -> Option<&CommLine<H>> {
        self.place(id).map(|place| &self.lines[place].1)
    }

    pub(super) fn get_mut(&mut self, id: CommId) -> Option<&mut CommLine<H>> {
        self.place(id).map(|place| &mut self.lines[place].1)
    }

    /// The number of communicators.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The communicator at a place below [`len`](Self::len), with its number.
    pub(super) fn at(&mut self, place: usize) -> (CommId, &mut CommLine<H>) {
        let (id, line) = &mut self.lines[place];
        (*id, line)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CommLine<H>> {
        self.lines.iter().map(|(_, line)| line)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut CommLine<H>> {
        self.lines.iter_mut().map(|(_, line)| line)
    }

    /// All communicators, which are taken out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = CommLine<H>> {
        self.lines.drain(..).map(|(_, line)| line)
    }

    fn place(&self, id: CommId) -> Option<usize> {
        self.lines.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

impl<H: MpiHandle> CommLine<H> {
    pub(super) fn new(comm: CommHandle<H>) -> CommLine<H> {
        CommLine {
            comm,
            listener: None,
            incoming: SourceOrder::new(),
            doorbells: None,
            frames: None,
            dead: Vec::new(),
        }
    }

    /// Whether the driver looks for messages.
    pub(super) fn wants_messages(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| {
            let mut wants = false;
            quietly(|| wants = listener.wants_messages());
            wants
        })
    }

    /// MPI has something for another rank, which may sleep.
    pub(super) fn ring(&self, rank: i32) {
        if let (Some(doorbells), Ok(rank)) = (&self.doorbells, usize::try_from(rank)) {
            doorbells.ring(rank);
        }
    }

    /// These ranks have died. Whether anything of it was new. What they have sent before is
    /// received still, and [`tell_of_deaths`](Self::tell_of_deaths) comes after it.
    pub(super) fn note_deaths(&mut self, ranks: Vec<i32>) -> bool {
        let mut is_new = false;
        for rank in ranks {
            if self.dead.iter().all(|&(known, _)| known != rank) {
                self.dead.push((rank, false));
                is_new = true;
            }
            let lost = self.frames.as_mut().map_or(Vec::new(), |frames| frames.forget(rank));
            for ticket in lost {
                self.end(rank, ticket, Ok(None));
                is_new = true;
            }
        }
        is_new
    }

    /// A look has found no message: the listener is told of the ranks that have died, unless a
    /// message of theirs is being received.
    pub(super) fn tell_of_deaths(&mut self) {
        let Some(listener) = &self.listener else { return };
        for (rank, is_told) in &mut self.dead {
            if !*is_told && !self.incoming.has(*rank) {
                *is_told = true;
                quietly(|| listener.rank_died(*rank as usize));
            }
        }
    }

    /// A message is there, or lost: without an error if its source has died.
    pub(super) fn end(&mut self, source: i32, ticket: u64, result: Result<Option<Received>, MpiError>) {
        let Some(listener) = &self.listener else { return };
        let message = match result {
            Ok(message) => message,
            Err(error) => {
                quietly(|| listener.failed(error));
                None
            }
        };
        self.incoming.end(source, ticket, message, |message| quietly(|| listener.message(message)));
    }

    /// A message is there at once, and no earlier one of its source is being received.
    pub(super) fn hand_over(&self, message: Received) {
        if let Some(listener) = &self.listener {
            quietly(|| listener.message(message));
        }
    }
}
