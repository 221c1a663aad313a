//! The records behind an MVar and a Fifo in which a thread of Selvedge waits: [`MVarSeat`] and
//! [`FifoSeat`].
//!
//! `selvedge.rs` has them. They do what those of `channel.rs` do, in fewer bytes. A waiting thread
//! is 4 bytes, and the record owns it: a [`Thread`] is a value. A value that was put for a reader
//! lies in the record until the reader runs, because the record cannot reach into the thread.
//!
//! A thread takes its seat in two steps. It finds that it must wait; then its step ends, and the
//! scheduler gives the thread to the record ([`WaitSeat::sit`]). No other thread runs in between.

use ::selvedge::Thread;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;

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

/// What a `put` has found.
pub(crate) enum PutSeat {
    /// The value is in the MVar.
    Done,
    /// The value is for this reader, which is ready now.
    Reader(Thread),
    /// The MVar was full. It has the value, and the caller waits.
    Full,
}

/// One value or none, with at most one waiting reader and one waiting writer.
///
/// It has 16 bytes for a number of 64 bits, until one side is ahead of the other by more than a
/// value. Then it has a queue of at most three values on the heap: one for a reader that has not
/// run yet, the one in the MVar, and that of the writer.
///
/// # Paper
/// [Del §4.1] `mvar`: the value, the waiting reader, the waiting writer with its value.
pub struct MVarSeat<T>(Cell<MVarState<T>>);

enum MVarState<T> {
    /// No value and no thread.
    Empty,
    Full(T),
    /// The thread that waits for a value.
    Reader(Thread),
    /// The value for a reader that has not run yet.
    Handed(T),
    /// More than one of these.
    Crowded(Box<SeatQueue<T>>),
}

use MVarState::{Crowded, Empty, Full, Handed, Reader};

impl<T> MVarSeat<T> {
    #[inline(always)]
    pub(crate) fn put(&self, value: T) -> PutSeat {
        match self.0.replace(Empty) {
            Empty => {
                self.0.set(Full(value));
                PutSeat::Done
            }
            Reader(reader) => {
                self.0.set(Handed(value));
                PutSeat::Reader(reader)
            }
            Crowded(mut queue) => {
                assert!(queue.writer.is_none(), "failed put_mvar: another thread waits to put");
                let reader = queue.put(value);
                let is_full = queue.free() > 1;
                self.0.set(Crowded(queue));
                match reader {
                    Some(reader) => PutSeat::Reader(reader),
                    None if is_full => PutSeat::Full,
                    None => PutSeat::Done,
                }
            }
            Full(before) => {
                self.crowd(SeatQueue::of([before, value], 0));
                PutSeat::Full
            }
            Handed(before) => {
                self.crowd(SeatQueue::of([before, value], 1));
                PutSeat::Done
            }
        }
    }

    /// The value, and the writer of the value that is in the MVar now. Without a value the caller
    /// waits.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<(T, Option<Thread>)> {
        match self.0.replace(Empty) {
            Empty => None,
            Full(value) => Some((value, None)),
            Crowded(mut queue) => {
                let taken = queue.take().map(|value| (value, queue.writer.take()));
                self.0.set(Crowded(queue));
                taken
            }
            Handed(value) => {
                self.0.set(Handed(value));
                None
            }
            Reader(reader) => {
                self.0.set(Reader(reader));
                panic!("failed take_mvar: another thread waits to take");
            }
        }
    }

    /// The value that was put for the calling reader.
    #[inline(always)]
    pub(crate) fn collect(&self) -> T {
        match self.0.replace(Empty) {
            Handed(value) => value,
            Crowded(mut queue) => {
                let value = queue.collect();
                self.0.set(Crowded(queue));
                value
            }
            _ => unreachable!("a reader is woken with a value"),
        }
    }

    #[cold]
    fn crowd(&self, queue: SeatQueue<T>) {
        self.0.set(Crowded(Box::new(queue)));
    }
}

impl<T: 'static> WaitSeat for MVarSeat<T> {
    fn new() -> Self {
        MVarSeat(Cell::new(Empty))
    }

    fn sit(&self, thread: Thread) {
        match self.0.replace(Empty) {
            Crowded(mut queue) => {
                queue.sit(thread);
                self.0.set(Crowded(queue));
            }
            Handed(value) => {
                let mut queue = SeatQueue::of([value], 1);
                queue.sit(thread);
                self.crowd(queue);
            }
            _ => self.0.set(Reader(thread)),
        }
    }

    fn clear(&self) -> usize {
        match self.0.replace(Empty) {
            Reader(_) => 1,
            Crowded(queue) => queue.waiting(),
            _ => 0,
        }
    }
}

impl<T> fmt::Debug for MVarSeat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MVarSeat")
    }
}

const _: () = assert!(size_of::<MVarSeat<u64>>() == 16);

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

/// Values, and the threads that wait on the two sides.
struct SeatQueue<T> {
    /// First those that were put for readers that have not run yet, then the others.
    values: VecDeque<T>,
    handed: u32,
    reader: Option<Thread>,
    /// The thread that waits to put into an MVar. Its value is the last.
    writer: Option<Thread>,
}

impl<T> SeatQueue<T> {
    fn of<const N: usize>(values: [T; N], handed: u32) -> Self {
        SeatQueue { values: VecDeque::from(values), handed, reader: None, writer: None }
    }

    /// The values that any thread may take.
    #[inline(always)]
    fn free(&self) -> usize {
        self.values.len() - self.handed as usize
    }

    fn waiting(&self) -> usize {
        usize::from(self.reader.is_some()) + usize::from(self.writer.is_some())
    }

    #[inline(always)]
    fn put(&mut self, value: T) -> Option<Thread> {
        self.values.push_back(value);
        let reader = self.reader.take();
        self.handed += u32::from(reader.is_some());
        reader
    }

    #[inline(always)]
    fn take(&mut self) -> Option<T> {
        assert!(self.reader.is_none(), "failed take: another thread waits to take");
        match self.handed {
            0 => self.values.pop_front(),
            handed => self.values.remove(handed as usize),
        }
    }

    #[inline(always)]
    fn collect(&mut self) -> T {
        self.handed -= 1;
        self.values.pop_front().expect("a reader is woken with a value")
    }

    #[inline(always)]
    fn sit(&mut self, thread: Thread) {
        let seat = if self.free() == 0 { &mut self.reader } else { &mut self.writer };
        *seat = Some(thread);
    }
}
