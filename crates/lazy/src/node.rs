//! The memory of a lazy value: [`NodeHead`], [`LazyNode`], and [`NodeHandle`], which keeps the
//! node.
//!
//! # States
//! ```text
//!             claim                      update
//!    IDLE ─────────────▶ CLAIMED ─────────────────▶ READY, or FAILED if the body panicked
//!      ▲                    │
//!      └────────────────────┘
//!             give up: the force was dropped
//! ```
//! - IDLE: the body is there, and no evaluation is under way. A body that has been polled and was
//!   given up is IDLE too ("frozen", [HMP05 §4.3]); the next claim goes on with it.
//! - CLAIMED: one [evaluation](crate::force) has the body and the place of the value for itself.
//!   Two bits say more about the claim. [`POLLING`]: an OS thread polls the body. [`ABANDONED`]:
//!   the claim was given up while the body was polled.
//! - READY, FAILED: final. The body has been dropped. The value, or the reason, is never written
//!   again.
//!
//! The claim is the only atomic exchange of a body that ends in its first poll: the claim sets
//! POLLING too. An update is a store.
//!
//! # One OS thread polls the body
//! A claim may end without its holder, when the evaluation that demands it is given up. The two may
//! be on different OS threads.
//! ```text
//!    poll                                    give up
//!    1. exchange CLAIMED for POLLING         a. exchange CLAIMED for IDLE; or
//!    2. poll the body                        b. exchange POLLING for POLLING and ABANDONED
//!    3. exchange POLLING for CLAIMED;
//!       or give up, if it is ABANDONED
//! ```
//! Each exchange names the whole word, with the number of the claim. If step a comes first, step 1
//! fails, and the holder does not poll the body. If step 1 comes first, only the OS thread that
//! polls the body makes the node idle. A node that has a record is given up under the lock of the
//! table, because the record must not change meanwhile.
//!
//! # No waiter is lost
//! A thread that finds the value CLAIMED queues in the node's [`NodeWaiters`], which the first such
//! thread makes.
//! ```text
//!    waiter                                  update, or give up
//!    1. store the pointer to the waiters     a. store the state
//!    2. seldom()                             b. often()
//!    3. lock the queue; if the state is      c. load the pointer; if it is there, lock the
//!       CLAIMED, queue, else grant all          queue and grant all
//! ```
//! `seldom` and `often` are a pair of fences: either step c sees the pointer of step 1, or step 3
//! sees the state of step a. In the first case the lock decides: if step 3 comes first, step c
//! grants the waiter; if step c comes first, step 3 sees the state. Other waiters, which find a
//! pointer that is there already, skip the first two steps. One of them may see the old state in
//! its step 3, and step c may have missed the pointer. Then the waiter that made the pointer sees
//! the new state in its own step 3, and grants all.
//!
//! A body that is given up grants all waiters too, and one of them claims the value.
//!
//! # Dropping
//! Lists and trees of lazy values may be deep, and the drop of one value may be the drop of the
//! last handle of the next. So drops of nodes nest to a depth of [`DROPS_MAX`]. A handle that is
//! dropped at that depth puts its node into a queue, and the innermost drop empties the queue when
//! its own node is freed.
//!
//! A destructor that waits for another OS thread may rely on it that the handles which it has
//! dropped before are gone, unless it runs at that depth.

use crate::circle::{Label, RecordId, table};
use crate::failed::NoValue;
use crate::primitives::{AtomicPtr, AtomicU32, Ordering, fence, learn, often, seldom, thread_local};
use selvedge_core::{Queue, Role, WaitQueue, quietly};
use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::mem::{MaybeUninit, needs_drop};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, Waker};

/// A state. IDLE and CLAIMED have the number of the claim in the bits from [`ONE_CLAIM`] on, so
/// that a claim is never taken for a later one; the final states have none there.
pub(crate) type NodeState = u32;

pub(crate) const IDLE: NodeState = 0;
pub(crate) const CLAIMED: NodeState = 1;
pub(crate) const READY: NodeState = 2;
pub(crate) const FAILED: NodeState = 3;
const KIND: NodeState = 3;
/// With CLAIMED: an OS thread polls the body.
const POLLING: NodeState = 4;
/// With POLLING: the claim was given up. The OS thread that polls the body makes the node idle.
const ABANDONED: NodeState = 8;
const ONE_CLAIM: NodeState = 16;

