//! The wait queue: the queue of waiters in every object that blocks.
//!
//! A blocking object is a [`WaitQueue`]: a state, and the queue of the waiters for a change of that
//! state, under one lock. Each operation of the object is a [`Role`]. The role says how the
//! operation tries, what its result is after a grant, and where a grant goes that its waiter did
//! not collect. The queue is an intrusive list through pinned futures. All unsafe code for it is in
//! this file, so `MVar` and the rest of `selvedge-sync` are safe code.
//!
//! # Words
//! A **waiter** is a [`Waiting`] future with its node. Its **owner** is the OS thread that polls or
//! drops the future. A **granter** is an OS thread that takes the node out of the queue, and
//! thereby gives the waiter the thing that it waits for.
//!
//! # States
//! A waiter is in one of four states. A granter touches its node only while it is **queued**, and
//! only under the lock:
//!
//! ```text
//!            enqueue (owner, lock)         grant (granter, lock)          poll (owner)
//!    idle ───────────────────────▶ queued ─────────────────────▶ granted ─────────────▶ done
//!      │ attempt succeeds             │ drop (owner, lock):          │ drop (owner, lock):
//!      └──────────▶ done              └ unlink ▶ done                └ abandoned ▶ done
//!                                     │ poll, retry succeeds (owner, lock):
//!                                     └ unlink ▶ done
//! ```
//!
//! # One user at a time
//! *While a node is idle, granted or done, its owner has it alone.* In these states it is in no
//! list, and the list is the granter's only way to it. The step from queued to granted is a Release
//! store, and the granter does not touch the node after it. The owner's Acquire load sees that
//! store, so the owner may use node and payload without the lock. *While a node is queued, the
//! holder of the lock has it alone*, except for its state, which is atomic. `drop` takes the node
//! out of the list under the lock before the future goes, so the list holds only live nodes.
//! `tests/loom_wait_queue.rs` checks it.

use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::lock::{Guard, LocalLock, Lock, WordLock};
use crate::primitives::{AtomicU8, Ordering};
use crate::quietly::quietly;
use crate::wait_site::WaitSite;
use crate::waker::{self, Waiter};
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::marker::{PhantomData, PhantomPinned};
use std::mem::{MaybeUninit, replace};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker, ready};

/// Whether an object is shared between OS threads ([`Shared`]) or stays on one ([`Local`]).
///
/// A local object needs no atomic operation, because the type checker keeps it on its OS thread.
pub trait Mode: sealed::Sealed + 'static {
    /// The lock around an object of this mode.
    type Lock<T>: Lock<T>;
    /// Whether the object stays on one OS thread.
    const LOCAL: bool;
}

/// The object stays on one OS thread: it is neither `Send` nor `Sync`, and costs no atomic
/// operation.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    _stays: PhantomData<*mut ()>,
}

/// The object may be shared between OS threads.
#[derive(Debug, Clone, Copy)]
pub enum Shared {}

impl Mode for Local {
    type Lock<T> = LocalLock<T>;
    const LOCAL: bool = true;
}

impl Mode for Shared {
    type Lock<T> = WordLock<T>;
    const LOCAL: bool = false;
}

mod sealed {
    #[expect(unnameable_types, reason = "only the two modes here are locks that the queue can rely on")]
    pub trait Sealed {}
    impl Sealed for super::Local {}
    impl Sealed for super::Shared {}
}

/// One way to wait for an object with state `S` and a queue of payloads `P`: taking from an MVar,
/// or putting into it.
///
/// All functions run under the object's lock. They must not call code of the object's user (a
/// destructor, say, or a `Debug`) that could come back to the object: see [`WaitQueue::with`].
pub trait Role<S, P> {
    /// The result of the wait.
    type Output;

    /// Whether [`pass`](Role::pass) may succeed.
    const PASSES: bool = false;

    /// Whether an [`attempt`](Role::attempt) may succeed. Then the waiter pays for it from the
    /// [budget](crate::budget) of the step. False if no attempt ever succeeds, so that the first
    /// poll always puts the waiter into the queue.
    const IS_PAID: bool = true;

    /// Whether the compiler puts the first poll into the code that awaits. That code then calls no
    /// function when the poll succeeds or has to wait. It is for a role with an
    /// [`attempt`](Role::attempt) of some ten instructions.
    const IS_SHORT: bool = false;

