//! The thunks that a nursery makes, and where they lie in its memory.
//!
//! The program calls `thunk`, `just_once` and `ready`. `list.rs` calls `put_with_thunk`.

use super::cell::{ResultHead, ThunkCell, ThunkHead, shared};
use super::code::{Code, JustOnce, Pure, ThunkBody};
use super::engine::ThunkEntry;
use super::nursery::Nursery;
use super::thunk::Thunk;
use super::word::ThunkWord;
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, needs_drop};
use std::ptr::NonNull;

impl<'r, E: ThunkEntry> Nursery<'r, E> {
    /// A thunk of a closure, which may make and force other thunks.
    ///
    /// The closure may borrow what lives longer than the region, and captures nothing that needs a
    /// destructor:
    /// ```compile_fail,E0597
    /// use selvedge::lazy::Region;
    ///
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// let length = {
    ///     let cloth = String::from("cloth");
    ///     let cloth = &cloth;
    ///     nursery.thunk(move |_| cloth.len())
    /// };
    /// length.force(&nursery);
    /// ```
    /// ```compile_fail,E0080
    /// use selvedge::lazy::Region;
    ///
    /// let cloth = String::from("cloth");
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// nursery.thunk(move |_| cloth.len()).force(&nursery);
    /// ```
    #[inline]
    pub fn thunk<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        self.make(Pure(code))
    }

    /// A thunk with a closure that runs once, also if several threads force it at the same moment:
    /// its entry is an atomic exchange.
    ///
    /// If the closure panics, the force panics with its payload. The closure is gone then, and each
    /// later force panics too.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Region;
    ///
    /// let mut threads = [1, 2, 3];
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// let all = &mut threads;
    /// let sum = nursery.just_once(move |_| {
    ///     all[0] += 10;
    ///     all.iter().sum::<u32>()
    /// });
    /// assert_eq!((sum.force(&nursery), sum.force(&nursery)), (16, 16));
    /// ```
    ///
    /// # Paper
    /// [HMP05 §3.5] `justOnce`, which the paper proposes.
    pub fn just_once<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: FnOnce(&Nursery<'r, E>) -> V + Send + 'r,
    {
        self.make(JustOnce(code))
    }

    #[inline(always)]
    fn make<V, B>(&self, body: B) -> Thunk<'r, V, E>
    where
        V: ThunkWord + 'r,
        B: ThunkBody<'r, V, E> + 'r,
    {
        const { assert!(!needs_drop::<B>(), "what a thunk captures must need no destructor") };
        let head = ThunkHead::of(Code::<B, V, E>::TABLE);
        Thunk::at(match V::IN_HEADER {
            true => self.put_cell(head, body),
            false => self.put_cell(ResultHead::of(head), body),
        })
    }

    /// A thunk that has its result. It takes no memory if the value is a small number, `None`,
    /// `false` or `true`: all regions share the thunks of these values, as GHC's collector shares
    /// small numbers.
    #[inline]
    pub fn ready<V: ThunkWord + Send + Sync + 'r>(&self, value: V) -> Thunk<'r, V, E> {
        let word = value.into_word();
        if let Some(shared) = shared::<V>(word) {
            return Thunk::at(shared);
        }
        Thunk::at(match V::IN_HEADER {
            true => self.put_cell(ThunkHead::ready(word), ()),
            false => self.put_cell(ResultHead::ready(word), ()),
        })
    }

    #[inline(always)]
    fn put_cell<H, F>(&self, head: H, body: F) -> NonNull<ThunkHead> {
        let place = self.place(Layout::new::<ThunkCell<H, F>>()).cast::<ThunkCell<H, F>>();
        let cell = ThunkCell { head, payload: UnsafeCell::new(ManuallyDrop::new(body)) };
        // SAFETY: the place is fresh memory of this layout.
        unsafe { place.write(cell) };
        place.cast()
    }

    /// Puts the value into the region that `value` makes of a new thunk. Both lie in one place.
    #[inline(always)]
    pub(crate) fn put_with_thunk<T, V, F>(&self, code: F, value: impl FnOnce(Thunk<'r, V, E>) -> T) -> &'r T
    where
        T: Send + Sync + 'r,
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        const { assert!(!needs_drop::<T>() && !needs_drop::<F>(), "nothing in a region is dropped") };
        let (head, body) = (ThunkHead::of(Code::<Pure<F>, V, E>::TABLE), Pure(code));
        let value = |cell| value(Thunk::at(cell));
        match V::IN_HEADER {
            true => self.put_beside(head, body, value),
            false => self.put_beside(ResultHead::of(head), body, value),
        }
    }

    #[inline(always)]
    fn put_beside<T, H, B>(&self, head: H, body: B, value: impl FnOnce(NonNull<ThunkHead>) -> T) -> &'r T {
        /// A thunk, and a value that leads to it.
        #[repr(C)]
        struct Beside<H, B, T> {
            cell: ThunkCell<H, B>,
            value: T,
        }
        let place = self.place(Layout::new::<Beside<H, B, T>>()).cast::<Beside<H, B, T>>();
        // SAFETY: the place is fresh memory of this layout, and stays until the region goes, which
        // `'r` does not outlive. The value is written before it is borrowed.
        unsafe {
            let (cell, rest) = (&raw mut (*place.as_ptr()).cell, &raw mut (*place.as_ptr()).value);
            cell.write(ThunkCell { head, payload: UnsafeCell::new(ManuallyDrop::new(body)) });
            rest.write(value(place.cast()));
            &*rest
        }
    }
}
