//! [`BellAttendant`]: the OS thread that sleeps until another process has something for this rank.
//!
//! `process_rank.rs` starts it. While threads of the rank look themselves (see `rings.rs`), it
//! sleeps on. It works under every scheduler, because it resumes threads as any OS thread may.

use super::rings::{RankRings, wake};
use crate::job::JobRank;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::futex;
use selvedge_core::CallUnderWay;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The OS thread that looks for messages.
pub(super) struct BellAttendant {
    job: Arc<JobRank<RankRings>>,
    is_dismissed: Arc<AtomicBool>,
    os_thread: Option<JoinHandle<()>>,
}

impl BellAttendant {
    /// Starts the OS thread. `follows_its_parent` says that the process ends with the one that has
    /// started it.
    pub(super) fn start(job: Arc<JobRank<RankRings>>, follows_its_parent: bool) -> io::Result<BellAttendant> {
        let is_dismissed = Arc::new(AtomicBool::new(false));
        let (there, told) = (job.clone(), is_dismissed.clone());
        // The other ranks may rightly take long, so it is no standstill when all threads wait for
        // them.
        let others = CallUnderWay::new();
        let os_thread = thread::Builder::new().name("selvedge-mpi".to_string()).spawn(move || {
            if follows_its_parent {
                // The kernel keeps this for an OS thread, and this one lives as long as the rank.
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
            }
            attend(there.link(), &told);
            drop(others);
        })?;
        Ok(BellAttendant { job, is_dismissed, os_thread: Some(os_thread) })
    }

    /// The OS thread ends when all messages are sent. Gives what waits for that.
    pub(super) fn dismiss(&mut self) -> Option<JoinHandle<()>> {
        self.is_dismissed.store(true, Ordering::Release);
        let bell = self.job.link().bell();
        bell.ring_anyway();
        wake(bell);
        self.os_thread.take()
    }
}

impl Drop for BellAttendant {
    fn drop(&mut self) {
        drop(self.dismiss());
    }
}

fn attend(rings: &RankRings, is_dismissed: &AtomicBool) {
    let bell = rings.bell();
    loop {
        while rings.look() {}
        let rung = bell.rung();
        if is_dismissed.load(Ordering::Acquire) && rings.is_empty() {
            return;
        }
        // Armed now, it would ring for each message that such a thread sees anyway.
        if !rings.is_watched() {
            bell.arm();
        }
        rings.look();
        // Another count, a signal: in each case it looks again.
        let _ = futex::wait(bell.count(), futex::Flags::empty(), rung, None);
    }
}
