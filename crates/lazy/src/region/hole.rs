//! Holes: the headers of thunks under evaluation, and how an OS thread waits until one is filled.
//!
//! GREY and BLACK have the number of the OS thread that has entered. A nursery stays on its OS
//! thread and knows that number. The numbers are those of the process, because a thunk may be
//! forced with a nursery of another region of the same lifetime. An OS thread that finds its own
//! number has found a value that needs its own: `<<loop>>`. One that finds another number looks
//! again until the hole is filled, less and less often: the other OS thread evaluates at a stretch.
//! After a while it notes in `waits.rs` which hole it waits for, so that circles are found.
//!
//! # Why no closure of a thunk may wait in direct style
//! The thread that it leaves to would meet holes of its own OS thread that are not its own. It
//! cannot wait for them, because the OS thread then waits too. So it fails, as in a circle. To have
//! the number of the stack in the hole would cost each entry an instruction more.
//!
//! `thunk.rs` enters holes and waits for them, and `claim.rs` makes claims. A waiting OS thread
//! keeps its CPU's other threads waiting too, because a force in a region is no future.

use crate::primitives::{Ordering, thread_local};

/// The kinds of holes, in the lowest two bits of a header; the number of the OS thread is above
/// them. The entry stores GREY, and a claim is an exchange for BLACK.
const GREY: usize = 2;
const BLACK: usize = 3;
pub(super) const KIND: usize = 3;

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
        ThreadHoles { grey: (number << 2) | GREY, black: (number << 2) | BLACK }
    }

    /// The number of the OS thread.
    pub(super) fn thread(self) -> usize {
        self.grey >> 2
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
    matches!(header & KIND, GREY | BLACK).then_some(header >> 2)
}

/// The looks at a hole before the wait is a long one.
const LONG: u32 = if cfg!(any(loom, miri)) { 2 } else { 256 };

/// How an OS thread waits for a hole to be filled.
#[derive(Default)]
pub(super) struct HolePatience {
    rounds: u32,
}

impl HolePatience {
    pub(super) fn is_new(&self) -> bool {
        self.rounds == 0
    }

    /// Whether the wait is no longer a short one.
    pub(super) fn is_long(&self) -> bool {
        self.rounds >= LONG
    }

    pub(super) fn wait(&mut self) {
        self.rounds += 1;
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        match self.rounds {
            0..64 => std::hint::spin_loop(),
            rounds if rounds < LONG => std::thread::yield_now(),
            _ => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
    }
}
