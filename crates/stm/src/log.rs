//! The log of one attempt of a transaction: the versions that it read, and the values that it is
//! going to write.

use crate::address::{AddressHasher, VarAddress};
use crate::garbage::{Free, Garbage};
use crate::reads::{ReadEntry, Reads};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// A variable, and its value to be.
pub(crate) struct WriteEntry {
    pub(crate) variable: VarAddress,
    /// A node, or the bits of a word.
    pub(crate) value: *mut (),
    /// Frees a node. None for the bits of a word.
    pub(crate) free: Option<Free>,
    /// The variable's word as the commit found it when it locked the variable.
    pub(crate) found: u64,
}

/// The addresses of variables stay valid, because a variable is retired when its last handle is
/// dropped, and the session of the log is pinned.
pub(crate) struct Log {
    pub(crate) reads: Reads,
    /// Its capacity is at least `FEW`.
    pub(crate) writes: Vec<WriteEntry>,
    /// See [`needs_search`](Log::needs_search).
    filter: u64,
    /// Whether this attempt needs more work at its end than an ordinary attempt: see
    /// [`is_ordinary`](Log::is_ordinary).
    has_more: bool,
    /// The places of variables among `writes`, once these are many.
    index: HashMap<VarAddress, usize, BuildHasherDefault<AddressHasher>>,
    /// The values that a branch has replaced in writes from before the branch: the index of the
    /// write, and the value before.
    undo: Vec<(usize, *mut ())>,
    branches: usize,
    /// Nodes that a later write of the same attempt has replaced. The body may have references to
    /// them.
    superseded: Vec<(*mut (), Free)>,
}

// SAFETY: an attempt stays on its OS thread, because `Tx` is not `Send`. The end of an attempt
// empties the log before the session may go to another OS thread.
unsafe impl Send for Log {}

/// The state of a log at the begin of a branch.
pub(crate) struct BranchMark {
    writes: usize,
    undo: usize,
}

/// The number of writes up to which they are searched one by one.
const FEW: usize = 16;

impl Log {
    pub(crate) fn new() -> Log {
        Log {
            reads: Reads::new(),
            writes: Vec::with_capacity(FEW),
            filter: 0,
            has_more: false,
            index: HashMap::default(),
            undo: Vec::new(),
            branches: 0,
            superseded: Vec::new(),
        }
    }

    /// False if the attempt may read the variable as an ordinary one does: it has not written the
    /// variable, has no turn and has met no conflict.
    ///
    /// The filter has one bit for each written variable, several may share one. It has all bits
    /// after [`search_always`](Log::search_always).
    #[inline(always)]
    pub(crate) fn needs_search(&self, variable: VarAddress) -> bool {
        // The bit is computed only after the first write.
        self.filter != 0 && self.filter & variable.bit() != 0
    }

    /// From now on until the end of the attempt, each variable needs a search.
    pub(crate) fn search_always(&mut self) {
        self.filter = u64::MAX;
        self.has_more = true;
    }

    /// The place of a variable among the writes.
    #[inline]
    pub(crate) fn find(&self, variable: VarAddress) -> Option<usize> {
        match self.needs_search(variable) {
            true if self.index.is_empty() => self.writes.iter().position(|write| write.variable == variable),
            true => self.index.get(&variable).copied(),
            false => None,
        }
    }

    /// Whether the attempt has written the variable. Few writes are compared without the filter,
    /// because a commit asks this mostly for a variable that is among them.
    #[inline(always)]
    pub(crate) fn has_written(&self, variable: VarAddress) -> bool {
        match self.writes.len() {
            ..=FEW => self.writes.iter().any(|write| write.variable == variable),
            _ => self.find(variable).is_some(),
        }
    }

    pub(crate) fn note_read(&mut self, variable: VarAddress, seen: u64) {
        self.reads.push(ReadEntry { variable, seen });
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, variable: VarAddress, value: *mut (), free: Option<Free>) {
        let bit = variable.bit();
        let len = self.writes.len();
        if self.filter & bit != 0 || len >= FEW {
            return self.write_or_replace(variable, value, free);
        }
        self.filter |= bit;
        // SAFETY: `len` is below `FEW`, and the capacity is at least that.
        unsafe {
            self.writes.as_mut_ptr().add(len).write(WriteEntry { variable, value, free, found: 0 });
            self.writes.set_len(len + 1);
        }
    }

    /// A write of a variable that may be among the writes already, or that comes after `FEW`
    /// writes.
    #[cold]
    #[inline(never)]
    fn write_or_replace(&mut self, variable: VarAddress, value: *mut (), free: Option<Free>) {
        if let Some(at) = self.find(variable) {
            let old = std::mem::replace(&mut self.writes[at].value, value);
            match self.branches {
                0 => self.superseded.extend(free.map(|free| (old, free))),
                _ => self.undo.push((at, old)),
            }
            self.has_more = true;
            return;
        }
        self.filter |= variable.bit();
        self.writes.push(WriteEntry { variable, value, free, found: 0 });
        match self.writes.len() {
            ..=FEW => {}
            len if self.index.is_empty() => {
                self.has_more = true;
                self.index.extend((0..len).map(|at| (self.writes[at].variable, at)));
            }
            len => {
                self.index.insert(variable, len - 1);
            }
        }
    }

    /// A number that grows with each write of a node, also with a write of a branch that is undone.
    pub(crate) fn changes(&self) -> usize {
        self.writes.len() + self.undo.len() + self.superseded.len()
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
            self.index.remove(&write.variable);
            self.superseded.extend(write.free.map(|free| (write.value, free)));
        }
        if self.writes.len() <= FEW {
            self.index.clear();
        }
    }

    /// The reads, one for each variable, in the order of the reads.
    pub(crate) fn distinct_reads(&mut self) -> &[ReadEntry] {
        let mut variables = HashSet::new();
        self.reads.retain(|read| variables.insert(read.variable));
        &self.reads
    }

    /// Whether this attempt has no turn, has met no conflict, has no branch and nothing to run at
    /// its end, and has written each variable once and few of them.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        !self.has_more
    }

    /// Marks the attempt as not [ordinary](Log::is_ordinary).
    pub(crate) fn set_unordinary(&mut self) {
        self.has_more = true;
    }

    /// Empties the log of an ordinary attempt. All its nodes are published.
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
        if self.is_ordinary() && (published || self.writes.is_empty()) {
            self.clear();
            return nodes;
        }
        for (node, free) in self.superseded.drain(..) {
            // SAFETY: `TVar::write` made the node for this attempt; a published node's entry is not
            // among these; the body's references to the node have ended. The value is `'static`,
            // which the type of the variable demands, so it does not matter when it is dropped.
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
