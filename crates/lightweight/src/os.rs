//! MVars and Fifos that OS threads share: what `sys` and `vm` have in common ([`OsShared`],
//! `OsKernel`).
//!
//! A record is behind a mutex. A thread that waits leaves its handle in the record, with a place
//! for the value for which it waits ([`OsWaiting`]). How it then stops, and which thread runs
//! meanwhile, the `OsKernel` decides.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// The address space of a thread's stack. Only what is touched takes memory.
const STACK_BYTES: usize = 64 << 10;

/// How threads stop and go on.
pub(crate) trait OsKernel {
    /// Stops the running thread until `has_value` is true. The giver has called
    /// [`wake`](Self::wake) after it became so.
    fn block(&self, has_value: impl Fn() -> bool);
    /// The thread may go on; `give` makes its `has_value` true.
    fn wake(&self, thread: &Thread, give: impl FnOnce());
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An OS thread with a small stack.
///
/// # Panics
/// If the operating system has none left.
pub(crate) fn os_thread(body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
    spawned.unwrap_or_else(|error| panic!("no OS thread is left for a thread: {error}"))
}

/// Unwinds the running thread, unless it unwinds already.
pub(crate) fn unwind() {
    if !thread::panicking() {
        crate::stack::halt();
    }
}

/// A thread that waits for a value, as it leaves itself in a record.
#[derive(Debug)]
pub struct OsWaiting<T> {
    thread: Thread,
    place: Arc<Mutex<Option<T>>>,
}

impl<T> OsWaiting<T> {
    fn give(self, kernel: &impl OsKernel, value: T) {
        kernel.wake(&self.thread, || *locked(&self.place) = Some(value));
    }
}

/// A record that OS threads share.
pub struct OsShared<C>(Arc<Mutex<C>>);

impl<C> Clone for OsShared<C> {
    fn clone(&self) -> Self {
        OsShared(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for OsShared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OsShared")
    }
}

/// Leaves the running thread in the record, by `leave`, and waits for a value.
fn wait<C, T>(
    kernel: &impl OsKernel,
    mut record: MutexGuard<'_, C>,
    leave: impl FnOnce(&mut C, OsWaiting<T>),
) -> T {
    let place = Arc::new(Mutex::new(None));
    leave(&mut record, OsWaiting { thread: thread::current(), place: Arc::clone(&place) });
    drop(record);
    kernel.block(|| locked(&place).is_some());
    let value = locked(&place).take();
    value.expect("the thread was woken with a value")
}

pub(crate) type SharedMVar<T> = OsShared<MVarRecord<T, OsWaiting<T>, OsWaiting<()>>>;
pub(crate) type SharedFifo<T> = OsShared<FifoRecord<T, OsWaiting<T>>>;

impl<T> SharedMVar<T> {
    pub(crate) fn new() -> Self {
        OsShared(Arc::new(Mutex::new(MVarRecord::new())))
    }

    pub(crate) fn put(&self, kernel: &impl OsKernel, value: T) {
        let mut record = locked(&self.0);
        match record.put(value) {
            PutFound::Done => {}
            PutFound::Reader(reader, value) => {
                drop(record);
                reader.give(kernel, value);
            }
            PutFound::Full(value) => wait(kernel, record, |out, writer| out.wait_to_put(writer, value)),
        }
    }

    pub(crate) fn take(&self, kernel: &impl OsKernel) -> T {
        let mut record = locked(&self.0);
        match record.take() {
            TakeFound::Value(value, writer) => {
                drop(record);
                writer.into_iter().for_each(|writer| writer.give(kernel, ()));
                value
            }
            TakeFound::Empty => wait(kernel, record, MVarRecord::wait_to_take),
        }
    }
}

impl<T> SharedFifo<T> {
    pub(crate) fn new() -> Self {
        OsShared(Arc::new(Mutex::new(FifoRecord::new())))
    }

    pub(crate) fn put(&self, kernel: &impl OsKernel, value: T) {
        let reader = locked(&self.0).put(value);
        reader.into_iter().for_each(|(reader, value)| reader.give(kernel, value));
    }

    pub(crate) fn take(&self, kernel: &impl OsKernel) -> T {
        let mut record = locked(&self.0);
        match record.take() {
            Some(value) => value,
            None => wait(kernel, record, FifoRecord::wait_to_take),
        }
    }
}