/// A claim of a node: the state CLAIMED with the number of the claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeClaim(NodeState);

/// The most handles of one value.
const HANDLES_MAX: u32 = u32::MAX / 2;

/// What all nodes have, of whatever type.
pub(crate) struct NodeHead {
    state: AtomicU32,
    handles: AtomicU32,
    /// A box, once a thread has waited.
    waiters: AtomicPtr<NodeWaiters>,
    /// The record of the evaluation in the table of `circle.rs`. The claimant has it; it stays with
    /// a frozen body.
    record: AtomicU32,
    /// The parent of that record, for a look without the lock.
    parent: AtomicU32,
    table: &'static NodeTable,
    label: Label,
    /// Written before the state is FAILED.
    failed: UnsafeCell<Option<NoValue>>,
}

/// The functions of one type of node.
struct NodeTable {
    /// Polls the body, and updates the node when the body has ended.
    ///
    /// # Safety
    /// The caller has claimed the node, and has a handle.
    evaluate: unsafe fn(NonNull<NodeHead>, &mut Context<'_>) -> Poll<()>,
    /// Drops what is in the node, and frees it.
    ///
    /// # Safety
    /// There is no handle left.
    free: unsafe fn(NonNull<NodeHead>),
    /// Whether a value or a body of this type may have handles in it.
    drops: bool,
}

/// The part of a node that does not depend on its body.
#[repr(C)]
pub(crate) struct Typed<T> {
    head: NodeHead,
    value: UnsafeCell<MaybeUninit<T>>,
}

#[repr(C)]
struct LazyNode<T, B> {
    typed: Typed<T>,
    /// There until the update.
    body: UnsafeCell<MaybeUninit<B>>,
}

/// The code that makes a value.
pub(crate) trait NodeBody<T> {
    fn run(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T>;
}

/// A closure, until it is called.
pub(crate) struct Once<F>(pub(crate) Option<F>);

// It is never pinned: the closure is moved out.
impl<F> Unpin for Once<F> {}

impl<T, F: FnOnce() -> T> NodeBody<T> for Once<F> {
    fn run(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let closure = self.0.take().expect("a closure is called once");
        Poll::Ready(closure())
    }
}

/// A future.
pub(crate) struct Resumable<F>(pub(crate) F);

impl<F: Future> NodeBody<F::Output> for Resumable<F> {
    fn run(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned with `self`, and is not moved out.
        unsafe { self.map_unchecked_mut(|body| &mut body.0) }.poll(cx)
    }
}

/// The threads that wait for the end of an evaluation.
struct NodeWaiters(WaitQueue<WatchedNode, ()>);

/// The node that has the waiters.
struct WatchedNode(NonNull<NodeHead>);

// SAFETY: through the pointer only atomic fields are read, and the node outlives its waiters.
unsafe impl Send for WatchedNode {}
// SAFETY: as above.
unsafe impl Sync for WatchedNode {}

enum AwaitEnd {}

impl Role<WatchedNode, ()> for AwaitEnd {
    type Output = ();

    /// The budget of a step must not end the poll of a driver in the middle of a long chain.
    const IS_PAID: bool = false;

    fn attempt(watched: &mut WatchedNode, queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        // SAFETY: the node frees its waiters when it is freed itself, so it is there.
        let state = unsafe { watched.0.as_ref() }.state();
        if state == CLAIMED {
            return None;
        }
        grant_all(queue);
        Some(())
    }

    fn granted(_: &mut ()) {}

    /// All waiters are granted at once, so there is none to pass the grant on to.
    fn abandoned(_: &mut WatchedNode, _: &mut Queue<'_, ()>, _: &mut ()) {}
}

fn grant_all(queue: &mut Queue<'_, ()>) {
    while !queue.is_empty() {
        queue.grant();
    }
}

impl NodeHead {
    fn new(state: NodeState, table: &'static NodeTable, place: &'static Location<'static>) -> NodeHead {
        learn();
        NodeHead {
            state: AtomicU32::new(state),
            handles: AtomicU32::new(1),
            waiters: AtomicPtr::new(ptr::null_mut()),
            record: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            table,
            label: Label { name: "", place },
            failed: UnsafeCell::new(None),
        }
    }

