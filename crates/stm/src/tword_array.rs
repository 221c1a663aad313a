//! [`TWordArray`]: words in a row, in one allocation.

use crate::cells::{CellWord, Cells};
use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use crate::word::Word;
use std::fmt;
use std::sync::Arc;

/// An array of words, for transactions: a [`TArray`](crate::TArray) of numbers, flags and
/// the like, with each value in its variable itself. Its length is fixed.
///
/// Clones are handles to the same array. Each element is a variable of its own, as a
/// [`TWord`](crate::TWord) is: transactions that touch different elements are not in each other's
/// way.
///
/// # Paper
/// [HMP05 §5] has the variables; this is many of them in one allocation.
///
/// # Complexity
/// An element takes 56 bytes. The array takes one allocation. Neither a read nor a write allocates.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWordArray, Tried, atomically};
///
/// selvedge::run(async {
///     let accounts = TWordArray::new([10, 20, 30]);
///     let shared = accounts.clone();
///     atomically(move |tx| {
///         shared.modify(tx, 0, |sum| sum - 3)?;
///         shared.modify(tx, 2, |sum| sum + 3)
///     })
///     .await;
///     let sum = atomically(|tx| accounts.iter(tx).sum::<Tried<i32>>()).await;
///     assert_eq!((sum, accounts.read_now(2)), (60, 33));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TWordArray<T: Word, E: Engine = Versioned> {
    cells: Cells<CellWord<T>, E>,
}

impl<T: Word> TWordArray<T> {
    /// An array of these values.
    pub fn new(values: impl IntoIterator<Item = T>) -> TWordArray<T> {
        TWordArray::made(None, values)
    }

    /// An array of these values with a name. Reports of
    /// waiting threads call the elements `NAME[0]` and so on (`NAME`, if there is one): see
    /// [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>, values: impl IntoIterator<Item = T>) -> TWordArray<T> {
        TWordArray::made(Some(name.into()), values)
    }
}

impl<T: Word, E: Engine> TWordArray<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>, values: impl IntoIterator<Item = T>) -> TWordArray<T, E> {
        let values: Vec<T> = values.into_iter().collect();
        let (len, mut values) = (values.len(), values.into_iter());
        TWordArray {
            cells: Cells::new((), len, name, || CellWord(values.next().expect("a value for each cell"))),
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
    /// As [`TWord::read`](crate::TWord::read).
    ///
    /// # Panics
    /// If there is no such element.
    ///
    /// # Complexity
    /// As [`TWord::read`](crate::TWord::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read(&self, tx: &Tx<E>, index: usize) -> Tried<T> {
        self.cells.read(tx, index)
    }

    /// Replaces the value of an element, when the transaction commits. The transaction itself sees
    /// it at once.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub fn write(&self, tx: &Tx<E>, index: usize, value: T) {
        self.cells.write(tx, index, CellWord(value));
    }

    /// Replaces the value of an element by the value that `f` makes of it.
    ///
    /// # Errors
    /// As [`TWord::read`](crate::TWord::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn modify(&self, tx: &Tx<E>, index: usize, f: impl FnOnce(T) -> T) -> Tried<()> {
        let new = f(self.read(tx, index)?);
        self.write(tx, index, new);
        Ok(())
    }

    /// Replaces the value of an element by the value that `f` makes of it, and gives the result
    /// that `f` gives beside it: see [`TWord::state`](crate::TWord::state).
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn state<R>(&self, tx: &Tx<E>, index: usize, f: impl FnOnce(T) -> (R, T)) -> Tried<R> {
        let (result, new) = f(self.read(tx, index)?);
        self.write(tx, index, new);
        Ok(result)
    }

    /// Replaces the value of an element, and gives the old one.
    ///
    /// # Errors
    /// As [`TWord::read`](crate::TWord::read).
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn swap(&self, tx: &Tx<E>, index: usize, value: T) -> Tried<T> {
        let old = self.read(tx, index)?;
        self.write(tx, index, value);
        Ok(old)
    }

    /// The elements in their order. Each is read when the iterator comes to it.
    pub fn iter<'tx>(&'tx self, tx: &'tx Tx<E>) -> impl ExactSizeIterator<Item = Tried<T>> {
        (0..self.len()).map(move |index| self.read(tx, index))
    }

    /// The value that an element has at this moment, outside of a transaction.
    ///
    /// # Panics
    /// If there is no such element.
    ///
    /// # Complexity
    /// One load, beside that of the length.
    #[inline]
    pub fn read_now(&self, index: usize) -> T {
        self.cells.cell(index).word_now()
    }

    /// The values in their order, outside of a transaction: each is that of the moment at which the
    /// iterator comes to it.
    pub fn iter_now(&self) -> impl ExactSizeIterator<Item = T> {
        (0..self.len()).map(|index| self.read_now(index))
    }
}

identity!([T: Word, E: Engine] TWordArray<T, E>, handle => &handle.cells);

impl<T: Word, E: Engine> Clone for TWordArray<T, E> {
    /// Another handle to the same array.
    fn clone(&self) -> Self {
        TWordArray { cells: self.cells.clone() }
    }
}

impl<T: Word, E: Engine> fmt::Debug for TWordArray<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TWordArray").field("len", &self.len()).finish_non_exhaustive()
    }
}
