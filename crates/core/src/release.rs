//! The drops of join cells within one another, in a bounded native stack.
//!
//! The result of a thread may hold the handle of another thread that is over, and so on for as many
//! threads as there are. So [`release_in_turn`], which the drop of a `JoinHandle` (`join.rs`)
//! calls, nests to a depth of [`RELEASES_MAX`]. A handle that is dropped at that depth leaves its
//! key in a queue, and the innermost release empties the queue when its own block is free.
//!
//! The depth belongs to a native stack. A thread in direct style may leave its stack within a
//! destructor, and may go on elsewhere. Releases on another stack begin with a depth of their own,
//! so such a thread makes no other thread's releases wait. If the innermost release itself is left
//! in this way, the next release that nests in no other empties the queue.

use crate::arena::Key;
use crate::body;
use crate::task_context::this_stack;
use std::cell::Cell;
use std::ptr;

/// The most releases within one another.
const RELEASES_MAX: u32 = if cfg!(miri) { 4 } else { 32 };

std::thread_local! {
    /// The number of releases that are under way, and the stack that they are on.
    static DEPTH: Cell<(*const (), u32)> = const { Cell::new((ptr::null(), 0)) };
    /// The threads that are over, with cells that are still to be released.
    static TO_RELEASE: Cell<Vec<Key>> = const { Cell::new(Vec::new()) };
}

/// Releases the cell of a thread that is over, or queues it if the releases within one another are
/// as many as may be.
///
/// # Safety
/// As for [`body::release`]. The result in the cell borrows nothing, so that it may be dropped
/// later.
#[inline(never)]
pub(crate) unsafe fn release_in_turn(key: Key) {
    let stack = this_stack();
    let depth = DEPTH.try_with(Cell::get).map_or(0, |(on, depth)| if on == stack { depth } else { 0 });
    let is_queued = depth >= RELEASES_MAX && TO_RELEASE.try_with(|queue| push(queue, key)).is_ok();
    if is_queued {
        return;
    }
    // While the OS thread ends there may be no place for the depth.
    let _ = DEPTH.try_with(|place| place.set((stack, depth + 1)));
    let empties = depth == 0 || depth + 1 == RELEASES_MAX;
    let mut next = Some(key);
    while let Some(key) = next {
        // SAFETY: the caller's contract, for this key and for each key in the queue. A key is put
        // into the queue once and taken out once. `release` does not unwind.
        unsafe { body::release(key) };
        next = if empties { TO_RELEASE.try_with(pop).ok().flatten() } else { None };
    }
    let _ = DEPTH.try_with(|place| place.set((stack, depth)));
}

fn push(queue: &Cell<Vec<Key>>, key: Key) {
    let mut keys = queue.take();
    keys.push(key);
    queue.set(keys);
}

fn pop(queue: &Cell<Vec<Key>>) -> Option<Key> {
    let mut keys = queue.take();
    let key = keys.pop();
    queue.set(keys);
    key
}
