//! Claiming at the end of a quantum: the frames of the thunks that an OS thread is evaluating, and
//! the look at each of them, for [`ClaimAtYield`](crate::ClaimAtYield) and
//! [`GreyClaimAtYield`](crate::GreyClaimAtYield).
//!
//! # The frames
//! Each evaluation has an [`UpdateFrame`] (`frames.rs`) on the native stack, with the frame of the
//! evaluation that demands it. After a quantum the nursery goes from the innermost frame outwards,
//! and stops at the first one that it has claimed in an earlier quantum.
//! ```text
//!    header             the thunk is                            done
//!    its code           under evaluation, claimed by none       exchange for BLACK
//!    GREY               the same, of an entry that leaves GREY  exchange for BLACK
//!    BLACK, mine        claimed at its entry (`just_once`)      nothing
//!    BLACK, another's   claimed by another OS thread            leave it, and all within it
//!    a result           updated by another OS thread            as above
//! ```
//! Under `ClaimAtYield` an entry writes nothing into the header, so only an update and a panic end
//! a claim.
//!
//! # With grey holes
//! Under `GreyClaimAtYield` the entry stores GREY, and other threads wait from then on. A GREY hole
//! of another OS thread in a frame of this one says that both have entered: the look claims the
//! thunk, and the other OS thread finds BLACK. The claim is an exchange, so of two looks one wins.
//!
//! The store of an entry is plain. A thread that is stopped between the load and the store of its
//! entry may store GREY over another thread's claim. So a frame that has claimed its thunk may be a
//! duplicate for longer than a quantum. `note_duplicate` counts its whole length then.
//!
//! # No duplicate is longer than a quantum
//! Two OS threads evaluate one thunk, A and B, and A claims it first, within a quantum of its own
//! entry. From then on no other thread enters it. B entered before, and looks at its frames within
//! a quantum. It finds the claim, or the result that A has left, and leaves the evaluation.
//!
//! A `just_once` thunk within the evaluation would be evaluated a second time if the evaluation
//! were left. Then the look ends before the frame of the duplicate, and the next look finds it
//! again.
//!
//! # Leaving
//! The thread unwinds with [`LeftEvaluation`] to the outermost frame that is redundant. Each frame
//! on the way that had claimed its thunk gives it back as it was.
//!
//! # Several stacks
//! Threads in direct style may share a nursery, and a closure may wait in the middle, although it
//! should not. So the frames of several stacks may be in one list, in the order of the entries, and
//! they end in any order. A frame is taken out of the list from where it is, and a look passes over
//! the frames of other stacks, because the OS thread cannot unwind to them.
//!
//! # Callers
//! `Code::enter` in `code.rs` calls `evaluate_in_frame` if the engine claims at the end of a
//! quantum. The program calls `safe_point`. Paper: [HMP05 §4.1, §4.6].

use super::cell::{ThunkHead, is_result};
use super::engine::ThunkEntry;
use super::frames::{PopFrame, QUANTUM, UpdateFrame};
use super::hole::is_claim;
use super::nursery::Nursery;
use crate::primitives::Ordering;
use selvedge_core::internal::this_stack;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};

/// The payload of the unwinding that leaves an evaluation.
struct LeftEvaluation;

