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
//! - READY, FAILED: final. The body has been dropped. The value, or the reason, is never written
//!   again.
//!
//! The claim is the only atomic exchange. An update is a store. A claim may end without its holder:
//! the evaluation that demands it was given up. So a holder of a claim asks, before it polls the
//! body, whether the claim is still the present one.
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
//! last handle of the next. So a handle that is dropped within the drop of a node puts its node
//! into a queue, and the outermost drop empties the queue.

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
use std::task::{Context, Poll};

/// A state. IDLE and CLAIMED have the number of the claim in the bits above [`KIND`], so that a
/// claim is never taken for a later one; the final states have none there.
pub(crate) type NodeState = u32;

pub(crate) const IDLE: NodeState = 0;
pub(crate) const CLAIMED: NodeState = 1;
pub(crate) const READY: NodeState = 2;
pub(crate) const FAILED: NodeState = 3;
const KIND: NodeState = 3;

/// A claim of a node: the state that the claim has stored.
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

    /// Claims the node, if it is idle.
    #[inline(always)]
    pub(crate) fn claim(&self) -> Option<NodeClaim> {
        let idle = self.state.load(Ordering::Relaxed);
        let claimed = idle.wrapping_add(KIND + 1) | CLAIMED;
        let is_idle = idle & KIND == IDLE;
        let exchange = || self.state.compare_exchange(idle, claimed, Ordering::Acquire, Ordering::Relaxed);
        (is_idle && exchange().is_ok()).then_some(NodeClaim(claimed))
    }

    /// Whether the claim is the present one.
    #[inline(always)]
    pub(crate) fn has(&self, claim: NodeClaim) -> bool {
        self.state.load(Ordering::Relaxed) == claim.0
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
        self.record.load(Ordering::Relaxed)
    }

    /// Only the claimant calls it, under the lock of the table.
    pub(crate) fn set_record(&self, record: RecordId) {
        self.record.store(record, Ordering::Relaxed);
    }

    /// Ends an evaluation: steps a. to c.
    #[inline(always)]
    fn end(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        often();
        let waiters = self.waiters.load(Ordering::Acquire);
        if !waiters.is_null() {
            // SAFETY: the box is freed with the node, of which the caller has a handle.
            unsafe { &*waiters }.0.with(|_, queue| grant_all(queue));
        }
    }

    /// Gives an evaluation up, and those that it demands. The caller has claimed the node, and
    /// polls its body no more.
    #[cold]
    pub(crate) fn give_up(&self) {
        if self.record() == 0 {
            return self.set_idle();
        }
        let handles = table().give_up(self.record());
        // The node itself is among them.
        for handle in &handles {
            handle.head().set_idle();
        }
    }

    fn set_idle(&self) {
        self.end(self.state.load(Ordering::Relaxed) & !KIND);
    }

    #[cold]
    fn release_record(&self) {
        let handle = {
            let mut table = table();
            let handle = table.release(self.record());
            self.set_record(0);
            handle
        };
        drop(handle);
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

/// The nodes that are to be freed when the outermost drop goes on.
type ToFree = Option<Vec<NonNull<NodeHead>>>;

#[cfg(not(loom))]
thread_local!(static TO_FREE: Cell<ToFree> = const { Cell::new(None) });
#[cfg(loom)]
thread_local!(static TO_FREE: Cell<ToFree> = Cell::new(None));

/// Frees a node. If that is called while another node is freed, the node is freed later.
#[inline(never)]
fn free_in_turn(node: NonNull<NodeHead>) {
    let now = TO_FREE.try_with(|queue| match queue.take() {
        Some(mut nodes) => {
            nodes.push(node);
            queue.set(Some(nodes));
            false
        }
        None => {
            queue.set(Some(Vec::new()));
            true
        }
    });
    // While the OS thread ends there is no queue.
    if now.unwrap_or(true) {
        let mut next = Some(node);
        while let Some(node) = next {
            // SAFETY: the last handle of the node is gone, and the node is in the queue once. What
            // `free` runs of the program's does not unwind.
            unsafe { (node.as_ref().table.free)(node) };
            next = TO_FREE.try_with(pop).ok().flatten();
        }
    }
}

/// The next node of the queue. `None` ends the outermost drop.
fn pop(queue: &Cell<ToFree>) -> Option<NonNull<NodeHead>> {
    let mut nodes = queue.take()?;
    let node = nodes.pop()?;
    queue.set(Some(nodes));
    Some(node)
}
