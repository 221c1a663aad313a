//! Variables: [`TVar`], with its value in a node on the heap, and [`TWord`], with its value in the
//! variable itself.
//!
//! # The word of a variable
//! ```text
//!    63 .. 2    the version: the stamp of the commit that wrote the value
//!    1          WAITERS: transactions are registered in the list of the variable
//!    0          LOCKED: a commit is about to write the value, or has written it
//! ```
//! Only a commit sets `LOCKED`, and only that commit changes the word until it has unlocked it.
//! `WAITERS` is set by a transaction that registers (`wait.rs`), under the lock of the list and
//! only in an unlocked word. It is cleared by the commit that unlocks the word with a new version,
//! and by a registration that leaves an empty list behind.

use crate::engine::{Engine, Versioned};
use crate::names;
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::run::run_now;
use crate::session::{self, Free, Garbage};
use crate::transaction::{Tried, Tx};
use crate::wait::Waiters;
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::Arc;

pub(crate) const LOCKED: u64 = 1;
pub(crate) const WAITERS: u64 = 2;
const VERSION: u32 = 2;

/// The version in a word.
#[inline(always)]
pub(crate) fn version(word: u64) -> u64 {
    word >> VERSION
}

/// An unlocked word without waiters.
#[inline(always)]
pub(crate) fn word_of(version: u64) -> u64 {
    version << VERSION
}

/// What the handles of a variable share.
pub(crate) struct Inner {
    pub(crate) word: AtomicU64,
    /// A node, or the bits of a word.
    pub(crate) value: AtomicPtr<()>,
    /// The number of handles and of registrations.
    handles: AtomicUsize,
    pub(crate) waiters: Mutex<Option<Box<Waiters>>>,
    pub(crate) kind: &'static VarKind,
}

/// What the variables of one type have in common. A variable with a name is of another kind than
/// one without, so a name costs the other variables nothing.
pub(crate) struct VarKind {
    /// Frees a variable of this kind, with its value.
    free: Free,
    /// The name of the value's type.
    pub(crate) type_name: fn() -> &'static str,
    pub(crate) is_named: bool,
}

impl VarKind {
    /// A kind without names.
    pub(crate) const fn plain(free: Free, type_name: fn() -> &'static str) -> VarKind {
        VarKind { free, type_name, is_named: false }
    }

    /// A kind with names, which `free` forgets.
    pub(crate) const fn named(free: Free, type_name: fn() -> &'static str) -> VarKind {
        VarKind { free, type_name, is_named: true }
    }
}

/// The kinds of variables with values of type T in nodes.
struct KindsOfNodes<T>(PhantomData<T>);

impl<T: Send + Sync + 'static> KindsOfNodes<T> {
    const PLAIN: &VarKind = &VarKind { free: free_variable::<T>, type_name: type_name::<T>, is_named: false };
    const NAMED: &VarKind = &VarKind { free: free_named_variable::<T>, is_named: true, ..*Self::PLAIN };
}

/// The kinds of variables with words of type T.
struct KindsOfWords<T>(PhantomData<T>);

impl<T: Word> KindsOfWords<T> {
    const PLAIN: &VarKind = &VarKind { free: free_word, type_name: type_name::<T>, is_named: false };
    const NAMED: &VarKind = &VarKind { free: free_named_word, is_named: true, ..*Self::PLAIN };
}

/// A reference to a variable that is alive for `'a`. Its pointer may also free the variable, which
/// a pointer made of a plain reference may not.
#[derive(Clone, Copy)]
pub(crate) struct Borrowed<'a>(NonNull<Inner>, PhantomData<&'a Inner>);

impl Borrowed<'_> {
    /// # Safety
    /// The pointer is to the whole allocation of the variable, which is not freed during the
    /// lifetime.
    #[inline(always)]
    pub(crate) unsafe fn new(inner: NonNull<Inner>) -> Self {
        Borrowed(inner, PhantomData)
    }

    #[inline(always)]
    pub(crate) fn pointer(self) -> NonNull<Inner> {
        self.0
    }
}

impl Deref for Borrowed<'_> {
    type Target = Inner;

    #[inline(always)]
    fn deref(&self) -> &Inner {
        // SAFETY: the contract of `new`.
        unsafe { self.0.as_ref() }
    }
}

impl Inner {
    /// With one handle.
    pub(crate) fn new(value: *mut (), kind: &'static VarKind) -> Inner {
        Inner {
            word: AtomicU64::new(0),
            value: AtomicPtr::new(value),
            handles: AtomicUsize::new(1),
            waiters: Mutex::new(None),
            kind,
        }
    }

