//! Variables with words: [`TWord`], with its value in the variable itself.

use crate::engine::{Engine, Versioned};
use crate::primitives::Ordering;
use crate::run::run_now;
use crate::stop::Tried;
use crate::transaction::Tx;
#[cfg(feature = "testing")]
use crate::variable::WAITERS;
use crate::variable::{Borrowed, Inner, Owns, VarKind, handle, identity};
use crate::weak::{Weak, weak_handle};
use crate::{names, waking};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::Arc;

/// A value of at most a machine word, which [`TWord`] keeps as its bits.
///
/// Implemented for the numbers of at most 64 bits, `bool`, `char` and `()`. A program may implement
/// it for its own small types.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, Word};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Light { Red, Green }
///
/// impl Word for Light {
///     fn into_bits(self) -> u64 { self as u64 }
///     fn from_bits(bits: u64) -> Light { if bits == 0 { Light::Red } else { Light::Green } }
/// }
///
/// assert_eq!(TWord::new(Light::Green).read_now(), Light::Green);
/// ```
/// A value of another type goes into a [`TVar`](crate::TVar):
/// ```compile_fail,E0277
/// use selvedge::stm::TWord;
///
/// let name = TWord::new("warp".to_string());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a word of at most 64 bits",
    label = "a `TWord` or `TWordArray` cannot keep this type",
    note = "a `TVar` or a `TArray` keeps values of any type; a small type of the program may implement `Word`"
)]
pub trait Word: Copy + Send + Sync + 'static {
    /// The bits of the value.
    fn into_bits(self) -> u64;

    /// The value of bits that [`into_bits`](Word::into_bits) gave.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn into_bits(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_bits(bits: u64) -> $type {
                bits as $type
            }
        }
    )*};
}

words!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Word for bool {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> bool {
        bits != 0
    }
}

impl Word for char {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> char {
        char::from_u32(bits as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

impl Word for f32 {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        u64::from(self.to_bits())
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

impl Word for f64 {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl Word for () {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        0
    }

    #[inline(always)]
    fn from_bits(_: u64) {}
}

#[inline(always)]
pub(crate) fn bits_to_pointer(bits: u64) -> *mut () {
    const { assert!(size_of::<usize>() == 8, "a word of 64 bits is kept in a pointer") };
    without_provenance_mut(bits as usize)
}

/// The kinds of variables with words of type T.
struct KindsOfWords<T>(PhantomData<T>);

impl<T: Word> KindsOfWords<T> {
    const PLAIN: &VarKind = &VarKind::plain(free_word, type_name::<T>);
    const NAMED: &VarKind = &VarKind::named(free_named_word, type_name::<T>);
}

/// A handle to a shared word, which transactions read and write: a [`TVar`](crate::TVar) with its
/// value in the variable itself.
///
/// Clones are handles to the same variable.
///
/// # Paper
/// [HMP05 §5]: the `TVar`, for values without a box.
///
/// # Complexity
/// A variable takes 48 bytes, and 24 more when a transaction has waited for it. Neither a read nor
/// a write allocates.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let (from, to) = (TWord::new(10_u32), TWord::new(0_u32));
/// atomically_blocking(|tx| {
///     from.modify(tx, |sum| sum - 3)?;
///     to.modify(tx, |sum| sum + 3)
/// });
/// assert_eq!((from.read_now(), to.read_now()), (7, 3));
/// ```
pub struct TWord<T: Word, E: Engine = Versioned> {
    inner: NonNull<Inner>,
    _value: PhantomData<Owns<T, E>>,
}

// SAFETY: a handle is a counted pointer, and the value is a `Word`, which is Send and Sync.
unsafe impl<T: Word, E: Engine> Send for TWord<T, E> {}
// SAFETY: as above.
unsafe impl<T: Word, E: Engine> Sync for TWord<T, E> {}

/// # Safety
/// As for `free_word`; and the variable has a name.
unsafe fn free_named_word(inner: *mut ()) {
    names::forget(inner);
    // SAFETY: the caller's contract.
    unsafe { free_word(inner) };
}

/// # Safety
/// The pointer was made by `Inner::alone`, for a word; it ends here.
unsafe fn free_word(inner: *mut ()) {
    // SAFETY: the caller's contract.
    unsafe {
        waking::forget_weak(NonNull::new_unchecked(inner.cast::<Inner>()));
        drop(Box::from_raw(inner.cast::<Inner>()));
    }
}

impl<T: Word> TWord<T> {
    /// A variable with a value.
    pub fn new(value: T) -> TWord<T> {
        TWord::made(None, value)
    }

    /// A variable with a value and a name: see [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>, value: T) -> TWord<T> {
        TWord::made(Some(name.into()), value)
    }
}

impl<T: Word, E: Engine> TWord<T, E> {
    /// A variable with a value, and perhaps a name, for transactions of the engine `E`.
    #[inline(always)]
    pub(crate) fn made(name: Option<Arc<str>>, value: T) -> TWord<T, E> {
        let bits = bits_to_pointer(value.into_bits());
        let inner = match name {
            None => Inner::alone(bits, KindsOfWords::<T>::PLAIN),
            Some(name) => Inner::named(bits, KindsOfWords::<T>::NAMED, name),
        };
        TWord { inner, _value: PhantomData }
    }

    #[inline(always)]
    fn inner(&self) -> Borrowed<'_> {
        // SAFETY: it lives as long as a handle does.
        unsafe { Borrowed::new(self.inner) }
    }

    /// The value, as this transaction sees it: the value that it has written itself, or else the
    /// value in the variable.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read(&self, tx: &Tx<E>) -> Tried<T> {
        Ok(T::from_bits(tx.load(self.inner())?.addr() as u64))
    }

