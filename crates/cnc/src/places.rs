//! Slabs, which are memory in places of one size: [`PlaceMemory`] for a graph, [`PlacePool`] for a
//! worker.
//!
//! `waiters.rs` has the suspended steps in such places, and `frames.rs` the frames of async steps.
//! Both make and free a place for each step that waits, so neither may cost a call of the
//! allocator or an interrupt for each page.
//!
//! The places lie in blocks, which are freed with the graph. A block is as large as all those
//! before it together, up to [`BLOCK_MAX`], and a block of that size asks the system for huge
//! pages. A million frames of 128 bytes take 31,250 small pages. The interrupts of these took half
//! of the time of an async step that waits.
//!
//! **The memory has a bound.** If places are taken on one worker and given back on another one, the
//! second pool gets all of them. So a pool keeps at most a full list of free places in each of its
//! two lists, and gives further lists to the graph, from which the other pools take before they
//! use more of a block. There are two lists so that a worker that goes to and fro at the limit
//! takes no lock.
//!
//! A place has one owner at a time: a pool, or the user that has taken it. The blocks must outlive
//! the users, so `Core::close` drops the suspended steps first.

use crate::primitives::{Mutex, lock};
use selvedge_core::internal::HUGE_PAGE;
#[cfg(not(loom))]
use selvedge_core::internal::advise_huge_pages;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr;

/// The number of places in the first list, and the most in a full one.
const LIST_MIN: usize = 32;
const LIST_MAX: usize = 1024;
/// The bytes of the places in a full list, unless these limits say otherwise.
const LIST_BYTES: usize = 64 << 10;
/// The bytes of the largest blocks, which begin at a huge page.
const BLOCK_MAX: usize = 4 << 20;
/// The alignment of the other blocks, which that of a place divides.
const ALIGN: usize = 64;

/// The blocks of a graph, and the lists of free places that workers have left.
pub(crate) struct PlaceMemory {
    /// The bytes of a place.
    size: usize,
    /// The most places in a list.
    list_max: usize,
    blocks: Mutex<Blocks>,
}

/// Some free places. The first word of a free place is the address of the next one.
#[derive(Clone, Copy)]
struct FreePlaces {
    /// The first one, or null.
    first: *mut u8,
    count: usize,
}

impl FreePlaces {
    const NONE: FreePlaces = FreePlaces { first: ptr::null_mut(), count: 0 };
}

struct Blocks {
    all: Vec<(*mut u8, Layout)>,
    /// The bytes of all blocks.
    bytes: usize,
    /// The part of the last block that is in no list yet.
    room: *mut u8,
    room_bytes: usize,
    /// The lists of free places that no pool has.
    left: Vec<FreePlaces>,
    /// The number of places in the next list.
    list: usize,
}

// SAFETY: the pointers are those of blocks that the object owns.
unsafe impl Send for Blocks {}

impl Drop for Blocks {
    fn drop(&mut self) {
        for &(block, layout) in &self.all {
            // SAFETY: each block was allocated with this layout by `add_block`, and stands in the
            // list once.
            unsafe { dealloc(block, layout) };
        }
    }
}

impl Blocks {
    /// Allocates a block with room for `least` bytes at least.
    fn add_block(&mut self, least: usize) {
        let bytes = self.bytes.clamp(least, BLOCK_MAX.max(least)).next_multiple_of(ALIGN);
        let align = if bytes >= BLOCK_MAX { HUGE_PAGE } else { ALIGN };
        let layout = Layout::from_size_align(bytes, align).expect("a block is small");
        // SAFETY: the layout is not empty, because a list has a place.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        #[cfg(not(loom))]
        if bytes >= BLOCK_MAX {
            advise_huge_pages(block, bytes);
        }
        self.all.push((block, layout));
        self.bytes += bytes;
        (self.room, self.room_bytes) = (block, bytes);
    }
}

impl PlaceMemory {
    /// Memory in places with this layout. Its size is a multiple of a word's.
    pub(crate) fn new(place: Layout) -> PlaceMemory {
        assert!(place.size() > 0 && place.size().is_multiple_of(8) && place.align() <= ALIGN);
        let (all, left, room) = (Vec::new(), Vec::new(), ptr::null_mut());
        let blocks = Blocks { all, bytes: 0, room, room_bytes: 0, left, list: LIST_MIN };
        let size = place.pad_to_align().size();
        let list_max = (LIST_BYTES / size).clamp(LIST_MIN, LIST_MAX);
        PlaceMemory { size, list_max, blocks: Mutex::new(blocks) }
    }

    /// Keeps the blocks to the end of the program.
    pub(crate) fn leak(&self) {
        lock(&self.blocks).all.clear();
    }

    /// Keeps free places for another pool.
    fn leave(&self, list: FreePlaces) {
        if list.count > 0 {
            lock(&self.blocks).left.push(list);
        }
    }

