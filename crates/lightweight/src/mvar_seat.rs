//! The record behind an MVar of Selvedge's threads: [`MVarSeat`].
//!
//! `selvedge.rs` and `selvedge_direct.rs` have it. It has the form that its content needs, from
//! nothing to a queue on the heap.

use crate::seat::{SeatQueue, WaitSeat};
use ::selvedge::Thread;
use std::cell::Cell;
use std::fmt;

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
