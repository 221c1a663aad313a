//! [`BellAttendant`]: the OS thread that sleeps until another process has something for this rank.
//!
//! `process_rank.rs` starts it. While threads of the rank look themselves (see `rings.rs`), it
//! looks only now and then. It works under every scheduler, because it resumes threads as any OS
//! thread may.

use super::rings::{RankRings, wake};
use crate::job::JobRank;
use rustix::thread::futex;
use selvedge_core::internal::CallUnderWay;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The OS thread that looks for messages.
pub(super) struct BellAttendant {
    job: Arc<JobRank<RankRings>>,
    is_dismissed: Arc<AtomicBool>,
    os_thread: Option<JoinHandle<()>>,
}

impl BellAttendant {
    /// Starts the OS thread, which calls `begin` first. When this returns, `begin` has returned.
    ///
    /// # Errors
    /// That of `begin`, and if the kernel has no OS thread left.
    pub(super) fn start(
        job: Arc<JobRank<RankRings>>,
        begin: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<BellAttendant> {
        let is_dismissed = Arc::new(AtomicBool::new(false));
        let (there, told) = (job.clone(), is_dismissed.clone());
        // The other ranks may rightly take long, so it is no standstill when all threads wait for
        // them.
        let others = CallUnderWay::new();
        let (tell, begun) = channel();
        let os_thread = thread::Builder::new().name("selvedge-mpi".to_string()).spawn(move || {
            let begins = begin();
            let is_right = begins.is_ok();
            let _ = tell.send(begins);
            if is_right {
                attend(there.link(), &told);
            }
            drop(others);
        })?;
        begun.recv().map_err(|_| io::Error::other("the attendant has panicked"))??;
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

/// The sleep while threads look by themselves. For so long a long message to a rank that computes
/// may wait.
const WATCHED_SLEEP: Duration = Duration::from_millis(2);

fn attend(rings: &RankRings, is_dismissed: &AtomicBool) {
    let bell = rings.bell();
    loop {
        while rings.look() {}
        let rung = bell.rung();
        if is_dismissed.load(Ordering::Acquire) && rings.is_empty() {
            return;
        }
        let mut limit = WATCHED_SLEEP.try_into().ok();
        if !rings.is_watched() {
            bell.arm();
            if rings.look() {
                continue;
            }
            // A thread that has disarmed the bell since ends the sleep, or arms the bell.
            limit = None;
        }
        // Another count, a signal: in each case it looks again.
        let _ = futex::wait(bell.count(), futex::Flags::empty(), rung, limit.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::JobSegment;
    use super::*;

    fn job() -> Arc<JobRank<RankRings>> {
        let segment = Arc::new(JobSegment::create_inherited(1).unwrap());
        // SAFETY: the segment is new, and this is the one call for rank 0.
        let rings = Arc::new(unsafe { RankRings::new(segment, 0) });
        let job = Arc::new(JobRank::new(0, 1, rings.clone()));
        rings.serve(&job);
        job
    }

    #[test]
    fn an_attendant_has_begun_when_it_was_started() {
        let error = BellAttendant::start(job(), || Err(io::Error::other("it may not"))).map(drop);
        assert_eq!(error.unwrap_err().to_string(), "it may not");
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = has_begun.clone();
        let begin = move || {
            begins.store(true, Ordering::Relaxed);
            Ok(())
        };
        let mut attendant = BellAttendant::start(job(), begin).unwrap();
        assert!(has_begun.load(Ordering::Relaxed));
        attendant.dismiss().unwrap().join().unwrap();
    }
}
