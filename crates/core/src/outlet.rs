//! The way on which threads leave a CPU in the middle of a step ([`Outlet`]).
//!
//! The threads that a step wakes and creates lie in the queue of their CPU until the step ends. If
//! the step is long, another OS thread should run them meanwhile. So a CPU of a group may have an
//! outlet (`Cpu::outlet`): its steps [put](Inlet::put) the threads there that may move, and the
//! holder of the `Outlet` takes them. `sched`'s `desk.rs` has it. It belongs to the worker, or to a
//! guest of the worker's desk during a visit.
//!
//! # Protocol
//! There is one `Inlet`, which its OS thread alone uses, and one `Outlet`, with one user at a time,
//! because [`take`](Outlet::take) borrows it exclusively. They share a ring of [`SLOTS`] slots. The
//! threads are in the slots from `head` to `tail`; both only grow, and wrap around.
//!
//! - **P1.** `put` loads `head` with Acquire. If fewer than `SLOTS - 1` slots are in use, it writes
//!   the slot at `tail`, and moves `tail` by one with Release.
//! - **P2.** Otherwise it locks the queue `rest`. If that is empty, it puts a *mark*, which is no
//!   thread, into the ring as in P1, where one slot at least is free. It adds the thread to `rest`.
//! - **T1.** `take` loads `tail` with Acquire. If it is `head`, there is nothing. Otherwise `take`
//!   reads the slot at `head`. If a thread is there, it moves `head` by one with Release.
//! - **T2.** If the mark is there, it locks `rest`, and takes the first thread of `rest`. If `rest`
//!   is empty then, it moves `head` behind the mark, before it unlocks.
//!
//! *Each thread is taken once.* A slot is written while it is outside of `head` to `tail`, and read
//! while it is inside. The Release of P1 and the Acquire of T1 order the write before the read. The
//! Release of T1 and the Acquire of P1 order the read before the next write. In `rest` the lock
//! does both.
//!
//! *No thread stays behind.* A mark is in the ring if and only if `rest` has a thread, for one that
//! holds the lock: P2 and T2 keep it so. So there is one mark at most, and room for it: P1 fills at
//! most `SLOTS - 1` slots beside it or before it. A thread in `rest` therefore has a mark in the
//! ring, and `take` finds nothing only where there is no mark. `tests/loom/outlet.rs` checks both.
//!
//! The threads of the ring come in their order. A thread that is put into the ring while others are
//! in `rest` comes behind them, and so does each thread in `rest` behind those before the mark.

use crate::primitives::{AtomicU32, Mutex, Ordering};
use crate::thread::SendThread;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The number of slots, a power of two. It is small in models and under Miri, so that tests fill
/// it.
const SLOTS: usize = if cfg!(any(loom, miri)) { 4 } else { 64 };

/// What is in a slot in place of a thread: behind it come the threads in `rest`.
const MARK: u32 = 0;

/// A handle that goes through an outlet: a [`SendThread`], or in a model another one.
///
/// # Safety
/// A value that [`from_word`](Ticket::from_word) has made of the word of `into_word` is the same
/// handle. It may be dropped on any OS thread.
#[doc(hidden)]
pub unsafe trait Ticket: Send {
    /// Turns the handle into a word.
    fn into_word(self) -> NonZeroU32;
    /// Turns the word into the handle again.
    ///
    /// # Safety
    /// `word` came from [`into_word`](Ticket::into_word), and is used once.
    unsafe fn from_word(word: NonZeroU32) -> Self;
}

// SAFETY: the word is the thread's number, which the two functions pass on; a `SendThread` is Send.
unsafe impl Ticket for SendThread {
    #[inline(always)]
    fn into_word(self) -> NonZeroU32 {
        self.into_raw()
    }

    #[inline(always)]
    unsafe fn from_word(word: NonZeroU32) -> SendThread {
        // SAFETY: the caller's contract.
        unsafe { SendThread::from_raw(word) }
    }
}

/// The ring, and the threads for which it has no room.
struct OutletRing<T: Ticket> {
    head: AtomicU32,
    tail: AtomicU32,
    slots: [AtomicU32; SLOTS],
    rest: Mutex<VecDeque<T>>,
}

