//! [`NativeStack`]: where a stack lies, the [`Control`] block beside it, and how stacks are used
//! again.
//!
//! `thread.rs` takes a stack for each direct-style thread and reads its control block at each
//! switch; `overflow.rs` asks the control block whether an address lies in the guard. A stack stays
//! on its OS thread: a free one goes into a list of that OS thread.
//!
//! ```text
//!     start                                                              start + GUARD + bytes
//!       │ guard: not to be touched │ ... free ... │ frames │ Control │ colour │
//!       └──────────────────────────┴──────────────┴────────┴─────────┴────────┘
//!                                     grows downwards ◀── base
//! ```
//!
//! The control block lies in the same page as the first frames, so that a switch looks at one page,
//! not two. The colour is a number of cache lines that differs from stack to stack: without it the
//! busy ends of all stacks would compete for the same few sets of the first-level cache.

use corosensei::Yielder;
use corosensei::stack::valgrind::ValgrindStackRegistration;
use corosensei::stack::{STACK_ALIGNMENT, StackPointer};
use selvedge_core::{Around, quietly, this_stack};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::{ManuallyDrop, size_of};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::{fmt, io};

use crate::overflow;

/// The size of a stack unless [`Options`](crate::Options) say otherwise: room enough for a panic's
/// backtrace. Only pages that were touched take memory.
pub const STACK_BYTES: usize = 256 * 1024;

/// The smallest stack, and the first size that is kept for reuse.
const BYTES_MIN: usize = 16 * 1024;
/// Sizes are powers of two, so that a kept stack fits each request for about as much.
const SIZES: usize = 40;
/// The bytes of the guard below each stack. A frame that does not probe its pages should skip no
/// more than that.
const GUARD: usize = 64 * 1024;
/// The most free stacks of each size that an OS thread keeps.
const KEPT_MAX: usize = 1024;
/// The size of a cache line, and the number of colours. The colours range over half a page, so that
/// a thread with few frames touches one page.
const LINE: usize = 64;
const COLOURS: usize = 32;

/// All stacks of the process, in use or kept.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Free stacks.
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept([const { Vec::new() }; SIZES])) };
}

/// The control block of the stack on which this OS thread runs: of the innermost direct-style
/// thread, if one runs another. Null on the OS thread's own stack. `core` has the pointer, because
/// code in other crates asks whether it is still on the same stack.
#[inline(always)]
pub(crate) fn current() -> *const Control {
    this_stack().cast()
}

/// The free stacks of an OS thread, by the logarithm of their size.
struct Kept([Vec<NonNull<Control>>; SIZES]);

impl Drop for Kept {
    fn drop(&mut self) {
        for control in self.0.iter_mut().flat_map(std::mem::take) {
            // SAFETY: a kept stack is in use by no thread, and this was the only list of it.
            unsafe { unmap(control) };
        }
    }
}

/// The data that a stack shares with the code that switches to it.
pub(crate) struct Control {
    /// The way back to the code that resumed the thread.
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    /// The waker of the poll within which the thread runs: a bitwise copy, so that it stays at one
    /// address. Not written while a `wait` is polling its future, which refers to it.
    pub(crate) lent: UnsafeCell<ManuallyDrop<Waker>>,
    /// The waker that `wait` polls with: `lent`, or one that wakes no thread while the stack is
    /// being unwound.
    pub(crate) waker: Cell<*const Waker>,
    /// A clone that keeps the data of `lent` alive while the stack is left within a poll.
    pub(crate) kept: Cell<Option<Waker>>,
    /// The CPU that ran the step in which the stack was last entered. The stack is left in the same
    /// step only.
    pub(crate) cpu: Cell<*const ()>,
    /// The surroundings of the stack's polls (`core`'s `around.rs`), while the stack is left.
    pub(crate) around: Cell<Option<Around>>,
    /// The frame of the evaluation around the code on this stack, while the stack is left.
    pub(crate) frame: Cell<*const ()>,
    /// How many `wait`s are polling their futures, one within another.
    pub(crate) polls: Cell<u32>,
    /// Counts how often the stack was left within a poll.
    pub(crate) left: Cell<u32>,
    /// How many [`shield`](crate::shield)s the thread is within.
    pub(crate) shields: Cell<u32>,
    /// The thread has been dropped: its stack is to be unwound.
    pub(crate) cancelled: Cell<bool>,
    /// How often the cancellation was thrown.
    pub(crate) thrown: Cell<u32>,
    /// The OS thread was panicking when the stack was last entered.
    pub(crate) panicking: Cell<bool>,
    /// The last answer of `unwinds` (`thread.rs`): the stack was being unwound.
    pub(crate) unwinding: Cell<bool>,
    pub(crate) name: Cell<&'static str>,
    start: *mut u8,
    bytes: usize,
    _valgrind: ValgrindStackRegistration,
}

impl Control {
    pub(crate) fn guards(&self, address: usize) -> bool {
        (self.start.addr()..self.start.addr() + GUARD).contains(&address)
    }

    pub(crate) fn kib(&self) -> usize {
        self.bytes / 1024
    }
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
        match &self.error {
            Some(error) => write!(f, "{error}")?,
            None => write!(f, "there are too many")?,
        }
        let live = LIVE.load(Ordering::Relaxed);
        write!(f, "; this process has {live}, and vm.max_map_count allows {}", live_max())
    }
}

