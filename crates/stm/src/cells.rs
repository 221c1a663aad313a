//! [`Cells`]: variables side by side in one allocation.
//!
//! A cell is a variable without a `TVar` of its own. The block owns one handle of each cell, and a
//! registration (`registration.rs`) owns one more while it waits.
//!
//! ```text
//!    block     owners | live | len | free | head | cell | cell | cell | ..
//!    cell      the variable | pointer to the block
//! ```
//! A [`Cells`] is a counted pointer to a block: clones share the block. The head is a value that
//! all cells share. It does not change.
//!
//! # When a block is freed
//! 1. The last owner drops its `Cells`. No transaction that begins from now on can reach a cell, so
//!    the block is retired.
//! 2. `free_block` runs when no transaction can have a reference to a cell or to its value. It
//!    drops the block's handle of each cell. Now the registrations alone have handles.
//! 3. When the last registration of a cell ends, it retires the cell, and `free_cell` runs later.
//!
//! `live` is the number of cells that have a handle, plus 1 until `free_block` has run.
//! `free_block` and each `free_cell` subtract from it. The call that makes it 0 frees the memory of
//! the block.

mod value;

pub(crate) use value::{CellNode, CellValue, CellWord};

use crate::engine::Engine;
use crate::garbage::{Free, Garbage};
use crate::names;
use crate::primitives::{AtomicUsize, Ordering};
use crate::session::{Pinned, retire};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::{Borrowed, Inner, Owns, VarKind, identity};
use crate::word::Word;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{NonNull, addr_of_mut};
use std::sync::Arc;

/// The kinds of the cells of blocks with values of type V and heads of type H.
struct KindsOfCells<V, H>(PhantomData<(V, H)>);

impl<V: CellValue, H: Send + Sync + 'static> KindsOfCells<V, H> {
    const PLAIN: &VarKind = &VarKind::plain(free_cell::<V, H>, V::type_name);
    const NAMED: &VarKind = &VarKind::named(free_cell::<V, H>, V::type_name);
}

/// A variable of a block.
#[repr(C)]
struct VarCell {
    /// The first field, so that a pointer to it is one to the cell.
    inner: Inner,
    /// The `CellBlock` that the cell is in.
    block: NonNull<()>,
}

/// The begin of a block. The cells follow it in the same allocation.
#[repr(C)]
struct CellBlock<H> {
    owners: AtomicUsize,
    /// See the head of this file.
    live: AtomicUsize,
    len: usize,
    /// `free_block`, for the types of the values and the head.
    free: Free,
    head: H,
    cells: [VarCell; 0],
}

impl<H> CellBlock<H> {
    /// # Panics
    /// If the block would not fit the address space.
    fn layout(len: usize) -> Layout {
        let cells = Layout::array::<VarCell>(len);
        let whole = cells.and_then(|cells| Layout::new::<CellBlock<H>>().extend(cells));
        whole.expect("a block fits the address space").0.pad_to_align()
    }

    /// The first cell.
    #[inline(always)]
    fn first(block: NonNull<CellBlock<H>>) -> NonNull<VarCell> {
        // SAFETY: the field is within the allocation of the block, or at its end.
        unsafe { NonNull::new_unchecked(addr_of_mut!((*block.as_ptr()).cells).cast::<VarCell>()) }
    }
}

/// What an owner of a block stands for: values that it gives and takes, a head, and an engine of
/// which there is none. So it is invariant in the values, as a handle of a variable is:
/// ```compile_fail,E0308
/// use selvedge::stm::TArray;
///
/// let nothing: for<'a> fn(&'a str) = |_| ();
/// let array: TArray<for<'a> fn(&'a str)> = TArray::new([nothing]);
/// let other: TArray<fn(&'static str)> = array.clone();
/// ```
/// ```compile_fail,E0308
/// use selvedge::stm::TMap;
///
/// let map: TMap<u8, for<'a> fn(&'a str)> = TMap::new();
/// let other: TMap<u8, fn(&'static str)> = map.clone();
/// ```
/// ```compile_fail,E0308
/// use selvedge::stm::TNode;
///
/// let node: TNode<for<'a> fn(&'a str), 1> = TNode::new(|_| (), [None]);
/// let other: TNode<fn(&'static str), 1> = node.clone();
/// ```
type OwnsCells<V, E, H> = (Owns<V, E>, H);

/// What a reference to cells stands for. It is invariant in the values too.
type SeesCells<'a, V, E> = (&'a VarCell, fn(V) -> V, fn() -> E);

