//! The reads of an attempt: [`Reads`], a list to which a read adds an entry with two stores.

use crate::address::VarAddress;
use std::ops::Deref;
use std::ptr::null_mut;

/// A variable, and what the engine notes of it to compare it later: its word when it was unlocked,
/// without the bit `WAITERS`; or the bits of its value.
#[derive(Clone, Copy)]
pub(crate) struct ReadEntry {
    pub(crate) variable: VarAddress,
    pub(crate) seen: u64,
}

/// One entry for each read, so a variable may have several.
///
/// A vector would keep its length; this has the place of its next entry, so that the place need not
/// be computed.
pub(crate) struct Reads {
    next: *mut ReadEntry,
    /// The end of the buffer's capacity.
    end: *mut ReadEntry,
    /// The entries lie in its spare capacity: its length is 0.
    buffer: Vec<ReadEntry>,
}

/// The number of reads for which a new list has room.
const ROOM: usize = 64;

impl Reads {
    pub(crate) fn new() -> Reads {
        let mut reads = Reads { next: null_mut(), end: null_mut(), buffer: Vec::with_capacity(ROOM) };
        reads.point(0);
        reads
    }

    /// Sets the pointers, for this number of entries.
    fn point(&mut self, len: usize) {
        let (first, room) = (self.buffer.as_mut_ptr(), self.buffer.capacity());
        assert!(len <= room, "the entries are within the capacity");
        // SAFETY: both are within the allocation or at its end, by the assertion.
        (self.next, self.end) = unsafe { (first.add(len), first.add(room)) };
    }

    /// Whether there is room for one more entry.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.next != self.end
    }

    /// Adds an entry.
    ///
    /// # Safety
    /// There is room for it.
    #[inline(always)]
    pub(crate) unsafe fn push_within(&mut self, read: ReadEntry) {
        // SAFETY: the caller's contract: `next` is below the end of the capacity.
        unsafe {
            self.next.write(read);
            self.next = self.next.add(1);
        }
    }

    /// Adds an entry, and makes room for it if there is none.
    pub(crate) fn push(&mut self, read: ReadEntry) {
        if !self.has_room() {
            self.grow();
        }
        // SAFETY: there is room, by `has_room` or `grow`.
        unsafe { self.push_within(read) };
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.len();
        // SAFETY: this number of entries are written. They are copied into the larger buffer as
        // elements.
        unsafe { self.buffer.set_len(len) };
        self.buffer.reserve(len);
        self.buffer.truncate(0);
        self.point(len);
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.next.cast_const() == self.buffer.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.next = self.buffer.as_mut_ptr();
    }

    /// Keeps those entries for which the function returns true, in their order.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&ReadEntry) -> bool) {
        let len = self.len();
        // SAFETY: this number of entries are written.
        unsafe { self.buffer.set_len(len) };
        self.buffer.retain(keep);
        let kept = self.buffer.len();
        self.buffer.truncate(0);
        self.point(kept);
    }
}

impl Deref for Reads {
    type Target = [ReadEntry];

    #[inline(always)]
    fn deref(&self) -> &[ReadEntry] {
        let first = self.buffer.as_ptr();
        // SAFETY: both pointers are into the buffer, `next` is not before its begin, and the
        // entries between them are written.
        unsafe { std::slice::from_raw_parts(first, self.next.cast_const().offset_from_unsigned(first)) }
    }
}
