//! The record behind a Fifo of Selvedge's threads: [`FifoSeat`].

use crate::seat::{SeatQueue, WaitSeat};
use ::selvedge::Thread;
use std::cell::RefCell;
use std::fmt;

/// An unbounded queue with at most one waiting reader.
///
/// # Paper
/// [Del §2.2] `fifo`.
pub struct FifoSeat<T>(RefCell<SeatQueue<T>>);

impl<T> FifoSeat<T> {
    /// Adds a value. Gives the reader that waited for it.
    #[inline(always)]
    pub(crate) fn put(&self, value: T) -> Option<Thread> {
        self.0.borrow_mut().put(value)
    }

    /// The oldest value. Without one, the caller waits.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<T> {
        self.0.borrow_mut().take()
    }

    /// The value that was put for the calling reader.
    #[inline(always)]
    pub(crate) fn collect(&self) -> T {
        self.0.borrow_mut().collect()
    }
}

impl<T: 'static> WaitSeat for FifoSeat<T> {
    fn new() -> Self {
        FifoSeat(RefCell::new(SeatQueue::of([], 0)))
    }

    fn sit(&self, thread: Thread) {
        self.0.borrow_mut().sit(thread);
    }

    fn clear(&self) -> usize {
        self.0.replace(SeatQueue::of([], 0)).waiting()
    }
}

impl<T> fmt::Debug for FifoSeat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FifoSeat")
    }
}