    /// [`IDLE`], [`CLAIMED`], [`READY`] or [`FAILED`].
    #[inline(always)]
    pub(crate) fn state(&self) -> NodeState {
        self.state.load(Ordering::Acquire) & KIND
    }

    /// Whether the value is there.
    #[inline(always)]
    pub(crate) fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == READY
    }

    /// Claims the node, if it is idle. The caller polls the body next, or calls
    /// [`pause`](NodeHead::pause).
    #[inline(always)]
    pub(crate) fn claim(&self) -> Option<NodeClaim> {
        let idle = self.state.load(Ordering::Relaxed);
        let claimed = idle.wrapping_add(ONE_CLAIM) | CLAIMED;
        let is_idle = idle & KIND == IDLE;
        let exchange =
            || self.state.compare_exchange(idle, claimed | POLLING, Ordering::Acquire, Ordering::Relaxed);
        (is_idle && exchange().is_ok()).then_some(NodeClaim(claimed))
    }

    /// Whether the claim is the present one.
    #[inline(always)]
    pub(crate) fn has(&self, claim: NodeClaim) -> bool {
        self.state.load(Ordering::Relaxed) & !(POLLING | ABANDONED) == claim.0
    }

    /// Step 1. of the poll of a body. False if the claim was given up. Only one caller at a time
    /// polls the body of a claim, so a mark that is there is the one of the claim itself.
    #[inline(always)]
    pub(crate) fn begin_poll(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchange = || self.state.compare_exchange(claim.0, polling, Ordering::Acquire, Ordering::Relaxed);
        self.state.load(Ordering::Relaxed) & !ABANDONED == polling || exchange().is_ok()
    }

    /// Step 3., after a body that is pending. False if the claim was given up.
    pub(crate) fn pause(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchanged = self.state.compare_exchange(polling, claim.0, Ordering::Release, Ordering::Relaxed);
        let is_held = exchanged.is_ok() || exchanged == Err(claim.0);
        if !is_held {
            self.give_up_as(claim, true);
        }
        is_held
    }

    /// The reason of a node that is FAILED.
    pub(crate) fn failed(&self) -> NoValue {
        debug_assert_eq!(self.state(), FAILED);
        // SAFETY: the state was FAILED when the caller looked, with Acquire. The reason was written
        // before, and is not written again.
        unsafe { &*self.failed.get() }.clone().expect("a node that has failed has a reason")
    }

    pub(crate) fn label(&self) -> Label {
        self.label
    }

    pub(crate) fn record(&self) -> RecordId {
        self.record.load(Ordering::Acquire)
    }

    /// Only the claimant calls it, under the lock of the table.
    pub(crate) fn set_record(&self, record: RecordId) {
        self.record.store(record, Ordering::Release);
    }

    pub(crate) fn parent(&self) -> RecordId {
        self.parent.load(Ordering::Relaxed)
    }

    /// Only the table calls it, under its lock.
    pub(crate) fn set_parent(&self, parent: RecordId) {
        self.parent.store(parent, Ordering::Relaxed);
    }

    /// Ends an evaluation: steps a. to c.
    #[inline(always)]
    fn end(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.wake_all();
    }

    /// Steps b. and c.
    #[inline(always)]
    fn wake_all(&self) {
        often();
        let waiters = self.waiters.load(Ordering::Acquire);
        if !waiters.is_null() {
            // SAFETY: the box is freed with the node, of which the caller has a handle.
            unsafe { &*waiters }.0.with(|_, queue| grant_all(queue));
        }
    }

    /// Gives an evaluation up, and those that it demands, if the claim is the present one. If an OS
    /// thread polls the body, that OS thread does so after the poll.
    #[cold]
    pub(crate) fn give_up(&self, claim: NodeClaim) {
        self.give_up_as(claim, false);
    }

