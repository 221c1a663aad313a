//! The second poll of a worker, which finds threads that another worker keeps waking
//! (`WorkerLoop::pair`). [`Pairing`](super::pairing::Pairing) says why, and when.
//!
//! The worker's turn (`worker.rs`) calls `pair` when a second poll is due.

use super::WorkerLoop;
use selvedge_core::{Events, RunError};

impl<E: Events> WorkerLoop<'_, E> {
    /// Polls the event source a second time, and hands the threads that this wakes off to another
    /// worker.
    #[cold]
    pub(super) fn pair(&mut self) -> Result<(), RunError> {
        let idle = &self.pool.idle;
        if self.workers == 1 || idle.does_any_sleep() {
            self.pairing.put_off();
            return Ok(());
        }
        self.take_woken(false);
        self.cpu.poll(&mut self.events, false)?;
        let mut woken = Vec::new();
        while let Some(thread) = self.cpu.woken() {
            match thread.into_send() {
                Ok(thread) => woken.push(thread),
                Err(thread) => self.local.push(thread),
            }
        }
        self.pairing.polled(!woken.is_empty());
        if !woken.is_empty() {
            let refused = match self.lighter() {
                Some(lighter) => idle.hand_off(self.me, lighter, woken).err().unwrap_or_default(),
                None => woken,
            };
            refused.into_iter().for_each(|thread| self.arrive(thread.into_thread()));
        }
        Ok(())
    }

    /// The worker with the smallest load, unless this worker's load is smaller.
    fn lighter(&self) -> Option<usize> {
        let load = |worker: usize| self.pool.views[worker].load();
        let others = (0..self.pool.views.len()).filter(|&worker| worker != self.me);
        others.min_by_key(|&worker| load(worker)).filter(|&lightest| load(lightest) <= load(self.me))
    }
}
