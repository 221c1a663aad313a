//! New stacks ([`fetch`]): pieces of large mappings, each with a guard below it.
//!
//! `stack.rs` fetches stacks when an OS thread has no free one, and gives back the stacks that are
//! too many for it ([`give_back`]). One mapping has room for many stacks of one size:
//!
//! ```text
//!     │ guard │ stack │ guard │ stack │ guard │ stack │ not carved yet ... │
//!     └───────┴───────┴───────┴───────┴───────┴───────┴────────────────────┘
//! ```
//!
//! The kernel marks the pages of a guard in its page table (Linux 6.13). Such a guard splits no
//! mapping, so the number of stacks has no limit but memory. For an older kernel this file forbids
//! the access to the pages. Then each guard takes two of the mappings that a process may have.
//!
//! A mapping is never undone. The memory of a stack that is given back returns to the kernel; its
//! addresses stay, and its part of a page table: 640 bytes for a stack of 256 KiB.

use crate::overflow;
use corosensei::stack::valgrind::ValgrindStackRegistration;
use std::mem::forget;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fmt, io};

/// The smallest stack.
pub(crate) const BYTES_MIN: usize = 16 * 1024;
/// Sizes are powers of two, so that a free stack fits each request for about as much.
pub(crate) const SIZES: usize = 40;
/// The bytes of the guard below each stack. A frame that does not probe its pages should skip no
/// more than that.
pub(crate) const GUARD: usize = 64 * 1024;
/// The size of a page.
const PAGE: usize = 4096;
/// The fewest and the most stacks that a mapping has room for. In between it has room for as many
/// as there were before.
const ROOM: (usize, usize) = (16, 1024);
/// The most bytes of a mapping for more than one stack.
const MAPPING_BYTES_MAX: usize = 1 << 30;
/// The most stacks that are fetched or given back at a time.
pub(crate) const BATCH: usize = 64;
/// Advice of Linux 6.13: each access to the pages is a fault from now on.
const MADV_GUARD_INSTALL: libc::c_int = 102;
/// The calling process, for system calls that ask for a descriptor of one (Linux 6.14).
const PIDFD_SELF: libc::c_int = -10_001;

/// All stacks of the process.
static CARVED: AtomicUsize = AtomicUsize::new(0);
/// Those with a guard that takes mappings.
static MAPPING_GUARDS: AtomicUsize = AtomicUsize::new(0);
/// The kernel marks guards, as far as is known.
static MARKS_GUARDS: AtomicBool = AtomicBool::new(true);

/// The stacks that no OS thread has, by the logarithm of their size.
static QUARRIES: Mutex<[Quarry; SIZES]> = Mutex::new([const { Quarry::EMPTY }; SIZES]);

/// An address in a mapping. A free stack is named by its end, which is the end of a page. Its size
/// is that of the list in which it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(pub(crate) NonNull<u8>);

// SAFETY: it is only an address. The memory of a free stack has no content that belongs to an OS
// thread, by the contract of `give_back`.
unsafe impl Send for Place {}

/// The stacks of one size that no OS thread has.
struct Quarry {
    given_back: Vec<Place>,
    /// The rest of the newest mapping, if stacks were carved.
    rest: Option<Rest>,
    carved: usize,
}

/// The part of a mapping that has not been carved.
#[derive(Clone, Copy)]
struct Rest {
    start: Place,
    /// How many stacks it has room for.
    room: usize,
}

/// There is no stack for another direct-style thread.
#[derive(Debug)]
pub(crate) struct NoStack {
    bytes: usize,
    /// `None` if there are too many.
    error: Option<io::Error>,
}

impl fmt::Display for NoStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no stack of {} KiB for another direct-style thread: ", self.bytes / 1024)?;
        let live = CARVED.load(Ordering::Relaxed);
        match &self.error {
            Some(error) => write!(f, "{error}; this process has {live}"),
            None => write!(
                f,
                "there are too many; this process has {live}, and vm.max_map_count allows {}",
                mapping_guards_max()
            ),
        }
    }
}

/// How many guards of a process may take mappings: two each, and the rest of the program needs some
/// too.
fn mapping_guards_max() -> usize {
    /// Mappings left to others.
    const OTHERS: usize = 4096;
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count");
        let mappings = mappings.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
        mappings.saturating_sub(OTHERS) / 2
    })
}

fn quarries() -> MutexGuard<'static, [Quarry; SIZES]> {
    QUARRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds stacks of `bytes`, a power of two, to an OS thread's list of free ones: at least one, and
/// more if the OS thread has fetched many `before`. They are the caller's alone.
#[cold]
pub(crate) fn fetch(bytes: usize, before: usize, free: &mut Vec<Place>) -> Result<usize, NoStack> {
    overflow::expect();
    // More at a time would save half a microsecond for each, and one that is not used costs two.
    let wanted = (before / 8).clamp(1, BATCH);
    let quarry = &mut quarries()[bytes.trailing_zeros() as usize];
    let kept = free.len();
    let from = quarry.given_back.len().saturating_sub(wanted);
    free.extend(quarry.given_back.drain(from..));
    while free.len() < kept + wanted {
        match quarry.carve(bytes) {
            Ok(stack) => free.push(stack),
            Err(error) if free.len() == kept => return Err(error),
            Err(_) => break,
        }
    }
    touch(&free[kept..]);
    Ok(free.len() - kept)
}

