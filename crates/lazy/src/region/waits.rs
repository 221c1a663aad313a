//! How an OS thread is parked until a hole is filled, and the search for a circle between OS
//! threads.
//!
//! An OS thread that has looked at a hole for long makes a [`Note`]: the thunk that it waits for.
//! Then it sleeps until another OS thread ends the evaluation and removes the note.
//! ```text
//!    waits                                     evaluates
//!    note in NOTES, its bit in WAITED          store of the header: a result, or the code again
//!    heavy fence                               light fence
//!    load of the header                        load of WAITED
//!      still a hole: sleeps                      not 0: looks for notes, and wakes
//! ```
//! `WAITED` is 0 while no OS thread of the process waits for a hole. So the end of an evaluation
//! costs a load and a branch more than its stores. `WAITED` has a bit for each of 64 parts of the
//! memory addresses, so while an OS thread waits, most other evaluations that end take no lock.
//!
//! # No wake-up is lost
//! 1. Between the two sides one of the loads sees the other side's store, because of the fences.
//!    So if the end of an evaluation does not see the note, the waiting OS thread sees the header
//!    that this end has stored, or a later one.
//! 2. Each header that is not a hole is stored before a load of `WAITED` by the same OS thread.
//! 3. A hole is left by an OS thread that is evaluating the thunk. It ends that evaluation by a
//!    store of its own, or it finds that the header is no longer its hole. In the second case the
//!    header is from another OS thread, for which the same holds.
//!
//! So after the last store of the header that is not a hole, the waiting OS thread sees that store,
//! or is woken.
//!
//! A kernel without membarrier(2) has no heavy fence. Then the waiting OS thread looks at the
//! header each [`WITHOUT_FENCE`].
//!
//! # The search for a circle
//! Under the lock of the notes the OS thread follows the holes: the thunk's header has the number
//! of the OS thread that evaluates it, and if that one waits too, its note leads to the next thunk.
//! If the way leads back to the OS thread itself, no thread of the circle will ever go on:
//! `<<loop>>`.
//!
//! # Each circle is found
//! An OS thread leaves its holes before it notes its own wait. So when the last OS thread of a
//! circle makes its note, all the other notes and all the holes between them are there, and are
//! seen under the lock.
//!
//! # Nothing else is found
//! A header with the number of an OS thread says that the evaluation of that OS thread has not
//! ended. The OS thread has one native stack that waits at a time, so the evaluation waits for what
//! the OS thread waits for. A note is removed before its OS thread goes on. A duplicate of a thunk
//! in the circle, on an OS thread outside of it, needs the same values, because the code is pure.
//!
//! # Callers
//! `Thunk::meet` in `thunk.rs` waits. `Thunk::update` there and `end_unwinding` in `cell.rs` wake.
//! Lock-free thunks leave no holes, so no OS thread waits for them, and their circles are not
//! found.

use super::hole::{ThreadHoles, thread_of};
use crate::primitives::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock};
use selvedge_core::{heavy_fence, light_fence, prepare_heavy_fence};
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The time between two looks where the kernel has no heavy fence.
const WITHOUT_FENCE: Duration = Duration::from_micros(50);

/// The wait of an OS thread.
struct Note {
    thread: usize,
    /// The header of the thunk that it waits for.
    header: *const AtomicUsize,
    /// That of the force.
    place: &'static Location<'static>,
    /// Notified when the note is removed.
    is_removed: Arc<Condvar>,
}

// SAFETY: the header is atomic, and its thunk is there until the note is removed.
unsafe impl Send for Note {}

#[cfg(not(loom))]
static NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
/// The bits of the notes: see [`bit_of`]. It is written under the lock of the notes.
#[cfg(not(loom))]
static WAITED: AtomicUsize = AtomicUsize::new(0);
#[cfg(loom)]
loom::lazy_static! {
    static ref NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
    static ref WAITED: AtomicUsize = AtomicUsize::new(0);
}

