//! [`LazyNode`]: a node with its value and its body, and the functions of each type of node.
//!
//! `NodeHandle::new` makes a node. `NodeHandle::evaluate` and the drop of the last handle call the
//! functions of the [`NodeTable`], because a [`NodeHead`] does not know its types.
//!
//! The body is there until the update, and the value is there from the update on, in the same
//! memory. `evaluate` drops the body before it writes the value, so no thread sees a value while
//! the body's captures still live. `free` reads the state to decide which of the two it drops.

use super::{FAILED, NodeHead, READY};
use crate::failed::NoValueError;
use selvedge_core::internal::{CancelPayload, quietly};
use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// The functions of one type of node.
#[derive(Clone, Copy)]
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

/// A node from the update on. It does not depend on the type of the body.
#[repr(C)]
pub(super) struct Typed<T> {
    pub(super) head: NodeHead,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

/// A node until the update.
#[repr(C)]
pub(super) struct Pending<B> {
    pub(super) head: NodeHead,
    pub(super) body: UnsafeCell<MaybeUninit<B>>,
}

/// A node. Both variants begin with the head, which says which of them is there.
#[repr(C)]
pub(super) union LazyNode<T, B> {
    pub(super) pending: ManuallyDrop<Pending<B>>,
    pub(super) typed: ManuallyDrop<Typed<T>>,
}

/// The code that makes a value.
pub(crate) trait NodeBody<T> {
    /// Whether the body may be run from its start when it was unwound in the middle.
    const RESTARTS: bool = false;
    /// Whether a run moves the body out. Then it is run once, and is not dropped after that.
    const IS_MOVED_OUT: bool = false;

    /// # Safety
    /// The body is there, is not moved by others from its first run on, and is the caller's alone.
    unsafe fn run(body: *mut Self, cx: &mut Context<'_>) -> Poll<T>;
}

/// A closure that is called once.
pub(crate) struct Once<F>(pub(crate) F);

impl<T, F: FnOnce() -> T> NodeBody<T> for Once<F> {
    const IS_MOVED_OUT: bool = true;

    unsafe fn run(body: *mut Self, _: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the body is there, and this is its only run.
        Poll::Ready((unsafe { body.read() }.0)())
    }
}

/// A closure that may be called again.
pub(crate) struct Restarted<F>(pub(crate) F);

impl<T, F: Fn() -> T> NodeBody<T> for Restarted<F> {
    const RESTARTS: bool = true;

    unsafe fn run(body: *mut Self, _: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the caller's contract.
        Poll::Ready((unsafe { &*body }.0)())
    }
}

/// A future.
pub(crate) struct Resumable<F>(pub(crate) F);

impl<F: Future> NodeBody<F::Output> for Resumable<F> {
    unsafe fn run(body: *mut Self, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is the caller's alone, and is not moved.
        unsafe { Pin::new_unchecked(&mut (*body).0) }.poll(cx)
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
        // SAFETY: the caller has a handle, so the node is there.
        let node = unsafe { head.cast::<LazyNode<T, B>>().as_ref() };
        // SAFETY: both variants are the head, and memory that may hold anything.
        let (pending, typed): (&Pending<B>, &Typed<T>) = unsafe { (&node.pending, &node.typed) };
        let (head, body) = (&pending.head, pending.body.get().cast::<B>());
        // SAFETY: a claimed node has its body, and the claimant, which calls this, has body and
        // value for itself. The node does not move. A body that is moved out ends in its first
        // run, and the state is final then.
        let result = match catch_unwind(AssertUnwindSafe(|| unsafe { B::run(body, cx) })) {
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
        if needs_drop::<B>() && !B::IS_MOVED_OUT {
            // SAFETY: the body is there, and is dropped once, because the state is final after
            // this.
            quietly(|| unsafe { body.drop_in_place() });
        }
        if head.record() != 0 {
            head.release_record();
        }
        match result {
            Ok(value) => {
                // SAFETY: the claimant has the place for itself, and the body is gone.
                unsafe { (*typed.value.get()).write(value) };
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
        // SAFETY: both variants are the head, and memory that may hold anything.
        match unsafe { &node.pending }.head.state() {
            // SAFETY: a node that is READY has its value, which is dropped once, here.
            READY => quietly(|| unsafe { (*node.typed).value.get_mut().assume_init_drop() }),
            FAILED => {}
            // SAFETY: a node that is not final has its body, which is dropped once, here.
            _ => quietly(|| unsafe { (*node.pending).body.get_mut().assume_init_drop() }),
        }
        // SAFETY: as above.
        let head = unsafe { &mut (*node.pending).head };
        if head.record() != 0 {
            head.release_record();
        }
        // SAFETY: the head is in both variants, and is dropped once, here.
        unsafe { std::ptr::drop_in_place(head) };
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
        true => (NoValueError::from_cancelled(), Some(payload)),
        false => (NoValueError::from_payload(payload), None),
    };
    // SAFETY: the claimant has the place for itself.
    unsafe { *head.extra_or_new().0.failed.get() = Some(failed) };
    head.end(FAILED);
    if let Some(payload) = cancelled {
        resume_unwind(payload);
    }
}
