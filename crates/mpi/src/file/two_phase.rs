//! Collective reads and writes in two phases: [`CollectiveTransfer`].
//!
//! Where the elements of the ranks lie between one another, each rank would read or write many
//! small pieces. So some ranks, the aggregators, each have a domain, a part of the bytes of the
//! file. In a write every rank sends each aggregator its pieces of that domain, and the aggregator
//! writes what lies together with one call. In a read it reads them, and sends them back.
//!
//! # Rounds
//! A domain is worked off in windows, so an aggregator needs no more memory than a window. Each
//! round, every rank exchanges messages with the aggregator of each window, and hears whether the
//! aggregator has succeeded. So no rank is a round ahead, and all ranks stop after the same round
//! if one has failed.
//!
//! All messages are those of one [`CollectiveRound`]. Between two ranks they keep their order, and
//! each rank sends all messages of a phase before it waits for one, so no rank waits in a circle.
//!
//! # Without the phases
//! If each rank has at most one piece, and none overlaps another, each rank transfers its own.

use super::transfer::{FileFault, FileInside, GAP_MAX, agreed, failed, fault};
use super::view::{FilePiece, pieces_within};
use crate::collective::{CollectiveKind, CollectiveRound};
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::{Elements, Value};
use crate::window::{LockedWindow, WindowLock};
use std::ops::Range;

/// A rank that transfers for all has at least this number of bytes to transfer.
const DOMAIN_MIN: u64 = 64 << 10;

/// The domains begin at multiples of this number of bytes: no page of the file is of two ranks.
const DOMAIN_ALIGN: u64 = 4096;

/// A collective read or write that has taken its number among the collectives.
pub(super) struct BegunTransfer {
    pub(super) round: CollectiveRound,
    call: CallSite,
    is_atomic: bool,
}

impl BegunTransfer {
    pub(super) fn begin(
        inside: &FileInside,
        call: CallSite,
        kind: CollectiveKind,
    ) -> Result<BegunTransfer, Error> {
        let round = CollectiveRound::begin(&inside.comm, call, kind, 0)?;
        Ok(BegunTransfer { round, call, is_atomic: inside.is_atomic() })
    }
}

/// A collective read or write on one rank.
pub(super) struct CollectiveTransfer<'f> {
    inside: &'f FileInside,
    round: CollectiveRound,
    call: CallSite,
    /// Whether it began in atomic mode, as on every rank.
    is_atomic: bool,
    /// The pieces of this rank.
    pieces: Vec<FilePiece>,
    /// Whether its elements lie beyond the largest file. The other ranks hear of it.
    is_beyond: bool,
}

/// Which bytes which rank transfers for all.
#[derive(Debug, PartialEq, Eq)]
struct TransferPlan {
    /// The aggregators with their domains.
    domains: Vec<(usize, Range<u64>)>,
    window: u64,
    rounds: u64,
}

/// What a rank tells the others of its pieces: the first byte, the end, and their number.
type PieceExtent = (u64, u64, u64);

/// What an aggregator has read for a rank: what has failed, where the file ends if the aggregator
/// has seen its end, and the bytes.
type AggregatorAnswer = (Option<FileFault>, u64, Vec<u8>);

/// What a rank tells with elements that lie beyond the largest file.
const BEYOND: PieceExtent = (u64::MAX, 0, 0);

