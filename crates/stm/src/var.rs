//! Variables of any type: [`TVar`], with its value in a node on the heap.

use crate::engine::{Engine, Versioned};
use crate::primitives::Ordering;
use crate::session::Pinned;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::{Borrowed, Inner, Owns, VarKind, handle, identity};
use crate::weak::{Weak, weak_handle};
use crate::{names, nodes, waking};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The kinds of variables with values of type T in nodes.
struct KindsOfNodes<T>(PhantomData<T>);

impl<T: Send + Sync + 'static> KindsOfNodes<T> {
    const PLAIN: &VarKind = &VarKind::plain(free_variable::<T>, type_name::<T>);
    const NAMED: &VarKind = &VarKind::named(free_named_variable::<T>, type_name::<T>);
}

/// A handle to a shared variable of any type, which transactions read and write.
///
/// Clones are handles to the same variable. The value is immutable: a write replaces it, and a read
/// gives a reference that lasts as long as the attempt of the transaction. So `T` need not be
/// `Clone`. A number, a flag or the like is better kept in a [`TWord`](crate::TWord).
///
/// The old value of a variable is dropped some time after the transaction that replaced it, when no
/// transaction can have a reference to it; by any OS thread that runs transactions. See
/// [`reclaim`](crate::reclaim). A panic of its destructor is reported and goes no further.
///
/// # Which operation
/// | | the new value | gives |
/// |---|---|---|
/// | [`read`](TVar::read) | | a reference to the value |
/// | [`write`](TVar::write) | is given | |
/// | [`swap`](TVar::swap) | is given | a reference to the old value |
/// | [`modify`](TVar::modify) | is made of the old one | |
/// | [`state`](TVar::state) | is made of the old one | a result that is made with it |
/// | [`modify_mut`](TVar::modify_mut) | is a changed clone of the old one | a result |
///
/// [`TWord`](crate::TWord), [`TArray`](crate::TArray) and [`TWordArray`](crate::TWordArray) have
/// the same names. Words have no `modify_mut`, because `state` is as short for them.
///
/// # Paper
/// [HMP05 §5]: the `TVar`.
///
/// # Differences
/// 1. A variable belongs to one [`Engine`].
/// 2. Memory is reclaimed by epochs, because there is no garbage collector.
///
/// # Complexity
/// A variable takes 48 bytes, and 24 more when a transaction has waited for it; its value takes a
/// node of its own. A write allocates a node, unless the memory of a freed node can be used again:
/// an OS thread keeps up to 256 of each size of at most 64 bytes.
///
/// # Examples
/// ```
/// use selvedge::stm::{TVar, atomically};
///
/// selvedge::run(async {
///     let names = TVar::new(vec!["warp".to_string()]);
///     let shared = names.clone();
///     let count = atomically(move |tx| {
///         shared.modify_mut(tx, |names| {
///             names.push("weft".to_string());
///             names.len()
///         })
///     });
///     assert_eq!(count.await, 2);
///     assert_eq!(names.read_now(|names| names.join(" and ")), "warp and weft");
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TVar<T: Send + Sync + 'static, E: Engine = Versioned> {
    inner: NonNull<Inner>,
    _value: PhantomData<Owns<Box<T>, E>>,
}

// SAFETY: a handle is a counted pointer; it gives shared references to the value and drops the
// value on any OS thread, for both of which T: Send + Sync is enough.
unsafe impl<T: Send + Sync + 'static, E: Engine> Send for TVar<T, E> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + 'static, E: Engine> Sync for TVar<T, E> {}
/// # Safety
/// The pointer was made by `Inner::alone`, with a node of type T; both end here.
unsafe fn free_variable<T>(inner: *mut ()) {
    // SAFETY: the caller's contract.
    unsafe {
        waking::forget_weak(NonNull::new_unchecked(inner.cast::<Inner>()));
        let inner = Box::from_raw(inner.cast::<Inner>());
        nodes::free::<T>(inner.value.load(Ordering::Acquire));
    }
}

/// # Safety
/// As for `free_variable`; and the variable has a name.
unsafe fn free_named_variable<T>(inner: *mut ()) {
    names::forget(inner);
    // SAFETY: the caller's contract.
    unsafe { free_variable::<T>(inner) };
}

