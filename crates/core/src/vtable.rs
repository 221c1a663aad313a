//! The vtable of a thread ([`VTable`]), and the anchor: the static object from which vtables and
//! locations in the program are found by an offset of 32 bits.
//!
//! A thread's head holds the offset of its vtable from the anchor, so that a pointer fits in 27
//! bits. A vtable of another image (a program that has this crate in a shared library) lies too far
//! away. It has a copy near the anchor: see [`far`](crate::far).
//!
//! `body.rs` makes the vtables and calls their functions. `wait_site.rs` uses the same anchor for
//! the lines at which threads wait.

use crate::arena::Key;
use crate::header::TAGS;
use std::any::Any;
use std::ptr::NonNull;

/// The functions and facts of a future, when its type is forgotten.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct VTable {
    /// Runs the future until it is pending or over; drops it when over, and says so in the CPU's
    /// slot. It may unwind.
    pub(crate) poll: unsafe fn(*mut u8, CpuAddress),
    /// Drops the future after its poll has unwound.
    pub(crate) panicked: unsafe fn(*mut u8, CpuAddress, Payload) -> Polled,
    /// Cancels the thread, and frees its block if no join handle needs it.
    pub(crate) cancel: unsafe fn(Key),
    /// Tells the joiner of a thread that is over, once its block is marked so. True if no join
    /// handle needs the block any more.
    pub(crate) tell: unsafe fn(*mut u8) -> bool,
    /// Drops the rest that a thread that is over has left to its join handle.
    pub(crate) release: unsafe fn(*mut u8),
    /// The join handle, which could cancel the thread.
    pub(crate) handle: unsafe fn(*mut u8) -> HandleSite,
    pub(crate) granules: u16,
    pub(crate) name: fn() -> &'static str,
}

/// The CPU that runs a thread, as the thread's vtable gets it: the address of a `CpuInner`.
pub(crate) type CpuAddress = NonNull<()>;

/// The value that a panic was thrown with.
pub(crate) type Payload = Box<dyn Any + Send>;

/// How a poll ended. Unless it is pending, the future has been dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    Pending,
    Done,
    /// Over, and its joiner has been told: the block is the handle's, and may be gone.
    JoinerTold,
    /// Over, and its joiner is still to be told, by [`VTable::tell`] after the block is marked.
    JoinerPending,
    /// Over by a panic. The CPU has the payload.
    Panicked,
}

/// What a thread knows of its join handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleSite {
    /// There is none, or it stays on the thread's OS thread.
    None,
    /// It was awaited last by this thread of CPU `.0`.
    AwaitedBy(u32, Key),
    /// It may be on any OS thread.
    Anywhere,
}

/// Vtables are found at an offset from here.
static ANCHOR: VTable = VTable {
    poll: |_, _| {},
    panicked: |_, _, _| Polled::Done,
    cancel: |_| {},
    tell: |_| true,
    release: |_| {},
    handle: |_| HandleSite::None,
    granules: 0,
    name: || "",
};

/// The vtable of no thread, with a size of any number of granules.
#[cfg(test)]
pub(crate) fn vtable_of_nothing(granules: u16) -> VTable {
    VTable { granules, ..ANCHOR }
}

/// The distance of a static object from the anchor, if 32 bits hold it: always within one
/// executable.
pub(crate) fn offset<T>(object: &'static T) -> Option<u32> {
    let distance =
        (&raw const *object).expose_provenance().wrapping_sub((&raw const ANCHOR).expose_provenance());
    i32::try_from(distance as isize).ok().map(|d| d as u32)
}

/// The object at a distance from the anchor.
///
/// # Safety
/// `offset` is what [`offset`] returned for an object of this type.
pub(crate) unsafe fn at_offset<T>(offset: u32) -> &'static T {
    let address = (&raw const ANCHOR).addr().wrapping_add(offset as i32 as usize);
    // SAFETY: the caller promises that a static T lies there; its provenance was exposed by
    // `offset`.
    unsafe { &*std::ptr::with_exposed_provenance::<T>(address) }
}

/// The vtable of the live thread with this head.
pub(crate) fn vtable(head: u32) -> &'static VTable {
    // SAFETY: `body::place` has made a live header's head, of the offset of a vtable and of tags in
    // the low 5 bits, which the alignment of vtables keeps free.
    unsafe { at_offset(head & !TAGS) }
}
