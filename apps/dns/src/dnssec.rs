//! DNSSEC without the network: whether records are what their zone has signed, and whether a zone
//! proves that a name or a type does not exist (RFC 4033 to 4035, 5155, 6840).
//!
//! `resolve/validate.rs` judges answers by it, and `resolve/trust.rs` zones. The functions know one
//! zone and its keys; that these keys are the zone's, `trust.rs` has found out.
//!
//! | file | what is in it |
//! |---|---|
//! | `algorithm.rs` | signatures and hashes, by ring |
//! | `signed.rs` | the records of a name and type with their signatures |
//! | `keys.rs` | which keys of a zone its parent vouches for |
//! | `denial.rs`, `hashed.rs` | proofs by NSEC and by NSEC3 records |
//! | `anchors.rs` | where trust begins |
//! | `rollover.rs`, `anchor_file.rs` | the keys there, as their zones replace them |
//! | `work.rs` | how much one question may cost |

pub mod algorithm;
pub mod anchor_file;
pub mod anchors;
pub mod denial;
pub mod hashed;
pub mod keys;
pub mod rollover;
pub mod signed;
pub mod work;

use domain::base::iana::ExtendedErrorCode;

/// What is known of records, or of their absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// A chain of signatures leads from a trust anchor to them.
    Secure,
    /// A zone above proves that no chain leads to them.
    Insecure,
    /// There should be a chain, and it is broken.
    Bogus(Flaw),
}

impl Security {
    /// That of both together: the worse one.
    pub fn and(self, other: Security) -> Security {
        match (self, other) {
            (Security::Bogus(_), _) => self,
            (_, Security::Bogus(_)) => other,
            (Security::Insecure, _) => self,
            _ => other,
        }
    }
}

/// Why records are bogus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No signature fits to the records.
    Wrong,
    /// The signature's time is over.
    Expired,
    /// The signature's time has not come.
    NotYetValid,
    /// The zone has no key that the signature or the parent names.
    KeyMissing,
    /// There is no signature of the zone.
    SignatureMissing,
    /// There is no proof that the name or the type does not exist.
    DenialMissing,
    /// To find it out costs more than one question may.
    TooMuchWork,
    /// No server has told a zone's keys.
    Unreachable,
}

impl Flaw {
    /// What a client is told (RFC 8914).
    pub fn code(self) -> ExtendedErrorCode {
        match self {
            Flaw::Wrong => ExtendedErrorCode::DNSSEC_BOGUS,
            Flaw::Expired => ExtendedErrorCode::SIGNATURE_EXPIRED,
            Flaw::NotYetValid => ExtendedErrorCode::SIGNATURE_NOT_YET_VALID,
            Flaw::KeyMissing => ExtendedErrorCode::DNSKEY_MISSING,
            Flaw::SignatureMissing => ExtendedErrorCode::RRSIGS_MISSING,
            Flaw::DenialMissing => ExtendedErrorCode::NSEC_MISSING,
            Flaw::TooMuchWork => ExtendedErrorCode::OTHER,
            Flaw::Unreachable => ExtendedErrorCode::NO_REACHABLE_AUTHORITY,
        }
    }
}
