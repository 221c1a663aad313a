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

/// The most notes that are kept: of the threads of one turn that read and then wait for something
/// else.
const PLACES: usize = 256;

/// The descriptors that calls of this OS thread have found drained since its event loop last took
/// these notes.
struct Notes {
    count: Cell<usize>,
    places: [Cell<(RawFd, Interest, Drained)>; PLACES],
}

thread_local! {
    static NOTES: Notes = const {
        Notes {
            count: Cell::new(0),
            places: [const { Cell::new((-1, Interest::READ, Drained::Short)) }; PLACES],
        }
    };
}

/// Notes that a call has just found a descriptor drained. The event loop takes the note before its
/// next `epoll_wait` and before a thread waits.
///
/// If there are too many, the note is lost. Then a later wait goes on at once because of an old
/// edge, and makes one call that fails.
#[inline]
pub(crate) fn note(fd: RawFd, interest: Interest, by: Drained) {
    NOTES.with(|notes| {
        let (count, new) = (notes.count.get(), (fd, interest, by));
        let is_last = count > 0 && notes.places[count - 1].get() == new;
        if !is_last && count < PLACES {
            notes.places[count].set(new);
            notes.count.set(count + 1);
        }
    });
}

/// Removes the notes, and passes each of them to `take`.
#[inline]
pub(super) fn take(mut take: impl FnMut(RawFd, Interest, Drained)) {
    NOTES.with(|notes| {
        let count = notes.count.replace(0);
        for place in &notes.places[..count] {
            let (fd, interest, by) = place.get();
            take(fd, interest, by);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Vec<(RawFd, Interest, Drained)> {
        let mut all = Vec::new();
        take(|fd, interest, by| all.push((fd, interest, by)));
        all
    }

    #[test]
    fn the_notes_of_a_whole_turn_are_kept() {
        assert_eq!(taken(), []);
        for fd in 0..PLACES as RawFd + 1 {
            note(fd, Interest::READ, Drained::Short);
            note(fd, Interest::READ, Drained::Short);
        }
        note(7, Interest::WRITE, Drained::Nothing);
        let all = taken();
        assert_eq!(all.len(), PLACES);
        assert!(all.iter().zip(0..).all(|(one, fd)| *one == (fd, Interest::READ, Drained::Short)));
        assert_eq!(taken(), []);
    }
}
