//! A lock that its owner takes with plain stores: [`biased`], [`Owner`] and [`Guest`].
//!
//! A scheduler's worker works on its private queues all the time, and so does an event loop on its
//! tables. Another OS thread works on them only in an emergency: because the owner is in a step
//! that does not end. The lock makes the owner's side cheap, and the guest's side expensive.
//!
//! # Vocabulary
//! - The **owner** is the OS thread that has the [`Owner`]. It is *inside* while it works on the
//!   value, and *outside* otherwise. The flag `inside` says so.
//! - A **guest** is an OS thread that has a [`Guest`]. It works on the value during a **visit**,
//!   which begins only while the owner is outside. The flag `visited` says that a visit goes on, or
//!   is being tried. Guests exclude one another by the mutex `guests`.
//! - The **light fence** and the **heavy fence** are those of `fences.rs`.
//!
//! # Protocol
//! The owner:
//! - **O1.** To leave, it stores `inside = false` with Release.
//! - **O2.** To enter, it stores `inside = true`, passes the light fence, and loads `visited` with
//!   Acquire. If that is false, the owner is inside. If it is true, the owner locks the mutex
//!   `guests` once, which waits for the end of the visit; then it is inside.
//!
//! The guest:
//! - **G1.** It locks the mutex `guests`, or gives up if another guest has it.
//! - **G2.** It stores `visited = true`, and passes the heavy fence.
//! - **G3.** It loads `inside` with Acquire. If that is true, it gives up. If it is false, the
//!   visit begins.
//! - **G4.** At the end, or when it gives up, it stores `visited = false` with Release, and unlocks
//!   the mutex.
//!
//! # Never both
//! *No visit begins while the owner is inside, and the owner does not enter during a visit.* Let G3
//! load `false`, which the owner stored in O1, or which was there in the beginning. Take the first
//! O2 that follows this O1. G3 did not see its store. The heavy fence G2 put a full fence at
//! some point of the owner's program, and all stores before that point are visible to G3. So the
//! store of O2 comes after that point, and the load of O2 comes after the store, because of the
//! light fence. The load therefore sees `visited = true`, or a later value: the `false` of G4 at
//! the end of this visit, or a value from a later guest. In the first case the owner waits for the
//! mutex. In the second case the visit is over.
//!
//! An owner that has seen `visited = true` of a guest that gave up waits for the mutex in
//! vain, for a moment. An owner that has had the mutex needs no second look: a guest that locks the
//! mutex later sees `inside = true`, because the mutex orders the owner's store before its load.
//!
//! *Each sees what the other has done.* The guest loads in G3 what the owner stored with Release in
//! O1. The owner loads in O2 the `false` that the guest stored with Release in G4, or it locks the
//! mutex that the guest has unlocked.
//!
//! Where the kernel has no membarrier(2), no visit ever begins. `tests/loom/biased.rs` checks the
//! protocol.

