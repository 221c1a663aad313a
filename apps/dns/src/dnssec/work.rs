//! [`Work`]: how much computing one client's question may cost.
//!
//! A zone can be made such that its validation checks thousands of signatures, with many keys of
//! one tag and many signatures by each (CVE-2023-50387), or computes thousands of hashes
//! (CVE-2023-50868). So all parts of a validation share one budget. An honest zone takes one check
//! for each set of records, and some ten hashes for a proof.

use super::Flaw;

/// How many signatures are checked at most. A chain of five zones with a long answer takes about
/// twenty.
const SIGNATURES_MAX: u32 = 64;

/// How many hashes are computed at most, each of at most some 300 bytes.
const HASHES_MAX: u32 = 10_000;

/// What is left.
#[derive(Debug)]
pub struct Work {
    signatures: u32,
    hashes: u32,
}

impl Default for Work {
    fn default() -> Work {
        Work { signatures: SIGNATURES_MAX, hashes: HASHES_MAX }
    }
}

impl Work {
    /// Takes the check of a signature.
    ///
    /// # Errors
    /// `TooMuchWork` if none is left.
    pub fn signature(&mut self) -> Result<(), Flaw> {
        self.signatures = self.signatures.checked_sub(1).ok_or(Flaw::TooMuchWork)?;
        Ok(())
    }

    /// Takes a number of hashes.
    ///
    /// # Errors
    /// `TooMuchWork` if fewer are left.
    pub fn hashes(&mut self, number: u32) -> Result<(), Flaw> {
        self.hashes = self.hashes.checked_sub(number).ok_or(Flaw::TooMuchWork)?;
        Ok(())
    }
}
