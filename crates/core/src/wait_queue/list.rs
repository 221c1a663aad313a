//! [`Queue`]: the list of waiters of one object, as a role reaches it under the object's lock.
//!
//! The roles of the objects in `sync` call the public functions, and `waiting.rs` adds and removes
//! nodes. The list is an intrusive one. Each [`Node`] lies in a `Waiting` future, which is pinned.
//! The head of `wait_queue.rs` says which OS thread uses a node when. No waker is woken under the
//! lock: a grant notes it in the list, and the caller [fires](fire) it after the unlock.

use crate::cpu::inner::CpuInner;
use crate::primitives::{AtomicU8, Ordering};
use crate::quietly::quietly;
use crate::waker::{self, Waiter};
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{MaybeUninit, replace};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::task::Waker;

/// The list of the waiters, in the order of their arrival. It is reached only under the object's
/// lock.
///
/// It borrows the list, so safe code cannot exchange the lists of two objects. Otherwise a node
/// could be in the list of an object with another lock.
/// ```compile_fail,E0521
/// # use selvedge::{Local, WaitQueue};
/// let (a, b) = (WaitQueue::<(), (), Local>::new(()), WaitQueue::<(), (), Local>::new(()));
/// a.with(|_, of_a| b.with(|_, of_b| std::mem::swap(of_a, of_b)));
/// ```
pub struct Queue<'a, P> {
    pub(super) list: &'a mut List<P>,
    word: &'a mut u32,
    /// The CPU that runs a step on this OS thread.
    cpu: Option<&'a CpuInner>,
    /// Whether a waiter must be resumed after the lock is released.
    pub(super) fires: bool,
}

pub(super) struct List<P> {
    pub(super) first: Option<NonNull<Node<P>>>,
    /// The last waiter. Without a first waiter it has no meaning.
    last: NonNull<Node<P>>,
    /// One of the waiters that must be resumed after the lock is released, and the others.
    granted: Option<Waker>,
    also_granted: Others,
}

/// A box, so that it takes one word: seldom are several waiters resumed under one lock.
pub(super) type Others = Option<Box<Vec<Waker>>>;
pub(super) type Granted = (Waker, Others);

// SAFETY: the list points to nodes, which lie in futures of other OS threads. It is reached under
// the object's lock alone (`WaitQueue::inner`), so one OS thread at a time uses these nodes. It
// moves only payloads of type P, which are Send, and wakers between OS threads.
unsafe impl<P: Send> Send for List<P> {}

/// One waiter. It lies in its future, which is pinned while the node is in a list. `push` writes
/// its links, so a future that need not wait does not pay for them.
pub(super) struct Node<P> {
    pub(super) state: AtomicU8,
    /// The place in the program at which it waits. It lies beside the links so that a new node is
    /// no constant. Otherwise the compiler would copy the whole constant, with its unwritten links.
    pub(super) place: &'static Location<'static>,
    /// While the node is queued, the holder of the lock uses them; in other states the owner does.
    links: UnsafeCell<MaybeUninit<Links<P>>>,
    pub(super) payload: UnsafeCell<P>,
}

impl<P> Node<P> {
    /// The node of a waiter that has not been polled.
    #[inline(always)]
    pub(super) fn new(place: &'static Location<'static>, payload: P) -> Node<P> {
        Node {
            state: AtomicU8::new(IDLE),
            place,
            links: UnsafeCell::new(MaybeUninit::uninit()),
            payload: UnsafeCell::new(payload),
        }
    }

    /// The address of the links. `push` writes them.
    #[inline(always)]
    pub(super) fn links(node: NonNull<Node<P>>) -> *mut Links<P> {
        // SAFETY: the callers pass a node of a list, or their own node, so it is live. Only the
        // address is computed, and no reference is made.
        unsafe { UnsafeCell::raw_get(&raw const (*node.as_ptr()).links).cast() }
    }
}

pub(super) struct Links<P> {
    /// The waiter before this one. In the first node it has no meaning.
    prev: NonNull<Node<P>>,
    next: Option<NonNull<Node<P>>>,
    pub(super) waiter: Waiter,
}

pub(super) const IDLE: u8 = 0;
pub(super) const DONE: u8 = 1;
/// Set while the node is queued or granted. Then the drop of its future must
/// [give up](Waiting::give_up).
pub(super) const CONCERNS_OTHERS: u8 = 2;
pub(super) const QUEUED: u8 = CONCERNS_OTHERS;
pub(super) const GRANTED: u8 = CONCERNS_OTHERS | 1;

impl<'a, P> Queue<'a, P> {
    /// The queue of an object with the lock held.
    #[inline(always)]
    pub(super) fn new(list: &'a mut List<P>, word: &'a mut u32, cpu: Option<&'a CpuInner>) -> Queue<'a, P> {
        Queue { list, word, cpu, fires: false }
    }
}

impl<P> Queue<'_, P> {
    /// The object's word, bits 0 to 30.
    #[inline(always)]
    pub fn word(&mut self) -> &mut u32 {
        self.word
    }