impl<E: ThunkEntry> Nursery<'_, E> {
    /// A point in a long computation at which its OS thread looks whether its quantum is over. It
    /// counts as the entry of a thunk, and does nothing but under
    /// [`ClaimAtYield`](crate::ClaimAtYield) and [`GreyClaimAtYield`](crate::GreyClaimAtYield).
    ///
    /// # Panics
    /// It unwinds if another thread has evaluated, or is evaluating, the thunk of the closure that
    /// calls it, or one that demands it. No message is printed, and no code of the program sees it
    /// that does not catch panics.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::{ClaimAtYield, Region};
    ///
    /// let region: Region<ClaimAtYield> = Region::new();
    /// let nursery = region.nursery();
    /// let sum = nursery.thunk(|nursery| {
    ///     let mut sum = 0u64;
    ///     for n in 0..100_000 {
    ///         nursery.safe_point();
    ///         sum += n;
    ///     }
    ///     sum
    /// });
    /// assert_eq!(sum.force(&nursery), 4_999_950_000);
    /// ```
    #[inline(always)]
    pub fn safe_point(&self) {
        if E::CLAIMS_AT_YIELD {
            let left = self.frames.left.get() - 1;
            self.frames.left.set(left);
            if left == 0 {
                self.claim_frames();
            }
        }
    }

    /// The end of a quantum.
    #[cold]
    #[inline(never)]
    fn claim_frames(&self) {
        self.frames.left.set(QUANTUM);
        let mine = self.holes.black;
        let (mut redundant, mut keeps) = (ptr::null(), false);
        let (mut next, stack) = (self.frames.top.get(), this_stack());
        // SAFETY: each frame is taken out of the list before its evaluation ends.
        while let Some(frame) = unsafe { next.as_ref() } {
            if !ptr::eq(frame.stack, stack) {
                next = frame.up.get();
                continue;
            }
            if frame.is_claimed.get() {
                break;
            }
            let header = &frame.thunk().header;
            let mut found = header.load(Ordering::Acquire);
            while !is_result(found) && !is_claim(found) {
                match header.compare_exchange(found, mine, Ordering::Acquire, Ordering::Acquire) {
                    Ok(_) => found = mine,
                    Err(now) => found = now,
                }
            }
            if found != mine {
                if keeps {
                    break;
                }
                redundant = next;
            } else {
                frame.is_claimed.set(true);
            }
            keeps |= frame.once;
            next = frame.up.get();
        }
        let may_leave = cfg!(panic = "unwind") && !std::thread::panicking();
        if !redundant.is_null() && may_leave {
            self.frames.leave.set(redundant);
            resume_unwind(Box::new(LeftEvaluation));
        }
    }

    /// Evaluates a thunk within a frame, and passes the result to `update`. `None` if the
    /// evaluation was left: then another OS thread has the thunk, or has updated it.
    #[inline(always)]
    pub(super) fn evaluate_in_frame(
        &self,
        thunk: NonNull<ThunkHead>,
        after_panic: usize,
        once: bool,
        evaluate: impl FnOnce() -> *mut (),
        update: impl FnOnce(*mut ()) -> Result<(), *mut ()>,
    ) -> Option<*mut ()> {
        let frames = &self.frames;
        let entered = frames.entries.get();
        frames.entries.set(entered + 1);
        let frame = UpdateFrame {
            thunk,
            after_panic,
            once,
            stack: this_stack(),
            up: Cell::new(frames.top.get()),
            is_claimed: Cell::new(false),
        };
        frames.top.set(&frame);
        let _pop = PopFrame { frames, frame: &frame, holes: self.holes };
        let evaluated = catch_unwind(AssertUnwindSafe(|| {
            self.safe_point();
            evaluate()
        }));
        let is_left = ptr::eq(frames.leave.get(), &frame);
        if is_left {
            frames.leave.set(ptr::null());
        }
        match evaluated {
            Ok(word) => Some(match update(word) {
                Ok(()) => word,
                Err(first) => {
                    self.note_duplicate(&frame, entered);
                    first
                }
            }),
            Err(payload) if is_left && payload.is::<LeftEvaluation>() => {
                self.note_duplicate(&frame, entered);
                None
            }
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Counts a duplicate. If this OS thread had claimed the thunk, and no entry stores over a
    /// claim, the other evaluation was the duplicate: it ended before its OS thread looked at it.
    #[cold]
    fn note_duplicate(&self, frame: &UpdateFrame, entered: u64) {
        let length = match frame.is_claimed.get() && !E::GREYS {
            true => 0,
            false => self.frames.entries.get() - entered,
        };
        self.count(|counts| {
            counts.duplicates += 1;
            counts.longest_duplicate = counts.longest_duplicate.max(length);
        });
    }
}
