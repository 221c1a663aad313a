//! What the weak handles of a variable share: [`WeakCell`], with a way to the variable as long as
//! that is there.
//!
//! A variable without weak handles has none, and no place for one: the cell lies with the waiters
//! of the variable (`waiters.rs`), which have a box of their own.
//!
//! # A weak handle never meets freed memory
//! ```text
//!    upgrade                                   the end of the variable
//!    1. lock the cell                          a. the last handle goes: the count is 0
//!    2. nothing if the cell is empty           b. no transaction can reach the variable any more
//!    3. add a handle, unless there is none     c. lock the cell, empty it
//!    4. unlock the cell                        d. free the value and the variable
//! ```
//! A cell that 2. finds full stays full until 4., because c. waits for the lock. So 3. comes before
//! d. The count never leaves 0: an upgrade between a. and c. finds no handle, and so does each
//! later one. 3. uses the count alone, because the other fields belong to the freeing OS thread
//! after b.

use crate::primitives::{Mutex, lock};
use std::hash::{Hash, Hasher};
use std::ptr::NonNull;
use std::sync::Arc;

/// The variable of some weak handles; `None` when the variable is about to be freed.
struct WeakCell(Mutex<Option<NonNull<()>>>);

// SAFETY: the pointer is used under the lock alone, for an addition to the variable's count of
// handles, which is atomic.
unsafe impl Send for WeakCell {}
// SAFETY: as above.
unsafe impl Sync for WeakCell {}

/// The variable's own reference to the cell of its weak handles.
pub(crate) struct WeakAnchor(Arc<WeakCell>);

impl WeakAnchor {
    /// The caller has a handle to the variable, and puts the anchor where `waking::forget_weak`
    /// finds it.
    pub(crate) fn new(inner: NonNull<()>) -> WeakAnchor {
        WeakAnchor(Arc::new(WeakCell(Mutex::new(Some(inner)))))
    }

    pub(crate) fn weak(&self) -> Weak {
        Weak(self.0.clone())
    }

    /// Step c. above: from now on the weak handles of the variable lead nowhere.
    pub(crate) fn end(self) {
        *lock(&self.0.0) = None;
    }
}

/// A weak handle to a variable of any type. Those to one variable are equal.
#[derive(Clone)]
pub(crate) struct Weak(Arc<WeakCell>);

impl Weak {
    /// The variable, if `hold` has added a handle. The variable is not freed while `hold` runs,
    /// because the cell is full and locked: step c.
    pub(crate) fn upgrade(&self, hold: impl FnOnce(NonNull<()>) -> bool) -> Option<NonNull<()>> {
        let variable = lock(&self.0.0);
        variable.filter(|inner| hold(*inner))
    }
}

impl PartialEq for Weak {
    fn eq(&self, other: &Weak) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Weak {}

impl Hash for Weak {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// The weak form of the handles `TVar` and `TWord`.
macro_rules! weak_handle {
    ($(#[$doc:meta])* $weak:ident, $name:ident, $($bound:tt)*) => {
        $(#[$doc])*
        pub struct $weak<T: $($bound)*, E: Engine = Versioned> {
            weak: Weak,
            /// Invariant in the values, as a handle is.
            _value: PhantomData<(fn(T) -> T, fn() -> E)>,
        }

        impl<T: $($bound)*, E: Engine> $name<T, E> {
            /// A weak handle to the variable, which does not keep it alive.
            ///
            /// # Complexity
            /// A lock that the waiting transactions of the variable use too. The first one of a
            /// variable makes two allocations or three.
            #[must_use = "a weak handle is all that this makes"]
            pub fn downgrade(&self) -> $weak<T, E> {
                $weak { weak: waking::weak(self.inner()), _value: PhantomData }
            }
        }

        impl<T: $($bound)*, E: Engine> $weak<T, E> {
            /// A handle to the variable, if another one is left. `None` is final.
            ///
            /// # Complexity
            /// A lock that the weak handles of this variable share.
            #[must_use = "a handle is all that this makes"]
            pub fn upgrade(&self) -> Option<$name<T, E>> {
                // SAFETY: `Weak::upgrade` keeps the variable, which `downgrade` was given.
                let inner = self.weak.upgrade(|inner| unsafe { Inner::hold_at(inner.cast()) })?;
                Some($name { inner: inner.cast(), _value: PhantomData })
            }
        }

        impl<T: $($bound)*, E: Engine> Clone for $weak<T, E> {
            /// Another weak handle to the same variable.
            fn clone(&self) -> Self {
                $weak { weak: self.weak.clone(), _value: PhantomData }
            }
        }

        identity!([T: $($bound)*, E: Engine] $weak<T, E>, handle => &handle.weak);

        impl<T: $($bound)*, E: Engine> fmt::Debug for $weak<T, E> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($weak))
            }
        }
    };
}

pub(crate) use weak_handle;
