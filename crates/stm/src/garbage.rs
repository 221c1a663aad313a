//! [`Garbage`]: an object that is freed later, by any OS thread.

use selvedge_core::internal::quietly;
use std::mem::ManuallyDrop;

/// The function that frees a value behind a pointer of its type.
pub(crate) type Free = unsafe fn(*mut ());

/// A pointer to an object, which is freed when this is dropped.
///
/// # Lifetimes
/// An object becomes garbage when a commit has unlinked it or its last handle is gone, and is freed
/// later: by any OS thread, after any transaction, at any time before the process ends. So neither
/// the value nor a destructor may borrow. Values of variables, keys, values and hashers of maps,
/// the values of nodes, and predicates are `'static`, because the types of handles (`TVar`,
/// `TWord`, `TNode`, `TMap`), `CellValue` and `Cells::new` demand it:
/// ```compile_fail,E0597
/// use selvedge::stm::TVar;
///
/// let cloth = String::from("cloth");
/// let borrows = TVar::new(&cloth);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::TArray;
///
/// let cloth = String::from("cloth");
/// let borrows = TArray::new([&cloth]);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::{TMap, atomically_blocking};
///
/// let cloth = String::from("cloth");
/// let borrows = TMap::new();
/// atomically_blocking(|tx| borrows.insert(tx, 1, &cloth).map(drop));
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::TNode;
///
/// let cloth = String::from("cloth");
/// let borrows = TNode::<_, 0>::new(&cloth, []);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let limit = String::from("12345");
/// let length = &limit;
/// let count = TWord::new(7);
/// let seen = count.clone();
/// atomically_blocking(|tx| {
///     let seen = seen.clone();
///     tx.wait_for(move |tx| Ok(seen.read(tx)? > length.len()))
/// });
/// ```
pub(crate) struct Garbage {
    pointer: *mut (),
    free: Free,
}

impl Garbage {
    /// # Safety
    /// `free` may be called once with `pointer`, on any OS thread and at any later time, when this
    /// is dropped: so what it frees is `Send`, `Sync` and `'static`.
    pub(crate) unsafe fn new(pointer: *mut (), free: Free) -> Garbage {
        Garbage { pointer, free }
    }

    /// Frees the object. A panic of its destructor goes on to the caller.
    #[inline(always)]
    pub(crate) fn free_now(self) {
        let Garbage { pointer, free } = *ManuallyDrop::new(self);
        // SAFETY: the contract of `new`; this is the one call, because `self` is not dropped.
        unsafe { free(pointer) };
    }
}

// SAFETY: `Garbage::new` is called for values of type `T: Send + Sync + 'static`, for variables of
// them and for heads of blocks (`Cells::new`), and its contract allows any OS thread.
unsafe impl Send for Garbage {}

impl Drop for Garbage {
    /// Panics of a destructor are reported by the panic hook and end here, because the caller is a
    /// transaction that has nothing to do with the value.
    fn drop(&mut self) {
        // SAFETY: the contract of `new`.
        quietly(|| unsafe { (self.free)(self.pointer) });
    }
}
