//! Hooks for the tests of this crate, behind the feature `testing`. Without it they are constants
//! that the compiler removes.
//!
//! A feature, because `cfg(test)` does not reach the library under `tests/`, and because a release
//! build of a program must not pay for them. The crate's own tests turn it on by a dev-dependency
//! of the crate on itself.

#[cfg(feature = "testing")]
pub(crate) use on::{is_shaken, take_ticket};
#[cfg(feature = "testing")]
pub use on::{shake, ticket, tickets};

/// Whether a comparison is to fail although the reads hold.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub(crate) const fn is_shaken() -> bool {
    false
}

/// Called by each commit that writes, when it has its locks and before it compares its reads.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub(crate) const fn take_ticket() {}

#[cfg(feature = "testing")]
mod on {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// One in this number of comparisons fails. 0: none.
    static ONE_IN: AtomicU32 = AtomicU32::new(0);
    static TICKETS: AtomicU64 = AtomicU64::new(0);

    thread_local! {
        static RANDOM: Cell<u64> = const { Cell::new(0) };
        static TICKET: Cell<u64> = const { Cell::new(0) };
    }

    /// Makes one in `one_in` comparisons of each attempt without a turn fail, in the whole process;
    /// none if it is 0.
    pub fn shake(one_in: u32) {
        ONE_IN.store(one_in, Ordering::Relaxed);
    }

    /// The ticket of the last commit of this OS thread that has written, or that has tried to; 0
    /// before the first one. Tickets grow in an order in which the commits may be replayed.
    pub fn ticket() -> u64 {
        TICKET.get()
    }

    /// The number of tickets given so far.
    pub fn tickets() -> u64 {
        TICKETS.load(Ordering::SeqCst)
    }

    pub(crate) fn is_shaken() -> bool {
        let one_in = ONE_IN.load(Ordering::Relaxed);
        one_in != 0 && random().is_multiple_of(u64::from(one_in))
    }

    pub(crate) fn take_ticket() {
        TICKET.set(TICKETS.fetch_add(1, Ordering::SeqCst) + 1);
    }

    /// Marsaglia's xorshift, from another seed on each OS thread.
    fn random() -> u64 {
        let mut n = RANDOM.get();
        if n == 0 {
            n = TICKETS.load(Ordering::Relaxed).wrapping_mul(2) + 0x9E37_79B9_7F4A_7C15;
            n ^= (&raw const n).addr() as u64;
        }
        n ^= n << 13;
        n ^= n >> 7;
        n ^= n << 17;
        RANDOM.set(n);
        n >> 8
    }
}
