//! The frames of the evaluations of one OS thread: [`UpdateFrame`] and [`FrameStack`].
//!
//! `claim.rs` says what they are for, and reads and changes them. Each nursery has a `FrameStack`.

use super::cell::{ThunkHead, end_unwinding};
use super::hole::ThreadHoles;
use crate::primitives::Ordering;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The entries of a quantum.
pub(super) const QUANTUM: u32 = if cfg!(any(loom, miri)) { 4 } else { 1024 };

/// An evaluation of a thunk on the native stack.
pub(super) struct UpdateFrame {
    /// In a region, which stays at least as long as the evaluation.
    pub(super) thunk: NonNull<ThunkHead>,
    /// The header after an evaluation that has unwound.
    pub(super) after_panic: usize,
    /// Whether the thunk must not be evaluated a second time.
    pub(super) once: bool,
    /// The native stack that the frame lies on.
    pub(super) stack: *const (),
    /// The frame that was made before this one, and has not ended. If it is of the same stack, its
    /// evaluation demands this one.
    pub(super) up: Cell<*const UpdateFrame>,
    pub(super) is_claimed: Cell<bool>,
}

/// What a nursery knows of its frames.
pub(super) struct FrameStack {
    /// The frame that was made last.
    pub(super) top: Cell<*const UpdateFrame>,
    /// The frame to which the OS thread unwinds.
    pub(super) leave: Cell<*const UpdateFrame>,
    pub(super) entries: Cell<u64>,
    /// The entries and safe points that are left of the quantum.
    pub(super) left: Cell<u32>,
}

impl FrameStack {
    pub(super) fn new() -> FrameStack {
        FrameStack {
            top: Cell::new(ptr::null()),
            leave: Cell::new(ptr::null()),
            entries: Cell::new(0),
            left: Cell::new(QUANTUM),
        }
    }

    /// Whether no evaluation is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.top.get().is_null()
    }

    /// Takes out a frame that is not the last one, because threads on several stacks have frames.
    #[cold]
    fn unlink(&self, frame: &UpdateFrame) {
        let mut at = self.top.get();
        // SAFETY: each frame is taken out before its evaluation ends, so those in the list live.
        while let Some(later) = unsafe { at.as_ref() } {
            if ptr::eq(later.up.get(), frame) {
                later.up.set(frame.up.get());
            }
            at = later.up.get();
        }
    }
}

/// Removes a frame, also when its evaluation unwinds.
pub(super) struct PopFrame<'a> {
    pub(super) frames: &'a FrameStack,
    pub(super) frame: &'a UpdateFrame,
    /// Those of this OS thread.
    pub(super) holes: ThreadHoles,
}

impl Drop for PopFrame<'_> {
    fn drop(&mut self) {
        if ptr::eq(self.frames.top.get(), self.frame) {
            self.frames.top.set(self.frame.up.get());
        } else {
            self.frames.unlink(self.frame);
        }
        let header = &self.frame.thunk().header;
        // An evaluation that has ended has no hole any more. If it has not, a duplicate that was
        // entered before the claim may update the thunk at any moment.
        let found = header.load(Ordering::Relaxed);
        if self.holes.has(found) {
            end_unwinding(header, found, self.frame.after_panic);
        }
    }
}

impl UpdateFrame {
    pub(super) fn thunk(&self) -> &ThunkHead {
        // SAFETY: see the field.
        unsafe { self.thunk.as_ref() }
    }
}