/// A counted pointer to a block of variables, with a head of type H.
///
/// The type has no bounds, so that a value may have a block of such values in it.
#[repr(transparent)]
pub(crate) struct Cells<V, E, H = ()> {
    block: NonNull<CellBlock<H>>,
    _value: PhantomData<OwnsCells<V, E, H>>,
}

// SAFETY: it gives shared references to values and to the head, and drops them, on any OS thread,
// for both of which Send + Sync is enough. `new` and `write`, through which alone they come in,
// have the bounds.
unsafe impl<V, E, H> Send for Cells<V, E, H> {}
// SAFETY: as above.
unsafe impl<V, E, H> Sync for Cells<V, E, H> {}

impl<V, E, H> Cells<V, E, H> {
    #[inline(always)]
    fn block(&self) -> &CellBlock<H> {
        // SAFETY: a block lives at least as long as its owners.
        unsafe { self.block.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.block().len
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> &H {
        &self.block().head
    }

    /// All cells, which live as long as this owner.
    #[inline(always)]
    pub(crate) fn row(&self) -> CellRow<'_, V, E> {
        CellRow { first: CellBlock::first(self.block), len: self.len(), _values: PhantomData }
    }

    /// # Panics
    /// If there is no such cell.
    #[inline(always)]
    pub(crate) fn cell(&self, at: usize) -> CellRef<'_, V, E> {
        self.row().cell(at)
    }

    /// # Safety
    /// The block has more cells than `at`.
    #[inline(always)]
    pub(crate) unsafe fn cell_unchecked(&self, at: usize) -> CellRef<'_, V, E> {
        debug_assert!(at < self.len(), "no element {at} among {}", self.len());
        // SAFETY: the caller's contract.
        CellRef { cell: unsafe { CellBlock::first(self.block).add(at) }, _values: PhantomData }
    }

    /// The pointer, which `from_raw` takes back.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> *mut () {
        ManuallyDrop::new(self).block.as_ptr().cast()
    }

    /// # Safety
    /// `into_raw` of the same type gave the pointer, which is not used again.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(raw: *mut ()) -> Cells<V, E, H> {
        // SAFETY: the caller's contract.
        Cells { block: unsafe { NonNull::new_unchecked(raw.cast()) }, _value: PhantomData }
    }
}

impl<V: CellValue, E: Engine, H: Send + Sync + 'static> Cells<V, E, H> {
    /// A block with this number of cells, with the values that `value` gives one after the other.
    /// With a name, the cells are `NAME[0]` and so on, and a single cell is `NAME`.
    pub(crate) fn new(
        head: H,
        len: usize,
        name: Option<Arc<str>>,
        mut value: impl FnMut() -> V,
    ) -> Cells<V, E, H> {
        let layout = CellBlock::<H>::layout(len);
        // SAFETY: the layout has the four words of a block at least.
        let block = unsafe { alloc(layout) }.cast::<CellBlock<H>>();
        let Some(block) = NonNull::new(block) else { handle_alloc_error(layout) };
        let kind = if name.is_some() { KindsOfCells::<V, H>::NAMED } else { KindsOfCells::<V, H>::PLAIN };
        let (owners, live) = (AtomicUsize::new(1), AtomicUsize::new(len + 1));
        let begin = CellBlock { owners, live, len, free: free_block::<V, H>, head, cells: [] };
        // SAFETY: the allocation is that of a block with this number of cells, and nothing else has
        // a pointer to it yet. If `value` panics, the block is forgotten.
        unsafe {
            block.write(begin);
            for at in 0..len {
                let inner = Inner::new(value().into_raw(), kind);
                CellBlock::first(block).add(at).write(VarCell { inner, block: block.cast() });
            }
        }
        let cells = Cells { block, _value: PhantomData };
        if let Some(name) = name
            && len > 0
        {
            names::give(cells.cell(0).inner().pointer().addr().get(), len, size_of::<VarCell>(), name);
        }
        cells
    }
}

impl<V: CellValue, E: Engine, H> Cells<V, E, H> {
    /// The value of a cell, as this transaction sees it.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline(always)]
    pub(crate) fn read<'tx>(&self, tx: &'tx Tx<E>, at: usize) -> Tried<V::Seen<'tx>> {
        self.cell(at).read(tx)
    }

    /// Replaces the value of a cell, when the transaction commits.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline(always)]
    pub(crate) fn write(&self, tx: &Tx<E>, at: usize, value: V) {
        self.cell(at).write(tx, value);
    }
}