impl<T: Ticket> OutletRing<T> {
    /// The slot at a position.
    #[inline(always)]
    fn slot(&self, position: u32) -> &AtomicU32 {
        &self.slots[position as usize % SLOTS]
    }

    /// Writes the slot at `tail`, which is free, and makes it visible. The caller has the inlet.
    #[inline(always)]
    fn add(&self, tail: u32, word: u32) {
        self.slot(tail).store(word, Ordering::Relaxed);
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Step P2.
    #[cold]
    #[inline(never)]
    fn put_behind(&self, thread: T) {
        let mut rest = self.rest.lock().expect("no panic under this lock");
        if rest.is_empty() {
            self.add(self.tail.load(Ordering::Relaxed), MARK);
        }
        rest.push_back(thread);
    }

    /// Step T2.
    #[cold]
    #[inline(never)]
    fn take_behind(&self, head: u32) -> Option<T> {
        let mut rest = self.rest.lock().expect("no panic under this lock");
        let thread = rest.pop_front();
        if rest.is_empty() {
            self.head.store(head.wrapping_add(1), Ordering::Release);
        }
        thread
    }

    /// Steps T1 and T2. The caller has the outlet, or the whole ring.
    #[inline(always)]
    fn take(&self) -> Option<T> {
        let head = self.head.load(Ordering::Relaxed);
        if self.tail.load(Ordering::Acquire) == head {
            return None;
        }
        let Some(word) = NonZeroU32::new(self.slot(head).load(Ordering::Relaxed)) else {
            return self.take_behind(head);
        };
        self.head.store(head.wrapping_add(1), Ordering::Release);
        // SAFETY: `put` has made the word, and `head` has just left it, so it is taken once.
        Some(unsafe { T::from_word(word) })
    }
}

impl<T: Ticket> Drop for OutletRing<T> {
    /// Cancels the threads in it.
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

/// A ring, by its two ends.
#[doc(hidden)]
pub fn outlet<T: Ticket>() -> (Inlet<T>, Outlet<T>) {
    let ring = Arc::new(OutletRing {
        head: AtomicU32::new(0),
        tail: AtomicU32::new(0),
        slots: std::array::from_fn(|_| AtomicU32::new(MARK)),
        rest: Mutex::new(VecDeque::new()),
    });
    (Inlet { ring: ring.clone(), _one_user: PhantomData }, Outlet { ring })
}

/// The end into which a CPU puts threads. It may be sent, and not shared.
#[doc(hidden)]
pub struct Inlet<T: Ticket> {
    ring: Arc<OutletRing<T>>,
    _one_user: PhantomData<Cell<()>>,
}

impl<T: Ticket> Inlet<T> {
    /// Adds a thread (steps P1 and P2). It runs no foreign code.
    #[inline(always)]
    pub fn put(&self, thread: T) {
        let ring = &*self.ring;
        let tail = ring.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(ring.head.load(Ordering::Acquire)) < SLOTS as u32 - 1 {
            ring.add(tail, thread.into_word().get());
        } else {
            ring.put_behind(thread);
        }
    }

    /// Whether [`Outlet::take`] would find a thread.
    pub(crate) fn has_any(&self) -> bool {
        self.ring.tail.load(Ordering::Relaxed) != self.ring.head.load(Ordering::Relaxed)
    }
}

/// The end from which a scheduler takes the threads that may move, and that steps of a CPU have
/// woken or created: [`Cpu::outlet`](crate::Cpu::outlet).
///
/// It may go to another OS thread, also while the CPU is in a step. If it is dropped, the threads
/// in it, and all later ones, are cancelled when the CPU is dropped.
pub struct Outlet<T: Ticket = SendThread> {
    ring: Arc<OutletRing<T>>,
}

impl<T: Ticket> Outlet<T> {
    /// Takes the first thread. A step that goes on meanwhile may add others.
    ///
    /// # Complexity
    /// Two loads and a store, or a lock if a step has put many threads in.
    #[inline(always)]
    pub fn take(&mut self) -> Option<T> {
        self.ring.take()
    }
}

impl<T: Ticket> Default for Outlet<T> {
    /// The outlet of no CPU. It is empty.
    fn default() -> Outlet<T> {
        outlet().1
    }
}

impl<T: Ticket> fmt::Debug for Inlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").finish_non_exhaustive()
    }
}

impl<T: Ticket> fmt::Debug for Outlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}
