//! The nodes in which [`TVar`](crate::TVar) keeps its values: how a node is freed. `spare.rs` keeps
//! its memory.

use crate::session;
use crate::spare::place;
use std::ptr::NonNull;

/// Frees a node when its value is dropped, also if the value's destructor panics.
struct Memory<T>(NonNull<T>);

impl<T> Drop for Memory<T> {
    #[inline(always)]
    fn drop(&mut self) {
        let node = self.0.cast();
        let is_kept = const { place::<T>() }
            .is_some_and(|place| session::with_kept(|session| session.spare.keep(place, node)) == Some(true));
        if !is_kept {
            // SAFETY: the box of `free`. Its value has been dropped.
            drop(unsafe { Box::from_raw(self.0.cast::<std::mem::MaybeUninit<T>>().as_ptr()) });
        }
    }
}

/// Drops the value of a node and frees the node.
///
/// # Safety
/// The pointer was made by `Box::into_raw` of a `Box<T>`, or by `SpareNodes::make`. The node ends
/// here.
pub(crate) unsafe fn free<T>(node: *mut ()) {
    // SAFETY: the caller's contract: such a pointer is not null.
    let memory = Memory(unsafe { NonNull::new_unchecked(node.cast::<T>()) });
    // SAFETY: the caller's contract.
    unsafe { memory.0.drop_in_place() };
}