impl<'f> CollectiveTransfer<'f> {
    /// `pieces` are those of this rank, if its elements lie within the largest file.
    pub(super) fn new(
        inside: &'f FileInside,
        BegunTransfer { round, call, is_atomic }: BegunTransfer,
        pieces: Option<Vec<FilePiece>>,
    ) -> CollectiveTransfer<'f> {
        let is_beyond = pieces.is_none();
        CollectiveTransfer { inside, round, call, is_atomic, pieces: pieces.unwrap_or_default(), is_beyond }
    }

    /// In atomic mode rank 0 has the lock for all. It takes it when all have come, because a rank
    /// that has not may wait for the lock. The others begin when rank 0 has it. When rank 0 ends
    /// the operation, all have told it that they have transferred.
    async fn lock_for_all(&mut self, lock: WindowLock) -> Result<Option<LockedWindow<'f, u64>>, Error> {
        let (is_first, inside) = (self.round.rank() == 0, self.inside);
        let locked = inside.lock_if(self.is_atomic && is_first, self.call, lock).await?;
        if self.is_atomic {
            self.round.bcast(0, is_first.then_some(Value(()))).await?;
        }
        Ok(locked)
    }

    /// Writes the bytes of this rank.
    pub(super) async fn write(mut self, bytes: Vec<u8>) -> Result<(), Error> {
        let plan = self.plan(true).await?;
        let _locked = self.lock_for_all(WindowLock::Exclusive).await?;
        let Some(plan) = plan else {
            let written = self.inside.write(&self.pieces, bytes).await;
            return self.end_with(written.err().map(|error| fault(&error))).await;
        };
        for number in 0..plan.rounds {
            let windows: Vec<(usize, Range<u64>)> = plan.windows(number).collect();
            let mut kept = None;
            for (aggregator, window) in &windows {
                let part = message_of_pieces(&self.pieces, window, Some(&bytes));
                if *aggregator == self.round.rank() {
                    kept = Some(part);
                } else {
                    self.round.send(*aggregator, Elements(part))?;
                }
            }
            let mut own_status = None;
            if let Some(part) = kept {
                let status = self.write_for_all(part).await?;
                self.tell(&status)?;
                own_status = Some(status);
            }
            self.hear(&windows, own_status).await?;
        }
        self.round.end().await
    }

    /// Reads the bytes of this rank, up to the end of the file.
    pub(super) async fn read(mut self) -> Result<Vec<u8>, Error> {
        let plan = self.plan(false).await?;
        let _locked = self.lock_for_all(WindowLock::Shared).await?;
        let Some(plan) = plan else {
            let read = self.inside.read(&self.pieces).await;
            let (bytes, fault) = match read {
                Ok(bytes) => (bytes, None),
                Err(error) => (Vec::new(), Some(fault(&error))),
            };
            return self.end_with(fault).await.map(|()| bytes);
        };
        let length = self.pieces.last().map_or(0, |last| last.place + last.length);
        let mut bytes = vec![0; length];
        let mut end = u64::MAX;
        for number in 0..plan.rounds {
            let windows: Vec<(usize, Range<u64>)> = plan.windows(number).collect();
            let mut kept = None;
            for (aggregator, window) in &windows {
                let part = message_of_pieces(&self.pieces, window, None);
                if *aggregator == self.round.rank() {
                    kept = Some(part);
                } else {
                    self.round.send(*aggregator, Elements(part))?;
                }
            }
            let mut own = match kept {
                Some(part) => Some(self.read_for_all(part).await?),
                None => None,
            };
            let mut first = Ok(());
            for (aggregator, window) in &windows {
                let (status, ended, part) = match own.take_if(|_| *aggregator == self.round.rank()) {
                    Some(own) => own,
                    None => self.answer_of(*aggregator).await?,
                };
                end = end.min(ended);
                match status {
                    Some(fault) => first = first.and_then(|()| Err(failed(self.call, *aggregator, fault))),
                    None => place_answer(&self.pieces, window, end, &part, &mut bytes),
                }
            }
            first?;
        }
        self.round.end().await?;
        // The first byte beyond the end, in the order of the elements.
        if let Some(piece) = self.pieces.iter().find(|piece| piece.end() > end) {
            bytes.truncate(piece.place + end.saturating_sub(piece.offset) as usize);
        }
        Ok(bytes)
    }

    /// What an aggregator has read for this rank.
    async fn answer_of(&self, aggregator: usize) -> Result<AggregatorAnswer, Error> {
        let Value((status, end)) = self.round.recv(aggregator).await?;
        let Elements(part) = self.round.recv(aggregator).await?;
        Ok((status, end, part))
    }

    /// Tells the others of the pieces of this rank. `None` if each rank transfers its own.
    ///
    /// # Errors
    /// If elements of a rank lie beyond the largest file.
    async fn plan(&mut self, is_write: bool) -> Result<Option<TransferPlan>, Error> {
        let begin = self.pieces.first().map_or(0, |piece| piece.offset);
        let end = self.pieces.last().map_or(0, FilePiece::end);
        let own = if self.is_beyond { BEYOND } else { (begin, end, self.pieces.len() as u64) };
        let all = self.round.allgather(Value(own)).await?;
        let all: Vec<PieceExtent> = all.into_iter().map(|Value(extent)| extent).collect();
        if let Some(rank) = all.iter().position(|extent| *extent == BEYOND) {
            let text = format!("elements of rank {rank} lie beyond the largest file");
            return Err(self.call.error(ErrorClass::File, text));
        }
        let hints = self.inside.hints;
        Ok(TransferPlan::new(&all, is_write, hints.aggregators, hints.buffer))
    }

    /// Ends a transfer in which each rank has transferred its own pieces.
    async fn end_with(mut self, fault: Option<FileFault>) -> Result<(), Error> {
        let all = self.round.allgather(Value(fault)).await?;
        self.round.end().await?;
        agreed(self.call, all.into_iter().map(|Value(fault)| fault).collect())
    }

    /// Writes what all ranks have of the window of this rank. Gives what has failed.
    async fn write_for_all(&mut self, own: Vec<u8>) -> Result<Option<FileFault>, Error> {
        let parts = self.parts(own).await?;
        let runs = joined_runs(&parts, 0);
        let mut memory: Vec<Vec<u8>> =
            runs.iter().map(|run| vec![0; (run.end - run.start) as usize]).collect();
        for (pieces, bytes) in &parts {
            for piece in pieces {
                let (run, at) = place_in_runs(&runs, piece.offset);
                memory[run][at..][..piece.length].copy_from_slice(&bytes[piece.place..][..piece.length]);
            }
        }
        for (run, bytes) in runs.into_iter().zip(memory) {
            if let Err(error) = self.inside.file.write_all_at(bytes, run.start).await.0 {
                return Ok(Some(fault(&error)));
            }
        }
        Ok(None)
    }

    /// Reads what all ranks ask for of the window of this rank, and answers the others. Gives the
    /// answer to this rank.
    async fn read_for_all(&mut self, own: Vec<u8>) -> Result<AggregatorAnswer, Error> {
        let parts = self.parts(own).await?;
        let runs = joined_runs(&parts, GAP_MAX);
        let (mut memory, mut end, mut status) = (Vec::new(), u64::MAX, None);
        for run in &runs {
            match self.inside.read_upto(run.start, (run.end - run.start) as usize).await {
                Ok(bytes) => {
                    if (bytes.len() as u64) < run.end - run.start {
                        end = end.min(run.start + bytes.len() as u64);
                    }
                    memory.push(bytes);
                }
                Err(error) => {
                    status = Some(fault(&error));
                    break;
                }
            }
        }
        let mut own = None;
        for (rank, (pieces, _)) in parts.iter().enumerate() {
            let mut answer = Vec::new();
            for piece in pieces.iter().filter(|_| status.is_none()) {
                let (run, at) = place_in_runs(&runs, piece.offset);
                let there = memory[run].len();
                answer.extend_from_slice(&memory[run][at.min(there)..(at + piece.length).min(there)]);
            }
            if rank == self.round.rank() {
                own = Some(answer);
            } else {
                self.round.send(rank, Value((status.clone(), end)))?;
                self.round.send(rank, Elements(answer))?;
            }
        }
        Ok((status, end, own.expect("this rank is one of the ranks")))
    }

    /// What each rank has sent of the window of this rank: its pieces, and their bytes.
    async fn parts(&self, own: Vec<u8>) -> Result<Vec<(Vec<FilePiece>, Vec<u8>)>, Error> {
        let mut own = Some(own);
        let mut parts = Vec::with_capacity(self.round.size());
        for rank in 0..self.round.size() {
            let message = match own.take_if(|_| rank == self.round.rank()) {
                Some(own) => own,
                None => self.round.recv::<Elements<u8>>(rank).await?.0,
            };
            parts.push(read_message(message));
        }
        Ok(parts)
    }

    /// Tells the others how this rank has fared as an aggregator.
    fn tell(&mut self, status: &Option<FileFault>) -> Result<(), Error> {
        let me = self.round.rank();
        (0..self.round.size())
            .filter(|&rank| rank != me)
            .try_for_each(|rank| self.round.send(rank, Value(status.clone())))
    }

    /// Hears how the aggregators have fared.
    ///
    /// # Errors
    /// If one has failed.
    async fn hear(
        &self,
        windows: &[(usize, Range<u64>)],
        mut own: Option<Option<FileFault>>,
    ) -> Result<(), Error> {
        let mut first = Ok(());
        for (aggregator, _) in windows {
            let status = match own.take_if(|_| *aggregator == self.round.rank()) {
                Some(own) => own,
                None => self.round.recv::<Value<Option<FileFault>>>(*aggregator).await?.0,
            };
            if let Some(fault) = status {
                first = first.and_then(|()| Err(failed(self.call, *aggregator, fault)));
            }
        }
        first
    }
}

