//! What the implementations within one OS thread have in common: the queue of ready threads, and
//! the memory of MVars and Fifos ([`System`], [`Name`]).
//!
//! Each of these implementations has a `System` in a thread-local variable; `K` is its thread that
//! is ready. The system owns every MVar, and an MVar owns the thread that waits for it, so at the
//! end of `start` nothing is left, although threads and MVars name one another in circles. A
//! garbage collector frees such a circle; reference counts would not.

use crate::RunEnd;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The name of an MVar or a Fifo: the place of the record `C` in the memory of its system, and
/// below that some bits of the number of the `start` that it belongs to.
pub struct Name<C>(u32, PhantomData<fn(C) -> C>);

/// The bits for the number of the `start`.
const RUN_BITS: u32 = 5;

impl<C> Name<C> {
    pub(crate) fn new(place: usize, run: u32) -> Self {
        assert!(place < 1 << (u32::BITS - RUN_BITS), "a system has at most 2^27 MVars");
        Name(((place as u32) << RUN_BITS) | (run % (1 << RUN_BITS)), PhantomData)
    }

    /// The place, if the name was made in this `start`.
    ///
    /// # Panics
    /// If it was made in another.
    #[inline]
    pub(crate) fn place(self, run: u32) -> usize {
        assert!(
            (self.0 ^ run).is_multiple_of(1 << RUN_BITS),
            "this MVar belongs to a start that has returned"
        );
        (self.0 >> RUN_BITS) as usize
    }
}

impl<C> Clone for Name<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Name<C> {}

impl<C> fmt::Debug for Name<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 >> RUN_BITS)
    }
}

/// The threads of one OS thread that are ready, and what they share.
pub(crate) struct System<K> {
    ready: RefCell<VecDeque<K>>,
    /// The rest of the running thread, which goes on before all others.
    soon: RefCell<Option<K>>,
    records: RefCell<Vec<Box<dyn Any>>>,
    run: Cell<u32>,
    blocked: Cell<usize>,
    panicked: Cell<usize>,
    /// How many continuations the running thread has called since it was resumed.
    nested: Cell<u32>,
    phase: Cell<SystemPhase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SystemPhase {
    /// No `start` is under way.
    Before,
    Running,
    /// A thread has called `stop`.
    Stopped,
}

/// After this number of nested calls the stack is given up: the rest of the thread is called from
/// the queue's loop.
const NESTED_MAX: u32 = 64;

impl<K> System<K> {
    pub(crate) const fn new() -> Self {
        System {
            ready: RefCell::new(VecDeque::new()),
            soon: RefCell::new(None),
            records: RefCell::new(Vec::new()),
            run: Cell::new(0),
            blocked: Cell::new(0),
            panicked: Cell::new(0),
            nested: Cell::new(0),
            phase: Cell::new(SystemPhase::Before),
        }
    }

    /// Puts a thread behind the ready threads.
    pub(crate) fn enqueue(&self, thread: K) {
        self.ready.borrow_mut().push_back(thread);
    }

    /// The next thread that is to run; `None` after `stop`.
    pub(crate) fn dequeue(&self) -> Option<K> {
        if self.phase.get() == SystemPhase::Stopped {
            return None;
        }
        self.nested.set(0);
        self.soon.take().or_else(|| self.ready.borrow_mut().pop_front())
    }

    /// Whether a continuation may be called where the caller stands. If not, the caller hands the
    /// rest of its thread to [`bounce`](Self::bounce). OCaml needs no such bound, because its call
    /// in tail position is a jump.
    pub(crate) fn may_nest(&self) -> bool {
        let nested = self.nested.get();
        self.nested.set(nested + 1);
        nested < NESTED_MAX
    }

    /// The running thread goes on with this, before every other thread, when it has returned.
    pub(crate) fn bounce(&self, rest: K) {
        self.soon.replace(Some(rest));
    }

    /// Counts a thread that has left itself in a record.
    pub(crate) fn block(&self) {
        self.insist("an operation that blocks");
        self.blocked.set(self.blocked.get() + 1);
    }

    /// Makes a thread ready that was blocked.
    pub(crate) fn wake(&self, thread: K) {
        self.blocked.set(self.blocked.get() - 1);
        self.enqueue(thread);
    }

    pub(crate) fn stop(&self) {
        self.insist("stop");
        self.phase.set(SystemPhase::Stopped);
    }

    pub(crate) fn panicked(&self) {
        self.panicked.set(self.panicked.get() + 1);
    }

    /// Whether threads may run: a thread that is dropped afterwards only runs its destructors.
    pub(crate) fn is_running(&self) -> bool {
        self.phase.get() != SystemPhase::Before
    }

    /// # Panics
    /// If no thread calls.
    pub(crate) fn insist(&self, operation: &str) {
        assert!(self.is_running(), "{operation} is for threads: the code that calls start is none");
    }

    /// Calls `threads` until it returns, which is when no thread can run any more. A panic in it
    /// has ended the running thread, and it is called again. Then everything that is left is
    /// dropped.
    pub(crate) fn start(&self, mut threads: impl FnMut()) -> RunEnd {
        assert!(!self.is_running(), "start was called by a thread");
        self.phase.set(SystemPhase::Running);
        while catch_unwind(AssertUnwindSafe(&mut threads)).is_err() {
            self.panicked();
        }
        let stopped = self.phase.get() == SystemPhase::Stopped;
        let ended = RunEnd { blocked: self.blocked.take(), panicked: self.panicked.take(), stopped };
        self.phase.set(SystemPhase::Before);
        self.forget();
        ended
    }

    /// Drops the threads and the records that are left.
    pub(crate) fn forget(&self) {
        self.run.set(self.run.get().wrapping_add(1));
        // Destructors may call operations, so nothing is dropped within a borrow.
        drop((self.soon.take(), self.ready.take(), self.records.take()));
    }

    /// Keeps a record until the end of `start`.
    pub(crate) fn keep<C: 'static>(&self, record: C) -> Name<C> {
        let mut records = self.records.borrow_mut();
        let name = Name::new(records.len(), self.run.get());
        records.push(Box::new(record));
        name
    }

    /// Lends a record. `with` drops nothing of the program's and calls no operation.
    ///
    /// # Panics
    /// If the record belongs to an earlier `start`, or to another OS thread.
    pub(crate) fn with<C: 'static, A>(&self, name: Name<C>, with: impl FnOnce(&mut C) -> A) -> A {
        let place = name.place(self.run.get());
        let mut records = self.records.borrow_mut();
        let record = records.get_mut(place).and_then(|record| record.downcast_mut());
        with(record.expect("this MVar belongs to another system"))
    }
}
