//! [`NodeHandle`]: one of the handles that keep a node in memory.
//!
//! `Lazy` has one. The table of `circle.rs` has one for each recorded evaluation, `force.rs` for
//! each delegated node, and a ring of `spark/rings.rs` for each spark, as a word.
//!
//! The count of handles alone decides when a node is freed. `typed.rs` makes nodes, and reads and
//! moves their values through handles.

use super::NodeHead;
use super::drops::free_in_turn;
use crate::primitives::{Ordering, fence};
use std::mem::ManuallyDrop;
use std::ops::Deref;
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
    /// The first handle of a new node. `typed.rs` makes nodes.
    #[inline(always)]
    pub(super) fn first(head: NonNull<NodeHead>) -> NodeHandle {
        NodeHandle(head)
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
        unsafe { (head.as_ref().kind().functions.evaluate)(head.cast(), cx) }
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
                unsafe { (functions.free)(self.0.cast()) };
            }
        }
    }
}
