//! [`NativeStack`]: where a stack lies, the [`Control`] block beside it, and how stacks are used
//! again.
//!
//! `thread.rs` takes a stack for each direct-style thread and reads its control block at each
//! switch; `overflow.rs` asks the control block whether an address lies in the guard. A stack stays
//! on its OS thread while a thread uses it. A free one goes into a list of that OS thread, and is
//! the next to be used, because its memory is still in the cache. `quarry.rs` has the others.
//!
//! ```text
//!     start                                                         end = start + GUARD + bytes
//!       │ guard: not to be touched │ ... free ... │ frames │ Control │ colour │
//!       └──────────────────────────┴──────────────┴────────┴─────────┴────────┘
//!                                     grows downwards ◀── base
//! ```
//!
//! The control block lies in the same page as the first frames, so that a switch looks at one page,
//! not two. The colour is a number of cache lines that differs from stack to stack: without it the
//! busy ends of all stacks would compete for the same few sets of the first-level cache.

use crate::quarry::{self, BATCH, BYTES_MIN, GUARD, NoStack, Place, SIZES};
use corosensei::Yielder;
use corosensei::stack::{STACK_ALIGNMENT, StackPointer};
use selvedge_core::internal::{TaskContext, quietly, this_stack};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::{ManuallyDrop, offset_of, size_of};
use std::ptr::{self, NonNull};
use std::task::Waker;

/// The size of a stack unless [`Options`](crate::Options) say otherwise: room enough for a panic's
/// backtrace. Only pages that were touched take memory.
pub const STACK_BYTES: usize = 256 * 1024;

/// The most free stacks of each size that an OS thread keeps, with the memory that they have
/// touched.
const KEPT_MAX: usize = 8192;
/// The size of a cache line.
const LINE: usize = 64;
/// The number of colours, and by how much two of them differ. The colours range over half a page,
/// so that a thread with few frames touches one page.
const COLOURS: usize = 16;
const COLOUR: usize = 2 * LINE;

thread_local! {
    /// Free stacks.
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept([const { KeptSize::NONE }; SIZES])) };
}

/// The control block of the stack on which this OS thread runs: of the innermost direct-style
/// thread, if one runs another. Null on the OS thread's own stack. `core` has the pointer, because
/// code in other crates asks whether it is still on the same stack.
#[inline(always)]
pub(crate) fn current() -> *const Control {
    this_stack().cast()
}

/// The free stacks of an OS thread, by the logarithm of their size.
struct Kept([KeptSize; SIZES]);

/// The free stacks of one size.
struct KeptSize {
    free: Vec<Place>,
    /// How many stacks the OS thread has fetched.
    fetched: usize,
}

impl KeptSize {
    const NONE: KeptSize = KeptSize { free: Vec::new(), fetched: 0 };

    #[inline]
    fn take(&mut self, bytes: usize) -> Result<Place, NoStack> {
        if self.free.is_empty() {
            self.fetched += quarry::fetch(bytes, self.fetched, &mut self.free)?;
        }
        Ok(self.free.pop().expect("at least one was fetched"))
    }

    /// Takes a stack of `bytes` that is free now. If there are too many free stacks, it gives back
    /// the stacks that have been free for the longest time.
    #[inline]
    fn keep(&mut self, bytes: usize, end: Place) {
        if self.free.len() == KEPT_MAX {
            // SAFETY: this is the only list of these stacks, and they leave it.
            unsafe { quarry::give_back(bytes, &self.free[..BATCH]) };
            self.free.drain(..BATCH);
        }
        self.free.push(end);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (size, kept) in self.0.iter().enumerate() {
            if !kept.free.is_empty() {
                // SAFETY: this was the only list of these stacks, which have the size of the list.
                unsafe { quarry::give_back(1 << size, &kept.free) };
            }
        }
    }
}

/// The data that a stack shares with the code that switches to it. A switch reads and writes the
/// first line alone.
#[repr(C, align(64))]
pub(crate) struct Control {
    /// The way back to the code that resumed the thread.
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    /// The waker of the poll within which the thread runs: a bitwise copy, so that it stays at one
    /// address. Not written while a `wait` is polling its future, which refers to it.
    pub(crate) lent: UnsafeCell<ManuallyDrop<Waker>>,
    /// The waker that `wait` polls with: `lent`, or one that wakes no thread while the stack is
    /// being unwound.
    pub(crate) waker: Cell<*const Waker>,
    /// The CPU that ran the step in which the stack was last entered. The stack is left in the same
    /// step only.
    pub(crate) cpu: Cell<*const ()>,
    /// How many `wait`s are polling their futures, one within another.
    pub(crate) polls: Cell<u32>,
    /// Counts how often the stack was left within a poll.
    pub(crate) left: Cell<u32>,
    /// How many [`shield`](crate::shield)s the thread is within.
    pub(crate) shields: Cell<u32>,
    /// The thread has been dropped: its stack is to be unwound.
    pub(crate) cancelled: Cell<bool>,
    /// The OS thread was panicking when the stack was last entered.
    pub(crate) panicking: Cell<bool>,
    /// The last answer of `unwinds` (`waiting.rs`): the stack was being unwound.
    pub(crate) unwinding: Cell<bool>,
    /// The stack has a task context.
    surrounded: Cell<bool>,
    pub(crate) cold: ColdControl,
}

