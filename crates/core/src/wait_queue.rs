//! The wait queue: the one queue of things to be resumed, under everything that blocks.
//!
//! A blocking object is a [`WaitQueue`]: a state, and the queue of those who wait for it to change,
//! under one lock. What an object does is a [`Role`]: how it tries, what it has got when it is
//! granted, and how a grant that was never collected is passed on. The unsafe part, an intrusive
//! list through pinned futures, is in this file alone; `MVar` and the rest of `selvedge-sync` are
//! safe code on top.
//!
//! A waiting future is in one of four states. Its node may be touched by others only while it is
//! **queued**, and only under the lock:
//!
//! ```text
//!            enqueue (owner, lock)          grant (other, lock)           poll (owner)
//!    idle ───────────────────────▶ queued ─────────────────────▶ granted ─────────────▶ done
//!      │ attempt succeeds             │ drop (owner, lock):          │ drop (owner, lock):
//!      └──────────▶ done              └ unlink ▶ done                └ abandoned ▶ done
//!                                     │ poll, retry succeeds (owner, lock):
//!                                     └ unlink ▶ done
//! ```
//!
//! The step from queued to granted is a Release store, after which the granter does not touch the
//! node again; the owner's Acquire load of it makes payload and node its own without taking the
//! lock. `tests/loom_wait_queue.rs` checks it.

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
/// A local object needs no atomic operation; the type checker keeps it on its OS thread.
pub trait Mode: sealed::Sealed + 'static {
    /// The lock around an object of this mode.
    type Lock<T>: Lock<T>;
    /// Whether only threads of one CPU can reach it.
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

/// One way to wait for an object with state `S`, whose queue holds payloads `P`: taking from an
/// MVar, putting into it.
///
/// All functions run under the object's lock. They must not call code of the object's user (a
/// destructor, say, or a `Debug`) that could come back to the object: see [`WaitQueue::with`].
pub trait Role<S, P> {
    /// What the waiter gets.
    type Output;

    /// Whether [`pass`](Role::pass) may let somebody in.
    const PASSES: bool = false;

    /// Whether each [`attempt`](Role::attempt) may succeed, and so is paid for from the
    /// [budget](crate::budget) of the step. False where none ever does: then the first poll surely
    /// puts the waiter into the queue.
    const IS_PAID: bool = true;

    /// Whether the compiler puts the first poll into the code that awaits. That code then calls no
    /// function when the poll succeeds or has to wait. It is for a role with an
    /// [`attempt`](Role::attempt) of some ten instructions.
    const IS_SHORT: bool = false;

    /// The word that one who passes mostly finds, if there is such a one: then it is exchanged
    /// without having been looked at.
    const USUAL: Option<u32> = None;

    /// The object's word when one with this payload has got what it waits for without the lock, if
    /// `word` says that it can: it is then exchanged for that, and the waiter goes on as if it had
    /// been granted.
    #[inline(always)]
    fn pass(word: u32, payload: &P) -> Option<u32> {
        let _ = (word, payload);
        None
    }

    /// Tries without waiting. `None` to wait: `payload` then goes into the queue.
    fn attempt(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P) -> Option<Self::Output>;

    /// The waiter has been granted what it waits for; `payload` is as the granter left it.
    fn granted(payload: &mut P) -> Self::Output;

    /// The waiter was granted it but is gone: pass it on, or back to the state.
    fn abandoned(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P);

    /// Tries again, for the [first](Queue::front) in the queue when it is polled although it has
    /// been granted nothing: because of [`Queue::nudge`], or for no reason. With `Some` it leaves
    /// the queue, and [`withdrawn`](Role::withdrawn) is called.
    #[inline(always)]
    fn retry(state: &mut S, queue: &mut Queue<'_, P>) -> Option<Self::Output> {
        let _ = (state, queue);
        None
    }

    /// The waiter has left the queue, where it was `first` or not, without having been granted
    /// anything. Those behind it may now have what they wait for.
    #[inline(always)]
    fn withdrawn(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P, first: bool) {
        let _ = (state, queue, payload, first);
    }
}

