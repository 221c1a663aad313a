//! What the operations of variables call of a transaction: the reads and the writes of [`Tx`].

use crate::engine::Engine;
use crate::garbage::Free;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::Borrowed;

impl<E: Engine> Tx<E> {
    /// The value of a variable, as a pointer to its node or as the bits of a word.
    #[inline(always)]
    pub(crate) fn load(&self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: only functions of this crate borrow the state, none of them calls this one
        // meanwhile, and `Tx` is not `Sync`.
        unsafe { &mut *self.state.as_ptr() }.load(inner)
    }

    /// See [`Log::changes`](crate::log::Log::changes).
    pub(crate) fn changes(&self) -> usize {
        self.state.borrow_mut().session().log.changes()
    }

    #[inline(always)]
    pub(crate) fn store(&self, inner: Borrowed<'_>, value: *mut (), free: Option<Free>) {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: as above.
        unsafe { &mut *self.state.as_ptr() }.session().log.write(inner.address(), value, free);
    }

    /// As `store`, for a value in a node, which `free` frees as [`nodes::free`] does.
    #[inline(always)]
    pub(crate) fn store_node<T: Send + Sync + 'static>(&self, inner: Borrowed<'_>, value: T, free: Free) {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: as above.
        let session = unsafe { &mut *self.state.as_ptr() }.session();
        let node = session.spare.make(value).cast();
        session.log.write(inner.address(), node, Some(free));
    }
}
