//! Holes: the headers of thunks under evaluation, and how long an OS thread looks at one before it
//! is parked.
//!
//! GREY and BLACK have the number of the OS thread that has entered. A nursery stays on its OS
//! thread and knows that number. The numbers are those of the process, because a thunk may be
//! forced with a nursery of another region of the same lifetime. An OS thread that finds its own
//! number has found a value that needs itself: `<<loop>>`. An OS thread that finds another number
//! looks again for some microseconds, because most evaluations are short. Then `waits.rs` parks it
//! until the hole is filled, and finds circles.
//!
//! # Why no closure of a thunk may wait in direct style
//! The thread that it leaves to would meet holes of its own OS thread that are not its own. It
//! cannot wait for them, because the OS thread then waits too. So it fails, as in a circle. To have
//! the number of the stack in the hole would cost each entry an instruction more.
//!
//! `code.rs` leaves holes, `thunk.rs` waits for them, and `claim.rs` makes claims. A waiting OS
//! thread keeps its CPU's other threads waiting too, because a force in a region is no future.

use crate::primitives::{Ordering, thread_local, yield_now};

/// The bit of a header that says that it is a hole, if the header is not a result.
pub(super) const HOLE: usize = 2;
/// The kinds of holes, in the lowest bits of a header; the number of the OS thread is above them.
/// The entry stores GREY, and a claim is an exchange for BLACK.
const GREY: usize = HOLE;
const BLACK: usize = 4 | HOLE;
const KIND: usize = 7;
/// The bits below the number of the OS thread.
const KIND_BITS: u32 = 3;

/// The header of a thunk with a closure that runs once, and has panicked: a hole of no OS thread.
pub(super) const FAILED: usize = usize::MAX << KIND_BITS | BLACK;

/// The number of OS threads that have had a nursery.
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The holes that one OS thread leaves.
#[derive(Clone, Copy)]
pub(super) struct ThreadHoles {
    pub(super) grey: usize,
    pub(super) black: usize,
}

impl ThreadHoles {
    pub(super) fn of_this_thread() -> ThreadHoles {
        let number = THREAD.with(|number| *number);
        ThreadHoles { grey: (number << KIND_BITS) | GREY, black: (number << KIND_BITS) | BLACK }
    }

    /// The number of the OS thread.
    pub(super) fn thread(self) -> usize {
        self.grey >> KIND_BITS
    }

    /// Whether this OS thread has left the hole.
    pub(super) fn has(self, hole: usize) -> bool {
        hole == self.grey || hole == self.black
    }
}

/// Whether the header is a hole of a thunk that is claimed.
pub(super) fn is_claim(header: usize) -> bool {
    header & KIND == BLACK
}

/// The number of the OS thread that has left the hole. `None` if the header is none.
pub(super) fn thread_of(header: usize) -> Option<usize> {
    let is_hole = matches!(header & KIND, GREY | BLACK) && header != FAILED;
    is_hole.then_some(header >> KIND_BITS)
}

/// The looks of which each is a moment after the one before.
const SPINS: u32 = if cfg!(any(loom, miri)) { 0 } else { 64 };
/// The looks before an OS thread is parked. After each of the last ones it yields its CPU, because
/// the other OS thread may be stopped for this one.
const LOOKS: u32 = SPINS + if cfg!(any(loom, miri)) { 1 } else { 192 };

/// The looks of an OS thread at a hole, before it is parked.
#[derive(Default)]
pub(super) struct HolePatience {
    looks: u32,
}

impl HolePatience {
    pub(super) fn is_new(&self) -> bool {
        self.looks == 0
    }

    pub(super) fn is_over(&self) -> bool {
        self.looks == LOOKS
    }

    /// Returns when the OS thread is to look again.
    pub(super) fn look_again(&mut self) {
        self.looks += 1;
        match self.looks {
            0..=SPINS => std::hint::spin_loop(),
            _ => yield_now(),
        }
    }
}
