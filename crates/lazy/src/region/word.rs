//! [`ThunkWord`]: the values that fit into the result word of a thunk.
//!
//! `thunk.rs` stores the word at an update, and each force reads the value from it. The trait is
//! sealed, because a force trusts `from_word` to be the inverse of `into_word`. A word keeps the
//! provenance of a reference, so it is a pointer and not a number.
//!
//! The lowest bit of a reference or of a thunk is 0, so such a word lies in the header of its
//! thunk: see `cell.rs`.

use std::ptr;

/// A value that fits into the result word of a thunk: whole numbers, `bool`, `char`, `()`,
/// references, options of references, and thunks.
///
/// # Examples
/// ```
/// use selvedge::lazy::Region;
///
/// let region: Region = Region::new();
/// let nursery = region.nursery();
/// let initial = nursery.thunk(|_| 'ß');
/// let both = nursery.thunk(move |nursery| {
///     (initial.force(nursery), nursery.ready('w').force(nursery)) == ('ß', 'w')
/// });
/// assert!(both.force(&nursery));
/// ```
pub trait ThunkWord: Copy + sealed::FitsInWord {
    /// Whether the lowest bit of each word is 0.
    #[doc(hidden)]
    const IN_HEADER: bool = false;
    #[doc(hidden)]
    fn into_word(self) -> *mut ();
    /// # Safety
    /// The word is from `into_word` of a value of this type.
    #[doc(hidden)]
    unsafe fn from_word(word: *mut ()) -> Self;
}

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "only the types here are known to fit into a word")]
    pub trait FitsInWord {}
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl sealed::FitsInWord for $number {}
        impl ThunkWord for $number {
            #[inline(always)]
            fn into_word(self) -> *mut () {
                ptr::without_provenance_mut(self as usize)
            }
            #[inline(always)]
            unsafe fn from_word(word: *mut ()) -> $number {
                word.addr() as $number
            }
        }
    )* };
}
numbers!(u8, u16, u32, usize, i8, i16, i32, isize);
#[cfg(target_pointer_width = "64")]
numbers!(u64, i64);

impl sealed::FitsInWord for bool {}
impl ThunkWord for bool {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        ptr::without_provenance_mut(usize::from(self))
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> bool {
        word.addr() != 0
    }
}

impl sealed::FitsInWord for char {}
impl ThunkWord for char {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        ptr::without_provenance_mut(self as usize)
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> char {
        // SAFETY: the word is the number of a character.
        unsafe { char::from_u32_unchecked(word.addr() as u32) }
    }
}

impl sealed::FitsInWord for () {}
impl ThunkWord for () {
    fn into_word(self) -> *mut () {
        ptr::null_mut()
    }
    unsafe fn from_word(_: *mut ()) {}
}

impl<T> sealed::FitsInWord for &T {}
impl<T> ThunkWord for &T {
    const IN_HEADER: bool = align_of::<T>() > 1;
    #[inline(always)]
    fn into_word(self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> Self {
        // SAFETY: the word is a reference of this type and lifetime.
        unsafe { &*word.cast::<T>() }
    }
}

impl<T> sealed::FitsInWord for Option<&T> {}
impl<T> ThunkWord for Option<&T> {
    const IN_HEADER: bool = align_of::<T>() > 1;
    #[inline(always)]
    fn into_word(self) -> *mut () {
        self.map_or(ptr::null_mut(), ThunkWord::into_word)
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> Self {
        // SAFETY: the word is null, or a reference of this type and lifetime.
        unsafe { word.cast::<T>().as_ref() }
    }
}
