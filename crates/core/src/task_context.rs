//! The task context of a poll: one value ([`TaskContext`]) and one pointer for each stack, which
//! the crates above read and exchange. And the stack itself ([`this_stack`]).
//!
//! `selvedge-scope` keeps the scope around a poll here, and `selvedge-lazy` the evaluation. A poll
//! that sets one of the two restores it at its end. Code that leaves its stack in the middle of
//! polls takes both along, because the polls on other stacks have other task contexts: see
//! `selvedge-direct`.

#[cfg(loom)]
use crate::primitives::thread_local;
use std::any::Any;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The payload of the panic that unwinds a cancelled thread in direct style. `selvedge-direct`
/// throws it. Code that catches panics and keeps them, such as a lazy value, passes it on.
#[derive(Debug)]
pub struct CancelPayload;

/// The task context of a poll. `selvedge-scope` keeps a scope here.
pub type TaskContext = Arc<dyn Any + Send + Sync>;

std::thread_local! {
    static TASK_CONTEXT: Cell<Option<TaskContext>> = const { Cell::new(None) };
    static STACK: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

#[cfg(not(loom))]
thread_local!(static FRAME: Cell<*const ()> = const { Cell::new(ptr::null()) });
#[cfg(loom)]
thread_local!(static FRAME: Cell<*const ()> = Cell::new(ptr::null()));

/// The task context of the caller's poll. `None` also while the OS thread ends.
pub fn task_context() -> Option<TaskContext> {
    let task_context = exchange_task_context(None);
    exchange_task_context(task_context.clone());
    task_context
}

/// Exchanges the task context for another, and gives the old one. While the OS thread ends there
/// are none.
#[inline]
pub fn exchange_task_context(new: Option<TaskContext>) -> Option<TaskContext> {
    TASK_CONTEXT.try_with(|task_context| task_context.replace(new)).ok().flatten()
}

/// Exchanges the frame of the evaluation that the caller's poll belongs to, and gives the old one.
/// Without an evaluation it is null.
#[inline(always)]
pub fn exchange_frame(new: *const ()) -> *const () {
    FRAME.with(|frame| frame.replace(new))
}

/// The native stack that the caller runs on: the control block of a stack of `selvedge-direct`, or
/// null on the OS thread's own stack.
#[inline(always)]
pub fn this_stack() -> *const () {
    STACK.get()
}

/// Exchanges the native stack for another, and gives the old one. Only the code that switches
/// stacks calls it.
#[inline(always)]
pub fn exchange_stack(new: *const ()) -> *const () {
    STACK.replace(new)
}
