//! What the handles of a variable share: [`Inner`], with its word, its value and its list of
//! waiters.
//!
//! # The word of a variable
//! ```text
//!    63         LOCKED: a commit is about to write the value, or has written it
//!    62         WAITERS: transactions are registered in the list of the variable
//!    61 .. 0    the version: the stamp of the commit that wrote the value
//! ```
//! Only a commit sets `LOCKED`, and only that commit changes the word until it has unlocked it.
//! `WAITERS` is set by a transaction that registers (`registration.rs`), under the lock of the list
//! and only in an unlocked word. It is cleared by the commit that unlocks the word with a new
//! version, by a registration that leaves no other one behind, and by a commit without effect or a
//! turn that unlocks the word and finds no registration.
//!
//! A word is thus a plain version if it is below `WAITERS`. A read compares a word with the stamp
//! of its transaction once, and learns that the variable is neither locked nor waited for nor
//! newer.
//!
//! # Three files that know one another
//! A variable has the list of its waiters (`waiters.rs`). A waiter may wait for a predicate
//! (`condition.rs`). The condition then has handles of the variables that the predicate has read,
//! so that their addresses stay theirs. So these three types contain one another, and the three
//! files are one circle. Each other file of the crate lies below the three or above them.

use crate::address::VarAddress;
use crate::garbage::{Free, Garbage};
use crate::names;
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::session::retire;
use crate::waiters::Waiters;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) const LOCKED: u64 = 1 << 63;
pub(crate) const WAITERS: u64 = 1 << 62;

/// The version in a word.
#[inline(always)]
pub(crate) fn version(word: u64) -> u64 {
    word & (WAITERS - 1)
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

    /// A kind with names. `free` makes `names.rs` forget the variable.
    pub(crate) const fn named(free: Free, type_name: fn() -> &'static str) -> VarKind {
        VarKind { free, type_name, is_named: true }
    }
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

    /// # Safety
    /// As for `new`, for the variable of this address.
    #[inline(always)]
    pub(crate) unsafe fn at(variable: VarAddress) -> Self {
        Borrowed(variable.0.cast(), PhantomData)
    }

    #[inline(always)]
    pub(crate) fn pointer(self) -> NonNull<Inner> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn address(self) -> VarAddress {
        VarAddress(self.0.cast())
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

impl VarAddress {
    /// # Safety
    /// The variable is not freed during the lifetime.
    #[inline(always)]
    pub(crate) unsafe fn inner<'a>(self) -> &'a Inner {
        // SAFETY: the caller's contract; `Borrowed::address` has made the pointer.
        unsafe { self.0.cast().as_ref() }
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

    pub(crate) fn alone(value: *mut (), kind: &'static VarKind) -> NonNull<Inner> {
        NonNull::from(Box::leak(Box::new(Inner::new(value, kind))))
    }

    /// As `alone`, with a kind that has names.
    pub(crate) fn named(value: *mut (), kind: &'static VarKind, name: Arc<str>) -> NonNull<Inner> {
        let inner = Inner::alone(value, kind);
        names::give(inner.addr().get(), 1, size_of::<Inner>(), name);
        inner
    }

    /// The name of the variable, if it was given one.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        if self.kind.is_named { names::of((&raw const *self).addr()) } else { None }
    }

    /// Adds a handle, if there is one still.
    pub(crate) fn hold(&self) -> bool {
        add_to(&self.handles)
    }

    /// As `hold`, for a variable of which another OS thread may be about to free the rest.
    ///
    /// # Safety
    /// The variable is not freed before this returns.
    pub(crate) unsafe fn hold_at(inner: NonNull<Inner>) -> bool {
        // SAFETY: the caller's contract. The reference is to this field alone.
        add_to(unsafe { &(*inner.as_ptr()).handles })
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
            // reach the variable: it is freed when the transactions that run now have ended. `free`
            // belongs to the kind that the constructor of `TVar`, `TWord` or `Cells` has chosen for
            // the variable's type. All three demand a `'static` value, so it may be dropped at any
            // later time.
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

/// Counts one more handle, unless the variable has no handle left.
#[inline(always)]
fn add_to(handles: &AtomicUsize) -> bool {
    let more = |handles: usize| (handles != 0).then_some(handles + 1);
    handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// What a handle stands for: a value that it gives and takes, and an engine of which there is none.
/// Because it also takes values, a handle is invariant in their type: with a handle of a subtype a
/// transaction would read what another handle has written as the supertype. Function pointers have
/// such types without any lifetime that ends:
/// ```compile_fail,E0308
/// use selvedge::stm::TVar;
///
/// let var: TVar<for<'a> fn(&'a str)> = TVar::new(|_| ());
/// let other: TVar<fn(&'static str)> = var.clone();
/// ```
pub(crate) type Owns<T, E> = (T, fn(T), fn() -> E);

/// What the handles `TVar` and `TWord` have in common.
macro_rules! handle {
    ($name:ident, $($bound:tt)*) => {
        impl<T: $($bound)*, E: Engine> $name<T, E> {
            /// The name of the variable, if it was given one.
            pub fn name(&self) -> Option<Arc<str>> {
                self.inner().name()
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
                // SAFETY: this handle was counted by `made` or `clone`, and ends here.
                unsafe { Inner::release(self.inner) };
            }
        }

        impl<T: $($bound)* + Default, E: Engine> Default for $name<T, E> {
            /// A new variable with the default value.
            fn default() -> Self {
                $name::made(None, T::default())
            }
        }

        identity!([T: $($bound)*, E: Engine] $name<T, E>, handle => handle.inner);
    };
}

/// Equality and hash of handles: by what they are handles to, as `$key` tells. No value is read.
macro_rules! identity {
    ([$($generics:tt)*] $type:ty, $handle:ident => $key:expr) => {
        /// Whether both are handles to the same one. Their contents are not compared.
        impl<$($generics)*> PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                let mine = {
                    let $handle = self;
                    $key
                };
                let others = {
                    let $handle = other;
                    $key
                };
                mine == others
            }
        }

        impl<$($generics)*> Eq for $type {}

        /// As the equality, by what it is a handle to.
        impl<$($generics)*> std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                let $handle = self;
                std::hash::Hash::hash(&$key, state);
            }
        }
    };
}

pub(crate) use {handle, identity};
