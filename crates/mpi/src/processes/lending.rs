//! [`LentBytes`] and [`BorrowedBytes`]: a long message that its receiver copies from the memory of
//! its sender.
//!
//! `launched.rs` lends, and `libmpi/frames.rs` borrows. So a message goes with one copy, by
//! process_vm_readv(2), from the slice of one program into the slice of the other. `loan.rs` has
//! the protocol, by which the sender has its slice back at any time, read or not.

use super::loan::{LoanCell, LoanEnd};
use crate::spare_memory::spare;
use std::cell::Cell;
use std::hint;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a lender waits for a reader that has begun to copy. A reader that was stopped meanwhile
/// loses the loan.
const COPY_MAX: Duration = Duration::from_secs(1);

/// How long a lender waits for its reader to begin: for long enough to wake it, and then for as
/// long as it would take to copy the bytes. So a reader that comes late costs a lender twice that
/// at most.
const BEGIN_MAX: Duration = Duration::from_micros(200);

/// How long it takes to copy this many bytes into memory of their own.
const COPIED: (usize, Duration) = (4 << 10, Duration::from_micros(1));

/// A lender lets others have its CPU after this number of looks: some microseconds.
const SPINS: u32 = 200;

/// The bytes of a loan as they are told to the reader.
pub(crate) const LOAN_BYTES: usize = 24;

/// Bytes that are lent to another rank. Until this is dropped, the process lends no others.
pub(crate) struct LentBytes<'a> {
    bytes: &'a [u8],
    cell: &'a LoanCell,
    number: u64,
    /// Whether the reader has been found unable to read memory of this process.
    is_refused: &'a AtomicBool,
    has_ended: bool,
}

impl<'a> LentBytes<'a> {
    /// Lends bytes by the cell of this process, if it has lent no others. `is_refused` is set if
    /// the reader cannot read them.
    pub(super) fn new(
        bytes: &'a [u8],
        cell: &'a LoanCell,
        is_refused: &'a AtomicBool,
    ) -> Option<LentBytes<'a>> {
        if is_refused.load(Ordering::Relaxed) {
            return None;
        }
        Some(LentBytes { bytes, cell, number: cell.lend()?, is_refused, has_ended: false })
    }

    /// What the reader has to know.
    pub(crate) fn told(&self) -> [u8; LOAN_BYTES] {
        let numbers = [self.bytes.as_ptr().addr() as u64, self.bytes.len() as u64, self.number];
        let mut told = [0; LOAN_BYTES];
        for (place, number) in told.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        told
    }

    /// How long to wait for the reader to begin.
    pub(crate) fn patience(&self) -> Duration {
        let (bytes, time) = COPIED;
        BEGIN_MAX + time * u32::try_from(self.bytes.len() / bytes).unwrap_or(u32::MAX)
    }

    /// Whether the reader copies them now, or has done with them.
    pub(crate) fn are_noticed(&self) -> bool {
        self.cell.is_noticed(self.number)
    }

    /// Ends the loan. Whether the reader has the bytes. A reader that has begun to copy may go on,
    /// because another copy would take as long.
    pub(crate) fn end(&mut self) -> bool {
        let is_taken = |_| {
            hint::spin_loop();
            self.cell.is_taken(self.number)
        };
        let mut limit = None;
        while (0..SPINS).all(is_taken) {
            let now = Instant::now();
            if now > *limit.get_or_insert(now + COPY_MAX) {
                break;
            }
            // The reader may need this CPU.
            thread::yield_now();
        }
        self.end_now()
    }

    fn end_now(&mut self) -> bool {
        self.has_ended = true;
        let end = self.cell.end(self.number);
        if end == LoanEnd::Refused {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        end == LoanEnd::Read
    }
}

impl Drop for LentBytes<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end_now();
        }
        self.cell.release(self.number);
    }
}

/// Bytes of another process that this one may copy, once.
pub(crate) struct BorrowedBytes<'a> {
    cell: &'a LoanCell,
    process: u32,
    address: usize,
    length: usize,
    number: u64,
    /// Whether the loan was given back.
    is_back: Cell<bool>,
}

impl<'a> BorrowedBytes<'a> {
    /// Takes the loan of which a process has [told](LentBytes::told), by the cell of that process.
    /// `None` if it is over.
    pub(super) fn take(
        cell: &'a LoanCell,
        process: u32,
        told: &[u8; LOAN_BYTES],
    ) -> Option<BorrowedBytes<'a>> {
        let (numbers, _) = told.as_chunks::<8>();
        let [address, length, number] = [0, 1, 2].map(|at| u64::from_le_bytes(numbers[at]));
        let (address, length) = (usize::try_from(address).ok()?, usize::try_from(length).ok()?);
        let is_back = Cell::new(false);
        cell.take(number).then_some(BorrowedBytes { cell, process, address, length, number, is_back })
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Copies the bytes to the begin of `into`, and gives the loan back. If it is `false`, the
    /// bytes were lent no more, and others may have been copied.
    ///
    /// # Panics
    /// If there is no room for them.
    #[must_use]
    pub(crate) fn copy_to(&self, into: &mut [u8]) -> bool {
        // SAFETY: `copy` writes bytes, which makes none of them uninitialised.
        let into = unsafe { &mut *(std::ptr::from_mut(into) as *mut [MaybeUninit<u8>]) };
        self.copy(into)
    }

    /// The bytes, with room for this number of others behind them. `None` if they were lent no
    /// more.
    pub(crate) fn to_vec(&self, further: usize) -> Option<Vec<u8>> {
        let mut bytes = spare().room(self.length + further);
        bytes.reserve_exact(self.length + further);
        let is_copied = self.copy(bytes.spare_capacity_mut());
        is_copied.then(|| {
            // SAFETY: the vector was empty, and `copy` has written this number of bytes.
            unsafe { bytes.set_len(self.length) };
            bytes
        })
    }

    /// Copies all bytes, or gives `false`.
    fn copy(&self, into: &mut [MaybeUninit<u8>]) -> bool {
        assert!(self.length <= into.len(), "there is room for the bytes");
        if self.is_back.replace(true) {
            return false;
        }
        let mut copied = 0;
        while copied < self.length {
            let rest = &mut into[copied..self.length];
            let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
            let there = std::ptr::without_provenance_mut(self.address + copied);
            let remote = libc::iovec { iov_base: there, iov_len: rest.len() };
            // SAFETY: the kernel writes `rest.len()` bytes at most, to `rest`. The other address is
            // of another process, or of bytes that this one has lent to itself and only reads.
            let count = unsafe { libc::process_vm_readv(self.process as i32, &local, 1, &remote, 1, 0) };
            match usize::try_from(count) {
                Ok(count) if count > 0 => copied += count,
                _ => {
                    self.cell.refuse(self.number);
                    return false;
                }
            }
        }
        self.cell.give_back(self.number)
    }
}
