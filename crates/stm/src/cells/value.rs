//! [`CellValue`]: what a cell of a block keeps.

use crate::engine::Engine;
use crate::garbage::Free;
use crate::nodes;
use crate::transaction::Tx;
use crate::variable::Borrowed;
use crate::word::{Word, bits_to_pointer};
use std::any::type_name;
use std::marker::PhantomData;

/// The value of a cell, which the cell keeps as a pointer or as bits.
///
/// # Safety
/// `FREE` frees a pointer of `into_raw`, on any OS thread, and `see` gives references to the node
/// of such a pointer alone. Neither needs more than `Self: Send + Sync`. The reading transaction
/// keeps the node alive.
pub(crate) unsafe trait CellValue: Send + Sync + Sized + 'static {
    /// The value as a transaction sees it.
    type Seen<'tx>;

    /// Frees a node. `None` for values that have none.
    const FREE: Option<Free>;

    /// The name of the value's type, for reports.
    fn type_name() -> &'static str;

    fn into_raw(self) -> *mut ();

    /// Replaces the value of a cell, when the transaction commits.
    #[inline(always)]
    fn store<E: Engine>(self, tx: &Tx<E>, cell: Borrowed<'_>) {
        tx.store(cell, self.into_raw(), Self::FREE);
    }

    /// # Safety
    /// `into_raw` or `store` gave the pointer, which is not freed before `'tx` ends.
    unsafe fn see<'tx>(raw: *mut (), during: PhantomData<&'tx ()>) -> Self::Seen<'tx>;
}

/// A value in a node of its own.
pub(crate) struct CellNode<T>(pub(crate) T);

// SAFETY: `nodes::free` frees the box that `into_raw` has leaked, and the node of `store_node`.
unsafe impl<T: Send + Sync + 'static> CellValue for CellNode<T> {
    type Seen<'tx> = &'tx T;

    const FREE: Option<Free> = Some(nodes::free::<T>);

    fn type_name() -> &'static str {
        type_name::<T>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        Box::into_raw(Box::new(self.0)).cast()
    }

    #[inline(always)]
    fn store<E: Engine>(self, tx: &Tx<E>, cell: Borrowed<'_>) {
        tx.store_node(cell, self.0, nodes::free::<T>);
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
unsafe impl<T: Send + Sync + 'static> CellValue for Option<CellNode<T>> {
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
    fn store<E: Engine>(self, tx: &Tx<E>, cell: Borrowed<'_>) {
        match self {
            Some(CellNode(value)) => tx.store_node(cell, value, free_optional::<T>),
            None => tx.store(cell, std::ptr::null_mut(), Self::FREE),
        }
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
