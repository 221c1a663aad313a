//! Notes of the calls that have just found a descriptor drained. `NonBlocking` leaves them
//! (`note`), and the event loop of the same OS thread takes them (`take`), because a call knows
//! nothing of the loop's table.
//!
//! A lost note costs one call that fails. A wrong note loses an edge: note only a call of this OS
//! thread that has just been made (rule 2 in the head of `reactor/mod.rs`).

use selvedge_core::Interest;
use std::cell::Cell;
use std::os::fd::RawFd;

/// The result of a call that shows that a descriptor is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// The call came back short.
    Short,
    /// The call found nothing: it failed, or it found the end.
    Nothing,
}

thread_local! {
    /// The descriptors that calls of this OS thread have found drained since its event loop last
    /// took these notes: the last few of them.
    static NOTES: [Cell<Option<(RawFd, Interest, Drained)>>; 4] = const { [const { Cell::new(None) }; 4] };
}

/// Notes that a call has just found a descriptor drained. The event loop takes the note before its
/// next `epoll_wait` and before a thread waits.
///
/// There are few places. If a note is lost, a later wait goes on at once because of an old edge,
/// and makes one call that fails.
#[inline]
pub(crate) fn note(fd: RawFd, interest: Interest, by: Drained) {
    NOTES.with(|notes| {
        let new = Some((fd, interest, by));
        if notes[0].get() != new {
            for i in (1..notes.len()).rev() {
                notes[i].set(notes[i - 1].get());
            }
            notes[0].set(new);
        }
    });
}

/// Removes the notes, and passes each of them to `take`.
#[inline]
pub(super) fn take(mut take: impl FnMut(RawFd, Interest, Drained)) {
    NOTES.with(|notes| {
        for place in notes {
            let Some((fd, interest, by)) = place.take() else { break };
            take(fd, interest, by);
        }
    });
}