    /// Whether there is no waiter.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.list.first.is_none()
    }

    /// The payload of the first waiter.
    #[inline(always)]
    pub fn front(&mut self) -> Option<&mut P> {
        // SAFETY: the node is live, because `Waiting::drop` unlinks it before its future goes. A
        // `Queue` exists only under the lock, and the node is queued. So this borrow of `self` is
        // the only user of the payload.
        self.list.first.map(|first| unsafe { &mut *(*first.as_ptr()).payload.get() })
    }

    /// Resumes the first waiter after the lock is released, so that it tries again
    /// ([`Role::retry`](crate::Role::retry)). It keeps its place in the queue. Without a waiter
    /// this does nothing.
    pub fn nudge(&mut self) {
        if let Some(first) = self.list.first {
            // The waker is moved and not cloned, because a foreign clone is code that may come back
            // to the object. The waiter leaves another waker when it is polled. A grant before that
            // needs no waker, because this one makes the waiter run.
            // SAFETY: the node is live and under the lock, as in `front`. `push` has written the
            // links of each node in the list.
            let waiter = unsafe { replace(&mut (*Node::links(first)).waiter, Waiter::nothing()) };
            self.resume(waiter);
        }
    }

    /// Grants the first waiter the thing that it waits for. The waiter is resumed after the lock is
    /// released. Without a waiter this does nothing.
    #[inline(always)]
    pub fn grant(&mut self) {
        if let Some(first) = self.list.first {
            self.grant_first(first);
        }
    }

    #[inline(always)]
    fn grant_first(&mut self, first: NonNull<Node<P>>) {
        // SAFETY: the node is live and under the lock, as in `front`, and `push` has written its
        // links. The `Waiter` is moved out once, because the node leaves the list here and no code
        // reads the links of a granted node. After the Release store the owner has the node alone,
        // and this function does not touch it again.
        let waiter = unsafe {
            let links = Node::links(first);
            let waiter = (&raw const (*links).waiter).read();
            self.list.first = (*links).next;
            (*first.as_ptr()).state.store(GRANTED, Ordering::Release);
            waiter
        };
        match (&waiter, self.cpu) {
            // SAFETY: `Waiter::of` and `CpuInner::waiter` make the data of `Ours` of a thread's
            // key.
            (&Waiter::Ours(data), Some(cpu)) if cpu.resume_own(unsafe { waker::key_in(data) }) => {}
            _ => self.resume(waiter),
        }
    }

    /// As [`grant`](Queue::grant), after `prepare` has changed the payload of the first waiter.
    #[inline(always)]
    pub fn grant_with(&mut self, prepare: impl FnOnce(&mut P)) {
        if let Some(first) = self.list.first {
            // SAFETY: the node is live, queued and under the lock, as in `front`.
            prepare(unsafe { &mut *(*first.as_ptr()).payload.get() });
            self.grant_first(first);
        }
    }

    /// Resumes the waiter after the lock is released.
    fn resume(&mut self, waiter: Waiter) {
        self.fires = true;
        self.list.resume(waiter);
    }
}

impl<P> List<P> {
    crate::constant! {
        pub(super) fn new() -> Self {
            List { first: None, last: NonNull::dangling(), granted: None, also_granted: None }
        }
    }

    /// The wakers that the caller must [fire](fire) after it has released the lock.
    #[inline(always)]
    pub(super) fn take_granted(&mut self) -> Option<Granted> {
        match self.granted {
            None => None,
            Some(_) => Some((self.granted.take()?, self.also_granted.take())),
        }
    }

    /// Notes a waiter that must be resumed after the lock is released.
    #[cold]
    #[inline(never)]
    fn resume(&mut self, waiter: Waiter) {
        let waker = waiter.into_waker();
        match self.granted {
            None => self.granted = Some(waker),
            Some(_) => self.also_granted.get_or_insert_default().push(waker),
        }
    }

    /// Adds a node at the end.
    ///
    /// # Safety
    /// The node is live, pinned until it is unlinked, and in no list. The caller holds the lock.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, node: NonNull<Node<P>>, waiter: Waiter) {
        // SAFETY: the caller's contract. The last node is live, because each node is unlinked
        // before its future goes.
        unsafe {
            Node::links(node).write(Links { prev: self.last, next: None, waiter });
            match self.first {
                Some(_) => (*Node::links(self.last)).next = Some(node),
                None => self.first = Some(node),
            }
            self.last = node;
            (*node.as_ptr()).state.store(QUEUED, Ordering::Relaxed);
        }
    }

    /// Takes a node out of the list. The links of the node keep its `Waiter`.
    ///
    /// # Safety
    /// The node is in this list, and the caller holds the lock.
    #[inline(always)]
    pub(super) unsafe fn unlink(&mut self, node: NonNull<Node<P>>) {
        // SAFETY: the node is in the list, by the caller's contract, and its neighbours are too. So
        // all of them are live, and `push` has written their links. `prev` is used only if the node
        // is not the first one.
        unsafe {
            let (prev, next) = ((*Node::links(node)).prev, (*Node::links(node)).next);
            match self.first == Some(node) {
                true => self.first = next,
                false => (*Node::links(prev)).next = next,
            }
            match next {
                Some(next) => (*Node::links(next)).prev = prev,
                None => self.last = prev,
            }
        }
    }
}

impl<P> fmt::Debug for Queue<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// Wakes the wakers of all granted waiters, also if one of them panics: a foreign waker, or the
/// [`Unpark`](crate::Unpark) of a CPU that sleeps. The first panic then goes on to the caller.
#[cold]
#[inline(never)]
pub(super) fn fire(first: Waker, others: Others) {
    let mut panicked = None;
    for waker in std::iter::once(first).chain(others.into_iter().flat_map(|others| *others)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            panicked.get_or_insert(panic);
        }
    }
    if let Some(panic) = panicked {
        pass_on(panic);
    }
}

/// Passes the panic of a waker on to the caller, unless this OS thread unwinds already. In
/// that case the caller may be a destructor, and a second panic would abort the process. The panic
/// hook has reported the panic.
#[cold]
fn pass_on(panic: Box<dyn Any + Send>) {
    match std::thread::panicking() {
        true => quietly(|| drop(panic)),
        false => resume_unwind(panic),
    }
}