    /// As [`give_up`](NodeHead::give_up). `polls` says that the caller has polled the body.
    #[cold]
    fn give_up_as(&self, claim: NodeClaim, polls: bool) {
        // Only the holder of a claim gives the node a record. So a claim that is the present one
        // after this load has no record, and no other OS thread knows of it.
        if self.record() == 0 {
            if self.let_go(Some(claim), polls) {
                self.wake_all();
            }
            return;
        }
        let handles = {
            let mut table = table();
            if !self.let_go(Some(claim), polls) {
                return;
            }
            // A thread that claims the node from now on waits for the lock before it polls the
            // body, because the node has a record.
            table.give_up(self.record())
        };
        // The node itself is among them.
        for (handle, waker) in handles {
            handle.head().wake_all();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Steps a. and b. of giving up, for this claim or the present one. Whether the node is idle
    /// now; then the caller wakes the waiters.
    fn let_go(&self, claim: Option<NodeClaim>, polls: bool) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let present = state & !(POLLING | ABANDONED);
            if present & KIND != CLAIMED || claim.is_some_and(|claim| claim.0 != present) {
                return false;
            }
            let is_polled = state & POLLING != 0 && !polls;
            let next = if is_polled { state | ABANDONED } else { present & !KIND };
            match self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return !is_polled,
                Err(now) => state = now,
            }
        }
    }

    /// Gives up the present claim of a node. The record of the node was below one that is given up.
    /// The caller has the lock of the table. False if an OS thread polls the body: it gives the
    /// claim up.
    pub(crate) fn let_go_below(&self) -> bool {
        self.let_go(None, false)
    }

    #[cold]
    fn release_record(&self) {
        let record = {
            let mut table = table();
            let record = table.release(self.record());
            self.set_record(0);
            record
        };
        drop(record);
    }

    /// The waiters, made if there are none: steps 1. and 2. `mine` says that the caller has claimed
    /// the node. Then each later end of an evaluation happens after this, and no fence is needed.
    fn waiters(&self, mine: bool) -> &WaitQueue<WatchedNode, ()> {
        let mut waiters = self.waiters.load(Ordering::Acquire);
        if waiters.is_null() {
            let new = Box::into_raw(Box::new(NodeWaiters(WaitQueue::new(WatchedNode(NonNull::from(self))))));
            let there =
                self.waiters.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
            waiters = match there {
                Ok(_) => {
                    if !mine {
                        seldom();
                    }
                    new
                }
                Err(there) => {
                    // SAFETY: no other thread has seen the new box.
                    drop(unsafe { Box::from_raw(new) });
                    there
                }
            };
        }
        // SAFETY: the box is freed with the node, which `self` keeps.
        unsafe { &(*waiters).0 }
    }

    /// Waits until the node is not CLAIMED.
    pub(crate) fn wait(
        &self,
        mine: bool,
        place: &'static Location<'static>,
    ) -> impl Future<Output = ()> + Send {
        self.waiters(mine).wait_at::<AwaitEnd>((), place)
    }
}

// SAFETY: the fields that are not atomic are written while one thread has the node for itself:
// `label` before a second handle exists, `failed` by the claimant.
unsafe impl Sync for NodeHead {}

impl<T, B: NodeBody<T>> LazyNode<T, B> {
    const TABLE: &'static NodeTable = &NodeTable {
        evaluate: LazyNode::<T, B>::evaluate,
        free: LazyNode::<T, B>::free,
        drops: needs_drop::<T>() || needs_drop::<B>(),
    };

