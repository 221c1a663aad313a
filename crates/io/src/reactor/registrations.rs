//! The set of event loops that know a descriptor. Every descriptor that threads wait for has
//! [`Registrations`]; the wait reads them, so that any event loop can serve the descriptor. The
//! head of [`reactor`](super) has the argument that no edge is lost.
//!
//! A [`NonBlocking`](crate::NonBlocking) holds one, asks it at the begin of a wait and adds the
//! loop at its end.

use super::loop_id::LoopId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The event loops that know a descriptor: at most four, in 16 bits each, the latest in the lowest
/// bits; 0 means none.
#[derive(Debug, Default)]
pub(crate) struct Registrations(AtomicU64);

impl Registrations {
    /// Whether a loop knows the descriptor. If not, a wait in that loop is fresh.
    #[inline]
    pub(crate) fn have(&self, at: LoopId) -> bool {
        let loops = self.0.load(Relaxed);
        loops as u16 == at.to_bits() || among(loops >> 16, at)
    }

    /// Names a loop that has served a fresh wait, and so has registered the descriptor. If there is
    /// no room, the loop that was named first is forgotten.
    #[cold]
    pub(crate) fn add(&self, at: LoopId) {
        let add = |loops| (!among(loops, at)).then_some(loops << 16 | u64::from(at.to_bits()));
        // An error says that the loop is named already, because two waits were fresh at the same
        // time.
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }
}

fn among(mut loops: u64, at: LoopId) -> bool {
    while loops != 0 {
        if loops as u16 == at.to_bits() {
            return true;
        }
        loops >>= 16;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_four_are_known() {
        let ids: Vec<LoopId> = (0..6).map(|_| LoopId::take().unwrap()).collect();
        let loops = Registrations::default();
        for (i, &id) in ids.iter().enumerate() {
            assert!(!loops.have(id));
            loops.add(id);
            loops.add(id);
            for (j, &other) in ids.iter().enumerate() {
                assert_eq!(loops.have(other), j <= i && i < j + 4, "{j} after {i}");
            }
        }
        ids.into_iter().for_each(LoopId::give_back);
    }
}
