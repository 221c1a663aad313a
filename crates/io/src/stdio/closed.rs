//! Which of the descriptors 0, 1 and 2 the process was started without, as a shell does for `>&-`.
//!
//! The standard library opens `/dev/null` in the place of a closed standard descriptor before
//! `main` begins. A program that then writes its output loses it, and reports success. So
//! `note_closed` looks at the descriptors before the standard library does: the loader calls each
//! function of the section `.init_array` first. `way` in `stdio.rs` calls [`was_closed`].

use rustix::fs::{FileType, fstat, major, minor};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Bit `n` tells that descriptor `n` was closed when the process began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn note_closed() {
    for number in 0..3 {
        // SAFETY: `F_GETFD` takes no pointer, and fails for a descriptor that is closed.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << number, Relaxed);
        }
    }
}

// SAFETY: the loader calls each entry of the section `.init_array` once, as a function without
// results, and such a function may ignore its arguments. `note_closed` calls `fcntl` and changes an
// atomic variable, and neither needs anything that the standard library sets up.
#[cfg(not(miri))]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

/// Whether the process was started without the standard descriptor `number`, and has opened nothing
/// in its place but the `/dev/null` of the standard library.
pub(super) fn was_closed(number: RawFd, fd: BorrowedFd<'_>) -> bool {
    let is_null = || {
        fstat(fd).is_ok_and(|status| {
            let is_device = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice;
            is_device && (major(status.st_rdev), minor(status.st_rdev)) == (1, 3)
        })
    };
    CLOSED.load(Relaxed) & 1 << number != 0 && is_null()
}
