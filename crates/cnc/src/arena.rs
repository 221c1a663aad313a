//! The objects that a graph owns: [`Arena`], which keeps them at fixed addresses until the graph
//! ends.
//!
//! `Catalogue::own` adds collections, step entries and hints, and returns references of the graph's
//! lifetime `'g`. Handles such as `ItemCol` and `TagCol` are copies of these references.
//!
//! The arena ends in two passes. The first pass calls [`Owned::empty`] of each object, which runs
//! the destructors of the program. The second pass frees the objects. So a destructor of the
//! program may use any handle. An object keeps the program's values in cells that `empty` can clear
//! through a shared reference: in [`UntilTheEnd`], in item slots, or behind a lock. `Core::close`
//! calls [`Arena::leak`] if a handle of an async step may still hold a reference to an item.
//!
//! # Lifetimes
//! The arena puts the destructors of items, keys and closures off until after the lifetime `'g` of
//! the graph. So all that they borrow must outlive the call of `graph`, and not only the use of the
//! handle. Each function that gives a collection or a step a value demands `'g` of the type: the
//! types of keys and items in `Graph::items_in` and `StepContext::items_in`, and the closures
//! in `Graph::prescribe` and its like. `'g` is chosen by `graph` (`for<'g>`), so no type can name
//! it, and what begins within the call is too short. An item that borrows from there does not
//! compile:
//! ```compile_fail,E0597
//! use selvedge::cnc::{self, schedulers::OneByOne};
//!
//! cnc::graph(|graph| {
//!     let text = String::from("too short");
//!     let text = &text;
//!     let items = graph.items::<u32, &str>("items");
//!     graph.initialize(|env| env.put(items, 1, text)).unwrap();
//!     graph.run(&OneByOne).unwrap();
//! });
//! ```
//! Neither does a step:
//! ```compile_fail,E0597
//! use selvedge::cnc::{self, schedulers::OneByOne};
//!
//! cnc::graph(|graph| {
//!     let text = String::from("too short");
//!     let text = &text;
//!     let (tags, items) = (graph.tags::<u32>("tags"), graph.items::<u32, usize>("items"));
//!     graph.prescribe(tags, "length", move |n, step| step.put(items, n, text.len()));
//!     graph.run(&OneByOne).unwrap();
//! });
//! ```
//! What begins before the call is long enough:
//! ```
//! use selvedge::cnc::{self, schedulers::OneByOne};
//!
//! let text = String::from("long enough");
//! let text = &text;
//! cnc::graph(|graph| {
//!     let (tags, begun) = (graph.tags::<u32>("tags"), graph.items::<u32, &str>("begun"));
//!     let lengths = graph.items::<u32, usize>("lengths");
//!     graph.prescribe(tags, "begin", move |n, step| step.put(begun, n, text));
//!     graph.prescribe_async(tags, "length", move |n, step| async move {
//!         let begun = *step.get(begun, n).await?;
//!         step.put(lengths, n, begun.len() + text.len())
//!     });
//!     graph.initialize(|env| {
//!         env.put_tag(tags, 1)?;
//!         env.fork(move |step| step.get(lengths, 1).map(|n| assert_eq!(*n, 2 * text.len())))
//!     }).unwrap();
//!     graph.run(&OneByOne).unwrap();
//! });
//! ```

use crate::first_panic::FirstPanic;
use crate::primitives::{Mutex, lock};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Deref;

/// An object of a graph.
pub(crate) trait Owned {
    /// Drops the values of the program that are in the object: items, tags and closures.
    ///
    /// A destructor of the program's may hold handles of this object and of others. So no object is
    /// freed before all have been emptied, and this method borrows the object shared. If a
    /// destructor panics, the arena calls `empty` again: it drops the rest, and nothing twice.
    ///
    /// # Safety
    /// The graph has ended: no step runs, and no reference to a content is used any more.
    unsafe fn empty(&self);

    /// Makes the object as it was when the program had built the graph: drops items and tags, and
    /// keeps closures and memory. If a destructor panics, the arena calls `reset` again, as
    /// `empty`.
    ///
    /// # Safety
    /// No step runs or waits, and no reference to an item is used any more.
    unsafe fn reset(&self);
}