    /// Some free places.
    fn list(&self) -> FreePlaces {
        let mut blocks = lock(&self.blocks);
        if let Some(list) = blocks.left.pop() {
            return list;
        }
        let places = blocks.list;
        blocks.list = (places * 2).min(self.list_max);
        if blocks.room_bytes < self.size {
            blocks.add_block(places * self.size);
        }
        let count = places.min(blocks.room_bytes / self.size);
        let first = blocks.room;
        let mut next = ptr::null_mut();
        for number in (0..count).rev() {
            // SAFETY: the room has `count` places, each aligned for a word, and no other user.
            unsafe {
                let place = first.add(number * self.size);
                place.cast::<*mut u8>().write(next);
                next = place;
            }
        }
        // SAFETY: as above, so the pointer is within the block or at its end.
        blocks.room = unsafe { first.add(count * self.size) };
        blocks.room_bytes -= count * self.size;
        FreePlaces { first, count }
    }
}

/// The free places of one worker.
pub(crate) struct PlacePool<'m> {
    memory: &'m PlaceMemory,
    /// The list from which places are taken. The worker alone uses the places of its lists.
    free: Cell<FreePlaces>,
    /// A full list, or none.
    spare: Cell<FreePlaces>,
}

impl<'m> PlacePool<'m> {
    pub(crate) fn new(memory: &'m PlaceMemory) -> PlacePool<'m> {
        PlacePool { memory, free: Cell::new(FreePlaces::NONE), spare: Cell::new(FreePlaces::NONE) }
    }

    /// The next list, when the worker has used its own one up.
    #[cold]
    fn refill(&self) -> FreePlaces {
        let spare = self.spare.replace(FreePlaces::NONE);
        if spare.count > 0 { spare } else { self.memory.list() }
    }

    /// Puts a full list aside, and gives the list that was put aside before to the graph.
    #[cold]
    fn put_aside(&self) {
        let full = self.free.replace(FreePlaces::NONE);
        self.memory.leave(self.spare.replace(full));
    }

    /// A place. Its content is not initialised.
    #[inline]
    pub(crate) fn take(&self) -> *mut u8 {
        let mut free = self.free.get();
        if free.count == 0 {
            free = self.refill();
        }
        // SAFETY: a place of the list is this worker's, its block lasts as long as the memory, and
        // its first word is the next one.
        let next = unsafe { free.first.cast::<*mut u8>().read() };
        self.free.set(FreePlaces { first: next, count: free.count - 1 });
        free.first
    }

    /// Takes a place back.
    ///
    /// # Safety
    /// The place is one of [`take`](PlacePool::take) of a pool of the same memory, and is used no
    /// more.
    #[inline]
    pub(crate) unsafe fn give(&self, place: *mut u8) {
        let free = self.free.get();
        // SAFETY: as promised by the caller, and a place has room for a word.
        unsafe { place.cast::<*mut u8>().write(free.first) };
        self.free.set(FreePlaces { first: place, count: free.count + 1 });
        if free.count + 1 >= self.memory.list_max {
            self.put_aside();
        }
    }
}

impl Drop for PlacePool<'_> {
    fn drop(&mut self) {
        self.memory.leave(self.free.get());
        self.memory.leave(self.spare.get());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{BLOCK_MAX, PlaceMemory, PlacePool};
    use crate::primitives::lock;
    use std::alloc::Layout;

    const SIZE: usize = 1024;
    const PLACES: usize = 1500;
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 20 };

    #[test]
    fn places_are_apart_and_go_from_pool_to_pool() {
        let memory = PlaceMemory::new(Layout::from_size_align(SIZE, 64).unwrap());
        let (takes, gets) = (PlacePool::new(&memory), PlacePool::new(&memory));
        for _ in 0..ROUNDS {
            let places: Vec<*mut u8> = (0..PLACES).map(|_| takes.take()).collect();
            for (number, &place) in places.iter().enumerate() {
                assert!(place.addr().is_multiple_of(64));
                // SAFETY: the place has `SIZE` bytes, and this test alone has it.
                unsafe {
                    place.cast::<usize>().write(number);
                    place.add(SIZE).cast::<usize>().sub(1).write(number);
                }
            }
            for (number, &place) in places.iter().enumerate() {
                // SAFETY: as above, and both words were written. No access follows `give`.
                let words = unsafe {
                    let words = [place.cast::<usize>().read(), place.add(SIZE).cast::<usize>().sub(1).read()];
                    gets.give(place);
                    words
                };
                assert_eq!(words, [number; 2]);
            }
        }
        // Each pool keeps two lists at most. Without that, 30,000 places were made.
        let most = (PLACES + 4 * memory.list_max) * SIZE + 2 * BLOCK_MAX;
        assert!(lock(&memory.blocks).bytes <= most);
    }
}