/// A state and the queue of those who wait for it to change, under one lock.
///
/// # Paper
/// One structure for the queue of the mutex in [LZ07 §4.3], the waiting reader and writer of an
/// MVar in [Del §4.1], and the blocking queue of a black hole in [HMP05 §4.2.1].
///
/// # Differences
/// 1. What waits is a thread of ours, or whatever polls the future elsewhere and has a waker.
/// 2. Any number may wait; they are served first come, first served.
/// 3. A waiter may give up at any time, in O(1): by being dropped.
///
/// # The word
/// Beside its state an object has a word of 31 bits, which is under the lock too ([`Queue::word`])
/// and may also be changed without it, in one atomic operation, as long as nobody holds it
/// ([`exchange`](WaitQueue::exchange)). An object that keeps there whether it is free and whether
/// anybody waits needs the lock only when somebody does ([`Role::pass`]).
pub struct WaitQueue<S, P, M: Mode = Shared> {
    inner: M::Lock<(S, List<P>)>,
    _mode: PhantomData<M>,
}

/// The list of those who wait, in the order of their arrival. Reached only under the object's lock.
///
/// It is a borrowed handle, not the list itself, so that safe code cannot exchange the lists of two
/// objects: their nodes would then lie under the wrong locks.
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
    /// Whether a waiter is to be resumed once the lock is released.
    fires: bool,
}

struct List<P> {
    first: Option<NonNull<Node<P>>>,
    /// The last waiter; of no meaning if there is no first one.
    last: NonNull<Node<P>>,
    /// The waiters to be resumed once the lock is released: one of them, and the others.
    granted: Option<Waker>,
    also_granted: Others,
}

/// One word to look at, for what is hardly ever there.
type Others = Option<Box<Vec<Waker>>>;
type Granted = (Waker, Others);

// SAFETY: the list leads to nodes in futures that may have been created on other OS threads; it
// reaches them under the object's lock alone, and what it moves between OS threads are payloads of
// type P and wakers, which are Send.
unsafe impl<P: Send> Send for List<P> {}

/// One waiter. Its links are written when it is queued: who need not wait does not pay for them. It
/// lies in its future, pinned, for as long as it is in a list.
struct Node<P> {
    state: AtomicU8,
    /// Where in the program it waits. (Beside the links, so that a waiter is no constant, of which
    /// the compiler would write those too.)
    place: &'static Location<'static>,
    /// While queued, only reached under the lock; else by the owner alone.
    links: UnsafeCell<MaybeUninit<Links<P>>>,
    payload: UnsafeCell<P>,
}

impl<P> Node<P> {
    /// Where the links are: written when the node is put into a list.
    #[inline(always)]
    fn links(node: NonNull<Node<P>>) -> *mut Links<P> {
        // SAFETY: nodes are passed around only while they are live; this makes no reference.
        unsafe { UnsafeCell::raw_get(&raw const (*node.as_ptr()).links).cast() }
    }
}

struct Links<P> {
    /// The waiter before this one; of no meaning in the first node.
    prev: NonNull<Node<P>>,
    next: Option<NonNull<Node<P>>>,
    waiter: Waiter,
}

const IDLE: u8 = 0;
const DONE: u8 = 1;
/// A node in a list, or granted: its future does not go without [giving up](Waiting::give_up).
const CONCERNS_OTHERS: u8 = 2;
const QUEUED: u8 = CONCERNS_OTHERS;
const GRANTED: u8 = CONCERNS_OTHERS | 1;

