//! The log of one attempt of a transaction: the versions that it read, and the values that it is
//! going to write.

use crate::session::{Free, Garbage};
use crate::var::{Inner, WAITERS};
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;

/// A variable, and what the engine notes of it to compare it later: its word when it was unlocked,
/// without the bit `WAITERS`; or the bits of its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadEntry {
    pub(crate) inner: NonNull<Inner>,
    pub(crate) seen: u64,
}

/// A variable, and its value to be.
pub(crate) struct WriteEntry {
    pub(crate) inner: NonNull<Inner>,
    /// A node, or the bits of a word.
    pub(crate) value: *mut (),
    /// Frees a node. None for the bits of a word.
    pub(crate) free: Option<Free>,
    /// The variable's word as `lock_all` found it.
    pub(crate) found: u64,
}

/// The pointers to variables stay valid, because a variable is retired when its last handle is
/// dropped, and the session of the log is pinned.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) reads: Vec<ReadEntry>,
    pub(crate) writes: Vec<WriteEntry>,
    /// The number of reads at the begin or the end of a predicate. The next read has an entry of
    /// its own.
    pub(crate) fresh: usize,
    /// One bit for each written variable, several may share one.
    filter: u64,
    /// The places of variables among `writes`, once these are many.
    index: HashMap<NonNull<Inner>, usize>,
    /// What a branch of the transaction changed in writes from before the branch.
    undo: Vec<(usize, *mut ())>,
    branches: usize,
    /// Nodes that were to be written, and are not any more. The body may have references to them.
    superseded: Vec<(*mut (), Free)>,
}

// SAFETY: an attempt stays on its OS thread, because `Tx` is not `Send`. `AttemptState::end`
// empties the log before the session may go to another OS thread.
unsafe impl Send for Log {}

/// The state of a log at the begin of a branch.
pub(crate) struct BranchMark {
    writes: usize,
    undo: usize,
}

/// The number of writes up to which they are searched one by one.
const FEW: usize = 16;

/// The bit of a variable in the filter, by Fibonacci hashing of its address.
#[inline(always)]
fn bit(inner: NonNull<Inner>) -> u64 {
    1 << ((inner.addr().get() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

impl Log {
    /// The place of a variable among the writes.
    #[inline(always)]
    pub(crate) fn find(&self, inner: NonNull<Inner>) -> Option<usize> {
        match self.filter & bit(inner) {
            0 => None,
            _ => self.search(inner),
        }
    }

    fn search(&self, inner: NonNull<Inner>) -> Option<usize> {
        match self.index.is_empty() {
            true => self.writes.iter().position(|write| write.inner == inner),
            false => self.index.get(&inner).copied(),
        }
    }

    #[inline]
    pub(crate) fn note_read(&mut self, read: ReadEntry) {
        if self.reads.last() != Some(&read) || self.reads.len() == self.fresh {
            self.reads.push(read);
        }
    }

    pub(crate) fn write(&mut self, inner: NonNull<Inner>, value: *mut (), free: Option<Free>) {
        if let Some(at) = self.find(inner) {
            let old = std::mem::replace(&mut self.writes[at].value, value);
            match self.branches {
                0 => self.superseded.extend(free.map(|free| (old, free))),
                _ => self.undo.push((at, old)),
            }
            return;
        }
        self.filter |= bit(inner);
        self.writes.push(WriteEntry { inner, value, free, found: 0 });
        match self.writes.len() {
            ..=FEW => {}
            len if self.index.is_empty() => {
                self.index.extend((0..len).map(|at| (self.writes[at].inner, at)));
            }
            len => {
                self.index.insert(inner, len - 1);
            }
        }
    }

    /// Begins a branch, which [`end_branch`](Log::end_branch) ends.
    pub(crate) fn begin_branch(&mut self) -> BranchMark {
        self.branches += 1;
        BranchMark { writes: self.writes.len(), undo: self.undo.len() }
    }

    /// Ends a branch. If it is not `kept`, its writes are as before the branch; its reads stay.
    pub(crate) fn end_branch(&mut self, mark: BranchMark, kept: bool) {
        self.branches -= 1;
        if kept {
            if self.branches == 0 {
                for (at, old) in self.undo.drain(..) {
                    self.superseded.extend(self.writes[at].free.map(|free| (old, free)));
                }
            }
            return;
        }
        for (at, old) in self.undo.drain(mark.undo..).rev() {
            let write = &mut self.writes[at];
            let undone = std::mem::replace(&mut write.value, old);
            self.superseded.extend(write.free.map(|free| (undone, free)));
        }
        for write in self.writes.drain(mark.writes..) {
            self.index.remove(&write.inner);
            self.superseded.extend(write.free.map(|free| (write.value, free)));
        }
        if self.writes.len() <= FEW {
            self.index.clear();
        }
    }

    /// The reads, one for each variable, in the order of the reads.
    pub(crate) fn distinct_reads(&mut self) -> &[ReadEntry] {
        let mut variables = HashSet::new();
        self.reads.retain(|read| variables.insert(read.inner));
        &self.reads
    }

    /// The word that this transaction found when it locked a variable, without `WAITERS`.
    pub(crate) fn found(&self, inner: NonNull<Inner>) -> Option<u64> {
        self.find(inner).map(|at| self.writes[at].found & !WAITERS)
    }

    /// Empties the log. Gives the nodes that were never published, and are to be dropped when the
    /// session has been given back, because their destructors are code of the program.
    #[inline]
    pub(crate) fn clear(&mut self, published: bool) -> Vec<Garbage> {
        let has_nodes = !self.superseded.is_empty() || !self.undo.is_empty();
        let nodes = match has_nodes || !published && !self.writes.is_empty() {
            true => self.take_unpublished(published),
            false => Vec::new(),
        };
        if !self.index.is_empty() {
            self.index.clear();
        }
        self.writes.clear();
        self.reads.clear();
        (self.filter, self.branches, self.fresh) = (0, 0, 0);
        nodes
    }

    #[cold]
    fn take_unpublished(&mut self, published: bool) -> Vec<Garbage> {
        let mut nodes = Vec::new();
        for (node, free) in self.superseded.drain(..) {
            // SAFETY: `TVar::write` made the node for this attempt; a published node's entry is not
            // among these; the body's references to the node have ended.
            nodes.push(unsafe { Garbage::new(node, free) });
        }
        for (at, old) in self.undo.drain(..) {
            // SAFETY: as above.
            nodes.extend(self.writes[at].free.map(|free| unsafe { Garbage::new(old, free) }));
        }
        if !published {
            for write in &self.writes {
                // SAFETY: as above.
                nodes.extend(write.free.map(|free| unsafe { Garbage::new(write.value, free) }));
            }
        }
        nodes
    }
}