    fn alone(value: *mut (), kind: &'static VarKind) -> NonNull<Inner> {
        NonNull::from(Box::leak(Box::new(Inner::new(value, kind))))
    }

    /// As `alone`, with a kind that has names.
    fn named(value: *mut (), kind: &'static VarKind, name: Arc<str>) -> NonNull<Inner> {
        let inner = Inner::alone(value, kind);
        names::give(inner, name);
        inner
    }

    /// Adds a handle, if there is one still.
    pub(crate) fn hold(&self) -> bool {
        let more = |handles: usize| (handles != 0).then_some(handles + 1);
        self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Drops a handle, and retires the variable with the last one.
    ///
    /// # Safety
    /// The caller owns a handle, which ends here.
    pub(crate) unsafe fn release(inner: NonNull<Inner>) {
        // SAFETY: the caller's handle keeps the variable alive.
        let free = unsafe { inner.as_ref() }.kind.free;
        // SAFETY: as above. From here on, another OS thread may drop the last handle and free the
        // variable.
        let before = unsafe { inner.as_ref() }.handles.fetch_sub(1, Ordering::AcqRel);
        if before == 1 {
            // SAFETY: that was the last handle, so a transaction that begins from now on cannot
            // reach the variable: it is freed when those that run have ended. `free` belongs to the
            // kind that the constructor of `TVar`, `TWord` or `Cells` has chosen for the variable's
            // type.
            retire(unsafe { Garbage::new(inner.as_ptr().cast(), free) });
        }
    }

    /// Drops a handle, and tells whether it was the last one. Retires nothing.
    ///
    /// # Safety
    /// The caller owns a handle, which ends here.
    #[inline]
    pub(crate) unsafe fn let_go(&self) -> bool {
        // A registration begins while its session is pinned. So a caller that is the destructor of
        // retired memory sees each registration, and finds its own handle alone if there is none.
        self.handles.load(Ordering::Acquire) == 1 || self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// Retires an object that a transaction which begins from now on cannot reach.
pub(crate) fn retire(garbage: Garbage) {
    let mut session = session::take();
    session.unlinked.push(garbage);
    session::put(session);
}

/// What a handle stands for: a value, and an engine of which there is none.
type Owns<T, E> = (T, fn() -> E);

/// A handle to a shared variable of any type, which transactions read and write.
///
/// Clones are handles to the same variable. The value is immutable: a write replaces it, and a read
/// gives a reference that lasts as long as the attempt of the transaction. So `T` need not be
/// `Clone`. A number, a flag or the like is better kept in a [`TWord`].
///
/// The old value of a variable is dropped some time after the transaction that replaced it, when no
/// transaction can have a reference to it; by any OS thread that runs transactions. See
/// [`reclaim`](crate::reclaim). A panic of its destructor is reported and goes no further.
///
/// # Paper
/// [HMP05 §5]: the `TVar`.
///
/// # Differences
/// 1. A variable belongs to one [`Engine`].
/// 2. Memory is reclaimed by epochs, because there is no garbage collector.
///
/// # Complexity
/// A variable takes 48 bytes, and its value a node of its own. A write allocates a node.
///
/// # Examples
/// ```
/// use selvedge::stm::{TVar, atomically};
///
/// selvedge::run(async {
///     let names = TVar::new(vec!["warp".to_string()]);
///     let shared = names.clone();
///     let add = move |tx: &_| shared.modify(tx, |names| [&names[..], &["weft".into()]].concat());
///     atomically(add).await;
///     assert_eq!(names.read_now(|names| names.join(" and ")), "warp and weft");
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
pub struct TVar<T: Send + Sync + 'static, E: Engine = Versioned> {
    inner: NonNull<Inner>,
    _value: PhantomData<Owns<Box<T>, E>>,
}

/// A handle to a shared word, which transactions read and write: a [`TVar`] with its value in the
/// variable itself.
///
/// Clones are handles to the same variable.
///
/// # Paper
/// [HMP05 §5]: the `TVar`, for values without a box.
///
/// # Complexity
/// A variable takes 48 bytes. Neither a read nor a write allocates.
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

// SAFETY: a handle is a counted pointer; it gives shared references to the value and drops the
// value on any OS thread, for both of which T: Send + Sync is enough.
unsafe impl<T: Send + Sync + 'static, E: Engine> Send for TVar<T, E> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + 'static, E: Engine> Sync for TVar<T, E> {}
// SAFETY: as above; a `Word` is Send and Sync.
unsafe impl<T: Word, E: Engine> Send for TWord<T, E> {}
// SAFETY: as above.
unsafe impl<T: Word, E: Engine> Sync for TWord<T, E> {}

#[inline(always)]
pub(crate) fn bits_to_pointer(bits: u64) -> *mut () {
    const { assert!(size_of::<usize>() == 8, "a word of 64 bits is kept in a pointer") };
    without_provenance_mut(bits as usize)
}

/// # Safety
/// The pointer was made by `Box::into_raw` of a `Box<T>`, which ends here.
pub(crate) unsafe fn free_node<T>(node: *mut ()) {
    // SAFETY: the caller's contract.
    drop(unsafe { Box::from_raw(node.cast::<T>()) });
}

/// # Safety
/// The pointer was made by `Inner::alone`, with a node of type T; both end here.
unsafe fn free_variable<T>(inner: *mut ()) {
    // SAFETY: the caller's contract.
    unsafe {
        let inner = Box::from_raw(inner.cast::<Inner>());
        free_node::<T>(inner.value.load(Ordering::Acquire));
    }
}

/// # Safety
/// As for `free_variable`; and the variable has a name.
unsafe fn free_named_variable<T>(inner: *mut ()) {
    names::forget(inner);
    // SAFETY: the caller's contract.
    unsafe { free_variable::<T>(inner) };
}

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
    drop(unsafe { Box::from_raw(inner.cast::<Inner>()) });
}

impl<T: Send + Sync + 'static> TVar<T> {
    /// A variable with a value, for transactions of the default engine.
    pub fn new(value: T) -> TVar<T> {
        TVar::with_engine(value)
    }

