//! [`LentBytes`] and [`BorrowedBytes`]: a long message that its receiver copies from the memory of
//! its sender.
//!
//! `launched.rs` lends, and `libmpi/frames.rs` borrows. So a message goes with one copy, by
//! process_vm_readv(2), from the slice of one program into the slice of the other. The bytes may
//! lie in two pieces: what stands before a vector, and the vector. `loan.rs` has the protocol, by
//! which the sender has its slice back at any time, read or not.

use super::loan::{LoanCell, LoanEnd};
use crate::byte_pieces::{BytePieces, length_of};
use crate::receive_room::RoomPieces;
use crate::spare_memory::spare;
use std::cell::Cell;
use std::hint;
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
pub(crate) const LOAN_BYTES: usize = 40;

/// Bytes that are lent to another rank. Until this is dropped, the process lends no others.
pub(crate) struct LentBytes<'a> {
    bytes: BytePieces<'a>,
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
        bytes: BytePieces<'a>,
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
        let [head, body] = self.bytes.map(|piece| [piece.as_ptr().addr() as u64, piece.len() as u64]);
        let numbers = [head[0], head[1], body[0], body[1], self.number];
        let mut told = [0; LOAN_BYTES];
        for (place, number) in told.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        told
    }

    /// How long to wait for the reader to begin.
    pub(crate) fn patience(&self) -> Duration {
        let (bytes, time) = COPIED;
        BEGIN_MAX + time * u32::try_from(length_of(self.bytes) / bytes).unwrap_or(u32::MAX)
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
    /// The address and the length of each piece.
    pieces: [(usize, usize); 2],
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
        let [head, head_len, body, body_len, number] =
            [0, 1, 2, 3, 4].map(|at| u64::from_le_bytes(numbers[at]));
        let piece = |at, len| Some((usize::try_from(at).ok()?, usize::try_from(len).ok()?));
        let pieces = [piece(head, head_len)?, piece(body, body_len)?];
        // They come from another process, and their sum is a length here.
        pieces[0].1.checked_add(pieces[1].1)?;
        let is_back = Cell::new(false);
        cell.take(number).then_some(BorrowedBytes { cell, process, pieces, number, is_back })
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.pieces[0].1 + self.pieces[1].1
    }

    /// Copies the bytes to the room, and gives the loan back. If it is `false`, the bytes were lent
    /// no more, and others may have been copied.
    ///
    /// # Panics
    /// If the room is not for this number of them.
    #[must_use]
    pub(crate) fn copy_to(&self, mut into: RoomPieces<'_>) -> bool {
        let is_copied = self.copy(into.addresses());
        if is_copied {
            // SAFETY: `copy` has written all bytes of the room.
            unsafe { into.filled() };
        }
        is_copied
    }

    /// The bytes, with room for this number of others behind them. `None` if they were lent no
    /// more.
    pub(crate) fn to_vec(&self, further: usize) -> Option<Vec<u8>> {
        let mut bytes = spare().room(self.len() + further);
        bytes.reserve_exact(self.len() + further);
        let room = &mut bytes.spare_capacity_mut()[..self.len()];
        let is_copied = self.copy([(room.as_mut_ptr().cast(), room.len()), (std::ptr::null_mut(), 0)]);
        is_copied.then(|| {
            // SAFETY: the vector was empty, and `copy` has written this number of bytes.
            unsafe { bytes.set_len(self.len()) };
            bytes
        })
    }

    /// Copies all bytes to memory of this process, or gives `false`.
    ///
    /// # Panics
    /// If the memory is not of this number of bytes.
    fn copy(&self, into: [(*mut u8, usize); 2]) -> bool {
        let length = self.len();
        assert_eq!(into[0].1 + into[1].1, length, "the room is for the bytes");
        if self.is_back.replace(true) {
            return false;
        }
        let there = self.pieces.map(|(address, length)| (std::ptr::without_provenance_mut(address), length));
        let mut copied = 0;
        while copied < length {
            let (local, remote) = (behind(into, copied), behind(there, copied));
            // SAFETY: the kernel writes to the rest of the pieces of `into`, which the caller has
            // lent for that. The other addresses are of another process, or of bytes that this one
            // has lent to itself and only reads.
            let count = unsafe {
                libc::process_vm_readv(self.process as i32, local.as_ptr(), 2, remote.as_ptr(), 2, 0)
            };
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

/// What is left of the pieces behind this number of bytes.
fn behind(pieces: [(*mut u8, usize); 2], bytes: usize) -> [libc::iovec; 2] {
    let in_first = bytes.min(pieces[0].1);
    let rest = |(start, length): (*mut u8, usize), before: usize| libc::iovec {
        iov_base: start.wrapping_add(before).cast(),
        iov_len: length - before,
    };
    [rest(pieces[0], in_first), rest(pieces[1], bytes - in_first)]
}
