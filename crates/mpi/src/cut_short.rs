//! [`CutShort`]: an engine for tests, in which ranks end between two sends.

use crate::completion::EndedRank;
use crate::engine::{Engine, SendMode, Sending};
use crate::envelope::Envelope;
use crate::mailbox::Mailbox;
use crate::threads::RankThreads;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads, of which some ranks end after a number of sends: what they send later is lost.
#[derive(Debug)]
pub(crate) struct CutShort {
    threads: RankThreads,
    /// How many messages each rank may send before it ends.
    left: Vec<AtomicUsize>,
}

impl CutShort {
    /// Each of these ranks ends after its number of sends.
    pub(crate) fn new(ranks: usize, ends: &[(usize, usize)]) -> CutShort {
        let left: Vec<AtomicUsize> = (0..ranks).map(|_| AtomicUsize::new(usize::MAX)).collect();
        for &(rank, sends) in ends {
            left[rank].store(sends, Ordering::Relaxed);
        }
        CutShort { threads: RankThreads::new(ranks, true), left }
    }

    /// Ends the ranks that may send no message.
    pub(crate) fn end_those_that_send_nothing(&self) {
        for (rank, left) in self.left.iter().enumerate() {
            if left.load(Ordering::Relaxed) == 0 {
                self.end(rank);
            }
        }
    }

    fn end(&self, rank: usize) {
        self.threads.end(EndedRank { rank: rank as u32, failed: true });
    }
}

impl Engine for CutShort {
    fn name(&self) -> &'static str {
        "threads that end"
    }

    fn size(&self) -> usize {
        self.threads.size()
    }

    fn moves_values(&self, to: usize) -> bool {
        self.threads.moves_values(to)
    }

    /// As if each rank were a process, which can be killed between two sends.
    fn is_here(&self, _: usize) -> bool {
        false
    }

    fn mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        self.threads.mailbox(rank)
    }

    fn send(&self, from: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending {
        match self.left[from].load(Ordering::Relaxed) {
            0 => return Sending::Done,
            usize::MAX => {}
            left => self.left[from].store(left - 1, Ordering::Relaxed),
        }
        let sending = self.threads.send(from, to, envelope, mode);
        if self.left[from].load(Ordering::Relaxed) == 0 {
            self.end(from);
        }
        sending
    }
}
