//! [`Mode`]: whether an object that blocks is for several OS threads ([`Shared`]) or for one
//! ([`Local`]). The mode chooses the lock of a `WaitQueue`.
//!
//! It is a type parameter of `WaitQueue` and of each object of `sync` that has a `Local` kind. The
//! trait is sealed: `lock.rs` knows these two modes.

use crate::lock::{LocalLock, Lock, WordLock};
use std::marker::PhantomData;

/// Whether an object is shared between OS threads ([`Shared`]) or stays on one ([`Local`]).
///
/// A local object needs no atomic operation, because the type checker keeps it on its OS thread.
pub trait Mode: sealed::Sealed + 'static {
    /// The lock around an object of this mode.
    type Lock<T>: Lock<T>;
    /// Whether the object stays on one OS thread.
    const LOCAL: bool;
}

/// The object stays on one OS thread: it is neither `Send` nor `Sync`, and costs no atomic
/// operation.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    _stays: PhantomData<*mut ()>,
}

/// The object may be shared between OS threads.
#[derive(Debug, Clone, Copy)]
pub enum Shared {}

impl Mode for Local {
    type Lock<T> = LocalLock<T>;
    const LOCAL: bool = true;
}

impl Mode for Shared {
    type Lock<T> = WordLock<T>;
    const LOCAL: bool = false;
}

mod sealed {
    #[expect(unnameable_types, reason = "only the two modes here are locks that the queue can rely on")]
    pub trait Sealed {}
    impl Sealed for super::Local {}
    impl Sealed for super::Shared {}
}