use crate::fences::{heavy_fence, light_fence};
use crate::primitives::{AtomicBool, Mutex, MutexGuard, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

struct Room<T> {
    /// Whether the owner is inside.
    inside: AtomicBool,
    /// Whether a guest is inside, or tries to be.
    visited: AtomicBool,
    guests: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one OS thread at a time, the owner or one guest, and each sees
// what the one before has done (see the head of this file). So sharing only moves the value around.
unsafe impl<T: Send> Sync for Room<T> {}

impl<T> Room<T> {
    /// Step O1.
    #[inline(always)]
    fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    /// Step O2.
    #[inline(always)]
    fn enter(&self) {
        self.inside.store(true, Ordering::Relaxed);
        light_fence();
        if self.visited.load(Ordering::Acquire) {
            self.await_guest();
        }
    }

    #[cold]
    #[inline(never)]
    fn await_guest(&self) {
        drop(self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // A guest that panics has ended its visit: `Visit` is dropped before the mutex is unlocked.
        self.guests.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn get(&self) -> *mut T {
        self.value.get()
    }
}

/// A value that one OS thread works on at the price of two stores and a load, and other OS
/// threads in an emergency: while that one is busy elsewhere. The owner is outside at first.
///
/// # Examples
/// ```
/// use selvedge_core::biased;
///
/// let (mut owner, guest) = biased(vec![1, 2, 3]);
/// let mut inside = owner.enter();
/// inside.push(4);
/// assert!(guest.visit().is_none(), "the owner is inside");
/// let outside = inside.leave();
/// // Where the kernel has no membarrier(2) there are no visits.
/// if let Some(mut queue) = guest.visit() {
///     queue.truncate(1);
/// }
/// drop(outside);
/// assert!(matches!(inside[..], [1] | [1, 2, 3, 4]));
/// ```
pub fn biased<T>(value: T) -> (Owner<T>, Guest<T>) {
    let room = Arc::new(Room {
        inside: AtomicBool::new(false),
        visited: AtomicBool::new(false),
        guests: Mutex::new(()),
        value: UnsafeCell::new(value),
    });
    (Owner { room: room.clone() }, Guest { room })
}

/// The owner's end of a [`biased`] value.
pub struct Owner<T> {
    room: Arc<Room<T>>,
}

impl<T> Owner<T> {
    /// Begins to work on the value. If a guest is inside, this waits until it has left.
    #[inline(always)]
    pub fn enter(&mut self) -> Inside<'_, T> {
        self.room.enter();
        Inside { room: &self.room }
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}

/// The owner is inside; when this is dropped, it leaves.
pub struct Inside<'a, T> {
    room: &'a Room<T>,
}

impl<T> Inside<'_, T> {
    /// Leaves until what this returns is dropped. Meanwhile guests may visit.
    ///
    /// # Complexity
    /// A store; and when it is dropped, a store and a load.
    #[inline(always)]
    pub fn leave(&mut self) -> Outside<'_, T> {
        self.room.leave();
        Outside { room: self.room }
    }
}

/// The owner is outside for a while; when this is dropped, it is inside again. If a guest is inside
/// then, the owner waits until the guest has left.
pub struct Outside<'a, T> {
    room: &'a Room<T>,
}

impl<T> fmt::Debug for Outside<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl<T> Drop for Outside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.room.enter();
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one owner, which is inside: `Owner::enter` was called and `Inside` was
        // not dropped, and `leave` borrows it exclusively. By the protocol no guest is inside.
        unsafe { &*self.room.get() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.room.get() }
    }
}

impl<T> fmt::Debug for Inside<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.room.leave();
    }
}

/// The end of a [`biased`] value that other OS threads have.
pub struct Guest<T> {
    room: Arc<Room<T>>,
}

impl<T> Clone for Guest<T> {
    fn clone(&self) -> Guest<T> {
        Guest { room: self.room.clone() }
    }
}

impl<T> Guest<T> {
    /// Begins to work on the value. `None` if the owner is inside, if another guest is, or if the
    /// kernel has no membarrier(2).
    ///
    /// The owner waits for the end of the visit, so a visit must be short.
    ///
    /// # Complexity
    /// One load if the owner is inside. Otherwise a system call, which interrupts each OS thread of
    /// the process that runs.
    pub fn visit(&self) -> Option<Visit<'_, T>> {
        let room = &*self.room;
        if room.inside.load(Ordering::Relaxed) {
            return None;
        }
        let alone = match room.guests.try_lock() {
            Ok(alone) => alone,
            Err(std::sync::TryLockError::Poisoned(alone)) => alone.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        room.visited.store(true, Ordering::Relaxed);
        let visit = Visit { room, _alone: alone };
        (heavy_fence() && !room.inside.load(Ordering::Acquire)).then_some(visit)
    }
}

impl<T> fmt::Debug for Guest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").finish_non_exhaustive()
    }
}

/// A guest is inside, or gives up; when this is dropped, it leaves (step G4).
pub struct Visit<'a, T> {
    room: &'a Room<T>,
    _alone: MutexGuard<'a, ()>,
}

impl<T> Deref for Visit<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guest has the mutex, and `visit` has found the owner outside before it gave
        // this away. By the protocol the owner does not enter.
        unsafe { &*self.room.get() }
    }
}

impl<T> DerefMut for Visit<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.room.get() }
    }
}

impl<T> fmt::Debug for Visit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl<T> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        self.room.visited.store(false, Ordering::Release);
    }
}