    /// The word that a waiter mostly finds when it can pass. The first exchange then takes it for
    /// the word, and does not read the word before.
    const USUAL: Option<u32> = None;

    /// The new word of the object, if a waiter with this payload can succeed without the lock when
    /// the word is `word`. The waiter then exchanges `word` for the new one, and goes on as after a
    /// grant. `None` if it cannot.
    #[inline(always)]
    fn pass(word: u32, payload: &P) -> Option<u32> {
        let _ = (word, payload);
        None
    }

    /// Tries without waiting. If it returns `None`, the waiter goes into the queue with `payload`.
    fn attempt(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P) -> Option<Self::Output>;

    /// The result of the wait after a grant. `payload` is as the granter has left it.
    fn granted(payload: &mut P) -> Self::Output;

    /// The waiter has been granted the thing that it waits for, but is dropped without collecting
    /// it. The role passes the thing on to the next waiter, or back to the state.
    fn abandoned(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P);

    /// Tries again, for the [first](Queue::front) waiter of the queue. It is called when that
    /// waiter is polled without a grant: because of [`Queue::nudge`], or for no reason. If it
    /// returns `Some`, the waiter leaves the queue, and [`withdrawn`](Role::withdrawn) is called.
    #[inline(always)]
    fn retry(state: &mut S, queue: &mut Queue<'_, P>) -> Option<Self::Output> {
        let _ = (state, queue);
        None
    }

    /// The waiter has left the queue without a grant. `first` says whether it was the first one.
    /// The role may grant to the waiters that were behind it.
    #[inline(always)]
    fn withdrawn(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P, first: bool) {
        let _ = (state, queue, payload, first);
    }
}

/// A state, and the queue of the waiters for a change of it, under one lock.
///
/// # Paper
/// One structure for the queue of the mutex in [LZ07 §4.3], the waiting reader and writer of an
/// MVar in [Del §4.1], and the blocking queue of a black hole in [HMP05 §4.2.1].
///
/// # Differences
/// 1. A waiter is a Selvedge thread, or a task of a foreign executor with a waker.
/// 2. Any number of waiters may wait. They are served first come, first served.
/// 3. A waiter may give up at any time, in constant time: the program drops its future.
///
/// # The word
/// Beside its state an object has a word of 31 bits. The holder of the lock may change it
/// ([`Queue::word`]). While the lock is free, any operation may change it without the lock, in one
/// atomic operation ([`exchange`](WaitQueue::exchange)). The word may say whether the object is
/// free and whether it has waiters. Then an operation needs the lock only while there are waiters
/// ([`Role::pass`]).
pub struct WaitQueue<S, P, M: Mode = Shared> {
    inner: M::Lock<(S, List<P>)>,
    _mode: PhantomData<M>,
}

/// The list of the waiters, in the order of their arrival. It is reached only under the object's
/// lock.
///
/// It borrows the list, so safe code cannot exchange the lists of two objects. Otherwise a node
/// could be in the list of an object with another lock.
/// ```compile_fail
/// # use selvedge::{Local, WaitQueue};
/// let (a, b) = (WaitQueue::<(), (), Local>::new(()), WaitQueue::<(), (), Local>::new(()));
/// a.with(|_, of_a| b.with(|_, of_b| std::mem::swap(of_a, of_b)));
/// ```
pub struct Queue<'a, P> {
    list: &'a mut List<P>,
    word: &'a mut u32,
    /// The CPU that runs a step on this OS thread.
    cpu: Option<&'a CpuInner>,
    /// Whether a waiter must be resumed after the lock is released.
    fires: bool,
}

struct List<P> {
    first: Option<NonNull<Node<P>>>,
    /// The last waiter. Without a first waiter it has no meaning.
    last: NonNull<Node<P>>,
    /// One of the waiters that must be resumed after the lock is released, and the others.
    granted: Option<Waker>,
    also_granted: Others,
}

/// It takes one word, because it is hardly ever there.
type Others = Option<Box<Vec<Waker>>>;
type Granted = (Waker, Others);

// SAFETY: the list points to nodes, which lie in futures of other OS threads. It is reached under
// the object's lock alone (`WaitQueue::inner`), so one OS thread at a time uses these nodes. It
// moves only payloads of type P, which are Send, and wakers between OS threads.
unsafe impl<P: Send> Send for List<P> {}