impl<P> Queue<'_, P> {
    /// The object's word, bits 0 to 30.
    #[inline(always)]
    pub fn word(&mut self) -> &mut u32 {
        self.word
    }

    /// Whether nobody waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.list.first.is_none()
    }

    /// The payload of the first waiter.
    #[inline(always)]
    pub fn front(&mut self) -> Option<&mut P> {
        // SAFETY: nodes in the list are live, since their futures unlink them before they go; we
        // are under the lock (the queue is reached in no other way), so nobody else touches the
        // payload while `self` is borrowed.
        self.list.first.map(|first| unsafe { &mut *(*first.as_ptr()).payload.get() })
    }

    /// Has the first waiter look again ([`Role::retry`]) once the lock has been released; it keeps
    /// its place. Nothing if nobody waits.
    pub fn nudge(&mut self) {
        if let Some(first) = self.list.first {
            // It is moved, not cloned, because a foreign clone is code that may come back to the
            // object. The waiter registers another one when it looks; until then the one that is
            // fired now stands for a grant too. SAFETY: as in `front`; the links of a node in the
            // list are written.
            let waiter = unsafe { replace(&mut (*Node::links(first)).waiter, Waiter::nothing()) };
            self.resume(waiter);
        }
    }

    /// Grants the first waiter what it waits for; it is resumed when the lock has been released.
    /// Nothing if nobody waits.
    #[inline(always)]
    pub fn grant(&mut self) {
        if let Some(first) = self.list.first {
            self.grant_first(first);
        }
    }

    #[inline(always)]
    fn grant_first(&mut self, first: NonNull<Node<P>>) {
        // SAFETY: as in `front`. The waiter is moved out, once: the node leaves the list, of which
        // it is the first. After the Release store the node is its owner's, and this function does
        // not touch it again.
        let waiter = unsafe {
            let links = Node::links(first);
            let waiter = (&raw const (*links).waiter).read();
            self.list.first = (*links).next;
            (*first.as_ptr()).state.store(GRANTED, Ordering::Release);
            waiter
        };
        match (&waiter, self.cpu) {
            // SAFETY: it was made of a thread's key.
            (&Waiter::Ours(data), Some(cpu)) if cpu.resume_own(unsafe { waker::key_in(data) }) => {}
            _ => self.resume(waiter),
        }
    }

    /// As [`front`](Queue::front) and [`grant`](Queue::grant): grants the first waiter, with its
    /// payload as `prepare` leaves it.
    #[inline(always)]
    pub fn grant_with(&mut self, prepare: impl FnOnce(&mut P)) {
        if let Some(first) = self.list.first {
            // SAFETY: as in `front`.
            prepare(unsafe { &mut *(*first.as_ptr()).payload.get() });
            self.grant_first(first);
        }
    }

    /// When the lock has been released.
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

    /// What is to be [fired](fire) once the lock has been released.
    #[inline(always)]
    fn take_granted(&mut self) -> Option<Granted> {
        match self.granted {
            None => None,
            Some(_) => Some((self.granted.take()?, self.also_granted.take())),
        }
    }

    /// Notes what is to be resumed when the lock has been released.
    #[cold]
    #[inline(never)]
    fn resume(&mut self, waiter: Waiter) {
        let waker = waiter.into_waker();
        match self.granted {
            None => self.granted = Some(waker),
            Some(_) => self.also_granted.get_or_insert_default().push(waker),
        }
    }

    /// # Safety
    /// The node is live, pinned until it is unlinked, and in no list; we are under the lock.
    #[inline(always)]
    unsafe fn push(&mut self, node: NonNull<Node<P>>, waiter: Waiter) {
        // SAFETY: the caller's contract, and nodes in the list are live.
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

    /// Takes a node out of the list; its waiter stays in it.
    ///
    /// # Safety
    /// The node is in this list, and we are under the lock.
    #[inline(always)]
    unsafe fn unlink(&mut self, node: NonNull<Node<P>>) {
        // SAFETY: the caller's contract; its neighbours are in the list too, hence live. All but
        // the first node have one before them.
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
    /// An object in the given state, for which nobody waits.
    pub fn new(state: S) -> Self {
        WaitQueue::with_word(state, 0)
    }

    /// The same, with a word: bits 0 to 30.
    pub fn with_word(state: S, word: u32) -> Self {
        WaitQueue { inner: M::Lock::new((state, List::new()), word), _mode: PhantomData }
    }

    /// The word, without the lock: out of date as soon as it is there. What was done under the lock
    /// before it became that is seen.
    #[inline(always)]
    pub fn word(&self) -> u32 {
        self.inner.word()
    }

    /// Exchanges the word, without the lock, for what `change` makes of it, and gives the old one.
    /// `change` may be called several times.
    ///
    /// # Errors
    /// The word, if `change` makes nothing of it; `None` if somebody holds the lock: then
    /// [`with`](WaitQueue::with) is the way.
    ///
    /// # Complexity
    /// One atomic operation; for a [`Local`] object none.
    #[inline(always)]
    pub fn exchange(&self, change: impl FnMut(u32) -> Option<u32>) -> Result<u32, Option<u32>> {
        self.inner.exchange(None, change)
    }

    /// Exchanges the word, without the lock, for `new` if it is `usual`; it is not looked at
    /// before. Tells whether it was.
    ///
    /// # Complexity
    /// As [`exchange`](WaitQueue::exchange), without the load.
    #[inline(always)]
    pub fn replace(&self, usual: u32, new: u32) -> bool {
        self.inner.exchange(Some(usual), |word| (word == usual).then_some(new)).is_ok()
    }

    /// Works on the state under the lock, then resumes those that `f` has granted something.
    ///
    /// `f` must not run code that could come back to the object: a destructor, a closure or a
    /// `fmt::Write` of the object's user, or a switch to another stack. On a [`Shared`] object such
    /// an operation waits, perhaps for ever.
    ///
    /// # Panics
    /// If it is reached from within an operation on the same [`Local`] object. If it is a
    /// [`Waiting`] that is dropped there, the process is aborted, because `f` may have borrowed
    /// what would then be freed.
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

    /// Waits in a role: tries, and if that fails queues until it is granted.
    ///
    /// Dropping the future gives up: a queued waiter leaves the queue, a granted one passes the
    /// grant on. While it waits, the thread is listed with the place of the caller.
    ///
    /// # Complexity
    /// One critical section to try, none to collect a grant, one to give up.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: Role<S, P>>(&self, payload: P) -> Waiting<'_, S, P, R, M> {
        self.wait_at(payload, Location::caller())
    }

    /// The same on behalf of a caller at `place`, with which the thread is listed while it waits.
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

/// Fires them all, each of which has been granted something: also when a foreign waker panics,
/// which then goes on to the caller.
#[cold]
#[inline(never)]
fn fire(first: Waker, others: Others) {
    let mut panicked = None;
    for waker in std::iter::once(first).chain(others.into_iter().flat_map(|others| *others)) {
        if let Err(foreign) = waker::fire_here(waker)
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| foreign.wake()))
        {
            panicked.get_or_insert(panic);
        }
    }
    if let Some(panic) = panicked {
        pass_on(panic);
    }
}

