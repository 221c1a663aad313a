//! The log of one attempt of a transaction: the versions that it read, and the values that it is
//! going to write.

use crate::session::{Free, Garbage};
use crate::variable::Inner;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;

/// A variable, and what the engine notes of it to compare it later: its word when it was unlocked,
/// without the bit `WAITERS`; or the bits of its value.
#[derive(Clone, Copy)]
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
    /// The variable's word as the commit found it when it locked the variable.
    pub(crate) found: u64,
}

/// The pointers to variables stay valid, because a variable is retired when its last handle is
/// dropped, and the session of the log is pinned.
pub(crate) struct Log {
    /// One entry for each read, so a variable may have several.
    pub(crate) reads: Vec<ReadEntry>,
    /// Its capacity is at least `FEW`.
    pub(crate) writes: Vec<WriteEntry>,
    /// See [`needs_search`](Log::needs_search).
    filter: u64,
    /// One of the fields below is not as in a new log.
    has_more: bool,
    /// The places of variables among `writes`, once these are many.
    index: HashMap<NonNull<Inner>, usize>,
    /// What a branch of the transaction changed in writes from before the branch.
    undo: Vec<(usize, *mut ())>,
    branches: usize,
    /// Nodes that were to be written, and are not any more. The body may have references to them.
    superseded: Vec<(*mut (), Free)>,
}

// SAFETY: an attempt stays on its OS thread, because `Tx` is not `Send`. `Attempt::close` empties
// the log before the session may go to another OS thread.
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
    pub(crate) fn new() -> Log {
        Log {
            reads: Vec::with_capacity(FEW),
            writes: Vec::with_capacity(FEW),
            filter: 0,
            has_more: false,
            index: HashMap::new(),
            undo: Vec::new(),
            branches: 0,
            superseded: Vec::new(),
        }
    }

    /// False if a read of the variable is an ordinary one: the attempt has not written it, and
    /// nothing else is to be known about its reads.
    ///
    /// The filter has one bit for each written variable, several may share one. It has all bits
    /// after [`search_always`](Log::search_always).
    #[inline(always)]
    pub(crate) fn needs_search(&self, inner: NonNull<Inner>) -> bool {
        // The bit is computed only after the first write.
        self.filter != 0 && self.filter & bit(inner) != 0
    }

    /// From now on until the end of the attempt, each variable needs a search.
    pub(crate) fn search_always(&mut self) {
        self.filter = u64::MAX;
    }

    /// The place of a variable among the writes.
    #[inline]
    pub(crate) fn find(&self, inner: NonNull<Inner>) -> Option<usize> {
        match self.needs_search(inner) {
            true if self.index.is_empty() => self.writes.iter().position(|write| write.inner == inner),
            true => self.index.get(&inner).copied(),
            false => None,
        }
    }

    #[inline(always)]
    pub(crate) fn note_read(&mut self, inner: NonNull<Inner>, seen: u64) {
        self.reads.push(ReadEntry { inner, seen });
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, inner: NonNull<Inner>, value: *mut (), free: Option<Free>) {
        let bit = bit(inner);
        let len = self.writes.len();
        if self.filter & bit != 0 || len >= FEW {
            return self.write_or_replace(inner, value, free);
        }
        self.filter |= bit;
        // SAFETY: `len` is below `FEW`, and the capacity is at least that.
        unsafe {
            self.writes.as_mut_ptr().add(len).write(WriteEntry { inner, value, free, found: 0 });
            self.writes.set_len(len + 1);
        }
    }

    /// A write of a variable that is perhaps among the writes, or to be among many.
    #[cold]
    #[inline(never)]
    fn write_or_replace(&mut self, inner: NonNull<Inner>, value: *mut (), free: Option<Free>) {
        if let Some(at) = self.find(inner) {
            let old = std::mem::replace(&mut self.writes[at].value, value);
            match self.branches {
                0 => self.superseded.extend(free.map(|free| (old, free))),
                _ => self.undo.push((at, old)),
            }
            self.has_more = true;
            return;
        }
        self.filter |= bit(inner);
        self.writes.push(WriteEntry { inner, value, free, found: 0 });
        match self.writes.len() {
            ..=FEW => {}
            len if self.index.is_empty() => {
                self.has_more = true;
                self.index.extend((0..len).map(|at| (self.writes[at].inner, at)));
            }
            len => {
                self.index.insert(inner, len - 1);
            }
        }
    }

    /// Begins a branch, which [`end_branch`](Log::end_branch) ends.
    pub(crate) fn begin_branch(&mut self) -> BranchMark {
        self.has_more = true;
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

    /// Whether a log whose writes are published needs more than [`clear`](Log::clear).
    #[inline(always)]
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Empties a log of which all nodes are published.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.writes.clear();
        self.reads.clear();
        self.filter = 0;
    }

    /// Empties any log. Gives the nodes that were never published, and are to be dropped when the
    /// session has been given back, because their destructors are code of the program.
    pub(crate) fn clear_all(&mut self, published: bool) -> Vec<Garbage> {
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
        if self.has_more {
            self.index.clear();
            (self.branches, self.has_more) = (0, false);
        }
        self.clear();
        nodes
    }
}
