//! [`LoanCell`]: the word by which a process lends its memory to another one for a read, and takes
//! it back.
//!
//! Each rank of a job has one, in shared memory. `lending.rs` lends by it.
//!
//! # The protocol
//! The lender writes the bytes, lends them under a new number, and tells the reader of them in a
//! message. The reader takes the loan, copies the bytes, and gives the loan back. The copy counts
//! only if the loan could be given back. The lender ends the loan at any time, and waits for no
//! step of the reader: if the reader has not given it back by then, the reader finds that out when
//! it tries to, and throws its copy away. So the lender may write the bytes again after the end,
//! whatever the reader does, and a process that is killed at any instruction keeps nothing that is
//! lent.
//!
//! Each change is one compare-and-swap of the number together with the state, so a reader that is
//! late changes no later loan. After the end the lender tells the reader of a copy, if there was no
//! read, and releases the cell then: so what it tells of two loans has the order of the loans.

use super::primitives::{AtomicU64, Ordering};

/// The loan of one process. All zero is a process that has lent nothing.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct LoanCell {
    /// The number of the last loan, above [`STATE_BITS`] bits of its state.
    word: AtomicU64,
}

const STATE_BITS: u32 = 3;

/// Nothing is lent.
const OVER: u64 = 0;
/// No reader has taken it.
const LENT: u64 = 1;
const TAKEN: u64 = 2;
/// The reader has copied all bytes, and has given the loan back.
const READ: u64 = 3;
/// The reader may not read the memory of the lender.
const REFUSED: u64 = 4;
/// The lender has ended it, and lends no other bytes yet.
const ENDED: u64 = 5;

/// What a loan has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoanEnd {
    /// The reader has the bytes.
    Read,
    /// The reader will not have them: the lender has ended the loan first.
    Withdrawn,
    /// The reader will not have them: the kernel does not let it read memory of the lender.
    Refused,
}

fn word(number: u64, state: u64) -> u64 {
    number << STATE_BITS | state
}

impl LoanCell {
    /// The cell of a process, in memory of this one: for models and tests.
    #[cfg(test)]
    pub(crate) fn new() -> LoanCell {
        LoanCell { word: AtomicU64::new(0) }
    }

    /// Lends, if nothing is lent. Gives the number of the loan. The caller has written the bytes.
    pub(crate) fn lend(&self) -> Option<u64> {
        let last = self.word.load(Ordering::Relaxed);
        if last & ((1 << STATE_BITS) - 1) != OVER {
            return None;
        }
        let number = (last >> STATE_BITS) + 1;
        self.change(last, word(number, LENT)).then_some(number)
    }

    /// Whether the reader has this loan, and may be copying.
    pub(crate) fn is_taken(&self, number: u64) -> bool {
        self.word.load(Ordering::Relaxed) == word(number, TAKEN)
    }

    /// Whether the reader has taken this loan, or has done with it.
    pub(crate) fn is_noticed(&self, number: u64) -> bool {
        self.word.load(Ordering::Relaxed) != word(number, LENT)
    }

    /// Ends this loan, which the caller has begun. The caller may write the bytes afterwards.
    pub(crate) fn end(&self, number: u64) -> LoanEnd {
        let ended = word(number, ENDED);
        for (state, end) in [
            (LENT, LoanEnd::Withdrawn),
            (TAKEN, LoanEnd::Withdrawn),
            (READ, LoanEnd::Read),
            (REFUSED, LoanEnd::Refused),
        ] {
            // The reader moves a loan through the states in this order, so one of them succeeds.
            if self.change(word(number, state), ended) {
                return end;
            }
        }
        unreachable!("the lender alone ends a loan, and once")
    }

    /// After the end of this loan: others may be lent.
    pub(crate) fn release(&self, number: u64) {
        self.change(word(number, ENDED), word(number, OVER));
    }

    /// The reader takes this loan. `false` if it has ended.
    pub(crate) fn take(&self, number: u64) -> bool {
        self.change(word(number, LENT), word(number, TAKEN))
    }

    /// The reader has copied the bytes. If it is `false`, the loan was over before, and the copy
    /// may be of other bytes.
    #[must_use]
    pub(crate) fn give_back(&self, number: u64) -> bool {
        self.change(word(number, TAKEN), word(number, READ))
    }

    /// The reader cannot copy the bytes.
    pub(crate) fn refuse(&self, number: u64) {
        self.change(word(number, TAKEN), word(number, REFUSED));
    }

    fn change(&self, from: u64, to: u64) -> bool {
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_loan_is_read_or_withdrawn_or_refused() {
        let cell = LoanCell::new();
        let first = cell.lend().unwrap();
        assert!(!cell.is_noticed(first));
        assert_eq!(cell.lend(), None);
        assert!(cell.take(first) && cell.is_taken(first) && cell.is_noticed(first));
        assert!(!cell.take(first));
        assert!(cell.give_back(first) && !cell.is_taken(first));
        assert_eq!(cell.end(first), LoanEnd::Read);
        assert_eq!(cell.lend(), None);
        cell.release(first);

        let second = cell.lend().unwrap();
        assert!(!cell.take(first) && cell.take(second));
        assert_eq!(cell.end(second), LoanEnd::Withdrawn);
        assert!(!cell.give_back(second));
        cell.release(second);

        let third = cell.lend().unwrap();
        assert!(!cell.give_back(second));
        assert_eq!(cell.end(third), LoanEnd::Withdrawn);
        assert!(!cell.take(third));
        cell.release(third);

        let fourth = cell.lend().unwrap();
        assert!(cell.take(fourth));
        cell.refuse(fourth);
        assert!(!cell.is_taken(fourth));
        assert_eq!(cell.end(fourth), LoanEnd::Refused);
    }
}