/// A foreign waker has panicked. That goes on to the caller, unless the caller unwinds already: it
/// may be a destructor, from which a second panic would abort the process. The panic hook has
/// reported it.
#[cold]
fn pass_on(panic: Box<dyn Any + Send>) {
    match std::thread::panicking() {
        true => quietly(|| drop(panic)),
        false => resume_unwind(panic),
    }
}

/// Without the state, because its `Debug` and the writer are code of the object's user, which must
/// not run under the lock.
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

/// The future of one who waits, created by [`WaitQueue::wait`].
///
/// A future that has several things to wait for and polls them itself, with its own context, polls
/// each of them in every step, as `select` and `join` do. In a thread that was forked and stays on
/// one CPU a step that polls a wait for the world alone goes to the event source as a whole, so
/// that what a queue grants meanwhile, to a wait that was polled in an earlier step, is seen after
/// it.
///
/// It must not be dropped within an operation on its own object: see [`WaitQueue::with`].
#[must_use = "nothing happens until it is awaited"]
pub struct Waiting<'a, S, P, R: Role<S, P>, M: Mode> {
    queue: &'a WaitQueue<S, P, M>,
    node: Node<P>,
    _role: PhantomData<fn() -> R>,
    _pinned: PhantomPinned,
}

// SAFETY: it is the reference to the queue and the payload that decide: the node's links are
// reached under the queue's lock only, and for a `Local` queue the reference is not Send.
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
            // SAFETY: the node is idle, hence the owner's alone.
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

