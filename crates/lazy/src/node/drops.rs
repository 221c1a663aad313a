//! The drops of nodes within one another, in a bounded native stack.
//!
//! Lists and trees of lazy values may be deep: the drop of a value may drop the last handle of the
//! next value. So drops of nodes nest, to a depth of [`DROPS_MAX`]. At that depth the drop of a
//! last handle puts the node into a queue. The innermost drop empties the queue after it has freed
//! its own node.
//!
//! A destructor of the program may drop handles and then wait for another OS thread. The nodes of
//! these handles are freed before it waits, unless it runs at that depth.
//!
//! # Lifetimes
//! The drop of a last handle may return before its queued node is freed. A value or a body that
//! borrows would then read memory that is gone. So both are `'static`: `NodeHandle::new` and
//! `NodeHandle::ready`, the only functions that make nodes, demand it. The doc tests of
//! `Lazy::new`, `Lazy::ready` and `From` for `Lazy` test it.
//!
//! The drop of the last `NodeHandle` of a node calls [`free_in_turn`], if the value or the body of
//! the node may contain handles.

use super::NodeHead;
use crate::primitives::thread_local;
use std::cell::Cell;
use std::ptr::NonNull;

/// The largest depth to which drops of nodes nest.
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

/// Frees a node, or queues it if the drops nest to the depth of `DROPS_MAX` already.
#[inline(never)]
pub(super) fn free_in_turn(node: NonNull<NodeHead>) {
    let depth = DROPS.try_with(Cell::get).unwrap_or(0);
    let is_queued = depth >= DROPS_MAX && TO_FREE.try_with(|queue| push(queue, node)).is_ok();
    if is_queued {
        return;
    }
    // The thread-local variable may be gone while the OS thread ends.
    let _ = DROPS.try_with(|drops| drops.set(depth + 1));
    let mut next = Some(node);
    while let Some(node) = next {
        // SAFETY: the last handle of the node is gone, and the node is in the queue once. Value and
        // body are `'static`, by `NodeHandle::new` and `NodeHandle::ready`, so they are whole also
        // where the queue has put the node off. What `free` runs of the program's does not unwind.
        unsafe { (node.as_ref().kind().functions.free)(node.cast()) };
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
