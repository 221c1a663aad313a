//! [`LazyNode`]: a node with its value and its body, and the functions of each type of node.
//!
//! `NodeHandle::new` makes a node. `NodeHandle::evaluate` and the drop of the last handle call the
//! functions of the [`NodeTable`], because a [`NodeHead`] does not know its types.
//!
//! The body is there until the update, and the value is there from the update on. `evaluate` drops
//! the body before it publishes the state, so no thread sees a value while the body's captures
//! still live. `free` reads the state to decide which of the two it drops.

use super::{FAILED, NodeHead, READY};
use crate::failed::NoValue;
use crate::primitives::Ordering;
use selvedge_core::{CancelPayload, quietly};
use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::{MaybeUninit, needs_drop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// The functions of one type of node.
pub(super) struct NodeTable {
    /// Polls the body, and updates the node when the body has ended.
    ///
    /// # Safety
    /// The caller has claimed the node, and has a handle.
    pub(super) evaluate: unsafe fn(NonNull<NodeHead>, &mut Context<'_>) -> Poll<()>,
    /// Drops what is in the node, and frees it.
    ///
    /// # Safety
    /// There is no handle left.
    pub(super) free: unsafe fn(NonNull<NodeHead>),
    /// Whether a value or a body of this type may have handles in it.
    pub(super) drops: bool,
}

/// The part of a node that does not depend on its body.
#[repr(C)]
pub(super) struct Typed<T> {
    pub(super) head: NodeHead,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

#[repr(C)]
pub(super) struct LazyNode<T, B> {
    pub(super) typed: Typed<T>,
    /// There until the update.
    pub(super) body: UnsafeCell<MaybeUninit<B>>,
}

/// The code that makes a value.
pub(crate) trait NodeBody<T> {
    /// Whether the body may be run from its start when it was unwound in the middle.
    const RESTARTS: bool = false;

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

/// A closure that may be called again.
pub(crate) struct Restarted<F>(pub(crate) F);

impl<T, F: Fn() -> T> NodeBody<T> for Restarted<F> {
    const RESTARTS: bool = true;

    fn run(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready((self.0)())
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

impl<T, B: NodeBody<T>> LazyNode<T, B> {
    pub(super) const TABLE: &'static NodeTable = &NodeTable {
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
            Err(payload) if B::RESTARTS && payload.is::<CancelPayload>() => {
                // The next claim calls the closure from its start.
                head.give_up_unwinding();
                resume_unwind(payload);
            }
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
            // SAFETY: the claimant has the place for the reason for itself.
            Err(payload) => unsafe { fail(head, payload) },
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

/// Ends an evaluation of which the body panicked.
///
/// # Safety
/// The caller has claimed the node.
#[cold]
#[inline(never)]
unsafe fn fail(head: &NodeHead, payload: Box<dyn Any + Send>) {
    // A cancellation unwinds its own thread only, and on.
    let (failed, cancelled) = match payload.is::<CancelPayload>() {
        true => (NoValue::from_cancelled(), Some(payload)),
        false => (NoValue::from_payload(payload), None),
    };
    // SAFETY: the claimant has the place for itself.
    unsafe { *head.failed.get() = Some(failed) };
    head.end(FAILED);
    if let Some(payload) = cancelled {
        resume_unwind(payload);
    }
}