/// What polls a waiter.
enum Polls<'a> {
    /// The thread that this CPU runs, which is to be told that the thread waits.
    Here(&'a CpuInner),
    /// Something else. Its waker is cloned before the lock is taken, because the clone is code that
    /// may come back to the object.
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

    /// The waiter for a node's links; and the CPU, if it is to be told.
    #[inline(always)]
    fn into_waiter(self) -> (Waiter, Option<&'a CpuInner>) {
        match self {
            Polls::Here(cpu) => (cpu.waiter(), Some(cpu)),
            Polls::Elsewhere(waiter) => (waiter, None),
        }
    }
}

/// How often one who could not pass looks again before he queues, if others on other OS threads may
/// be about to let him in.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 8 };

impl<S, P, R: Role<S, P>, M: Mode> Waiting<'_, S, P, R, M> {
    #[inline(never)]
    fn attempt_late(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if !M::LOCAL && self.node.state.load(Ordering::Relaxed) == IDLE {
            // SAFETY: the node is idle, hence the owner's alone.
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

    /// The first attempt of one that waits with any context; `PAID` if its price has been paid
    /// already.
    #[inline(never)]
    fn attempt_with<const PAID: bool>(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if R::IS_PAID && !PAID {
            ready!(budget::spend(cx, 1));
        }
        self.attempt::<true>(Polls::of(cx))
    }

    /// The first attempt; `PAID` if its price has been paid already.
    #[inline(always)]
    fn attempt<const PAID: bool>(self: Pin<&Self>, polls: Polls<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let mut guard = this.queue.inner.enter();
        let ((state, list), word) = guard.parts();
        let mut queue = Queue { list, word, cpu: polls.cpu(), fires: false };
        // SAFETY: the node is idle, hence the owner's alone.
        let output = R::attempt(state, &mut queue, unsafe { &mut *this.node.payload.get() });
        let fires = queue.fires;
        let Some(output) = output else {
            let (waiter, cpu) = polls.into_waiter();
            // SAFETY: as above. It is pinned with this future, whose drop unlinks it; we are under
            // the lock.
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
        // Dropped after the lock is released: it may be foreign.
        drop(polls);
        Poll::Ready(output)
    }

    /// Polls one that was polled before.
    #[cold]
    #[inline(never)]
    fn look_again(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let node = NonNull::from(&this.node);
        match this.node.state.load(Ordering::Acquire) {
            GRANTED => Poll::Ready(this.collect()),
            QUEUED => {
                // Dropped after the lock is released, both of them: they may be foreign.
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
                            // The role has granted it as well.
                            return Err(None);
                        }
                        // SAFETY: the node is queued, and we are under the lock. Out of the list it
                        // is the owner's alone, and its waiter is moved out, once.
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
                    // SAFETY: the node is queued, so that its links are written, and we are under
                    // the lock.
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
        // SAFETY: granted, as seen with Acquire or under the lock: the node is the owner's alone
        // again.
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
                // SAFETY: queued, and we are under the lock. The waiter is moved out, once: the
                // node is in no list any more, and thus the owner's alone.
                unsafe {
                    queue.list.unlink(node);
                    R::withdrawn(state, queue, &mut *self.node.payload.get(), first);
                    Some((&raw const (*Node::links(node)).waiter).read())
                }
            } else {
                // SAFETY: granted under this lock, which we hold: the node is the owner's alone
                // again.
                R::abandoned(state, queue, unsafe { &mut *self.node.payload.get() });
                None
            }
        });
        // A foreign one may panic as it is dropped, and this may be a destructor of one that
        // unwinds.
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