    /// A variable with a value and a name, for transactions of the default engine.
    ///
    /// Reports of waiting threads, such as that of a deadlock, call the variable by its name. They
    /// call a variable without a name by the type of its value.
    ///
    /// # Complexity
    /// One lock of the process and two allocations more than [`new`](TVar::new), and as much when
    /// the variable is freed. Transactions with the variable cost the same. Variables without names
    /// cost nothing for this.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::TVar;
    ///
    /// let stock = TVar::named("stock", vec!["thread"]);
    /// assert_eq!(stock.name().as_deref(), Some("stock"));
    /// ```
    pub fn named(name: impl Into<Arc<str>>, value: T) -> TVar<T> {
        TVar::named_with_engine(name, value)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TVar<T, E> {
    /// A variable with a value, for transactions of the engine `E`.
    pub fn with_engine(value: T) -> TVar<T, E> {
        let node = Box::into_raw(Box::new(value)).cast();
        TVar { inner: Inner::alone(node, KindsOfNodes::<T>::PLAIN), _value: PhantomData }
    }

    /// As [`named`](TVar::named), for transactions of the engine `E`.
    pub fn named_with_engine(name: impl Into<Arc<str>>, value: T) -> TVar<T, E> {
        let node = Box::into_raw(Box::new(value)).cast();
        TVar { inner: Inner::named(node, KindsOfNodes::<T>::NAMED, name.into()), _value: PhantomData }
    }

    #[inline(always)]
    fn inner(&self) -> Borrowed<'_> {
        // SAFETY: it lives as long as a handle does.
        unsafe { Borrowed::new(self.inner) }
    }

    /// The value, as this transaction sees it: the one that it has written itself, or else the one
    /// in the variable.
    ///
    /// # Errors
    /// When another transaction has written a variable that this one has read before. The body
    /// hands the error on with `?`, and is run again.
    ///
    /// # Complexity
    /// Constant, as a rule; see [`Versioned`] for the exception. Nothing is written that another OS
    /// thread reads.
    #[inline]
    pub fn read<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
        let node = tx.load(self.inner())?;
        // SAFETY: the node was made by `with_engine` or `write` for a variable of this type. It is
        // not freed while `tx` lives: the session of `tx` is pinned, and a node of its own log
        // stays in the log.
        Ok(unsafe { &*node.cast::<T>() })
    }

    /// Replaces the value, when the transaction commits. The transaction itself sees it at once.
    ///
    /// # Complexity
    /// One allocation.
    pub fn write(&self, tx: &Tx<E>, value: T) {
        let node = Box::into_raw(Box::new(value)).cast();
        tx.store(self.inner(), node, Some(free_node::<T>));
    }

    /// Replaces the value by one that `f` makes of it.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    pub fn modify(&self, tx: &Tx<E>, f: impl FnOnce(&T) -> T) -> Tried<()> {
        let new = f(self.read(tx)?);
        self.write(tx, new);
        Ok(())
    }

    /// Replaces the value, and gives a reference to the old one.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    pub fn swap<'tx>(&self, tx: &'tx Tx<E>, value: T) -> Tried<&'tx T> {
        let old = self.read(tx)?;
        self.write(tx, value);
        Ok(old)
    }

    /// Gives the value of this moment to `f`, outside of a transaction.
    ///
    /// # Complexity
    /// No lock. While `f` runs, no OS thread frees a value that transactions replace.
    pub fn read_now<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let pinned = Pinned::new();
        let node = self.inner().value.load(Ordering::Acquire);
        // SAFETY: as in `read`; `pinned` lives until `f` has returned or unwound.
        let result = f(unsafe { &*node.cast::<T>() });
        drop(pinned);
        result
    }
}

