//! [`Cells`]: variables side by side in one allocation.
//!
//! A cell is a variable, without a handle for each: the block of cells owns one handle of each
//! cell, and a registration (`wait.rs`) owns one while it waits.
//!
//! # When a block is freed
//! 1. The owner drops its `Cells`. No transaction that begins from now on can reach a cell, so the
//!    block is retired.
//! 2. `free_block` runs when no transaction can have a reference to a cell or to its value. It
//!    drops the block's handle of each cell. Now the registrations alone have handles.
//! 3. The last registration of a cell, when it ends, retires the cell, and `free_cell` runs.
//!
//! `live` counts the cells that have a handle, and one more for `free_block`. The one of
//! `free_block` and the calls of `free_cell` that takes the last frees the block.

use crate::engine::Engine;
use crate::nodes;
use crate::primitives::{AtomicUsize, Ordering};
use crate::session::{Free, Garbage, Pinned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::{Borrowed, Inner, VarKind, retire};
use crate::word::{Word, bits_to_pointer};
use std::any::type_name;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The value of a cell, which the cell keeps as a pointer or as bits.
///
/// # Safety
/// `FREE` frees a pointer of `into_raw`, on any OS thread, and `see` gives references to the node
/// of such a pointer alone. Neither needs more than `Self: Send + Sync`. The reading transaction
/// keeps the node alive.
pub(crate) unsafe trait CellValue: Send + Sync + 'static {
    /// The value as a transaction sees it.
    type Seen<'tx>;

    /// Frees a node. `None` for values that have none.
    const FREE: Option<Free>;

    /// The name of the value's type, for reports.
    fn type_name() -> &'static str;

    fn into_raw(self) -> *mut ();

    /// # Safety
    /// `into_raw` gave the pointer, which is not freed before `'tx` ends.
    unsafe fn see<'tx>(raw: *mut (), during: PhantomData<&'tx ()>) -> Self::Seen<'tx>;
}

// SAFETY: `nodes::free` frees the box that `into_raw` has leaked.
unsafe impl<T: Send + Sync + 'static> CellValue for Box<T> {
    type Seen<'tx> = &'tx T;

    const FREE: Option<Free> = Some(nodes::free::<T>);

    fn type_name() -> &'static str {
        type_name::<T>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        Box::into_raw(self).cast()
    }

    #[inline(always)]
    unsafe fn see(raw: *mut (), _: PhantomData<&()>) -> &T {
        // SAFETY: the caller's contract.
        unsafe { &*raw.cast::<T>() }
    }
}

/// # Safety
/// The pointer is null, or as for `nodes::free`.
unsafe fn free_optional<T>(node: *mut ()) {
    if !node.is_null() {
        // SAFETY: the caller's contract.
        unsafe { nodes::free::<T>(node) };
    }
}

// SAFETY: as above; no value is a null pointer.
unsafe impl<T: Send + Sync + 'static> CellValue for Option<Box<T>> {
    type Seen<'tx> = Option<&'tx T>;

    const FREE: Option<Free> = Some(free_optional::<T>);

    fn type_name() -> &'static str {
        type_name::<T>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        self.map_or(std::ptr::null_mut(), CellValue::into_raw)
    }

    #[inline(always)]
    unsafe fn see(raw: *mut (), _: PhantomData<&()>) -> Option<&T> {
        // SAFETY: the caller's contract; a pointer that is not null is one to a node.
        unsafe { raw.cast::<T>().as_ref() }
    }
}

/// A word in a cell.
pub(crate) struct CellWord<T: Word>(pub(crate) T);

// SAFETY: there is no node.
unsafe impl<T: Word> CellValue for CellWord<T> {
    type Seen<'tx> = T;

    const FREE: Option<Free> = None;

    fn type_name() -> &'static str {
        type_name::<T>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        bits_to_pointer(self.0.into_bits())
    }

    #[inline(always)]
    unsafe fn see(raw: *mut (), _: PhantomData<&()>) -> T {
        T::from_bits(raw.addr() as u64)
    }
}

/// The kind of the cells with values of type V.
struct KindsOfCells<V>(PhantomData<V>);

impl<V: CellValue> KindsOfCells<V> {
    const PLAIN: &VarKind = &VarKind::plain(free_cell::<V>, V::type_name);
}

/// A variable of a block.
#[repr(C)]
struct VarCell {
    /// The first field, so that a pointer to it is one to the cell.
    inner: Inner,
    block: NonNull<CellBlock>,
}

/// The part of a block that its cells share.
struct CellBlock {
    /// See the head of this file.
    live: AtomicUsize,
    cells: NonNull<[VarCell]>,
    /// `free_block`, for the type of the values.
    free: Free,
}

/// The owner of a block of variables.
///
/// The type has no bounds, so that a value may have a block of such values in it.
pub(crate) struct Cells<V, E> {
    block: NonNull<CellBlock>,
    /// Those of the block, so that a read has one pointer less to follow.
    cells: NonNull<[VarCell]>,
    _value: PhantomData<(V, fn() -> E)>,
}

