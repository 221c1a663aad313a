//! [`TArray`]: variables in a row, in one allocation.

use crate::cells::{CellNode, Cells};
use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use std::fmt;
use std::sync::Arc;

/// An array of variables, for transactions. Its length is fixed.
///
/// Clones are handles to the same array. Each element is a variable of its own: transactions that
/// touch different elements are not in each other's way, and a transaction that retries waits for
/// the elements that it has read.
///
/// # Paper
/// [HMP05 §5] has the variables; this is many of them in one allocation.
///
/// # Complexity
/// An element takes 56 bytes, and its value a node of its own; a [`TVar`](crate::TVar) in a `Vec`
/// takes 56 bytes and the allocator's share. The array takes one allocation, and one for each
/// value. An array of numbers, flags or the like is better a [`TWordArray`](crate::TWordArray).
///
/// # Examples
/// ```
/// use selvedge::stm::{TArray, Tried, atomically};
///
/// selvedge::run(async {
///     let accounts = TArray::new([10, 20, 30]);
///     let shared = accounts.clone();
///     atomically(move |tx| {
///         shared.modify(tx, 0, |sum| sum - 3)?;
///         shared.modify(tx, 2, |sum| sum + 3)
///     })
///     .await;
///     let sum = atomically(|tx| accounts.iter(tx).map(|sum| sum.copied()).sum::<Tried<i32>>());
///     assert_eq!((sum.await, accounts.read_now(2, |sum| *sum)), (60, 33));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TArray<T: Send + Sync + 'static, E: Engine = Versioned> {
    cells: Cells<CellNode<T>, E>,
}

impl<T: Send + Sync + 'static> TArray<T> {
    /// An array of these values.
    pub fn new(values: impl IntoIterator<Item = T>) -> TArray<T> {
        TArray::made(None, values)
    }

    /// An array of these values with a name. Reports of
    /// waiting threads call the elements `NAME[0]` and so on (`NAME`, if there is one): see
    /// [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>, values: impl IntoIterator<Item = T>) -> TArray<T> {
        TArray::made(Some(name.into()), values)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TArray<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>, values: impl IntoIterator<Item = T>) -> TArray<T, E> {
        let values: Vec<T> = values.into_iter().collect();
        let (len, mut values) = (values.len(), values.into_iter());
        TArray {
            cells: Cells::new((), len, name, || CellNode(values.next().expect("a value for each cell"))),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of an element, as this transaction sees it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    ///
    /// # Complexity
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read<'tx>(&self, tx: &'tx Tx<E>, index: usize) -> Tried<&'tx T> {
        self.cells.read(tx, index)
    }

    /// Replaces the value of an element, when the transaction commits. The transaction itself sees
    /// it at once.
    ///
    /// # Panics
    /// If there is no such element.
    ///
    /// # Complexity
    /// One allocation.
    #[inline]
    pub fn write(&self, tx: &Tx<E>, index: usize, value: T) {
        self.cells.write(tx, index, CellNode(value));
    }

    /// Replaces the value of an element by the value that `f` makes of it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify(&self, tx: &Tx<E>, index: usize, f: impl FnOnce(&T) -> T) -> Tried<()> {
        let new = f(self.read(tx, index)?);
        self.write(tx, index, new);
        Ok(())
    }

    /// Replaces the value of an element by the value that `f` makes of it, and gives the result
    /// that `f` gives beside it: see [`TVar::state`](crate::TVar::state).
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn state<R>(&self, tx: &Tx<E>, index: usize, f: impl FnOnce(&T) -> (R, T)) -> Tried<R> {
        let (result, new) = f(self.read(tx, index)?);
        self.write(tx, index, new);
        Ok(result)
    }

    /// Changes a clone of the value of an element, which replaces the value, and gives the result
    /// of the change: see [`TVar::modify_mut`](crate::TVar::modify_mut).
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify_mut<R>(&self, tx: &Tx<E>, index: usize, f: impl FnOnce(&mut T) -> R) -> Tried<R>
    where
        T: Clone,
    {
        let mut new = self.read(tx, index)?.clone();
        let result = f(&mut new);
        self.write(tx, index, new);
        Ok(result)
    }

    /// Replaces the value of an element, and gives a reference to the old one.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn swap<'tx>(&self, tx: &'tx Tx<E>, index: usize, value: T) -> Tried<&'tx T> {
        let old = self.read(tx, index)?;
        self.write(tx, index, value);
        Ok(old)
    }

    /// The elements in their order. Each is read when the iterator comes to it.
    pub fn iter<'tx>(&'tx self, tx: &'tx Tx<E>) -> impl ExactSizeIterator<Item = Tried<&'tx T>> {
        (0..self.len()).map(move |index| self.read(tx, index))
    }

    /// Gives the value that an element has at this moment to `f`, outside of a transaction.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn read_now<R>(&self, index: usize, f: impl FnOnce(&T) -> R) -> R {
        self.cells.cell(index).read_now(f)
    }
}

identity!([T: Send + Sync + 'static, E: Engine] TArray<T, E>, handle => &handle.cells);

impl<T: Send + Sync + 'static, E: Engine> Clone for TArray<T, E> {
    /// Another handle to the same array.
    fn clone(&self) -> Self {
        TArray { cells: self.cells.clone() }
    }
}

impl<T: Send + Sync + 'static, E: Engine> fmt::Debug for TArray<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TArray").field("len", &self.len()).finish_non_exhaustive()
    }
}
