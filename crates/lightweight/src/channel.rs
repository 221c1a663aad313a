//! The records behind an MVar and a Fifo: [`MVarRecord`] and [`FifoRecord`]. They decide what an
//! operation does, and know nothing of how a thread is kept: that is the parameter.
//!
//! Every implementation except `sys` and `selvedge` uses them. `R` is what a waiting reader has
//! left in the record, `W` what a waiting writer has left.

use std::collections::VecDeque;

/// The paper's record of three options: the value, the waiting reader, the waiting writer with the
/// value that it wants to put.
///
/// # Paper
/// [Del §4.1] `mvar`.
#[derive(Debug)]
pub struct MVarRecord<T, R, W> {
    value: Option<T>,
    read: Option<R>,
    write: Option<(W, T)>,
}

/// What a `put` has found.
pub(crate) enum PutFound<T, R> {
    /// The MVar was empty and has the value now.
    Done,
    /// A reader waited: the value is for it.
    Reader(R, T),
    /// The MVar is full. The caller waits, and leaves itself with [`MVarRecord::wait_to_put`].
    Full(T),
}

/// What a `take` has found.
pub(crate) enum TakeFound<T, W> {
    /// The value, and the writer of the value that is in the MVar now.
    Value(T, Option<W>),
    /// The MVar is empty. The caller waits, and leaves itself with [`MVarRecord::wait_to_take`].
    Empty,
}

impl<T, R, W> MVarRecord<T, R, W> {
    pub(crate) fn new() -> Self {
        MVarRecord { value: None, read: None, write: None }
    }

    pub(crate) fn put(&mut self, value: T) -> PutFound<T, R> {
        assert!(self.write.is_none(), "failed put_mvar: another thread waits to put");
        match (&self.value, self.read.take()) {
            (None, Some(reader)) => PutFound::Reader(reader, value),
            (None, None) => {
                self.value = Some(value);
                PutFound::Done
            }
            (Some(_), _) => PutFound::Full(value),
        }
    }

    pub(crate) fn wait_to_put(&mut self, writer: W, value: T) {
        self.write = Some((writer, value));
    }

    pub(crate) fn take(&mut self) -> TakeFound<T, W> {
        assert!(self.read.is_none(), "failed take_mvar: another thread waits to take");
        match (self.value.take(), self.write.take()) {
            (Some(value), None) => TakeFound::Value(value, None),
            (Some(value), Some((writer, next))) => {
                self.value = Some(next);
                TakeFound::Value(value, Some(writer))
            }
            (None, _) => TakeFound::Empty,
        }
    }

    pub(crate) fn wait_to_take(&mut self, reader: R) {
        self.read = Some(reader);
    }
}

/// An unbounded queue with at most one waiting reader.
///
/// # Paper
/// [Del §2.2] `fifo`.
#[derive(Debug)]
pub struct FifoRecord<T, R> {
    values: VecDeque<T>,
    read: Option<R>,
}

impl<T, R> FifoRecord<T, R> {
    pub(crate) fn new() -> Self {
        FifoRecord { values: VecDeque::new(), read: None }
    }

    /// Adds a value, or gives the reader that waited with the value for it.
    pub(crate) fn put(&mut self, value: T) -> Option<(R, T)> {
        match self.read.take() {
            Some(reader) => Some((reader, value)),
            None => {
                self.values.push_back(value);
                None
            }
        }
    }

    /// The oldest value. Without one, the caller waits, and leaves itself with
    /// [`FifoRecord::wait_to_take`].
    pub(crate) fn take(&mut self) -> Option<T> {
        assert!(self.read.is_none(), "failed take_fifo: another thread waits to take");
        self.values.pop_front()
    }

    pub(crate) fn wait_to_take(&mut self, reader: R) {
        self.read = Some(reader);
    }
}