/// What few switches need.
pub(crate) struct ColdControl {
    /// A clone that keeps the data of `lent` alive while the stack is left within a poll.
    pub(crate) kept: Cell<Option<Waker>>,
    /// The task context of the polls on the stack (`core`'s `task_context.rs`), while the stack is
    /// left.
    context: Cell<Option<TaskContext>>,
    /// The frame of the evaluation around the code on this stack, while the stack is left.
    frame: Cell<*const ()>,
    /// The stack has nothing to be unwound, and will not be resumed.
    pub(crate) is_left: Cell<bool>,
    /// The function that runs the body.
    pub(crate) outermost: Cell<*const ()>,
    /// How often the cancellation was thrown.
    pub(crate) thrown: Cell<u32>,
    pub(crate) name: &'static str,
    end: Place,
    bytes: usize,
}

const _: () = assert!(offset_of!(Control, cold) <= LINE);

impl Control {
    /// That of a stack on which no thread has run.
    fn new(end: Place, bytes: usize, name: &'static str) -> Control {
        Control {
            yielder: Cell::new(ptr::null()),
            lent: UnsafeCell::new(ManuallyDrop::new(Waker::noop().clone())),
            waker: Cell::new(ptr::null()),
            cpu: Cell::new(ptr::null()),
            polls: Cell::new(0),
            left: Cell::new(0),
            shields: Cell::new(0),
            cancelled: Cell::new(false),
            panicking: Cell::new(false),
            unwinding: Cell::new(false),
            surrounded: Cell::new(false),
            cold: ColdControl {
                kept: Cell::new(None),
                context: Cell::new(None),
                frame: Cell::new(ptr::null()),
                is_left: Cell::new(false),
                outermost: Cell::new(ptr::null()),
                thrown: Cell::new(0),
                name,
                end,
                bytes,
            },
        }
    }

    /// Takes what surrounds the polls on this stack: the scope, and the frame of the evaluation.
    #[inline(always)]
    pub(crate) fn surroundings(&self) -> (Option<TaskContext>, *const ()) {
        if !self.surrounded.get() {
            return (None, ptr::null());
        }
        self.surrounded.set(false);
        (self.cold.context.take(), self.cold.frame.get())
    }

    /// Keeps the task context while the stack is left.
    #[inline(always)]
    pub(crate) fn keep_surroundings(&self, context: Option<TaskContext>, frame: *const ()) {
        if context.is_some() || !frame.is_null() {
            self.surrounded.set(true);
            self.cold.context.set(context);
            self.cold.frame.set(frame);
        }
    }

    /// Where the guard starts.
    fn start(&self) -> usize {
        self.cold.end.0.addr().get() - self.cold.bytes - GUARD
    }

    pub(crate) fn guards(&self, address: usize) -> bool {
        (self.start()..self.start() + GUARD).contains(&address)
    }

    pub(crate) fn kib(&self) -> usize {
        self.cold.bytes / 1024
    }
}

/// A stack in use.
pub(crate) struct NativeStack {
    control: NonNull<Control>,
}

impl NativeStack {
    /// A stack of at least `bytes`, kept from an earlier thread of this OS thread if there is one.
    pub(crate) fn take(bytes: usize, name: &'static str) -> Result<NativeStack, NoStack> {
        let bytes = bytes.clamp(BYTES_MIN, 1 << (SIZES - 1)).next_power_of_two();
        let size = bytes.trailing_zeros() as usize;
        let end = KEPT.try_with(|kept| kept.borrow_mut().0[size].take(bytes));
        // An OS thread that ends has no list any more.
        let end = end.unwrap_or_else(|_| { KeptSize::NONE }.take(bytes))?;
        let colour = end.0.addr().get() / (GUARD + bytes) % COLOURS * COLOUR;
        // SAFETY: within the stack, which is larger than colour and control block together, and
        // which this handle alone has now. Aligned to LINE, because the stack ends at a page.
        let control = unsafe {
            let control = end.0.sub(colour + CONTROL).cast::<Control>();
            control.write(Control::new(end, bytes, name));
            control
        };
        Ok(NativeStack { control })
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: `take` has written it, and no other code uses the stack before `drop`.
        unsafe { self.control.as_ref() }
    }
}

impl Drop for NativeStack {
    fn drop(&mut self) {
        let control = self.control();
        let (kept, context) = (control.cold.kept.take(), control.cold.context.take());
        // Their drops may run code of the program.
        if kept.is_some() || context.is_some() {
            quietly(|| drop(kept));
            quietly(|| drop(context));
        }
        let (end, bytes) = (control.cold.end, control.cold.bytes);
        let kept = KEPT.try_with(|kept| {
            kept.borrow_mut().0[bytes.trailing_zeros() as usize].keep(bytes, end);
        });
        if kept.is_err() {
            // SAFETY: the stack has this size, and was in use by this handle alone, which is gone.
            unsafe { quarry::give_back(bytes, &[end]) };
        }
    }
}

// SAFETY: `quarry.rs` has made room for far more than MIN_STACK_SIZE between base and limit, all of
// it this stack's alone, with GUARD inaccessible bytes at its limit. The base is aligned to 16 as
// the control block is.
unsafe impl corosensei::stack::Stack for NativeStack {
    #[inline(always)]
    fn base(&self) -> StackPointer {
        self.control.addr()
    }

    #[inline(always)]
    fn limit(&self) -> StackPointer {
        StackPointer::new(self.control().start()).expect("a mapping is not at address 0")
    }
}

/// Bytes of a control block, an odd number of lines. So its first line and the one below it, in
/// which the stack begins, are a pair of lines that the processor fetches together.
const CONTROL: usize = (size_of::<Control>() - LINE).next_multiple_of(COLOUR) + LINE;
const _: () = assert!(LINE.is_multiple_of(STACK_ALIGNMENT));