/// The bit of `WAITED` for a thunk.
fn bit_of(header: *const AtomicUsize) -> usize {
    1 << ((header.addr() >> 4) % usize::BITS as usize)
}

/// The notes, locked.
struct Notes(MutexGuard<'static, Vec<Note>>);

impl Notes {
    fn lock() -> Notes {
        Notes(lock(&NOTES))
    }

    fn of(&self, thread: usize) -> Option<&Note> {
        self.0.iter().find(|note| note.thread == thread)
    }

    fn add(&mut self, note: Note) {
        self.0.push(note);
        self.write_bits();
    }

    /// Removes the notes that are to go, and wakes their OS threads.
    fn remove(&mut self, goes: impl Fn(&Note) -> bool) {
        self.0.retain(|note| {
            let stays = !goes(note);
            if !stays {
                note.is_removed.notify_one();
            }
            stays
        });
        self.write_bits();
    }

    fn write_bits(&self) {
        let bits = self.0.iter().fold(0, |bits, note| bits | bit_of(note.header));
        WAITED.store(bits, Ordering::Relaxed);
    }

    /// The places of the forces of the circle, if the thunk waits for the OS thread.
    fn find_circle(
        &self,
        thread: usize,
        header: &AtomicUsize,
        place: &'static Location<'static>,
    ) -> Option<Vec<&'static Location<'static>>> {
        let mut places = vec![place];
        let mut owner = thread_of(header.load(Ordering::Acquire));
        while let Some(note) = owner.and_then(|owner| self.of(owner)) {
            // A circle without this OS thread has been found by another one.
            if places.len() > self.0.len() {
                break;
            }
            places.push(note.place);
            // SAFETY: the note is there, so its OS thread still waits with a thunk of a region.
            owner = thread_of(unsafe { &*note.header }.load(Ordering::Acquire));
            if owner == Some(thread) {
                return Some(places);
            }
        }
        None
    }
}

/// Parks this OS thread until the thunk with this header is no hole any more, or has become another
/// hole. The caller looks at the header again.
///
/// # Errors
/// When the thunk waits for this OS thread. Then the places are those of the forces of the circle.
#[cold]
pub(super) fn wait_for(
    holes: ThreadHoles,
    header: &AtomicUsize,
    place: &'static Location<'static>,
) -> Result<(), Vec<&'static Location<'static>>> {
    let (thread, is_removed) = (holes.thread(), Arc::new(Condvar::new()));
    // The first call of the process may take long, and so it is made without the lock.
    prepare_heavy_fence();
    let mut notes = Notes::lock();
    if let Some(circle) = notes.find_circle(thread, header, place) {
        return Err(circle);
    }
    notes.add(Note { thread, header, place, is_removed: is_removed.clone() });
    drop(notes);
    let is_ordered = heavy_fence();
    let mut notes = Notes::lock();
    while notes.of(thread).is_some() {
        if thread_of(header.load(Ordering::Acquire)).is_none() {
            notes.remove(|note| note.thread == thread);
            break;
        }
        notes = Notes(match is_ordered {
            true => is_removed.wait(notes.0).unwrap_or_else(PoisonError::into_inner),
            false => {
                is_removed.wait_timeout(notes.0, WITHOUT_FENCE).unwrap_or_else(PoisonError::into_inner).0
            }
        });
    }
    Ok(())
}

/// Wakes the OS threads that wait for the thunk with this header. The caller has stored a header
/// that is not a hole.
#[inline(always)]
pub(super) fn wake_waiters(header: &AtomicUsize) {
    light_fence();
    if WAITED.load(Ordering::Relaxed) != 0 {
        wake_noted(header);
    }
}

#[cold]
#[inline(never)]
fn wake_noted(header: *const AtomicUsize) {
    if WAITED.load(Ordering::Relaxed) & bit_of(header) != 0 {
        Notes::lock().remove(|note| ptr::eq(note.header, header));
    }
}
