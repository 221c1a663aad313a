//! Which OS threads wait for which holes, and the search for a circle between them.
//!
//! An OS thread that has looked at a hole for long notes here which thunk it waits for. Under the
//! same lock it follows the holes: the thunk's header has the number of the OS thread that
//! evaluates it, and if that one waits too, its note leads to the next thunk. If the way leads back
//! to the OS thread itself, no thread of the circle will ever go on: `<<loop>>`.
//!
//! # Each circle is found
//! An OS thread leaves its holes before it notes its own wait. So when the last OS thread of a
//! circle makes its note, all the other notes and all the holes between them are there, and are seen
//! under the lock.
//!
//! # Nothing else is found
//! A header with the number of an OS thread says that the evaluation of that OS thread has not
//! ended. The OS thread has one native stack that waits at a time, so the evaluation waits for what
//! the OS thread waits for. A note is removed before its OS thread goes on. A duplicate of a thunk in
//! the circle, on an OS thread outside of it, needs the same values, because the code is pure.
//!
//! `Thunk::meet` in `thunk.rs` is the caller. Lock-free thunks leave no holes, so their circles are
//! not found.

use super::hole::{ThreadHoles, thread_of};
use crate::primitives::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};
use std::panic::Location;
use std::ptr::NonNull;

/// The note of an OS thread.
struct Note {
    thread: usize,
    /// The header of the thunk that it waits for.
    header: NonNull<AtomicUsize>,
    /// That of the force.
    place: &'static Location<'static>,
}

// SAFETY: the header is atomic, and its thunk is there until the note is removed.
unsafe impl Send for Note {}

#[cfg(not(loom))]
static NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
#[cfg(loom)]
loom::lazy_static! {
    static ref NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
}

fn notes() -> MutexGuard<'static, Vec<Note>> {
    lock(&NOTES)
}

/// The wait of an OS thread for a hole, noted until this is dropped.
pub(super) struct HoleWait<'a> {
    thread: usize,
    _header: &'a AtomicUsize,
}

impl<'a> HoleWait<'a> {
    /// Notes that this OS thread waits for the thunk with this header.
    ///
    /// # Errors
    /// When the thunk waits for this OS thread. Then the places are those of the forces of the
    /// circle.
    pub(super) fn note(
        holes: ThreadHoles,
        header: &'a AtomicUsize,
        place: &'static Location<'static>,
    ) -> Result<HoleWait<'a>, Vec<&'static Location<'static>>> {
        let mut notes = notes();
        let mut places = vec![place];
        let mut owner = thread_of(header.load(Ordering::Acquire));
        while let Some(note) = notes.iter().find(|note| Some(note.thread) == owner) {
            // A circle without this OS thread has been found by another one.
            if places.len() > notes.len() {
                break;
            }
            places.push(note.place);
            // SAFETY: the note is there, so its OS thread still waits with a thunk of a region.
            owner = thread_of(unsafe { note.header.as_ref() }.load(Ordering::Acquire));
            if owner == Some(holes.thread()) {
                return Err(places);
            }
        }
        notes.push(Note { thread: holes.thread(), header: NonNull::from(header), place });
        Ok(HoleWait { thread: holes.thread(), _header: header })
    }
}

impl Drop for HoleWait<'_> {
    fn drop(&mut self) {
        notes().retain(|note| note.thread != self.thread);
    }
}
