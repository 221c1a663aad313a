//! [`LazyNode`]: a node with its value and its body, and the functions of each type of node.
//!
//! `NodeHandle::new` makes a node. `NodeHandle::evaluate` and the drop of the last handle call the
//! functions of the [`NodeTable`], because a [`NodeHead`] does not know its types.
//!
//! The body is there until the update, and the value is there from the update on, in the same
//! memory. `evaluate` drops the body before it writes the value, so no thread sees a value while
//! the body's captures still live. `free` reads the state to decide which of the two it drops.
//!
//! The functions of `NodeHandle` that read or move a value check no type: the caller names the type
//! that made the node.

use super::NodeHead;
use super::handle::NodeHandle;
use super::kind::{NodeKind, NodeTable};
use super::state::{FAILED, IDLE, READY};
use crate::failed::NoValueError;
use selvedge_core::internal::{CancelPayload, quietly};
use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// A node from the update on. It does not depend on the type of the body.
#[repr(C)]
struct Typed<T> {
    head: NodeHead,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A node until the update.
#[repr(C)]
struct Pending<B> {
    head: NodeHead,
    body: UnsafeCell<MaybeUninit<B>>,
}

/// A node. Both variants begin with the head, which says which of them is there.
#[repr(C)]
union LazyNode<T, B> {
    pending: ManuallyDrop<Pending<B>>,
    typed: ManuallyDrop<Typed<T>>,
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
        NodeHandle::first(NonNull::from(Box::leak(node)).cast())
    }

    /// A node with its value, which is `'static` for the reason that [`new`](NodeHandle::new)
    /// names.
    #[inline]
    pub(crate) fn ready<T: 'static>(value: T, place: &'static Location<'static>) -> NodeHandle {
        let head = NodeHead::new(READY, NodeKind::of(LazyNode::<T, Once<fn() -> T>>::TABLE, place));
        let typed = Typed { head, value: UnsafeCell::new(MaybeUninit::new(value)) };
        let node = Box::new(LazyNode::<T, Once<fn() -> T>> { typed: ManuallyDrop::new(typed) });
        NodeHandle::first(NonNull::from(Box::leak(node)).cast())
    }

    /// The value.
    ///
    /// # Safety
    /// The node has values of type `T`, and the caller has seen that it is READY.
    #[inline(always)]
    pub(crate) unsafe fn value<T>(&self) -> &T {
        // SAFETY: a node of type `T` that is READY is a `Typed<T>`. The value is there, and is not
        // written again while there is a handle.
        unsafe { (*self.pointer().cast::<Typed<T>>().as_ref().value.get()).assume_init_ref() }
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
        let value = unsafe { self.pointer().cast::<Typed<T>>().as_ref().value.get().cast::<T>().read() };
        self.head().state.end_without_value();
        Ok(value)
    }
}

impl<T, B: NodeBody<T>> LazyNode<T, B> {
    const TABLE: &'static NodeTable = &NodeTable {
        evaluate: LazyNode::<T, B>::evaluate,
        free: LazyNode::<T, B>::free,
        drops: needs_drop::<T>() || needs_drop::<B>(),
    };

    /// # Safety
    /// As [`NodeTable::evaluate`]; `node` is such a node.
    unsafe fn evaluate(node: NonNull<()>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the caller has a handle, so the node is there.
        let node = unsafe { node.cast::<LazyNode<T, B>>().as_ref() };
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
    /// As [`NodeTable::free`]; `node` is such a node.
    unsafe fn free(node: NonNull<()>) {
        // SAFETY: `NodeHandle::new` has made the node with `Box`, and no handle is left.
        let mut node = unsafe { Box::from_raw(node.cast::<LazyNode<T, B>>().as_ptr()) };
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
