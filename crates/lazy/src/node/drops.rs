//! The drops of nodes within one another, in a bounded native stack.
//!
//! Lists and trees of lazy values may be deep, and the drop of one value may be the drop of the
//! last handle of the next. So drops of nodes nest to a depth of [`DROPS_MAX`]. A handle that is
//! dropped at that depth puts its node into a queue, and the innermost drop empties the queue when
//! its own node is freed.
//!
//! A destructor that waits for another OS thread may rely on it that the handles which it has
//! dropped before are gone, unless it runs at that depth.
//!
//! # Lifetimes
//! A queued node is freed when the caller that has dropped its last handle may have returned. A
//! value or a body that borrows would then read what is gone. So both are `'static`:
//! `NodeHandle::new` and `NodeHandle::ready`, the only functions that make nodes, demand it. The
//! doc tests of `Lazy::new`, `Lazy::ready` and `From` for `Lazy` hold it.
//!
//! The drop of the last `NodeHandle` of a node calls [`free_in_turn`], if the value or the body of
//! the node may contain handles.

use super::NodeHead;
use crate::primitives::thread_local;
use std::cell::Cell;
use std::ptr::NonNull;

/// The most drops of nodes within one another.
const DROPS_MAX: u32 = if cfg!(any(loom, miri)) { 4 } else { 32 };

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
pub(super) fn free_in_turn(node: NonNull<NodeHead>) {
    let depth = DROPS.try_with(Cell::get).unwrap_or(0);
    let is_queued = depth >= DROPS_MAX && TO_FREE.try_with(|queue| push(queue, node)).is_ok();
    if is_queued {
        return;
    }
    // While the OS thread ends there may be no place for the depth.
    let _ = DROPS.try_with(|drops| drops.set(depth + 1));
    let mut next = Some(node);
    while let Some(node) = next {
        // SAFETY: the last handle of the node is gone, and the node is in the queue once. Value and
        // body are `'static`, by `NodeHandle::new` and `NodeHandle::ready`, so they are whole also
        // where the queue has put the node off. What `free` runs of the program's does not unwind.
        unsafe { (node.as_ref().kind().functions.free)(node) };
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
