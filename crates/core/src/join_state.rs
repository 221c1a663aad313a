//! [`JoinState`]: the word by which a joinable thread and its handle agree on its end.
//!
//! `joinable.rs` has the word in the cell that thread and handle share. The thread and its
//! `JoinHandle` (`join.rs`) may be on different OS threads. Each of them exchanges the word as a
//! whole:
//!
//! ```text
//!   the word       set_joiner (handle)   drop_handle (handle)           finish (thread)
//!   NO_JOINER      a joiner              HANDLE_GONE                    FINISHED
//!   a joiner       another joiner        HANDLE_GONE, drops the joiner  FINISHED, wakes the joiner
//!   FINISHED       no exchange           no exchange, frees the block   -
//!   HANDLE_GONE    -                     -                              FINISHED, frees the block
//! ```
//!
//! - **The joiner is told once.** The joiner is a waker in the word. The side that exchanges it out
//!   of the word owns it. The thread wakes it; the handle drops it, when the handle has another
//!   waker or is dropped itself.
//! - **One side frees the block.** FINISHED and HANDLE_GONE are the last words of the two sides.
//!   The second side to exchange finds the last word of the first one, and frees the block.
//! - **The handle sees the result.** The thread writes the result before its exchange to FINISHED,
//!   which is a Release. The handle reads the result only after it has loaded FINISHED with
//!   Acquire. While there is a handle, FINISHED stays, so a handle that has seen it exchanges
//!   nothing more.
//!
//! `tests/loom/join.rs` checks it.

use crate::arena::Key;
use crate::primitives::{AtomicU64, Ordering};
use crate::waker;
use std::task::Waker;

/// The word that a thread and its handle exchange: see the head of this file.
#[derive(Debug)]
#[doc(hidden)]
pub struct JoinState(AtomicU64);

/// The state of the handle when its thread finishes.
#[derive(Debug)]
#[doc(hidden)]
pub enum Joiner {
    /// There is a handle, which no thread or task awaits.
    None,
    /// The handle is awaited. The thread must wake this waker.
    Waiting(Waker),
    /// The handle is gone. The thread has the cell alone.
    HandleGone,
}

/// There is a handle, and no joiner.
const NO_JOINER: u64 = 0;
/// The thread has written its result.
const FINISHED: u64 = 1;
/// The handle has been dropped.
const HANDLE_GONE: u64 = 2;

impl Default for JoinState {
    fn default() -> JoinState {
        JoinState(AtomicU64::new(NO_JOINER))
    }
}

impl JoinState {
    /// The thread has ended.
    #[inline(always)]
    pub fn finish(&self) -> Joiner {
        match self.0.swap(FINISHED, Ordering::AcqRel) {
            HANDLE_GONE => Joiner::HandleGone,
            joiner => waker_of(joiner).map_or(Joiner::None, Joiner::Waiting),
        }
    }

    /// The handle is dropped. True if the thread has finished, so that the handle has the cell
    /// alone.
    #[inline(always)]
    pub fn drop_handle(&self) -> bool {
        // FINISHED is the thread's last word, and only the handle could exchange it.
        self.is_finished() || self.drop_handle_early()
    }

    #[inline(never)]
    fn drop_handle_early(&self) -> bool {
        match self.0.swap(HANDLE_GONE, Ordering::AcqRel) {
            FINISHED => true,
            joiner => {
                drop(waker_of(joiner));
                false
            }
        }
    }

    /// Makes `waker` the joiner, in place of an earlier one. False if the thread has finished.
    pub fn set_joiner(&self, waker: Waker) -> bool {
        let joiner = word_of(waker);
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            if now == FINISHED {
                drop(waker_of(joiner));
                return false;
            }
            match self.0.compare_exchange(now, joiner, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    drop(waker_of(now));
                    return true;
                }
                Err(other) => now = other,
            }
        }
    }

    /// Whether the thread has finished.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.0.load(Ordering::Acquire) == FINISHED
    }

    /// The Selvedge thread that awaits the handle, as the number of its CPU and its key.
    pub(crate) fn awaited_by(&self) -> Option<(u32, Key)> {
        keyed(self.0.load(Ordering::Acquire))
    }

    /// Whether the handle is gone.
    pub(crate) fn is_handle_gone(&self) -> bool {
        self.0.load(Ordering::Acquire) == HANDLE_GONE
    }
}

/// A waker as a word of a [`JoinState`]. A keyed waker becomes its two numbers, with bit 0 set. Bit
/// 0 is free, because a CPU's number has less than 31 bits. Any other waker goes into a box, and
/// the word is the address of the box, a multiple of 8. So the word is none of the three constants:
/// no key is 0, so a keyed waker is not FINISHED (1), and no box is at 0 or 2.
fn word_of(waker: Waker) -> u64 {
    match waker::key_of(&waker) {
        Some((id, key)) => u64::from(id) << 33 | u64::from(key.get()) << 1 | 1,
        None => Box::into_raw(Box::new(waker)).expose_provenance() as u64,
    }
}

/// The two numbers of the keyed waker in a word. `None` if there is no keyed waker in it.
fn keyed(word: u64) -> Option<(u32, Key)> {
    if word & 1 == 0 {
        return None;
    }
    Some(((word >> 33) as u32, Key::new((word >> 1) as u32)?))
}

/// The waker in a word. The caller has exchanged the word out of the cell, or never put it there.
fn waker_of(word: u64) -> Option<Waker> {
    match word {
        NO_JOINER | FINISHED | HANDLE_GONE => None,
        word if let Some((id, key)) = keyed(word) => Some(waker::of(id, key.get())),
        boxed => {
            let boxed = std::ptr::with_exposed_provenance_mut::<Waker>(boxed as usize);
            // SAFETY: `word_of` has made the word of a box. By the contract above the word is not
            // in the cell any more, so no other call has it.
            Some(*unsafe { Box::from_raw(boxed) })
        }
    }
}
