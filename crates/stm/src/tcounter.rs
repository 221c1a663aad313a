//! [`TCounter`]: a sum in several parts.

use crate::cells::{CellWord, Cells};
use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// A counter, for transactions of several OS threads that add to it more often than they read it.
///
/// Clones are handles to the same counter. It has a **stripe** for each CPU of the machine, up to
/// 64. Each OS thread adds to one of them; the OS threads get their stripes in turn when they first
/// add to any counter. So transactions that add on different OS threads are seldom in each other's
/// way. A [read](TCounter::read) is the sum of all stripes at one moment. It conflicts with each
/// addition by another OS thread.
///
/// A [`TWord`](crate::TWord) is the better counter if most transactions read it.
///
/// # Complexity
/// An addition reads and writes one variable, and allocates nothing. A read reads one variable for
/// each stripe. A stripe takes 224 bytes, because two stripes never share a cache line.
///
/// # Examples
/// ```
/// use selvedge::stm::{TCounter, atomically_blocking};
///
/// let served = TCounter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| (0..100).for_each(|_| atomically_blocking(|tx| served.add(tx, 1))));
///     }
/// });
/// assert_eq!(atomically_blocking(|tx| served.read(tx)), 200);
/// ```
pub struct TCounter<E: Engine = Versioned> {
    cells: Cells<CellWord<i64>, E>,
}

/// The distance of two stripes, in cells: 224 bytes. At least 168 of them lie between the two cells
/// in use, and a pair of cache lines has 128.
const APART: usize = 4;

const MOST_STRIPES: usize = 64;

/// The number of the calling OS thread, among the OS threads that have added to counters.
fn os_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<Option<usize>> = const { Cell::new(None) });
    // An OS thread that ends may have lost its number. Any stripe will do.
    let number = NUMBER.try_with(|number| {
        number.get().unwrap_or_else(|| {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            number.set(Some(next));
            next
        })
    });
    number.unwrap_or(0)
}

/// The number of stripes of a counter.
fn stripes() -> usize {
    static STRIPES: OnceLock<usize> = OnceLock::new();
    *STRIPES.get_or_init(|| available_parallelism().map_or(1, |cpus| cpus.get().min(MOST_STRIPES)))
}

impl TCounter {
    /// A counter at 0.
    pub fn new() -> TCounter {
        TCounter::made()
    }
}

impl<E: Engine> TCounter<E> {
    pub(crate) fn made() -> TCounter<E> {
        TCounter { cells: Cells::new((), stripes() * APART, None, || CellWord(0)) }
    }

    /// Adds a number, which may be negative. A sum beyond the numbers of 64 bits wraps around.
    ///
    /// # Errors
    /// As [`TWord::read`](crate::TWord::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn add(&self, tx: &Tx<E>, n: i64) -> Tried<()> {
        let at = os_thread() % (self.cells.len() / APART) * APART;
        let sum = self.cells.read(tx, at)?;
        self.cells.write(tx, at, CellWord(sum.wrapping_add(n)));
        Ok(())
    }

    /// The sum of all numbers that were added.
    ///
    /// # Errors
    /// As [`TWord::read`](crate::TWord::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read(&self, tx: &Tx<E>) -> Tried<i64> {
        let mut sum = 0_i64;
        for at in (0..self.cells.len()).step_by(APART) {
            sum = sum.wrapping_add(self.cells.read(tx, at)?);
        }
        Ok(sum)
    }
}

identity!([E: Engine] TCounter<E>, handle => &handle.cells);

impl<E: Engine> Default for TCounter<E> {
    /// A counter at 0.
    fn default() -> Self {
        TCounter::made()
    }
}

impl<E: Engine> Clone for TCounter<E> {
    /// Another handle to the same counter.
    fn clone(&self) -> Self {
        TCounter { cells: self.cells.clone() }
    }
}

impl<E: Engine> fmt::Debug for TCounter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TCounter").field("stripes", &(self.cells.len() / APART)).finish_non_exhaustive()
    }
}