impl TransferPlan {
    fn new(all: &[PieceExtent], is_write: bool, aggregators: usize, window: u64) -> Option<TransferPlan> {
        let mut some: Vec<PieceExtent> = all.iter().filter(|(.., pieces)| *pieces > 0).copied().collect();
        some.sort_unstable();
        let is_disjoint = some.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        if some.iter().all(|(.., pieces)| *pieces == 1) && (is_disjoint || !is_write) {
            return None;
        }
        let begin = some.iter().map(|(begin, ..)| *begin).min()?;
        let end = some.iter().map(|(_, end, _)| *end).max()?;
        let first = begin - begin % DOMAIN_ALIGN;
        let most = aggregators.clamp(1, all.len()) as u64;
        let count = (end - first).div_ceil(DOMAIN_MIN).clamp(1, most);
        let each = (end - first).div_ceil(count).next_multiple_of(DOMAIN_ALIGN);
        let domains = (0..count).map(|number| {
            // The aggregators lie apart, because neighbours may share a machine.
            let rank = number as usize * all.len() / count as usize;
            let from = first + number * each;
            (rank, from.max(begin)..(from + each).min(end))
        });
        let domains = domains.filter(|(_, domain)| !domain.is_empty()).collect();
        Some(TransferPlan { domains, window, rounds: each.div_ceil(window) })
    }

