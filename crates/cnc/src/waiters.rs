//! The memory of suspended steps: [`WaiterMemory`] for a graph, [`WaiterPool`] for a worker.
//!
//! A worker takes a place for each step that misses an item, and gets one back for each step that
//! it wakes. The places are made in blocks and are freed with the graph, so a miss costs no call of
//! the allocator.
//!
//! `Core` owns the `WaiterMemory`, and each `StepContext` has a `WaiterPool`. `SlotState::wait`
//! takes a place and links it into the item's list. `WokenSteps::pop`, on the worker that has put
//! the item, takes the step out and keeps the place in its own pool.
//!
//! **The memory has a bound.** If the steps miss items on one worker and are woken on another one,
//! the second pool gets all places. So a pool keeps at most [`LIST_MAX`] free places in each of its
//! two lists, and gives further lists to the graph, from which the other pools take before they
//! make a block. There are two lists so that a worker that goes to and fro at the limit takes no
//! lock.
//!
//! A place has one owner at a time: a pool, or the list of one item. The list passes the places on
//! by the exchange of the item's state word, and the pools need no atomic operation. The blocks
//! must outlive the waiting steps, so `Core::close` drops those steps first.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::primitives::{Mutex, lock};

/// The number of places in the first block, and the most in a block.
const BLOCK_MIN: usize = 32;
const BLOCK_MAX: usize = 1024;
/// The number of places in a list that a pool gives to the graph.
const LIST_MAX: usize = 1024;

/// A suspended step, in the list of the item that it waits for; or a free place.
#[repr(align(8))]
pub(crate) struct SuspendedStep<R> {
    /// Initialised from [`WaiterPool::place`] until [`WaiterPool::take_out`].
    pub(crate) ready: MaybeUninit<R>,
    /// The address of the next one, or 0.
    pub(crate) next: u64,
}

/// The place that has an address, which was exposed when its block was made.
#[inline]
pub(crate) fn place_at<R>(address: u64) -> *mut SuspendedStep<R> {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// The blocks of a graph, and the lists of free places that workers have left.
///
/// The type parameter is in no field with a destructor, because a graph is borrowed for the
/// lifetime that is in it.
pub(crate) struct WaiterMemory<R> {
    blocks: Mutex<Blocks>,
    of: PhantomData<fn(R) -> R>,
}

/// A list of free places.
#[derive(Clone, Copy)]
struct FreePlaces {
    /// The address of the first one, or 0.
    first: u64,
    count: usize,
}

impl FreePlaces {
    const NONE: FreePlaces = FreePlaces { first: 0, count: 0 };
}

struct Blocks {
    all: Vec<(*mut u8, Layout)>,
    /// The lists of free places that no pool has.
    left: Vec<FreePlaces>,
}

// SAFETY: the pointers are those of blocks that the object owns.
unsafe impl Send for Blocks {}

impl Drop for Blocks {
    fn drop(&mut self) {
        for &(block, layout) in &self.all {
            // SAFETY: each block was allocated with this layout by `WaiterMemory::list`, and stands
            // in the list once.
            unsafe { dealloc(block, layout) };
        }
    }
}

impl<R> WaiterMemory<R> {
    pub(crate) fn new() -> WaiterMemory<R> {
        WaiterMemory { blocks: Mutex::new(Blocks { all: Vec::new(), left: Vec::new() }), of: PhantomData }
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
        let places = (BLOCK_MIN << blocks.all.len().min(16)).min(BLOCK_MAX);
        let layout = Layout::array::<SuspendedStep<R>>(places).expect("a block is small");
        // SAFETY: the layout is not empty, because a place has an address in it.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        blocks.all.push((block, layout));
        let first: *mut SuspendedStep<R> = block.cast();
        let mut next = 0;
        for number in (0..places).rev() {
            // SAFETY: the block has room for `places` of them.
            let place = unsafe { first.add(number) };
            // SAFETY: as above, and no other user knows the block.
            unsafe { place.write(SuspendedStep { ready: MaybeUninit::uninit(), next }) };
            next = place.expose_provenance() as u64;
        }
        FreePlaces { first: next, count: places }
    }
}

/// The free places of one worker.
pub(crate) struct WaiterPool<'m, R> {
    memory: &'m WaiterMemory<R>,
    /// The list from which places are taken. The worker alone uses the places of its lists.
    free: Cell<FreePlaces>,
    /// A list of `LIST_MAX` places, or none.
    spare: Cell<FreePlaces>,
}

impl<'m, R> WaiterPool<'m, R> {
    pub(crate) fn new(memory: &'m WaiterMemory<R>) -> WaiterPool<'m, R> {
        WaiterPool { memory, free: Cell::new(FreePlaces::NONE), spare: Cell::new(FreePlaces::NONE) }
    }

    /// The next list, when the worker has used its own one up.
    #[cold]
    fn refill(&self) -> FreePlaces {
        let spare = self.spare.replace(FreePlaces::NONE);
        if spare.count > 0 { spare } else { self.memory.list() }
    }

    /// Puts a full list aside, and gives the one that was put aside before to the graph.
    #[cold]
    fn put_aside(&self) {
        let full = self.free.replace(FreePlaces::NONE);
        self.memory.leave(self.spare.replace(full));
    }

    /// A place with a step.
    #[inline]
    pub(crate) fn place(&self, ready: R) -> *mut SuspendedStep<R> {
        let mut free = self.free.get();
        if free.count == 0 {
            free = self.refill();
        }
        let place = place_at::<R>(free.first);
        // SAFETY: a place of the list is this worker's, and its block lasts as long as the memory.
        unsafe {
            self.free.set(FreePlaces { first: (*place).next, count: free.count - 1 });
            (*place).ready.write(ready);
        }
        place
    }

    /// Takes the step out of a place, which becomes free. Returns the address of the next one too.
    ///
    /// # Safety
    /// The place is one of [`place`](WaiterPool::place) of a pool of the same memory. The caller is
    /// its only user.
    #[inline]
    pub(crate) unsafe fn take_out(&self, place: *mut SuspendedStep<R>) -> (R, u64) {
        // SAFETY: as promised by the caller, so there is a step in the place.
        unsafe {
            let (ready, next) = ((*place).ready.assume_init_read(), (*place).next);
            let free = self.free.get();
            (*place).next = free.first;
            self.free.set(FreePlaces { first: place.expose_provenance() as u64, count: free.count + 1 });
            if free.count + 1 >= LIST_MAX {
                self.put_aside();
            }
            (ready, next)
        }
    }
}

impl<R> Drop for WaiterPool<'_, R> {
    fn drop(&mut self) {
        self.memory.leave(self.free.get());
        self.memory.leave(self.spare.get());
    }
}
