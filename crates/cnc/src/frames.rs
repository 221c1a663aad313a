//! The memory of async steps: [`FrameMemory`] for a graph, [`FramePool`] for a worker.
//!
//! `BeginCode` in `kinds/async_step.rs` takes memory for a `StepFrame`, and `poll` gives the memory
//! back when the step has ended. Frames of up to 1 KiB lie in the places of `places.rs`: there is
//! one `PlaceMemory` for each multiple of [`UNIT`]. A larger frame goes to the allocator.
//!
//! `free_frame` drops a frame where there may be no worker, for example at the end of the graph.
//! The place of such a frame is not used again, and is freed with the graph.
//!
//! # Lifetimes
//! So the destructor of a future that waits may run after the lifetime `'g` of the graph, in
//! `Core::close`. `Graph::prescribe_async` demands `'g` of the future and of the tag. As the head
//! of `arena.rs` says, all that they borrow outlives the call of `graph` then, and a shorter borrow
//! does not compile:
//! ```compile_fail,E0597
//! use selvedge::cnc::{self, schedulers::OneByOne};
//!
//! cnc::graph(|graph| {
//!     let text = String::from("too short");
//!     let text = &text;
//!     let (tags, items) = (graph.tags::<u32>("tags"), graph.items::<u32, usize>("items"));
//!     graph.prescribe_async(tags, "length", move |n, step| async move {
//!         let n = *step.get(items, n).await?;
//!         step.put(items, n as u32, text.len())
//!     });
//!     let _ = graph.run(&OneByOne);
//! });
//! ```

use crate::places::{PlaceMemory, PlacePool};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::array;

/// The sizes of frames are multiples of this.
const UNIT: usize = 64;
/// The largest alignment of a frame in a place.
const ALIGN: usize = 64;
/// The number of sizes that have places.
const SIZES: usize = 16;

/// The frames of a graph, by their size.
pub(crate) struct FrameMemory([PlaceMemory; SIZES]);

impl FrameMemory {
    pub(crate) fn new() -> FrameMemory {
        FrameMemory(array::from_fn(|number| {
            let place = Layout::from_size_align((number + 1) * UNIT, ALIGN);
            PlaceMemory::new(place.expect("a place is small"))
        }))
    }

    /// Keeps the memory to the end of the program, because a frame in it was not dropped. The
    /// future in that frame is pinned, so its memory must stay.
    pub(crate) fn leak(&self) {
        self.0.iter().for_each(PlaceMemory::leak);
    }
}

/// The free frames of one worker.
pub(crate) struct FramePool<'m>([PlacePool<'m>; SIZES]);

/// The number of the size of this type's frames; `None` if they go to the allocator.
pub(crate) const fn size_of_frame<F>() -> Option<usize> {
    let layout = Layout::new::<F>();
    assert!(layout.size() > 0, "a frame has the number of its step");
    let number = layout.size().saturating_sub(1) / UNIT;
    if number < SIZES && layout.align() <= ALIGN { Some(number) } else { None }
}

/// Frees the memory of a frame where there may be no worker.
///
/// # Safety
/// The memory came from [`FramePool::take`] of some pool for the same type, and is used no more.
pub(crate) unsafe fn free_memory<F>(memory: *mut F) {
    if const { size_of_frame::<F>() }.is_none() {
        // SAFETY: as promised by the caller: `take` has allocated it with this layout.
        unsafe { dealloc(memory.cast(), Layout::new::<F>()) };
    }
}

impl<'m> FramePool<'m> {
    pub(crate) fn new(memory: &'m FrameMemory) -> FramePool<'m> {
        FramePool(array::from_fn(|number| PlacePool::new(&memory.0[number])))
    }

    /// Memory for an `F`.
    #[inline]
    pub(crate) fn take<F>(&self) -> *mut F {
        match const { size_of_frame::<F>() } {
            Some(number) => self.0[number].take().cast(),
            None => {
                let layout = Layout::new::<F>();
                // SAFETY: the layout is not empty, because `size_of_frame` refuses such a type.
                let memory = unsafe { alloc(layout) };
                if memory.is_null() {
                    handle_alloc_error(layout);
                }
                memory.cast()
            }
        }
    }

    /// Takes the memory of an `F` back.
    ///
    /// # Safety
    /// As for [`free_memory`].
    #[inline]
    pub(crate) unsafe fn give<F>(&self, memory: *mut F) {
        match const { size_of_frame::<F>() } {
            // SAFETY: as promised by the caller.
            Some(number) => unsafe { self.give_place(number, memory.cast()) },
            // SAFETY: as promised by the caller.
            None => unsafe { free_memory(memory) },
        }
    }

    /// Takes the memory of a frame back, by the number of its size.
    ///
    /// # Safety
    /// As for [`free_memory`], with a type of this size.
    #[inline]
    pub(crate) unsafe fn give_place(&self, number: usize, memory: *mut u8) {
        // SAFETY: as promised by the caller: `take` has taken it from a pool of the same size.
        unsafe { self.0[number].give(memory) };
    }
}
