//! `interleave`, `zip`, `concatenate` and `merge`: two streams of lines become one.
//!
//! `Stream::joined` in `stream.rs` passes a [`LineJoin`] to `flow::join_sources`, which waits for
//! the side that the join wants. A side with stages of its own runs them in a thread of its own,
//! which is ahead by one chunk. So one side goes on while the join waits for the other.

use crate::language::tree::JoinKind;
use crate::regex::chomp;
use selvedge_pipeline::join::{self, Both, InOrder, Interleave};
use selvedge_pipeline::{Join, JoinStep, Merge, Sink, Upcoming};
use std::cmp::Ordering;

/// Compares two lines.
type LineOrder = fn(&[u8], &[u8]) -> Ordering;

/// A join of lines.
#[derive(Debug, Clone)]
pub enum LineJoin {
    /// First the one stream, then the other.
    Concatenate(Both),
    /// A line of each in turn.
    Interleave(Interleave),
    /// A line of each on one line, which is kept here.
    Zip(Vec<u8>),
    /// Both are sorted, and so is what comes out.
    Merge(InOrder<LineOrder>),
}

impl LineJoin {
    /// The join of a kind.
    pub fn of(kind: JoinKind) -> Join<[u8], LineJoin> {
        let in_order: LineOrder = |left, right| chomp(left).cmp(chomp(right));
        Join::new(match kind {
            JoinKind::Concatenate => LineJoin::Concatenate(join::concatenate::<[u8]>().into_stage()),
            JoinKind::Interleave => LineJoin::Interleave(join::interleave::<[u8]>().into_stage()),
            JoinKind::Zip => LineJoin::Zip(Vec::new()),
            JoinKind::Merge => LineJoin::Merge(join::merge::<[u8], _>(in_order).into_stage()),
        })
    }
}

impl Merge<[u8]> for LineJoin {
    fn step<S: Sink<[u8]>>(
        &mut self,
        left: Upcoming<'_, [u8]>,
        right: Upcoming<'_, [u8]>,
        out: &mut S,
    ) -> JoinStep {
        match self {
            LineJoin::Concatenate(join) => join.step(left, right, out),
            LineJoin::Interleave(join) => join.step(left, right, out),
            LineJoin::Merge(join) => join.step(left, right, out),
            LineJoin::Zip(line) => match (left, right) {
                (Upcoming::Item(left), Upcoming::Item(right)) => {
                    line.clear();
                    line.extend_from_slice(chomp(left));
                    line.push(b'\t');
                    line.extend_from_slice(right);
                    JoinStep::put(out.put(line), true, true)
                }
                (Upcoming::Ended, _) | (_, Upcoming::Ended) => JoinStep::Finished,
                (Upcoming::Unknown, _) => JoinStep::WantsLeft,
                (_, Upcoming::Unknown) => JoinStep::WantsRight,
            },
        }
    }
}
