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

struct Blocks {
    all: Vec<(*mut u8, Layout)>,
    /// The address of the first place of each list.
    left: Vec<u64>,
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

    /// The address of the first of some free places.
    fn list(&self) -> u64 {
        let mut blocks = lock(&self.blocks);
        if let Some(first) = blocks.left.pop() {
            return first;
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
        next
    }
}

/// The free places of one worker.
pub(crate) struct WaiterPool<'m, R> {
    memory: &'m WaiterMemory<R>,
    /// The address of the first one, or 0. The worker alone uses the places of this list.
    free: Cell<u64>,
}

impl<'m, R> WaiterPool<'m, R> {
    pub(crate) fn new(memory: &'m WaiterMemory<R>) -> WaiterPool<'m, R> {
        WaiterPool { memory, free: Cell::new(0) }
    }

    /// A place with a step.
    #[inline]
    pub(crate) fn place(&self, ready: R) -> *mut SuspendedStep<R> {
        let mut address = self.free.get();
        if address == 0 {
            address = self.memory.list();
        }
        let place = place_at::<R>(address);
        // SAFETY: a place of the list is this worker's, and its block lasts as long as the memory.
        unsafe {
            self.free.set((*place).next);
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
            (*place).next = self.free.get();
            self.free.set(place.expose_provenance() as u64);
            (ready, next)
        }
    }
}

impl<R> Drop for WaiterPool<'_, R> {
    fn drop(&mut self) {
        if self.free.get() != 0 {
            lock(&self.memory.blocks).left.push(self.free.get());
        }
    }
}