impl<V, E, H> Clone for Cells<V, E, H> {
    /// Another owner of the same block.
    #[inline]
    fn clone(&self) -> Self {
        // An owner keeps the count above 0, so the order of the additions does not matter. It does
        // not overflow, because each owner takes 8 bytes or is leaked by a loop of 2^63 steps.
        self.block().owners.fetch_add(1, Ordering::Relaxed);
        Cells { block: self.block, _value: PhantomData }
    }
}

identity!([V, E, Head] Cells<V, E, Head>, owner => owner.block);

impl<V, E, H> Drop for Cells<V, E, H> {
    #[inline]
    fn drop(&mut self) {
        let free = self.block().free;
        // The last owner sees what each other one has done with the block.
        if self.block().owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: this was the last owner, so a transaction that begins from now on cannot
            // reach the block. `new` has chosen `free` for the types of the block, and has demanded
            // that values and head are `'static`, so they may be dropped at any later time.
            retire(unsafe { Garbage::new(self.block.as_ptr().cast(), free) });
        }
    }
}

/// A reference to an owner that is in a variable, or was, and that a transaction sees.
pub(crate) struct CellsRef<'tx, V, E, H = ()> {
    block: NonNull<CellBlock<H>>,
    _during: PhantomData<&'tx Cells<V, E, H>>,
}

impl<V, E, H> Clone for CellsRef<'_, V, E, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, E, H> Copy for CellsRef<'_, V, E, H> {}

impl<'tx, V, E, H> CellsRef<'tx, V, E, H> {
    /// # Safety
    /// `Cells::into_raw` gave the pointer, and the owner is not dropped before `'tx` ends.
    #[inline(always)]
    pub(crate) unsafe fn new(raw: *mut ()) -> Self {
        // SAFETY: the caller's contract.
        CellsRef { block: unsafe { NonNull::new_unchecked(raw.cast()) }, _during: PhantomData }
    }

    /// As [`Cells::head`], for as long as the transaction.
    #[inline(always)]
    pub(crate) fn head_of_tx(self) -> &'tx H {
        // SAFETY: the contract of `new`.
        unsafe { &(*self.block.as_ptr()).head }
    }

    /// As [`Cells::row`], for as long as the transaction.
    #[inline(always)]
    pub(crate) fn row_of_tx(self) -> CellRow<'tx, V, E> {
        CellRow { first: CellBlock::first(self.block), len: self.len(), _values: PhantomData }
    }

    /// As [`Cells::cell_unchecked`], for as long as the transaction.
    ///
    /// # Safety
    /// The block has more cells than `at`.
    #[inline(always)]
    pub(crate) unsafe fn cell_of_tx(self, at: usize) -> CellRef<'tx, V, E> {
        // SAFETY: the caller's contract.
        CellRef { cell: unsafe { self.cell_unchecked(at) }.cell, _values: PhantomData }
    }
}

impl<V, E, H> Deref for CellsRef<'_, V, E, H> {
    type Target = Cells<V, E, H>;

    #[inline(always)]
    fn deref(&self) -> &Cells<V, E, H> {
        // SAFETY: `Cells` is transparent, so it is the pointer itself; the reference drops nothing.
        unsafe { &*(&raw const self.block).cast::<Cells<V, E, H>>() }
    }
}

/// The cells of a block that is alive for `'a`.
pub(crate) struct CellRow<'a, V, E> {
    first: NonNull<VarCell>,
    len: usize,
    _values: PhantomData<SeesCells<'a, V, E>>,
}

impl<V, E> Clone for CellRow<'_, V, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, E> Copy for CellRow<'_, V, E> {}

impl<'a, V, E> CellRow<'a, V, E> {
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// # Panics
    /// If there is no such cell.
    #[inline(always)]
    pub(crate) fn cell(self, at: usize) -> CellRef<'a, V, E> {
        assert!(at < self.len, "no element {at} among {}", self.len);
        // SAFETY: the cell is within the allocation.
        CellRef { cell: unsafe { self.first.add(at) }, _values: PhantomData }
    }
}

/// One cell of a block that is alive for `'a`.
pub(crate) struct CellRef<'a, V, E> {
    cell: NonNull<VarCell>,
    _values: PhantomData<SeesCells<'a, V, E>>,
}

impl<V, E> Clone for CellRef<'_, V, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, E> Copy for CellRef<'_, V, E> {}

