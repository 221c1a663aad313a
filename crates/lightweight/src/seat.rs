//! What the scheduler asks of a record in which a thread of Selvedge waits ([`WaitSeat`]), and the
//! values of a record with the threads on its two sides ([`SeatQueue`]).
//!
//! `mvar_seat.rs` and `fifo_seat.rs` have the records. They do what those of `channel.rs` do, in
//! fewer bytes. A waiting thread is 4 bytes, and the record owns it: a [`Thread`] is a value. A
//! value that was put for a reader lies in the record until the reader runs, because the record
//! cannot reach into the thread.
//!
//! A thread takes its seat in two steps. It finds that it must wait; then its step ends, and the
//! scheduler gives the thread to the record ([`WaitSeat::sit`]). No other thread runs in between.

use ::selvedge::Thread;
use std::collections::VecDeque;

/// A record that keeps the threads that wait for it.
pub(crate) trait WaitSeat: 'static {
    /// An empty record.
    fn new() -> Self
    where
        Self: Sized;

    /// Keeps the thread, which has just found that it must wait.
    fn sit(&self, thread: Thread);

    /// Drops the values and the threads in it. Gives how many threads waited.
    fn clear(&self) -> usize;
}

/// Values, and the threads that wait on the two sides.
pub(crate) struct SeatQueue<T> {
    /// First the values that were put for readers that have not run yet, then the other values.
    values: VecDeque<T>,
    handed: u32,
    reader: Option<Thread>,
    /// The thread that waits to put into an MVar. Its value is the last.
    pub(crate) writer: Option<Thread>,
}

impl<T> SeatQueue<T> {
    pub(crate) fn of<const N: usize>(values: [T; N], handed: u32) -> Self {
        SeatQueue { values: VecDeque::from(values), handed, reader: None, writer: None }
    }

    /// The values that any thread may take.
    #[inline(always)]
    pub(crate) fn free(&self) -> usize {
        self.values.len() - self.handed as usize
    }

    pub(crate) fn waiting(&self) -> usize {
        usize::from(self.reader.is_some()) + usize::from(self.writer.is_some())
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, value: T) -> Option<Thread> {
        self.values.push_back(value);
        let reader = self.reader.take();
        self.handed += u32::from(reader.is_some());
        reader
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<T> {
        assert!(self.reader.is_none(), "failed take: another thread waits to take");
        match self.handed {
            0 => self.values.pop_front(),
            handed => self.values.remove(handed as usize),
        }
    }

    #[inline(always)]
    pub(crate) fn collect(&mut self) -> T {
        self.handed -= 1;
        self.values.pop_front().expect("a reader is woken with a value")
    }

    #[inline(always)]
    pub(crate) fn sit(&mut self, thread: Thread) {
        let seat = if self.free() == 0 { &mut self.reader } else { &mut self.writer };
        *seat = Some(thread);
    }
}