impl<T: Send + Sync + 'static> TVar<T> {
    /// A variable with a value.
    pub fn new(value: T) -> TVar<T> {
        TVar::made(None, value)
    }

    /// A variable with a value and a name.
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
        TVar::made(Some(name.into()), value)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TVar<T, E> {
    /// A variable with a value, and perhaps a name, for transactions of the engine `E`.
    #[inline(always)]
    pub(crate) fn made(name: Option<Arc<str>>, value: T) -> TVar<T, E> {
        let node = Box::into_raw(Box::new(value)).cast();
        let inner = match name {
            None => Inner::alone(node, KindsOfNodes::<T>::PLAIN),
            Some(name) => Inner::named(node, KindsOfNodes::<T>::NAMED, name),
        };
        TVar { inner, _value: PhantomData }
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
    /// When another transaction has written a variable that this one has read before. The body
    /// hands the error on with `?`, and is run again.
    ///
    /// # Complexity
    /// Constant, as a rule; see [`Versioned`] for the exception. Nothing is written that another OS
    /// thread reads.
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
        let node = tx.load(self.inner())?;
        // SAFETY: the node was made by `made` or `write` for a variable of this type. It is
        // not freed while `tx` lives: the session of `tx` is pinned, and a node of its own log
        // stays in the log.
        Ok(unsafe { &*node.cast::<T>() })
    }

    /// Replaces the value, when the transaction commits. The transaction itself sees it at once.
    ///
    /// # Complexity
    /// One allocation at most.
    #[inline]
    pub fn write(&self, tx: &Tx<E>, value: T) {
        tx.store_node(self.inner(), value, nodes::free::<T>);
    }

    /// Replaces the value by the value that `f` makes of it.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    #[doc(alias = "modifyTVar")]
    #[doc(alias = "update")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify(&self, tx: &Tx<E>, f: impl FnOnce(&T) -> T) -> Tried<()> {
        let new = f(self.read(tx)?);
        self.write(tx, new);
        Ok(())
    }

    /// Replaces the value by the value that `f` makes of it, and gives the result that `f` gives
    /// beside it.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TVar, atomically_blocking};
    ///
    /// let phase = TVar::new("warp".to_string());
    /// let len = atomically_blocking(|tx| phase.state(tx, |old| (old.len(), format!("{old},
    /// weft")))); assert_eq!((len, phase.read_now(String::len)), (4, 10));
    /// ```
    #[doc(alias = "stateTVar")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn state<R>(&self, tx: &Tx<E>, f: impl FnOnce(&T) -> (R, T)) -> Tried<R> {
        let (result, new) = f(self.read(tx)?);
        self.write(tx, new);
        Ok(result)
    }

    /// Changes a clone of the value, which replaces the value, and gives the result of the change.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    ///
    /// # Complexity
    /// A clone of the value, at each attempt. A large collection is better a
    /// [`TMap`](crate::TMap) or the like, of which a transaction changes a part.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TVar, atomically_blocking};
    ///
    /// let jobs = TVar::new(vec!["warp", "weft"]);
    /// let last = atomically_blocking(|tx| jobs.modify_mut(tx, |jobs| jobs.pop()));
    /// assert_eq!((last, jobs.read_now(Vec::len)), (Some("weft"), 1));
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify_mut<R>(&self, tx: &Tx<E>, f: impl FnOnce(&mut T) -> R) -> Tried<R>
    where
        T: Clone,
    {
        let mut new = self.read(tx)?.clone();
        let result = f(&mut new);
        self.write(tx, new);
        Ok(result)
    }

    /// Replaces the value, and gives a reference to the old one.
    ///
    /// # Errors
    /// As [`read`](TVar::read).
    #[doc(alias = "swapTVar")]
    #[doc(alias = "replace")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
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

handle!(TVar, Send + Sync + 'static);

weak_handle! {
    /// A handle to a [`TVar`] that does not keep the variable alive: for caches, and for the links
    /// of structures that would own themselves in a ring.
    ///
    /// [`downgrade`](TVar::downgrade) makes it, and [`upgrade`](WeakTVar::upgrade) gives a handle
    /// as long as the variable has another one.
    ///
    /// # In transactions
    /// An upgrade is no read: its answer is that of the moment of the call, it is no cause of a
    /// conflict, and a [retry](Tx::retry) does not wait for it. `None` is final, so a transaction
    /// may rely on it; after `Some`, the handle itself keeps the variable alive.
    ///
    /// # When the variable ends
    /// With its last handle. A handle in the value of another variable goes when that value is
    /// dropped, which is some time after the transaction that replaced the value: see
    /// [`reclaim`](crate::reclaim). Until then an upgrade still gives a handle, although no
    /// transaction can find the variable in another way. A transaction that waits for the variable
    /// has a handle too.
    ///
    /// # Complexity
    /// The weak handles of a variable share a cell of 32 bytes. They do not keep the memory of the
    /// variable. A variable that never had one has no cost.
    ///
    /// # Examples
    /// A cache that keeps no page which is not in use:
    /// ```
    /// use selvedge::stm::{TMap, TVar, Tried, Tx, WeakTVar, atomically_blocking};
    ///
    /// type Page = TVar<String>;
    ///
    /// fn open(tx: &Tx, cache: &TMap<u32, WeakTVar<String>>, number: u32) -> Tried<Page> {
    ///     if let Some(page) = cache.get(tx, &number)?.and_then(WeakTVar::upgrade) {
    ///         return Ok(page);
    ///     }
    ///     let page = Page::new(format!("page {number}"));
    ///     cache.insert(tx, number, page.downgrade())?;
    ///     Ok(page)
    /// }
    ///
    /// let cache = TMap::new();
    /// let page = atomically_blocking(|tx| open(tx, &cache, 7));
    /// assert!(atomically_blocking(|tx| open(tx, &cache, 7)) == page);
    /// let weak = page.downgrade();
    /// drop(page);
    /// assert!(weak.upgrade().is_none());
    /// ```
    /// It is invariant in the type of the values, as a handle is:
    /// ```compile_fail,E0308
    /// use selvedge::stm::{TVar, WeakTVar};
    ///
    /// let var: TVar<for<'a> fn(&'a str)> = TVar::new(|_| ());
    /// let other: WeakTVar<fn(&'static str)> = var.downgrade();
    /// ```
    WeakTVar, TVar, Send + Sync + 'static
}

impl<T: Send + Sync + fmt::Debug + 'static, E: Engine> fmt::Debug for TVar<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read_now(|value| f.debug_tuple("TVar").field(value).finish())
    }
}