/// How many stacks the process may have: each takes two mappings, and the rest of the program needs
/// some too.
fn live_max() -> usize {
    /// Mappings left to others.
    const OTHERS: usize = 4096;
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count");
        let mappings = mappings.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
        mappings.saturating_sub(OTHERS) / 2
    })
}

/// A stack in use.
pub(crate) struct NativeStack {
    control: NonNull<Control>,
}

impl NativeStack {
    /// A stack of at least `bytes`, kept from an earlier thread of this OS thread if there is one.
    pub(crate) fn take(bytes: usize, name: &'static str) -> Result<NativeStack, NoStack> {
        let bytes = bytes.clamp(BYTES_MIN, 1 << (SIZES - 1)).next_power_of_two();
        let kept = KEPT.try_with(|kept| kept.borrow_mut().0[bytes.trailing_zeros() as usize].pop());
        let control = match kept {
            Ok(Some(control)) => control,
            _ => map(bytes)?,
        };
        let stack = NativeStack { control };
        let fresh = stack.control();
        fresh.cancelled.set(false);
        fresh.unwinding.set(false);
        fresh.thrown.set(0);
        fresh.polls.set(0);
        fresh.shields.set(0);
        fresh.name.set(name);
        Ok(stack)
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: `map` has written it, and `unmap` is called only for stacks that are not in use.
        unsafe { self.control.as_ref() }
    }
}

impl Drop for NativeStack {
    fn drop(&mut self) {
        let (kept, around) = (self.control().kept.take(), self.control().around.take());
        self.control().frame.set(ptr::null());
        // Their drops may run code of the program.
        quietly(|| drop(kept));
        quietly(|| drop(around));
        let size = self.control().bytes.trailing_zeros() as usize;
        let control = self.control;
        let kept = KEPT.try_with(|kept| {
            let kept = &mut kept.borrow_mut().0[size];
            let room = kept.len() < KEPT_MAX;
            if room {
                kept.push(control);
            }
            room
        });
        if kept != Ok(true) {
            // SAFETY: the stack was in use by this handle alone, which is gone.
            unsafe { unmap(control) };
        }
    }
}

// SAFETY: `map` has made room for far more than MIN_STACK_SIZE between base and limit, all of it
// this stack's alone, with GUARD inaccessible bytes at its limit. The base is aligned to 16 as the
// control block is.
unsafe impl corosensei::stack::Stack for NativeStack {
    #[inline(always)]
    fn base(&self) -> StackPointer {
        self.control.addr()
    }

    #[inline(always)]
    fn limit(&self) -> StackPointer {
        StackPointer::new(self.control().start.addr()).expect("a mapping is not at address 0")
    }
}

/// Bytes of a control block, in whole lines.
const CONTROL: usize = size_of::<Control>().next_multiple_of(LINE);
const _: () = assert!(LINE.is_multiple_of(STACK_ALIGNMENT));

/// Maps a stack and its guard pages.
fn map(bytes: usize) -> Result<NonNull<Control>, NoStack> {
    /// Numbers the stacks, for their colours.
    static MAPPED: AtomicUsize = AtomicUsize::new(0);

    if LIVE.load(Ordering::Relaxed) >= live_max() {
        return Err(NoStack { bytes, error: None });
    }
    overflow::expect();
    let failed = || NoStack { bytes, error: Some(io::Error::last_os_error()) };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), GUARD + bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(failed());
    }
    let start = start.cast::<u8>();
    // SAFETY: the upper part of the mapping just made.
    if unsafe { libc::mprotect(start.add(GUARD).cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        let error = failed();
        // SAFETY: the mapping just made, which no other code knows.
        unsafe { libc::munmap(start.cast(), GUARD + bytes) };
        return Err(error);
    }
    LIVE.fetch_add(1, Ordering::Relaxed);
    let colour = MAPPED.fetch_add(1, Ordering::Relaxed) % COLOURS * LINE;
    // SAFETY: within the writable part of the mapping, which is larger than colour and control
    // block together; aligned to LINE, because the mapping ends at a page.
    unsafe {
        let control = start.add(GUARD + bytes - colour - CONTROL).cast::<Control>();
        control.write(Control {
            yielder: Cell::new(ptr::null()),
            lent: UnsafeCell::new(ManuallyDrop::new(Waker::noop().clone())),
            waker: Cell::new(ptr::null()),
            kept: Cell::new(None),
            cpu: Cell::new(ptr::null()),
            around: Cell::new(None),
            frame: Cell::new(ptr::null()),
            polls: Cell::new(0),
            left: Cell::new(0),
            shields: Cell::new(0),
            cancelled: Cell::new(false),
            panicking: Cell::new(false),
            unwinding: Cell::new(false),
            thrown: Cell::new(0),
            name: Cell::new(""),
            start,
            bytes,
            _valgrind: ValgrindStackRegistration::new(start, GUARD + bytes - colour - CONTROL),
        });
        Ok(NonNull::new_unchecked(control))
    }
}

/// # Safety
/// The stack is not in use, and not used afterwards.
unsafe fn unmap(control: NonNull<Control>) {
    // SAFETY: `map` has written the block, and the caller gives the stack up. The block is moved
    // out before its memory is unmapped.
    unsafe {
        let control = control.read();
        let (start, bytes) = (control.start, control.bytes);
        drop(control);
        libc::munmap(start.cast(), GUARD + bytes);
    }
    LIVE.fetch_sub(1, Ordering::Relaxed);
}
