//! Variables, structures and transactions of the engines that stand here for comparison: for each
//! type one constructor with the engine as a type parameter.
//!
//! Only the feature `engines` has them. Programs need none: the types of this crate have the
//! default engine, and so have the functions that run transactions. The figures, the tests and the
//! proofs turn the feature on.

use crate::engine::Engine;
use crate::hasher::HashState;
use crate::run;
use crate::stop::{Abort, Tried};
use crate::tarray::TArray;
use crate::tbqueue::TBQueue;
use crate::tchan::TChan;
use crate::tcounter::TCounter;
use crate::tmap::TMap;
use crate::tmvar::TMVar;
use crate::tqueue::TQueue;
use crate::transaction::Tx;
use crate::tsem::TSem;
use crate::tset::TSet;
use crate::tword_array::TWordArray;
use crate::var::TVar;
use crate::word::{TWord, Word};
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

/// As [`atomically`](crate::atomically()), with an engine: `atomically_under::<GlobalLock,
/// _>(body)`.
///
/// # Panics
/// As [`atomically`](crate::atomically()).
#[track_caller]
pub fn atomically_under<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> impl Future<Output = R> {
    run::until_committed(body, Location::caller())
}

/// As [`try_atomically`](crate::try_atomically), with an engine:
/// `try_atomically_under::<GlobalLock, _, _>(body)`.
///
/// # Errors
/// The error of [`Abort::Error`] with which the body ended.
///
/// # Panics
/// As [`atomically`](crate::atomically()).
#[track_caller]
pub fn try_atomically_under<E: Engine, R, X>(
    body: impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
) -> impl Future<Output = Result<R, X>> {
    run::until_ended(body, |result| result, Location::caller())
}

impl<T: Send + Sync + 'static, E: Engine> TVar<T, E> {
    /// As [`new`](TVar::new), for transactions of the engine `E`.
    pub fn with_engine(value: T) -> TVar<T, E> {
        TVar::made(None, value)
    }
}

impl<T: Word, E: Engine> TWord<T, E> {
    /// As [`new`](TWord::new), for transactions of the engine `E`.
    pub fn with_engine(value: T) -> TWord<T, E> {
        TWord::made(None, value)
    }

    /// As [`named`](TWord::named), for transactions of the engine `E`.
    pub fn named_with_engine(name: impl Into<Arc<str>>, value: T) -> TWord<T, E> {
        TWord::made(Some(name.into()), value)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TArray<T, E> {
    /// As [`new`](TArray::new), for transactions of the engine `E`.
    pub fn with_engine(values: impl IntoIterator<Item = T>) -> TArray<T, E> {
        TArray::made(None, values)
    }
}

impl<T: Word, E: Engine> TWordArray<T, E> {
    /// As [`new`](TWordArray::new), for transactions of the engine `E`.
    pub fn with_engine(values: impl IntoIterator<Item = T>) -> TWordArray<T, E> {
        TWordArray::made(None, values)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TMVar<T, E> {
    /// A variable for transactions of the engine `E`, which is full if there is a value.
    pub fn with_engine(value: Option<T>) -> TMVar<T, E> {
        TMVar::made(None, value)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TQueue<T, E> {
    /// As [`new`](TQueue::new), for transactions of the engine `E`.
    pub fn with_engine() -> TQueue<T, E> {
        TQueue::made(None)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TBQueue<T, E> {
    /// As [`new`](TBQueue::new), for transactions of the engine `E`.
    ///
    /// # Panics
    /// If the capacity is 0.
    pub fn with_engine(capacity: usize) -> TBQueue<T, E> {
        TBQueue::made(None, capacity)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TChan<T, E> {
    /// As [`new`](TChan::new), for transactions of the engine `E`.
    pub fn with_engine() -> TChan<T, E> {
        TChan::made(None, true)
    }

    /// As [`new_broadcast`](TChan::new_broadcast), for transactions of the engine `E`.
    pub fn broadcast_with_engine() -> TChan<T, E> {
        TChan::made(None, false)
    }
}

impl<E: Engine> TSem<E> {
    /// As [`new`](TSem::new), for transactions of the engine `E`.
    pub fn with_engine(units: u64) -> TSem<E> {
        TSem::made(None, units)
    }
}

impl<E: Engine> TCounter<E> {
    /// As [`new`](TCounter::new), for transactions of the engine `E`.
    pub fn with_engine() -> TCounter<E> {
        TCounter::made()
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static, E: Engine> TMap<K, V, E> {
    /// As [`new`](TMap::new), for transactions of the engine `E`.
    pub fn with_engine() -> TMap<K, V, E> {
        TMap::with_hasher(HashState::default())
    }
}

impl<K: Send + Sync + 'static, E: Engine> TSet<K, E> {
    /// As [`new`](TSet::new), for transactions of the engine `E`.
    pub fn with_engine() -> TSet<K, E> {
        TSet::with_hasher(HashState::default())
    }
}