    /// The windows of a round, with their aggregators.
    fn windows(&self, round: u64) -> impl Iterator<Item = (usize, Range<u64>)> {
        self.domains.iter().filter_map(move |(rank, domain)| {
            let begin = domain.start + round * self.window;
            let window = begin..(begin + self.window).min(domain.end);
            (!window.is_empty()).then_some((*rank, window))
        })
    }
}

/// The pieces of a window as a message: their number, where each is and how long, and the bytes of
/// a write.
fn message_of_pieces(pieces: &[FilePiece], window: &Range<u64>, bytes: Option<&[u8]>) -> Vec<u8> {
    let mut message = vec![0; 8];
    let mut count = 0_u64;
    for piece in pieces_within(pieces, window.start, window.end) {
        message.extend_from_slice(&piece.offset.to_le_bytes());
        message.extend_from_slice(&(piece.length as u64).to_le_bytes());
        count += 1;
    }
    message[..8].copy_from_slice(&count.to_le_bytes());
    for piece in bytes.iter().flat_map(|_| pieces_within(pieces, window.start, window.end)) {
        message.extend_from_slice(&bytes.unwrap_or_default()[piece.place..][..piece.length]);
    }
    message
}

/// The pieces of a message, and its bytes.
fn read_message(mut message: Vec<u8>) -> (Vec<FilePiece>, Vec<u8>) {
    let number = |at: usize| {
        let bytes = message[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let count = number(0) as usize;
    let mut place = 0;
    let pieces = (0..count).map(|piece| {
        let (offset, length) = (number(8 + 16 * piece), number(16 + 16 * piece) as usize);
        place += length;
        FilePiece { offset, length, place: place - length }
    });
    let pieces = pieces.collect();
    message.drain(..8 + 16 * count);
    (pieces, message)
}

/// The bytes of the file that the pieces of all ranks make up, with gaps of at most `gap` bytes.
fn joined_runs(parts: &[(Vec<FilePiece>, Vec<u8>)], gap: u64) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> =
        parts.iter().flat_map(|(pieces, _)| pieces.iter().map(|piece| piece.offset..piece.end())).collect();
    all.sort_unstable_by_key(|piece| piece.start);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for piece in all {
        match runs.last_mut() {
            Some(run) if piece.start <= run.end.saturating_add(gap) => run.end = run.end.max(piece.end),
            _ => runs.push(piece),
        }
    }
    runs
}

/// The run in which a byte of the file lies, and its place there.
fn place_in_runs(runs: &[Range<u64>], offset: u64) -> (usize, usize) {
    let run = runs.partition_point(|run| run.start <= offset) - 1;
    (run, (offset - runs[run].start) as usize)
}

/// Puts the answer of an aggregator into the memory of this rank: the pieces of the window, as far
/// as the file goes.
fn place_answer(pieces: &[FilePiece], window: &Range<u64>, end: u64, answer: &[u8], memory: &mut [u8]) {
    let mut from = 0;
    for piece in pieces_within(pieces, window.start, window.end.min(end)) {
        memory[piece.place..][..piece.length].copy_from_slice(&answer[from..][..piece.length]);
        from += piece.length;
    }
}