/// Takes stacks back, for any OS thread. Their memory returns to the kernel.
///
/// # Safety
/// The caller has fetched the stacks, of `bytes` each. No code uses them now, and the caller does
/// not use them again.
#[cold]
pub(crate) unsafe fn give_back(bytes: usize, stacks: &[Place]) {
    for some in stacks.chunks(BATCH) {
        // SAFETY: the ranges are the stacks, by the caller's contract. Their content is not needed.
        unsafe {
            if !advise_all(some, bytes, libc::MADV_DONTNEED) {
                for stack in some {
                    libc::madvise(stack.0.as_ptr().sub(bytes).cast(), bytes, libc::MADV_DONTNEED);
                }
            }
        }
    }
    quarries()[bytes.trailing_zeros() as usize].given_back.extend_from_slice(stacks);
}

impl Quarry {
    const EMPTY: Quarry = Quarry { given_back: Vec::new(), rest: None, carved: 0 };

    /// A stack that was none before.
    fn carve(&mut self, bytes: usize) -> Result<Place, NoStack> {
        let failed = |error| NoStack { bytes, error };
        let rest = match self.rest.filter(|rest| rest.room > 0) {
            Some(rest) => rest,
            None => map(bytes, self.carved).map_err(|error| failed(Some(error)))?,
        };
        guard(rest.start).map_err(failed)?;
        // SAFETY: a rest has room for a guard and a stack. The second address is its end at most.
        let (stack, end) = unsafe { (rest.start.0.add(GUARD), rest.start.0.add(GUARD + bytes)) };
        self.rest = Some(Rest { start: Place(end), room: rest.room - 1 });
        self.carved += 1;
        CARVED.fetch_add(1, Ordering::Relaxed);
        forget(ValgrindStackRegistration::new(stack.as_ptr(), bytes));
        Ok(Place(end))
    }
}

/// A new mapping. A process with `carved` stacks of this size is likely to need many more.
fn map(bytes: usize, carved: usize) -> io::Result<Rest> {
    let room = carved.clamp(ROOM.0, ROOM.1).min((MAPPING_BYTES_MAX / (GUARD + bytes)).max(1));
    // There may be addresses for one stack, but not for `room` stacks.
    map_room(bytes, room).or_else(|_| map_room(bytes, 1))
}

fn map_room(bytes: usize, room: usize) -> io::Result<Rest> {
    let length = room * (GUARD + bytes);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A huge page would be the memory of several stacks.
    // SAFETY: this is the mapping that was made above. The advice changes no content.
    unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
    let start = Place(NonNull::new(start.cast()).expect("a mapping is not at address 0"));
    Ok(Rest { start, room })
}

/// Makes the guard at the start of a rest. The error is `None` if there are too many.
fn guard(start: Place) -> Result<(), Option<io::Error>> {
    let start = start.0.as_ptr().cast();
    if MARKS_GUARDS.load(Ordering::Relaxed) {
        // SAFETY: the guard lies in the rest of a mapping, which no code uses.
        if unsafe { libc::madvise(start, GUARD, MADV_GUARD_INSTALL) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(Some(error));
        }
        MARKS_GUARDS.store(false, Ordering::Relaxed);
    }
    if MAPPING_GUARDS.load(Ordering::Relaxed) >= mapping_guards_max() {
        return Err(None);
    }
    // SAFETY: as above.
    if unsafe { libc::mprotect(start, GUARD, libc::PROT_NONE) } != 0 {
        return Err(Some(io::Error::last_os_error()));
    }
    MAPPING_GUARDS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Gives memory to the page of each stack that is used first, all in one system call. A kernel that
/// cannot do that gives it when the page is first touched.
fn touch(stacks: &[Place]) {
    if stacks.len() > 1 {
        // SAFETY: the pages belong to stacks that no code uses. The kernel makes them as a write
        // would, and changes no content.
        unsafe { advise_all(stacks, PAGE, libc::MADV_POPULATE_WRITE) };
    }
}

/// Advises the kernel about the last `bytes` of each stack, of `BATCH` stacks at most. False if it
/// has not followed for all of them.
///
/// # Safety
/// That of the advice.
unsafe fn advise_all(stacks: &[Place], bytes: usize, advice: libc::c_int) -> bool {
    let end =
        |stack: &Place| libc::iovec { iov_base: stack.0.as_ptr().wrapping_sub(bytes).cast(), iov_len: bytes };
    let none = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
    let mut ends = [none; BATCH];
    for (place, stack) in ends.iter_mut().zip(stacks) {
        *place = end(stack);
    }
    let count = stacks.len();
    // SAFETY: the array has `count` ranges. The rest is the caller's contract.
    let done =
        unsafe { libc::syscall(libc::SYS_process_madvise, PIDFD_SELF, ends.as_ptr(), count, advice, 0) };
    usize::try_from(done) == Ok(count * bytes)
}