// SAFETY: it gives shared references to values, and drops values, on any OS thread, for both of
// which V: Send + Sync is enough. `new` and `write`, through which alone the values come in, have
// the bound.
unsafe impl<V, E> Send for Cells<V, E> {}
// SAFETY: as above.
unsafe impl<V, E> Sync for Cells<V, E> {}

impl<V, E> Cells<V, E> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }
}

impl<V: CellValue, E: Engine> Cells<V, E> {
    /// A block with a cell for each value.
    pub(crate) fn new(values: Vec<V>) -> Cells<V, E> {
        let live = AtomicUsize::new(values.len() + 1);
        let none: &mut [VarCell] = &mut [];
        let block = CellBlock { live, cells: NonNull::from(none), free: free_block::<V> };
        let block = NonNull::from(Box::leak(Box::new(block)));
        let cell =
            |value: V| VarCell { inner: Inner::new(value.into_raw(), KindsOfCells::<V>::PLAIN), block };
        let cells: Box<[VarCell]> = values.into_iter().map(cell).collect();
        let cells = NonNull::from(Box::leak(cells));
        // SAFETY: nothing else has a pointer to the block yet, except its cells.
        unsafe { (*block.as_ptr()).cells = cells };
        Cells { block, cells, _value: PhantomData }
    }

    /// # Panics
    /// If there is no such cell.
    #[inline(always)]
    fn inner(&self, at: usize) -> Borrowed<'_> {
        assert!(at < self.len(), "no element {at} among {}", self.len());
        // SAFETY: the cell is within the allocation, which `free_block` frees later than this is
        // dropped. The pointer is to the whole allocation.
        unsafe { Borrowed::new(self.cells.cast::<VarCell>().add(at).cast::<Inner>()) }
    }

    /// The value of a cell, as this transaction sees it.
    #[inline(always)]
    pub(crate) fn read<'tx>(&self, tx: &'tx Tx<E>, at: usize) -> Tried<V::Seen<'tx>> {
        let raw = tx.load(self.inner(at))?;
        // SAFETY: `new` or `write` made it of a value of this type. It is not freed while `tx`
        // lives: the session of `tx` is pinned, and a node of its own log stays in the log.
        Ok(unsafe { V::see(raw, PhantomData) })
    }

    /// Replaces the value of a cell, when the transaction commits.
    #[inline(always)]
    pub(crate) fn write(&self, tx: &Tx<E>, at: usize, value: V) {
        tx.store(self.inner(at), value.into_raw(), V::FREE);
    }

    /// Gives the value of a cell at this moment to `f`, outside of a transaction.
    pub(crate) fn read_now<R>(&self, at: usize, f: impl FnOnce(V::Seen<'_>) -> R) -> R {
        let pinned = Pinned::new();
        let raw = self.inner(at).value.load(Ordering::Acquire);
        // SAFETY: as in `read`; `pinned` lives until `f` has returned or unwound.
        let result = f(unsafe { V::see(raw, PhantomData) });
        drop(pinned);
        result
    }
}

impl<V, E> Drop for Cells<V, E> {
    fn drop(&mut self) {
        // SAFETY: the block lives at least as long as its owner.
        let free = unsafe { self.block.as_ref() }.free;
        // SAFETY: this was the owner, so a transaction that begins from now on cannot reach the
        // block. `new` has chosen `free` for the type of the values.
        retire(unsafe { Garbage::new(self.block.as_ptr().cast(), free) });
    }
}

/// Step 2.
///
/// # Safety
/// The pointer is to a block for values of type V. Its owner is gone, and no transaction can reach
/// the block.
unsafe fn free_block<V: CellValue>(block: *mut ()) {
    let block = block.cast::<CellBlock>();
    // SAFETY: `live` keeps the block until the call of `end`.
    let cells = unsafe { (*block).cells.as_ref() };
    // SAFETY: the block's handle ends here.
    let dead = cells.iter().filter(|cell| unsafe { cell.inner.let_go() }).count();
    // SAFETY: the dead cells have no handle, and the one more is that of this call.
    unsafe { end::<V>(block, dead + 1) };
}

/// Step 3.
///
/// # Safety
/// The pointer is to the variable of a cell for values of type V, which has no handle any more.
unsafe fn free_cell<V: CellValue>(inner: *mut ()) {
    // SAFETY: `live` counts the cell, so the block is there.
    unsafe { end::<V>((*inner.cast::<VarCell>()).block.as_ptr(), 1) };
}

/// # Safety
/// The caller gives up `many` of the block's `live`.
unsafe fn end<V: CellValue>(block: *mut CellBlock, many: usize) {
    // SAFETY: the block is there as long as the caller's share of `live`.
    if unsafe { (*block).live.fetch_sub(many, Ordering::AcqRel) } != many {
        return;
    }
    // SAFETY: that was the last share. `Cells::new` leaked both boxes, and each value is of type V.
    unsafe {
        let block = Box::from_raw(block);
        for cell in Box::from_raw(block.cells.as_ptr()) {
            let value = cell.inner.value.load(Ordering::Acquire);
            // One after the other, so that a destructor that panics takes no other value along.
            drop(V::FREE.map(|free| Garbage::new(value, free)));
        }
    }
}