    /// # Safety
    /// As [`NodeTable::evaluate`]; `head` is the head of such a node.
    unsafe fn evaluate(head: NonNull<NodeHead>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: a claimed node has its body, and the claimant, which calls this, has body and
        // value for itself. The node does not move, so the body is pinned.
        let (node, body) = unsafe {
            let node = head.cast::<LazyNode<T, B>>().as_ref();
            (node, Pin::new_unchecked((*node.body.get()).assume_init_mut()))
        };
        let head = &node.typed.head;
        let result = match catch_unwind(AssertUnwindSafe(|| body.run(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(payload) => Err(payload),
        };
        // The environment goes before other threads see the value.
        if needs_drop::<B>() {
            // SAFETY: the body is there, and is dropped once, because the state is final after
            // this.
            quietly(|| unsafe { (*node.body.get()).assume_init_drop() });
        }
        if head.record() != 0 {
            head.release_record();
        }
        match result {
            Ok(value) => {
                // SAFETY: the claimant has the place for itself; no value was there.
                unsafe { (*node.typed.value.get()).write(value) };
                head.end(READY);
            }
            Err(payload) => {
                // SAFETY: the claimant has the place for itself.
                unsafe { *head.failed.get() = Some(NoValue::from_payload(&*payload)) };
                quietly(|| drop(payload));
                head.end(FAILED);
            }
        }
        Poll::Ready(())
    }

    /// # Safety
    /// As [`NodeTable::free`]; `head` is the head of such a node.
    unsafe fn free(head: NonNull<NodeHead>) {
        // SAFETY: `NodeHandle::new` has made the node with `Box`, and no handle is left.
        let mut node = unsafe { Box::from_raw(head.cast::<LazyNode<T, B>>().as_ptr()) };
        let head = &node.typed.head;
        let state = head.state();
        let waiters = head.waiters.load(Ordering::Relaxed);
        if !waiters.is_null() {
            // SAFETY: the box was made for this node. A waiter borrows a handle, so there is none.
            drop(unsafe { Box::from_raw(waiters) });
        }
        match state {
            // SAFETY: a node that is READY has its value, which is dropped once, here.
            READY => quietly(|| unsafe { node.typed.value.get_mut().assume_init_drop() }),
            FAILED => {}
            // SAFETY: a node that is not final has its body, which is dropped once, here.
            _ => quietly(|| unsafe { node.body.get_mut().assume_init_drop() }),
        }
        let head = &node.typed.head;
        if head.record() != 0 {
            head.release_record();
        }
    }
}

/// One of the handles that keep a node.
pub(crate) struct NodeHandle(NonNull<NodeHead>);

// SAFETY: a handle counts atomically, and `NodeHead` is Sync. The value and the body are behind
// `Lazy<T>`, which is Send and Sync as they allow.
unsafe impl Send for NodeHandle {}
// SAFETY: as above.
unsafe impl Sync for NodeHandle {}

impl NodeHandle {
    #[inline]
    pub(crate) fn new<T, B: NodeBody<T>>(body: B, place: &'static Location<'static>) -> NodeHandle {
        let typed = Typed {
            head: NodeHead::new(IDLE, LazyNode::<T, B>::TABLE, place),
            value: UnsafeCell::new(MaybeUninit::<T>::uninit()),
        };
        let node = Box::new(LazyNode { typed, body: UnsafeCell::new(MaybeUninit::new(body)) });
        NodeHandle(NonNull::from(Box::leak(node)).cast())
    }

    #[inline]
    pub(crate) fn ready<T>(value: T, place: &'static Location<'static>) -> NodeHandle {
        let head = NodeHead::new(READY, LazyNode::<T, Once<fn() -> T>>::TABLE, place);
        let typed = Typed { head, value: UnsafeCell::new(MaybeUninit::new(value)) };
        let body = UnsafeCell::new(MaybeUninit::<Once<fn() -> T>>::uninit());
        NodeHandle(NonNull::from(Box::leak(Box::new(LazyNode { typed, body }))).cast())
    }

    /// Another handle of the node.
    ///
    /// # Safety
    /// There is a handle.
    pub(crate) unsafe fn of(head: NonNull<NodeHead>) -> NodeHandle {
        std::mem::ManuallyDrop::new(NodeHandle(head)).deref().clone()
    }

    /// The node, with this handle in it.
    pub(crate) fn into_raw(self) -> NonNull<NodeHead> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `head` is from [`into_raw`](NodeHandle::into_raw), and is used for this once.
    pub(crate) unsafe fn from_raw(head: NonNull<NodeHead>) -> NodeHandle {
        NodeHandle(head)
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> &NodeHead {
        // SAFETY: the handle keeps the node.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn pointer(&self) -> NonNull<NodeHead> {
        self.0
    }

    /// The value.
    ///
    /// # Safety
    /// The node has values of type `T`, and the caller has seen that it is READY.
    #[inline(always)]
    pub(crate) unsafe fn value<T>(&self) -> &T {
        // SAFETY: a node of type `T` begins with `Typed<T>`. The value is there, and is not written
        // again while there is a handle.
        unsafe { (*self.0.cast::<Typed<T>>().as_ref().value.get()).assume_init_ref() }
    }

    /// The value, moved out of its node, if it is there and there is no other handle.
    ///
    /// # Safety
    /// The node has values of type `T`.
    pub(crate) unsafe fn into_value<T>(self) -> Result<T, NodeHandle> {
        if !self.is_only() || !self.head().is_ready() {
            return Err(self);
        }
        // SAFETY: the value is there, and this is the only handle. It is moved out once, because
        // the state says that there is none from now on.
        let value = unsafe { self.0.cast::<Typed<T>>().as_ref().value.get().cast::<T>().read() };
        self.head().state.store(FAILED, Ordering::Relaxed);
        Ok(value)
    }

    pub(crate) fn is_only(&self) -> bool {
        self.head().handles.load(Ordering::Acquire) == 1
    }

    /// Names the value.
    ///
    /// # Panics
    /// If there is another handle.
    pub(crate) fn name(&mut self, name: &'static str) {
        assert!(self.is_only(), "a lazy value is named before it is cloned");
        // SAFETY: this is the only handle, and it is borrowed exclusively.
        unsafe { self.0.as_mut() }.label.name = name;
    }

    /// Polls the body.
    ///
    /// # Safety
    /// The caller has claimed the node, and has a handle.
    #[inline(always)]
    pub(crate) unsafe fn evaluate(head: NonNull<NodeHead>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the caller's contract.
        unsafe { (head.as_ref().table.evaluate)(head, cx) }
    }
}

impl Clone for NodeHandle {
    #[inline]
    fn clone(&self) -> NodeHandle {
        if self.head().handles.fetch_add(1, Ordering::Relaxed) > HANDLES_MAX {
            std::process::abort();
        }
        NodeHandle(self.0)
    }
}

impl Drop for NodeHandle {
    #[inline]
    fn drop(&mut self) {
        if self.head().handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            if self.head().table.drops {
                free_in_turn(self.0);
            } else {
                // SAFETY: this was the last handle.
                unsafe { (self.head().table.free)(self.0) };
            }
        }
    }
}

/// The most drops of nodes within one another.
const DROPS_MAX: u32 = 32;

#[cfg(not(loom))]
thread_local! {
    /// The number of drops of nodes that are under way.
    static DROPS: Cell<u32> = const { Cell::new(0) };
    /// The nodes that the innermost drop frees when its own node is freed.
    static TO_FREE: Cell<Vec<NonNull<NodeHead>>> = const { Cell::new(Vec::new()) };
}
#[cfg(loom)]
thread_local! {
    static DROPS: Cell<u32> = Cell::new(0);
    static TO_FREE: Cell<Vec<NonNull<NodeHead>>> = Cell::new(Vec::new());
}

/// Frees a node, or queues it if the drops within one another are as many as may be.
#[inline(never)]
fn free_in_turn(node: NonNull<NodeHead>) {
    let depth = DROPS.try_with(Cell::get).unwrap_or(0);
    let is_queued = depth >= DROPS_MAX && TO_FREE.try_with(|queue| push(queue, node)).is_ok();
    if is_queued {
        return;
    }
    // While the OS thread ends there may be no place for the depth.
    let _ = DROPS.try_with(|drops| drops.set(depth + 1));
    let mut next = Some(node);
    while let Some(node) = next {
        // SAFETY: the last handle of the node is gone, and the node is in the queue once. What
        // `free` runs of the program's does not unwind.
        unsafe { (node.as_ref().table.free)(node) };
        next = match depth + 1 == DROPS_MAX {
            true => TO_FREE.try_with(pop).ok().flatten(),
            false => None,
        };
    }
    let _ = DROPS.try_with(|drops| drops.set(depth));
}

fn push(queue: &Cell<Vec<NonNull<NodeHead>>>, node: NonNull<NodeHead>) {
    let mut nodes = queue.take();
    nodes.push(node);
    queue.set(nodes);
}

fn pop(queue: &Cell<Vec<NonNull<NodeHead>>>) -> Option<NonNull<NodeHead>> {
    let mut nodes = queue.take();
    let node = nodes.pop();
    queue.set(nodes);
    node
}
