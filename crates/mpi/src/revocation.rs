//! [`Revocation`]: the message that a communicator is revoked.
//!
//! The mailbox that gets one (`mailbox/revoked.rs`) ends the calls of its rank and hands the
//! revocation on, by what `communicator.rs` has told it to do.

use crate::envelope::{Envelope, MessageContent};
use crate::lane::{revoked_by, revoking};
use std::sync::Arc;

/// A communicator is revoked.
#[derive(Debug, Clone)]
pub(crate) struct Revocation {
    /// Its context.
    pub(crate) context: u64,
    /// Its ranks, as world ranks.
    pub(crate) group: Arc<[u32]>,
    /// The rank of the world that tells of it.
    pub(crate) from: u32,
}

impl Revocation {
    /// The message that tells of it.
    pub(crate) fn envelope(&self) -> Envelope {
        let bytes = self.group.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        Envelope {
            context: revoking(self.context),
            mark: 0,
            source: self.from,
            tag: 0,
            body: MessageContent::Bytes(bytes),
            sent: None,
            matched: None,
        }
    }

    /// What a message tells, if it is one of a revocation.
    pub(crate) fn told_by(envelope: &Envelope) -> Option<Revocation> {
        let context = revoked_by(envelope.context)?;
        let MessageContent::Bytes(bytes) = &envelope.body else { return None };
        let group = bytes.as_chunks().0.iter().map(|rank| u32::from_le_bytes(*rank)).collect();
        Some(Revocation { context, group, from: envelope.source })
    }
}