    /// Replaces the value, when the transaction commits. The transaction itself sees it at once.
    #[inline]
    pub fn write(&self, tx: &Tx<E>, value: T) {
        tx.store(self.inner(), bits_to_pointer(value.into_bits()), None);
    }

    /// Replaces the value by the value that `f` makes of it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify(&self, tx: &Tx<E>, f: impl FnOnce(T) -> T) -> Tried<()> {
        let new = f(self.read(tx)?);
        self.write(tx, new);
        Ok(())
    }

    /// Replaces the value by the value that `f` makes of it, and gives the result that `f` gives
    /// beside it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TWord, atomically_blocking};
    ///
    /// let next = TWord::new(7_u32);
    /// let ticket = atomically_blocking(|tx| next.state(tx, |n| (n, n + 1)));
    /// assert_eq!((ticket, next.read_now()), (7, 8));
    /// ```
    #[doc(alias = "stateTVar")]
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn state<R>(&self, tx: &Tx<E>, f: impl FnOnce(T) -> (R, T)) -> Tried<R> {
        let (result, new) = f(self.read(tx)?);
        self.write(tx, new);
        Ok(result)
    }

    /// Replaces the value, and gives the old one.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn swap(&self, tx: &Tx<E>, value: T) -> Tried<T> {
        let old = self.read(tx)?;
        self.write(tx, value);
        Ok(old)
    }

    /// The value of this moment, outside of a transaction.
    ///
    /// # Complexity
    /// One load.
    #[inline]
    pub fn read_now(&self) -> T {
        T::from_bits(self.inner().value.load(Ordering::Acquire).addr() as u64)
    }

    /// Replaces the value, outside of a transaction and without waiting: for a destructor, a waker
    /// and other code that has no future to await.
    ///
    /// It is a transaction of one write. It wakes the transactions that wait for the variable.
    ///
    /// # Panics
    /// Within the body of a transaction.
    ///
    /// # Complexity
    /// As [`atomically`](crate::atomically()), but the OS thread gives way instead of the thread.
    /// It may do so as long as the body of another transaction runs in a turn.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::TWord;
    ///
    /// let is_closed = TWord::new(false);
    /// is_closed.write_now(true);
    /// assert!(is_closed.read_now());
    /// ```
    #[track_caller]
    pub fn write_now(&self, value: T) {
        run_now::<E, _>(|tx| {
            self.write(tx, value);
            Ok(())
        });
    }
}

#[cfg(feature = "testing")]
impl<T: Word, E: Engine> TWord<T, E> {
    /// For the tests of this crate: whether the variable says that transactions wait for it, so
    /// that each read takes the longer way.
    #[doc(hidden)]
    pub fn is_waited_for(&self) -> bool {
        self.inner().word.load(Ordering::SeqCst) & WAITERS != 0
    }
}

handle!(TWord, Word);

weak_handle! {
    /// A handle to a [`TWord`] that does not keep the variable alive: see
    /// [`WeakTVar`](crate::WeakTVar).
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::TWord;
    ///
    /// let stock = TWord::new(3_u32);
    /// let weak = stock.downgrade();
    /// assert_eq!(weak.upgrade().map(|stock| stock.read_now()), Some(3));
    /// drop(stock);
    /// assert!(weak.upgrade().is_none());
    /// ```
    WeakTWord, TWord, Word
}

impl<T: Word + fmt::Debug, E: Engine> fmt::Debug for TWord<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TWord").field(&self.read_now()).finish()
    }
}