/// A session that is pinned as long as this lives.
pub(crate) struct Pinned(Option<Box<session::Session>>);

impl Pinned {
    pub(crate) fn new() -> Pinned {
        let mut session = session::take();
        session.pin();
        Pinned(Some(session))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(mut session) = self.0.take() {
            session.unpin();
            session::put(session);
        }
    }
}

impl<T: Word> TWord<T> {
    /// A variable with a value, for transactions of the default engine.
    pub fn new(value: T) -> TWord<T> {
        TWord::with_engine(value)
    }

    /// A variable with a value and a name, for transactions of the default engine: see
    /// [`TVar::named`].
    pub fn named(name: impl Into<Arc<str>>, value: T) -> TWord<T> {
        TWord::named_with_engine(name, value)
    }
}

impl<T: Word, E: Engine> TWord<T, E> {
    /// A variable with a value, for transactions of the engine `E`.
    pub fn with_engine(value: T) -> TWord<T, E> {
        let bits = bits_to_pointer(value.into_bits());
        TWord { inner: Inner::alone(bits, KindsOfWords::<T>::PLAIN), _value: PhantomData }
    }

    /// As [`named`](TWord::named), for transactions of the engine `E`.
    pub fn named_with_engine(name: impl Into<Arc<str>>, value: T) -> TWord<T, E> {
        let bits = bits_to_pointer(value.into_bits());
        let inner = Inner::named(bits, KindsOfWords::<T>::NAMED, name.into());
        TWord { inner, _value: PhantomData }
    }

    #[inline(always)]
    fn inner(&self) -> Borrowed<'_> {
        // SAFETY: it lives as long as a handle does.
        unsafe { Borrowed::new(self.inner) }
    }

    /// The value, as this transaction sees it: the one that it has written itself, or else the one
    /// in the variable.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// As [`TVar::read`].
    #[inline]
    pub fn read(&self, tx: &Tx<E>) -> Tried<T> {
        Ok(T::from_bits(tx.load(self.inner())?.addr() as u64))
    }

    /// Replaces the value, when the transaction commits. The transaction itself sees it at once.
    #[inline]
    pub fn write(&self, tx: &Tx<E>, value: T) {
        tx.store(self.inner(), bits_to_pointer(value.into_bits()), None);
    }

    /// Replaces the value by one that `f` makes of it.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[inline]
    pub fn modify(&self, tx: &Tx<E>, f: impl FnOnce(T) -> T) -> Tried<()> {
        let new = f(self.read(tx)?);
        self.write(tx, new);
        Ok(())
    }

    /// Replaces the value, and gives the old one.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[inline]
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

macro_rules! handle {
    ($name:ident, $($bound:tt)*) => {
        impl<T: $($bound)*, E: Engine> $name<T, E> {
            /// The name of the variable, if it was given one.
            pub fn name(&self) -> Option<Arc<str>> {
                names::of(&self.inner())
            }
        }

        impl<T: $($bound)*, E: Engine> Clone for $name<T, E> {
            /// Another handle to the same variable.
            fn clone(&self) -> Self {
                let held = self.inner().hold();
                debug_assert!(held, "a handle is counted");
                $name { inner: self.inner, _value: PhantomData }
            }
        }

        impl<T: $($bound)*, E: Engine> Drop for $name<T, E> {
            fn drop(&mut self) {
                // SAFETY: this handle was counted by `with_engine` or `clone`, and ends here.
                unsafe { Inner::release(self.inner) };
            }
        }

        /// Whether both are handles to the same variable.
        impl<T: $($bound)*, E: Engine> PartialEq for $name<T, E> {
            fn eq(&self, other: &Self) -> bool {
                self.inner == other.inner
            }
        }

        impl<T: $($bound)*, E: Engine> Eq for $name<T, E> {}
    };
}

handle!(TVar, Send + Sync + 'static);
handle!(TWord, Word);

impl<T: Send + Sync + fmt::Debug + 'static, E: Engine> fmt::Debug for TVar<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read_now(|value| f.debug_tuple("TVar").field(value).finish())
    }
}

impl<T: Word + fmt::Debug, E: Engine> fmt::Debug for TWord<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TWord").field(&self.read_now()).finish()
    }
}
