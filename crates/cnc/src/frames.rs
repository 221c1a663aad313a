//! The memory of async steps: [`FramePool`], one for each worker.
//!
//! `BeginCode` in `async_step.rs` takes memory for a `StepFrame`, and `poll` gives the memory back
//! when the step has ended. `free_frame` frees a frame where there may be no worker, for example at
//! the end of the graph.
//!
//! A frame may begin on one worker and end on another. The second worker's pool then keeps the
//! memory. So all pools compute the layout of a type with the same function, [`memory_of`], and any
//! pool or [`free_memory`] may free the memory. A pool keeps at most [`KEPT_BYTES`] of each size,
//! because it would otherwise get the memory of all steps that begin on other workers and end on
//! its own. It frees that memory when its worker ends.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr;

/// The sizes of frames are multiples of this.
const UNIT: usize = 64;
/// The alignment that every allocator gives without an effort.
const ALIGN: usize = 16;
/// The number of sizes that are kept. A larger frame goes to the allocator.
const SIZES: usize = 16;
/// The most memory that a pool keeps of each size.
const KEPT_BYTES: usize = 1 << 20;

/// Frames that a worker has freed and uses again, by their size. A frame costs no call of the
/// allocator then.
pub(crate) struct FramePool {
    /// The first free frame of each size, or null. The first word of a free frame is the next one.
    free: [Cell<*mut u8>; SIZES],
    /// The number of free frames of each size.
    kept: [Cell<usize>; SIZES],
}

/// The memory that a frame of this type takes, and its place in [`FramePool`], if it has one.
const fn memory_of<F>() -> (Layout, Option<usize>) {
    let of_type = Layout::new::<F>();
    let number = of_type.size().saturating_sub(1) / UNIT;
    let (size, align, place) = if number < SIZES && of_type.align() <= ALIGN {
        ((number + 1) * UNIT, ALIGN, Some(number))
    } else {
        // The allocator gives no memory of no bytes.
        let size = if of_type.size() == 0 { 1 } else { of_type.size() };
        (size, of_type.align(), None)
    };
    match Layout::from_size_align(size, align) {
        Ok(layout) => (layout, place),
        Err(_) => panic!("a frame is too large"),
    }
}

fn new_memory(layout: Layout) -> *mut u8 {
    // SAFETY: the layout is not empty, by `memory_of`.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}

/// Frees the memory of a frame where there is no worker.
///
/// # Safety
/// The memory came from [`FramePool::take`] of some pool for the same type, and is used no more.
pub(crate) unsafe fn free_memory<F>(memory: *mut F) {
    // SAFETY: as promised by the caller: `take` has allocated it with this layout.
    unsafe { dealloc(memory.cast(), const { memory_of::<F>() }.0) };
}

impl FramePool {
    pub(crate) fn new() -> FramePool {
        FramePool {
            free: [const { Cell::new(ptr::null_mut()) }; SIZES],
            kept: [const { Cell::new(0) }; SIZES],
        }
    }

    /// Memory for an `F`.
    #[inline]
    pub(crate) fn take<F>(&self) -> *mut F {
        let (layout, place) = const { memory_of::<F>() };
        let Some(number) = place else { return new_memory(layout).cast() };
        let first = self.free[number].get();
        if first.is_null() {
            return new_memory(layout).cast();
        }
        // SAFETY: a free frame begins with the address of the next one, by `give`. This worker
        // alone has the list.
        self.free[number].set(unsafe { first.cast::<*mut u8>().read() });
        self.kept[number].set(self.kept[number].get() - 1);
        first.cast()
    }

    /// Keeps the memory of an `F`, or frees it if there is enough of its size.
    ///
    /// # Safety
    /// As for [`free_memory`].
    #[inline]
    pub(crate) unsafe fn give<F>(&self, memory: *mut F) {
        let (_, Some(number)) = (const { memory_of::<F>() }) else {
            // SAFETY: as promised by the caller.
            return unsafe { free_memory(memory) };
        };
        let kept = self.kept[number].get();
        if kept >= KEPT_BYTES / ((number + 1) * UNIT) {
            // SAFETY: as promised by the caller.
            return unsafe { free_memory(memory) };
        }
        self.kept[number].set(kept + 1);
        let memory: *mut u8 = memory.cast();
        // SAFETY: the memory is this pool's from now on, and at least a word large.
        unsafe { memory.cast::<*mut u8>().write(self.free[number].get()) };
        self.free[number].set(memory);
    }
}

impl Drop for FramePool {
    fn drop(&mut self) {
        for (number, first) in self.free.iter().enumerate() {
            let layout = Layout::from_size_align((number + 1) * UNIT, ALIGN);
            let layout = layout.expect("it was the layout of a frame");
            let mut memory = first.get();
            while !memory.is_null() {
                // SAFETY: as in `take`.
                let next = unsafe { memory.cast::<*mut u8>().read() };
                // SAFETY: a frame of this list was allocated with this layout, by `memory_of`.
                unsafe { dealloc(memory, layout) };
                memory = next;
            }
        }
    }
}
