//! What a graph owns: collections and steps, at addresses that stay until the graph ends.

use std::fmt;

use crate::first_panic::FirstPanic;
use crate::primitives::{Mutex, lock};

/// An object of a graph.
pub(crate) trait Owned {
    /// Drops what the program has put into the object: items, tags and closures.
    ///
    /// A destructor of the program's may hold handles of other objects, so no object is freed
    /// before all have been emptied. If a destructor panics, `empty` is called again: it drops what
    /// is left, and nothing twice.
    fn empty(&mut self);
}

/// Owns objects of any type. The lifetimes of their types are erased, so that a graph can be
/// borrowed for the very lifetime that its own type names.
pub(crate) struct Arena {
    objects: Mutex<Vec<OwnedObject>>,
}

struct OwnedObject {
    at: *mut (),
    empty: unsafe fn(*mut ()),
    free: unsafe fn(*mut ()),
}

// SAFETY: `Arena::add` takes only objects that are `Send` and `Sync`.
unsafe impl Send for OwnedObject {}

/// # Safety
/// `at` came from `Box::into_raw` of a `Box<T>`, and no other reference to it is used any more.
unsafe fn empty<T: Owned>(at: *mut ()) {
    // SAFETY: as promised by the caller.
    unsafe { (*at.cast::<T>()).empty() };
}

/// # Safety
/// As for `empty`; and the object is used no more.
unsafe fn free<T>(at: *mut ()) {
    // SAFETY: as promised by the caller.
    drop(unsafe { Box::from_raw(at.cast::<T>()) });
}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena { objects: Mutex::new(Vec::new()) }
    }

    /// Takes an object in.
    ///
    /// # Safety
    /// The caller uses the reference no more when the arena is dropped, and `'g` ends before what
    /// `T` borrows.
    pub(crate) unsafe fn add<'g, T: Owned + Send + Sync + 'g>(&self, object: T) -> &'g T {
        let at = Box::into_raw(Box::new(object));
        lock(&self.objects).push(OwnedObject { at: at.cast(), empty: empty::<T>, free: free::<T> });
        // SAFETY: the box was just made, and is freed by the arena's drop alone; the caller
        // promises that no reference is used by then.
        unsafe { &*at }
    }

    /// Gives all objects up: they are neither emptied nor freed.
    pub(crate) fn leak(&self) {
        lock(&self.objects).clear();
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut *lock(&self.objects));
        let mut panics = FirstPanic::default();
        for object in &objects {
            // SAFETY: `at` and `empty` are of one type by `add`, and the caller of `add` promised
            // that no reference is in use now. A call that panics has emptied a part for ever, so
            // that the next one goes on behind it.
            while !panics.run(|| unsafe { (object.empty)(object.at) }) {}
        }
        for object in objects {
            // SAFETY: as above, and each object is freed once.
            panics.run(|| unsafe { (object.free)(object.at) });
        }
        panics.go_on();
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").finish_non_exhaustive()
    }
}