impl<'a, V, E> CellRef<'a, V, E> {
    #[inline(always)]
    fn inner(self) -> Borrowed<'a> {
        // SAFETY: the block is alive for `'a`, and the pointer is to its whole allocation.
        unsafe { Borrowed::new(self.cell.cast::<Inner>()) }
    }
}

impl<V: CellValue, E: Engine> CellRef<'_, V, E> {
    /// The value, as this transaction sees it.
    #[inline(always)]
    pub(crate) fn read<'tx>(self, tx: &'tx Tx<E>) -> Tried<V::Seen<'tx>> {
        let raw = tx.load(self.inner())?;
        // SAFETY: `new` or `write` made it of a value of this type. It is not freed while `tx`
        // lives: the session of `tx` is pinned, and a node of its own log stays in the log.
        Ok(unsafe { V::see(raw, PhantomData) })
    }

    /// Replaces the value, when the transaction commits.
    #[inline(always)]
    pub(crate) fn write(self, tx: &Tx<E>, value: V) {
        value.store(tx, self.inner());
    }

    /// Gives the value at this moment to `f`, outside of a transaction.
    pub(crate) fn read_now<R>(self, f: impl FnOnce(V::Seen<'_>) -> R) -> R {
        let pinned = Pinned::new();
        let raw = self.inner().value.load(Ordering::Acquire);
        // SAFETY: as in `read`; `pinned` lives until `f` has returned or unwound.
        let result = f(unsafe { V::see(raw, PhantomData) });
        drop(pinned);
        result
    }
}

impl<T: Word, E: Engine> CellRef<'_, CellWord<T>, E> {
    /// The word at this moment, outside of a transaction.
    #[inline(always)]
    pub(crate) fn word_now(self) -> T {
        T::from_bits(self.inner().value.load(Ordering::Acquire).addr() as u64)
    }
}

/// Step 2.
///
/// # Safety
/// The pointer is to a block for values of type V with a head of type H. Its owners are gone, and
/// no transaction can reach the block.
unsafe fn free_block<V: CellValue, H>(block: *mut ()) {
    // SAFETY: the pointer is not null.
    let block = unsafe { NonNull::new_unchecked(block.cast::<CellBlock<H>>()) };
    // SAFETY: `live` keeps the block until the call of `end`, and it has `len` cells.
    let cells =
        unsafe { NonNull::slice_from_raw_parts(CellBlock::first(block), block.as_ref().len).as_ref() };
    // SAFETY: the block's handle ends here.
    let dead = cells.iter().filter(|cell| unsafe { cell.inner.let_go() }).count();
    // SAFETY: the dead cells have no handle, and the one more is that of this call.
    unsafe { end::<V, H>(block, dead + 1) };
}

/// Step 3.
///
/// # Safety
/// The pointer is to the variable of a cell for values of type V in a block with a head of type H.
/// It has no handle any more.
unsafe fn free_cell<V: CellValue, H>(inner: *mut ()) {
    // SAFETY: `live` counts the cell, so the block is there.
    unsafe { end::<V, H>((*inner.cast::<VarCell>()).block.cast(), 1) };
}

/// # Safety
/// The caller gives up `many` of the block's `live`.
unsafe fn end<V: CellValue, H>(block: NonNull<CellBlock<H>>, many: usize) {
    // SAFETY: the block is there as long as the caller's share of `live`.
    if unsafe { block.as_ref() }.live.fetch_sub(many, Ordering::AcqRel) != many {
        return;
    }
    // SAFETY: that was the last share, so this call has the block alone. `Cells::new` has written
    // the head and `len` cells, and each value is of type V.
    unsafe {
        let len = block.as_ref().len;
        // Each value and the head are dropped within `Garbage`, so that a destructor that panics
        // takes no other value along.
        if len > 0 && CellBlock::first(block).as_ref().inner.kind.is_named {
            names::forget(CellBlock::first(block).as_ptr().cast());
        }
        for at in 0..len {
            let cell = CellBlock::first(block).add(at).read();
            let value = cell.inner.value.load(Ordering::Acquire);
            drop(V::FREE.map(|free| Garbage::new(value, free)));
        }
        drop(Garbage::new(addr_of_mut!((*block.as_ptr()).head).cast(), drop_head::<H>));
        dealloc(block.as_ptr().cast(), CellBlock::<H>::layout(len));
    }
}

/// # Safety
/// The pointer is to a head, which ends here.
unsafe fn drop_head<H>(head: *mut ()) {
    // SAFETY: the caller's contract.
    unsafe { head.cast::<H>().drop_in_place() };
}
