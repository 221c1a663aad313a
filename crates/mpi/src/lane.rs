//! [`MessageLane`]: which messages of a communicator an operation sends and receives.
//!
//! The ranks of a communicator have a number in common, its context. Bits of the context tell the
//! program's own messages from those of collectives, of agreements, and of revocations, so a
//! receive in one lane sees no message of another.

use crate::Tag;

/// Which messages of a communicator: those of the program, or those of one collective operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageLane {
    pub(crate) context: u64,
    /// Which operation it is, with its root, as in an `Envelope`.
    pub(crate) mark: u32,
    /// The number of the collective operation, which is the tag of its messages.
    pub(crate) number: Tag,
}

const COLLECTIVE: u64 = 1 << 63;
const REVOCATION: u64 = 1 << 62;
const AGREEMENT: u64 = 1 << 61;

/// Contexts are below this number.
pub(crate) const CONTEXTS: u64 = AGREEMENT;

impl MessageLane {
    /// The messages that the program sends itself.
    pub(crate) fn own(context: u64) -> MessageLane {
        MessageLane { context, mark: 0, number: Tag::UNIT }
    }

    /// The messages of the collective with this number.
    pub(crate) fn collective(context: u64, mark: u32, number: u32) -> MessageLane {
        MessageLane { context: context | COLLECTIVE, mark, number: Tag(number & Tag::MAX.0) }
    }

    /// The messages of the agreement with this number, which a revocation leaves alone.
    pub(crate) fn agreement(context: u64, mark: u32, number: u32) -> MessageLane {
        MessageLane { context: context | AGREEMENT, mark, number: Tag(number & Tag::MAX.0) }
    }

    pub(crate) fn is_agreement(self) -> bool {
        self.context & AGREEMENT != 0
    }

    pub(crate) fn is_collective(self) -> bool {
        self.context & (COLLECTIVE | AGREEMENT) != 0
    }
}

/// What a revocation of a communicator revokes: the context without the mark of collectives. The
/// lanes of agreements give another number, so no revocation concerns them.
pub(crate) fn revocable(context: u64) -> u64 {
    context & !COLLECTIVE
}

/// The context of the messages that revoke this one.
pub(crate) fn revoking(context: u64) -> u64 {
    context | REVOCATION
}

/// The context that messages with this one revoke, if they do.
pub(crate) fn revoked_by(context: u64) -> Option<u64> {
    (context & REVOCATION != 0).then_some(context & !REVOCATION)
}
