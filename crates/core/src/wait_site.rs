//! [`WaitSite`]: the place in the program at which a thread waits, in 4 bytes.
//!
//! A leaf future that waits passes it to `ask_block` (`cpu/ask.rs`), and the CPU keeps it with the
//! thread. The list of threads and the report of a deadlock turn it back into a source line.

use crate::arena::Key;
use crate::vtable;
use std::panic::Location;

/// The place in the program at which a thread waits, in 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitSite(pub(crate) u32);

impl WaitSite {
    /// The thread waits behind a waker, or does not wait.
    pub(crate) const UNKNOWN: WaitSite = WaitSite(0);
    /// The thread waits at the join handle of the thread `key`. The highest bit of the key is left
    /// out. The result is odd, and no location lies at an odd address.
    #[inline(always)]
    pub(crate) fn join(key: Key) -> WaitSite {
        WaitSite(key.get() << 1 | 1)
    }

    /// Whether the place is a join handle.
    pub(crate) fn is_join(self) -> bool {
        self.0 & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn of(location: &'static Location<'static>) -> WaitSite {
        match vtable::offset(location) {
            Some(offset) => WaitSite(offset),
            None => WaitSite::far(),
        }
    }

    /// The site of a location in another image: unknown. It is a function, so that the compiler
    /// branches and does not compute both sites.
    #[cold]
    #[inline(never)]
    fn far() -> WaitSite {
        WaitSite::UNKNOWN
    }

    pub(crate) fn location(self) -> Option<&'static Location<'static>> {
        // SAFETY: a site that is neither unknown nor a join was made by `of`, from the offset of a
        // location. (No location lies at the anchor itself, so no such offset is 0.)
        (self != WaitSite::UNKNOWN && !self.is_join()).then(|| unsafe { vtable::at_offset(self.0) })
    }
}
