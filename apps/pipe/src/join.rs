//! `interleave`, `zip`, `concatenate` and `merge`: two streams of lines become one.
//!
//! `Stream::joined` in `stream.rs` makes a [`JoinedLines`] as the source of the stages behind the
//! join. A side with stages of its own runs them in a thread of its own, which is ahead by one
//! chunk. So one side goes on while the join waits for the other.
//!
//! `turn` decides which side the join takes or waits for next, and changes nothing. The join gives
//! the lines that it has before it waits.

use crate::language::tree::JoinKind;
use crate::regex::chomp;
use selvedge_coroutine::pipeline::{ListStore, Lists, StageFailure, Store};
use selvedge_flow::{BoxedSupply, Supply};

/// How many lines are joined at most before they go on.
const CHUNK: usize = 1024;

/// One side of a join: its supply, and the lines of the last chunk.
#[derive(Debug)]
struct Side {
    supply: BoxedSupply<[u8]>,
    lines: ListStore<u8>,
    /// How many of the lines have been taken.
    taken: usize,
    ended: bool,
}

impl Side {
    fn new(supply: BoxedSupply<[u8]>) -> Side {
        Side { supply, lines: ListStore::default(), taken: 0, ended: false }
    }

    /// Whether `peek` can answer without waiting: the next line is here, or the side has ended.
    fn is_known(&self) -> bool {
        self.ended || self.taken < self.lines.count()
    }

    /// Waits until `is_known`.
    async fn wait(&mut self) -> Result<(), StageFailure> {
        while !self.is_known() {
            self.lines.clear();
            self.taken = 0;
            match self.supply.next().await? {
                Some(chunk) => self.lines.keep_all(chunk),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// The next line; `None` at the end. It answers only if `is_known`.
    fn peek(&self) -> Option<&[u8]> {
        (self.taken < self.lines.count()).then(|| self.lines.at(self.taken))
    }
}

/// The lines of two streams.
#[derive(Debug)]
pub struct JoinedLines {
    kind: JoinKind,
    sides: [Side; 2],
    /// Whether the next line of an `interleave` is of the right side.
    right: bool,
    over: bool,
    made: ListStore<u8>,
    line: Vec<u8>,
}

/// What a join does next.
enum Turn {
    /// It needs to know what comes next on a side.
    Wants(usize),
    /// The next line of a side goes on.
    Takes(usize),
    /// The next lines of both go on as one.
    TakesBoth,
    Over,
}

impl JoinedLines {
    /// The join of `left` and `right`.
    pub fn new(kind: JoinKind, left: BoxedSupply<[u8]>, right: BoxedSupply<[u8]>) -> JoinedLines {
        let sides = [Side::new(left), Side::new(right)];
        JoinedLines { kind, sides, right: false, over: false, made: ListStore::default(), line: Vec::new() }
    }

    fn turn(&self) -> Turn {
        let [left, right] = &self.sides;
        match self.kind {
            JoinKind::Concatenate if !left.is_known() => Turn::Wants(0),
            JoinKind::Concatenate if left.peek().is_some() => Turn::Takes(0),
            JoinKind::Concatenate if !right.is_known() => Turn::Wants(1),
            JoinKind::Concatenate if right.peek().is_some() => Turn::Takes(1),
            JoinKind::Concatenate => Turn::Over,
            JoinKind::Interleave => {
                let first = usize::from(self.right);
                // A side that has ended is passed over.
                let order = [first, 1 - first];
                let next = order.into_iter().find(|side| !self.sides[*side].ended);
                match next {
                    Some(side) if self.sides[side].is_known() => Turn::Takes(side),
                    Some(side) => Turn::Wants(side),
                    None => Turn::Over,
                }
            }
            JoinKind::Zip | JoinKind::Merge if !left.is_known() => Turn::Wants(0),
            JoinKind::Zip if left.ended => Turn::Over,
            JoinKind::Zip | JoinKind::Merge if !right.is_known() => Turn::Wants(1),
            JoinKind::Zip if right.ended => Turn::Over,
            JoinKind::Zip => Turn::TakesBoth,
            JoinKind::Merge => match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if chomp(b) < chomp(a) => Turn::Takes(1),
                (Some(_), _) => Turn::Takes(0),
                (None, Some(_)) => Turn::Takes(1),
                (None, None) => Turn::Over,
            },
        }
    }
}

impl Supply<[u8]> for JoinedLines {
    async fn next(&mut self) -> Result<Option<Lists<'_, u8>>, StageFailure> {
        self.made.clear();
        while !self.over && self.made.count() < CHUNK {
            match self.turn() {
                // The lines that are joined go on before the join waits.
                Turn::Wants(_) if self.made.count() > 0 => break,
                Turn::Wants(side) => self.sides[side].wait().await?,
                Turn::Takes(side) => {
                    let taken = &mut self.sides[side];
                    self.made.keep(taken.lines.at(taken.taken));
                    taken.taken += 1;
                    self.right = side == 0;
                }
                Turn::TakesBoth => {
                    let [left, right] = &mut self.sides;
                    self.line.clear();
                    self.line.extend_from_slice(chomp(left.lines.at(left.taken)));
                    self.line.push(b'\t');
                    self.line.extend_from_slice(right.lines.at(right.taken));
                    self.made.keep(&self.line);
                    left.taken += 1;
                    right.taken += 1;
                }
                Turn::Over => self.over = true,
            }
        }
        Ok((self.made.count() > 0).then(|| self.made.all()))
    }

    async fn close(self) {
        let [left, right] = self.sides;
        left.supply.close().await;
        right.supply.close().await;
    }
}