/// One waiter. It lies in its future, which is pinned while the node is in a list. `push` writes
/// its links, so a future that need not wait does not pay for them.
struct Node<P> {
    state: AtomicU8,
    /// The place in the program at which it waits. It lies beside the links so that a new node is
    /// no constant. Otherwise the compiler would copy the whole constant, with its unwritten links.
    place: &'static Location<'static>,
    /// While the node is queued, the holder of the lock uses them; in other states the owner does.
    links: UnsafeCell<MaybeUninit<Links<P>>>,
    payload: UnsafeCell<P>,
}

impl<P> Node<P> {
    /// The address of the links. `push` writes them.
    #[inline(always)]
    fn links(node: NonNull<Node<P>>) -> *mut Links<P> {
        // SAFETY: the callers pass a node of a list, or their own node, so it is live. Only the
        // address is computed, and no reference is made.
        unsafe { UnsafeCell::raw_get(&raw const (*node.as_ptr()).links).cast() }
    }
}

struct Links<P> {
    /// The waiter before this one. In the first node it has no meaning.
    prev: NonNull<Node<P>>,
    next: Option<NonNull<Node<P>>>,
    waiter: Waiter,
}

const IDLE: u8 = 0;
const DONE: u8 = 1;
/// Set while the node is queued or granted. Then the drop of its future must
/// [give up](Waiting::give_up).
const CONCERNS_OTHERS: u8 = 2;
const QUEUED: u8 = CONCERNS_OTHERS;
const GRANTED: u8 = CONCERNS_OTHERS | 1;

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
    /// ([`Role::retry`]). It keeps its place in the queue. Without a waiter this does nothing.
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
        fn new() -> Self {
            List { first: None, last: NonNull::dangling(), granted: None, also_granted: None }
        }
    }

    /// The wakers that the caller must [fire](fire) after it has released the lock.
    #[inline(always)]
    fn take_granted(&mut self) -> Option<Granted> {
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
    unsafe fn push(&mut self, node: NonNull<Node<P>>, waiter: Waiter) {
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
    unsafe fn unlink(&mut self, node: NonNull<Node<P>>) {
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

impl<S, P> WaitQueue<S, P> {
    crate::constant! {
        /// As [`with_word`](WaitQueue::with_word), also for a `static`.
        pub fn shared(state: S, word: u32) -> Self {
            WaitQueue { inner: WordLock::shared((state, List::new()), word), _mode: PhantomData }
        }
    }
}

impl<S, P, M: Mode> WaitQueue<S, P, M> {
    /// An object in the given state, without waiters.
    pub fn new(state: S) -> Self {
        WaitQueue::with_word(state, 0)
    }

    /// As [`new`](WaitQueue::new), with bits 0 to 30 of `word` as the object's word.
    pub fn with_word(state: S, word: u32) -> Self {
        WaitQueue { inner: M::Lock::new((state, List::new()), word), _mode: PhantomData }
    }

    /// The word, without the lock. It may be out of date when the caller gets it. The caller sees
    /// all that was done under the lock before the word got this value.
    #[inline(always)]
    pub fn word(&self) -> u32 {
        self.inner.word()
    }

    /// Exchanges the word, without the lock, for the result of `change`; gives the old word.
    /// `change` may be called several times.
    ///
    /// # Errors
    /// The word, if `change` gives `None`; or `None` if the lock is held. In the latter case the
    /// caller uses [`with`](WaitQueue::with).
    ///
    /// # Complexity
    /// One atomic operation; for a [`Local`] object none.
    #[inline(always)]
    pub fn exchange(&self, change: impl FnMut(u32) -> Option<u32>) -> Result<u32, Option<u32>> {
        self.inner.exchange(None, change)
    }

    /// Exchanges the word, without the lock, for `new` if it is `usual`. It does not read the word
    /// before. Tells whether it has exchanged the word.
    ///
    /// # Complexity
    /// As [`exchange`](WaitQueue::exchange), without the load.
    #[inline(always)]
    pub fn replace(&self, usual: u32, new: u32) -> bool {
        self.inner.exchange(Some(usual), |word| (word == usual).then_some(new)).is_ok()
    }

    /// Works on the state under the lock, and then resumes the waiters to which `f` has granted
    /// something.
    ///
    /// `f` must not run code that could come back to the object: a destructor, a closure or a
    /// `fmt::Write` of the object's user, or a switch to another stack. On a [`Shared`] object such
    /// an operation waits, perhaps for ever.
    ///
    /// # Panics
    /// If it is called within an operation on the same [`Local`] object. If a [`Waiting`] of that
    /// object is dropped there, the process aborts, because `f` may have borrowed the memory that
    /// the drop would free.
    #[inline(always)]
    pub fn with<T>(&self, f: impl FnOnce(&mut S, &mut Queue<'_, P>) -> T) -> T {
        let mut guard = self.inner.enter();
        let ((state, list), word) = guard.parts();
        let result = f(state, &mut Queue { list, word, cpu: current(), fires: false });
        let granted = list.take_granted();
        drop(guard);
        if let Some((first, others)) = granted {
            fire(first, others);
        }
        result
    }

    /// Waits in a role: the future tries, and if that fails, it queues until it is granted.
    ///
    /// Dropping the future gives up. A queued waiter leaves the queue, and a granted one passes the
    /// grant on. While it waits, the thread is listed with the place of the caller.
    ///
    /// # Complexity
    /// One critical section to try, none to collect a grant, one to give up.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: Role<S, P>>(&self, payload: P) -> Waiting<'_, S, P, R, M> {
        self.wait_at(payload, Location::caller())
    }

    /// As [`wait`](WaitQueue::wait), on behalf of a caller at `place`.
    #[inline(always)]
    pub fn wait_at<R: Role<S, P>>(
        &self,
        payload: P,
        place: &'static Location<'static>,
    ) -> Waiting<'_, S, P, R, M> {
        Waiting {
            queue: self,
            node: Node {
                state: AtomicU8::new(IDLE),
                place,
                links: UnsafeCell::new(MaybeUninit::uninit()),
                payload: UnsafeCell::new(payload),
            },
            _role: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

/// Wakes the wakers of all granted waiters, also if one of them panics: a foreign waker, or the
/// [`Unpark`](crate::Unpark) of a CPU that sleeps. The first panic then goes on to the caller.
#[cold]
#[inline(never)]
fn fire(first: Waker, others: Others) {
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

/// It does not write the state, because the state's `Debug` and the writer are code of the object's
/// user, which must not run under the lock.
impl<S, P, M: Mode> fmt::Debug for WaitQueue<S, P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited_for = self.inner.enter().parts().0.1.first.is_some();
        f.debug_struct("WaitQueue").field("waited_for", &waited_for).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for Queue<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// The future of a waiter, created by [`WaitQueue::wait`].
///
/// A future that polls several waits itself, with its own context, must poll each of them in every
/// step, as `select` and `join` do. Otherwise the thread may see a grant late. An example is a
/// thread of [`fork_local`](crate::fork_local) with a step that polls only a wait for an event. The
/// event source takes the whole thread. The thread then sees a grant to a wait of an earlier step
/// only after the event.
///
/// It must not be dropped within an operation on its own object: see [`WaitQueue::with`].
#[must_use = "nothing happens until it is awaited"]
pub struct Waiting<'a, S, P, R: Role<S, P>, M: Mode> {
    queue: &'a WaitQueue<S, P, M>,
    node: Node<P>,
    _role: PhantomData<fn() -> R>,
    _pinned: PhantomPinned,
}

// SAFETY: the future holds a reference to the queue, which may be sent because the queue is Sync, a
// payload, which is Send, and a node. The node is used under the lock of the queue while it is
// queued (see the head of this file), and by its owner alone otherwise. A `Local` queue is not
// Sync, so its waiters are not Send.
unsafe impl<S, P: Send, R: Role<S, P>, M: Mode> Send for Waiting<'_, S, P, R, M> where WaitQueue<S, P, M>: Sync
{}

impl<S, P, R: Role<S, P>, M: Mode> Future for Waiting<'_, S, P, R, M> {
    type Output = R::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        match self.node.state.load(Ordering::Acquire) {
            GRANTED => return Poll::Ready(self.collect()),
            IDLE => {}
            _ => return self.as_ref().look_again(cx),
        }
        if R::PASSES {
            ready!(budget::spend(cx, 1));
            // SAFETY: the state is IDLE, so the owner, which polls here, has the node alone.
            let payload = unsafe { &mut *self.node.payload.get() };
            if self.queue.inner.exchange(R::USUAL, |word| R::pass(word, payload)).is_ok() {
                self.node.state.store(DONE, Ordering::Relaxed);
                return Poll::Ready(R::granted(payload));
            }
            return self.as_ref().attempt_late(cx);
        }
        match CpuInner::of(cx) {
            Some(cpu) if R::IS_SHORT && (!R::IS_PAID || budget::is_left()) => {
                self.as_ref().attempt::<false>(Polls::Here(cpu))
            }
            _ => self.as_ref().attempt_with::<false>(cx),
        }
    }
}

/// The caller of a waiter's `poll`.
enum Polls<'a> {
    /// The thread that this CPU runs. The CPU must be told when the thread has to wait.
    Here(&'a CpuInner),
    /// A combinator or a foreign executor. Its waker is cloned before the lock is taken, because
    /// the clone is code that may come back to the object.
    Elsewhere(Waiter),
}

impl<'a> Polls<'a> {
    #[inline(always)]
    fn of(cx: &Context<'_>) -> Polls<'a> {
        match direct(cx) {
            Some(cpu) => Polls::Here(cpu),
            None => Polls::Elsewhere(Waiter::of(cx.waker().clone())),
        }
    }

    /// The CPU that runs a step on this OS thread.
    #[inline(always)]
    fn cpu(&self) -> Option<&'a CpuInner> {
        match *self {
            Polls::Here(cpu) => Some(cpu),
            Polls::Elsewhere(_) => current(),
        }
    }

    /// The `Waiter` for a node's links, and the CPU if it must be told.
    #[inline(always)]
    fn into_waiter(self) -> (Waiter, Option<&'a CpuInner>) {
        match self {
            Polls::Here(cpu) => (cpu.waiter(), Some(cpu)),
            Polls::Elsewhere(waiter) => (waiter, None),
        }
    }
}

/// The number of further attempts of a waiter that could not pass, before it queues. An OS thread
/// that holds the object may be about to release it.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 8 };

impl<S, P, R: Role<S, P>, M: Mode> Waiting<'_, S, P, R, M> {
    #[inline(never)]
    fn attempt_late(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if !M::LOCAL && self.node.state.load(Ordering::Relaxed) == IDLE {
            // SAFETY: the state is IDLE, so the owner, which polls here, has the node alone.
            let payload = unsafe { &mut *self.node.payload.get() };
            for _ in 0..LOOKS {
                std::hint::spin_loop();
                if self.queue.exchange(|word| R::pass(word, payload)).is_ok() {
                    self.node.state.store(DONE, Ordering::Relaxed);
                    return Poll::Ready(R::granted(payload));
                }
            }
        }
        self.attempt_with::<true>(cx)
    }

    /// The first attempt under the lock, with any context. `PAID` says that its price has been paid
    /// already.
    #[inline(never)]
    fn attempt_with<const PAID: bool>(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if R::IS_PAID && !PAID {
            ready!(budget::spend(cx, 1));
        }
        self.attempt::<true>(Polls::of(cx))
    }

    /// The first attempt under the lock. `PAID` says that its price has been paid already.
    #[inline(always)]
    fn attempt<const PAID: bool>(self: Pin<&Self>, polls: Polls<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let mut guard = this.queue.inner.enter();
        let ((state, list), word) = guard.parts();
        let mut queue = Queue { list, word, cpu: polls.cpu(), fires: false };
        // SAFETY: the callers have found the state IDLE, so the owner, which polls here, has the
        // node alone.
        let output = R::attempt(state, &mut queue, unsafe { &mut *this.node.payload.get() });
        let fires = queue.fires;
        let Some(output) = output else {
            let (waiter, cpu) = polls.into_waiter();
            // SAFETY: the node is idle, so it is in no list. It is pinned with this future, and the
            // drop of the future unlinks it. `guard` holds the lock.
            unsafe { list.push(NonNull::from(&this.node), waiter) };
            let granted = if fires { list.take_granted() } else { None };
            drop(guard);
            if let Some((first, others)) = granted {
                fire(first, others);
            }
            if R::IS_PAID && PAID {
                budget::refund(1);
            }
            this.block(cpu);
            return Poll::Pending;
        };
        let granted = if fires { list.take_granted() } else { None };
        drop(guard);
        this.node.state.store(DONE, Ordering::Relaxed);
        if R::IS_PAID && !PAID {
            budget::charge_one();
        }
        if let Some((first, others)) = granted {
            fire(first, others);
        }
        // The waker in `polls` may be foreign, so it is dropped after the lock is released.
        drop(polls);
        Poll::Ready(output)
    }

    /// Polls a waiter that is not idle any more.
    #[cold]
    #[inline(never)]
    fn look_again(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let node = NonNull::from(&this.node);
        match this.node.state.load(Ordering::Acquire) {
            GRANTED => Poll::Ready(this.collect()),
            QUEUED => {
                // Both wakers may be foreign, so they are dropped after the lock is released.
                let mut polls = Some(Polls::of(cx));
                let mut replaced = None;
                let queued = this.queue.with(|state, queue| {
                    if this.node.state.load(Ordering::Relaxed) != QUEUED {
                        return Err(None);
                    }
                    if queue.list.first == Some(node)
                        && let Some(output) = R::retry(state, queue)
                    {
                        if this.node.state.load(Ordering::Relaxed) != QUEUED {
                            // `retry` has granted this waiter as well.
                            return Err(None);
                        }
                        // SAFETY: the state is QUEUED, so the node is in this list, and `with`
                        // holds the lock. After `unlink` the owner has the node alone. Its `Waiter`
                        // is moved out once, because the state becomes DONE.
                        unsafe {
                            queue.list.unlink(node);
                            replaced = Some((&raw const (*Node::links(node)).waiter).read());
                            this.node.state.store(DONE, Ordering::Relaxed);
                            R::withdrawn(state, queue, &mut *this.node.payload.get(), true);
                        }
                        return Err(Some(output));
                    }
                    if this.node.state.load(Ordering::Relaxed) != QUEUED {
                        return Err(None);
                    }
                    let (waiter, cpu) = polls.take().expect("made above").into_waiter();
                    // SAFETY: the state is QUEUED, so `push` has written the links, and `with`
                    // holds the lock.
                    replaced = Some(unsafe { replace(&mut (*Node::links(node)).waiter, waiter) });
                    Ok(cpu)
                });
                drop(replaced);
                match queued {
                    Ok(cpu) => {
                        this.block(cpu);
                        Poll::Pending
                    }
                    Err(Some(output)) => Poll::Ready(output),
                    Err(None) => Poll::Ready(this.collect()),
                }
            }
            _ => panic!("a wait was polled after it had ended"),
        }
    }

    #[inline(always)]
    fn block(&self, cpu: Option<&CpuInner>) {
        if let Some(cpu) = cpu {
            cpu.ask_block(&raw const self.node, WaitSite::of(self.node.place), M::LOCAL);
        }
    }

    #[inline(always)]
    fn collect(&self) -> R::Output {
        self.node.state.store(DONE, Ordering::Relaxed);
        // SAFETY: the callers have found the state GRANTED, with an Acquire load or under the lock.
        // So the owner, which polls here, has the node alone.
        R::granted(unsafe { &mut *self.node.payload.get() })
    }

    #[cold]
    fn give_up(&self) {
        retract(&raw const self.node);
        self.queue.inner.before_last();
        let node = NonNull::from(&self.node);
        let waiter = self.queue.with(|state, queue| {
            if self.node.state.load(Ordering::Relaxed) == QUEUED {
                let first = queue.list.first == Some(node);
                // SAFETY: the state is QUEUED, so the node is in this list, and `with` holds the
                // lock. After `unlink` the owner has the node alone. Its `Waiter` is moved out
                // once, because only `drop` calls this.
                unsafe {
                    queue.list.unlink(node);
                    R::withdrawn(state, queue, &mut *self.node.payload.get(), first);
                    Some((&raw const (*Node::links(node)).waiter).read())
                }
            } else {
                // SAFETY: `drop` has found the node queued or granted, and it is not queued. So it
                // is granted, and the owner has it alone. `with` holds the lock under which it was
                // granted, so the granter's changes are visible.
                R::abandoned(state, queue, unsafe { &mut *self.node.payload.get() });
                None
            }
        });
        // A foreign waker may panic when it is dropped, and this OS thread may be unwinding
        // already.
        if let Some(waiter) = waiter {
            quietly(|| drop(waiter));
        }
    }
}

impl<S, P, R: Role<S, P>, M: Mode> Drop for Waiting<'_, S, P, R, M> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.node.state.load(Ordering::Relaxed) & CONCERNS_OTHERS != 0 {
            self.give_up();
        }
    }
}

impl<S, P, R: Role<S, P>, M: Mode> fmt::Debug for Waiting<'_, S, P, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("place", &self.node.place).finish_non_exhaustive()
    }
}
