//! [`NodeHandle`]: one of the handles that keep a node in memory.
//!
//! `Lazy` has one. The table of `circle.rs` has one for each recorded evaluation, `force.rs` for
//! each delegated node, and a ring of `spark/rings.rs` for each spark, as a word.
//!
//! The count of handles alone decides when a node is freed. The functions that read or move a value
//! check no type: the caller names the type that made the node.

use super::drops::free_in_turn;
use super::kind::NodeKind;
use super::typed::{LazyNode, NodeBody, Once, Pending, Typed};
use super::{FAILED, IDLE, NodeHead, READY};
use crate::primitives::{Ordering, fence};
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::panic::Location;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// The most handles of one value.
const HANDLES_MAX: u32 = u32::MAX / 2;

/// One of the handles that keep a node.
pub(crate) struct NodeHandle(NonNull<NodeHead>);

// SAFETY: a handle counts atomically, and `NodeHead` is Sync. The value and the body are behind
// `Lazy<T>`, which is Send and Sync as they allow.
unsafe impl Send for NodeHandle {}
// SAFETY: as above.
unsafe impl Sync for NodeHandle {}

impl NodeHandle {
    /// A node with a body. Value and body are `'static`, because a node may be freed after the
    /// scope in which its last handle was dropped: by the queue of `drops.rs`, the ring of a spark
    /// or the table of `circle.rs`.
    #[inline]
    pub(crate) fn new<T: 'static, B: NodeBody<T> + 'static>(
        body: B,
        place: &'static Location<'static>,
    ) -> NodeHandle {
        let head = NodeHead::new(IDLE, NodeKind::of(LazyNode::<T, B>::TABLE, place));
        let pending = Pending { head, body: UnsafeCell::new(MaybeUninit::new(body)) };
        let node = Box::new(LazyNode::<T, B> { pending: ManuallyDrop::new(pending) });
        NodeHandle(NonNull::from(Box::leak(node)).cast())
    }

    /// A node with its value, which is `'static` for the reason that [`new`](NodeHandle::new)
    /// names.
    #[inline]
    pub(crate) fn ready<T: 'static>(value: T, place: &'static Location<'static>) -> NodeHandle {
        let head = NodeHead::new(READY, NodeKind::of(LazyNode::<T, Once<fn() -> T>>::TABLE, place));
        let typed = Typed { head, value: UnsafeCell::new(MaybeUninit::new(value)) };
        let node = Box::new(LazyNode::<T, Once<fn() -> T>> { typed: ManuallyDrop::new(typed) });
        NodeHandle(NonNull::from(Box::leak(node)).cast())
    }

    /// Another handle of the node.
    ///
    /// # Safety
    /// There is a handle.
    pub(crate) unsafe fn of(head: NonNull<NodeHead>) -> NodeHandle {
        ManuallyDrop::new(NodeHandle(head)).deref().clone()
    }

    /// The node, with this handle in it.
    pub(crate) fn into_raw(self) -> NonNull<NodeHead> {
        ManuallyDrop::new(self).0
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
        // SAFETY: a node of type `T` that is READY is a `Typed<T>`. The value is there, and is not
        // written again while there is a handle.
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
        self.head().extra_or_new();
        // SAFETY: the call above leaves a box. This is the only handle, and it is borrowed
        // exclusively.
        unsafe { self.head().about.name(name) };
    }

    /// Polls the body.
    ///
    /// # Safety
    /// The caller has claimed the node, and has a handle.
    #[inline(always)]
    pub(crate) unsafe fn evaluate(head: NonNull<NodeHead>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the caller's contract.
        unsafe { (head.as_ref().kind().functions.evaluate)(head, cx) }
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
            let functions = self.head().kind().functions;
            if functions.drops {
                free_in_turn(self.0);
            } else {
                // SAFETY: this was the last handle.
                unsafe { (functions.free)(self.0) };
            }
        }
    }
}