/// What the program gave an object for as long as the graph lives, for example a closure.
pub(crate) struct UntilTheEnd<T>(UnsafeCell<T>);

// SAFETY: the content is shared as by a reference. `UntilTheEnd::replace` moves the old one to the
// OS thread that ends the graph, which `Send` allows.
unsafe impl<T: Send + Sync> Sync for UntilTheEnd<T> {}

impl<T> UntilTheEnd<T> {
    pub(crate) fn new(content: T) -> UntilTheEnd<T> {
        UntilTheEnd(UnsafeCell::new(content))
    }

    /// Drops the content, and leaves another in its place, which its destructor sees.
    ///
    /// # Safety
    /// As for [`Owned::empty`].
    pub(crate) unsafe fn replace(&self, other: T) {
        // SAFETY: no reference to the content is used any more, as the caller promises. This one
        // ends before the old content is dropped.
        let old = std::mem::replace(unsafe { &mut *self.0.get() }, other);
        drop(old);
    }
}

impl<T> Deref for UntilTheEnd<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the content is replaced only when no reference to it is used any more, as the
        // caller of `replace` promises.
        unsafe { &*self.0.get() }
    }
}

/// Owns objects of any type. The lifetimes of their types are erased, so that a graph can be
/// borrowed for the very lifetime that its own type names.
pub(crate) struct Arena {
    objects: Mutex<Vec<OwnedObject>>,
}

struct OwnedObject {
    at: *mut (),
    empty: unsafe fn(*mut ()),
    reset: unsafe fn(*mut ()),
    free: unsafe fn(*mut ()),
}

// SAFETY: `Arena::add` takes only objects that are `Send` and `Sync`.
unsafe impl Send for OwnedObject {}

/// # Safety
/// `at` came from `Box::into_raw` of a `Box<T>`; and as for [`Owned::empty`].
unsafe fn empty<T: Owned>(at: *mut ()) {
    // SAFETY: as promised by the caller.
    unsafe { (*at.cast::<T>()).empty() };
}

/// # Safety
/// `at` came from `Box::into_raw` of a `Box<T>`; and as for [`Owned::reset`].
unsafe fn reset<T: Owned>(at: *mut ()) {
    // SAFETY: as promised by the caller.
    unsafe { (*at.cast::<T>()).reset() };
}

/// # Safety
/// As for `empty`; and no reference to the object is used any more.
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
    /// The caller uses the reference no more when the arena is dropped, and all that `T` borrows
    /// outlives the call of `graph`, which drops the arena. The second follows from `T: 'g`, if the
    /// `'g` is that of a `graph`: see the head of this file.
    pub(crate) unsafe fn add<'g, T: Owned + Send + Sync + 'g>(&self, object: T) -> &'g T {
        let at = Box::into_raw(Box::new(object));
        let (empty, reset, free) = (empty::<T>, reset::<T>, free::<T>);
        lock(&self.objects).push(OwnedObject { at: at.cast(), empty, reset, free });
        // SAFETY: the box was just made, and is freed by the arena's drop alone; the caller
        // promises that no reference is used by then.
        unsafe { &*at }
    }

    /// Resets all objects. A destructor that panics stops nothing; `panics` has the first panic.
    ///
    /// # Safety
    /// As for [`Owned::reset`].
    pub(crate) unsafe fn reset(&self, panics: &mut FirstPanic) {
        // Destructors of the program run, so not under the lock.
        let objects: Vec<_> = lock(&self.objects).iter().map(|object| (object.at, object.reset)).collect();
        for (at, reset) in objects {
            // SAFETY: `at` and `reset` are of one type by `add`; and as promised by the caller.
            while !panics.run(|| unsafe { reset(at) }) {}
        }
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
            // SAFETY: `at` and `empty` are of one type by `add`. The caller of `add` has promised
            // that all that the object borrows is alive here. `Core` drops its arena after its
            // steps have ended, and the handles that destructors may use refer to objects, not to
            // their contents. A call that panics has emptied a part for ever, so that the next one
            // goes on behind it.
            while !panics.run(|| unsafe { (object.empty)(object.at) }) {}
        }
        for object in objects {
            // SAFETY: as above. Each object is freed once. All destructors of the program's have
            // run, so the caller of `add` uses no reference any more.
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
