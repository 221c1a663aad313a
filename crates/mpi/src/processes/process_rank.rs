//! [`ProcessRank`]: this process as a rank of a job on one machine.
//!
//! `world.rs` runs a program in it, as in a `LaunchedRank`.

use super::attendant::BellAttendant;
use super::local_job::{LocalJob, RankSeat};
use super::peer_watch::PeerWatch;
use super::rings::RankRings;
use super::segment::JobSegment;
use crate::job::{JobRank, on_an_os_thread};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// One rank of a job on one machine.
pub(crate) struct ProcessRank {
    pub(crate) job: Arc<JobRank<RankRings>>,
    attendant: Mutex<BellAttendant>,
    /// In a job that joins two worlds, what notices the ends of the other processes.
    watch: Mutex<Option<PeerWatch>>,
}

impl ProcessRank {
    /// This process is the rank for which it was started.
    ///
    /// # Errors
    /// If another process, or an earlier run of this one, is that rank.
    pub(crate) fn join(seat: RankSeat) -> Result<ProcessRank, Box<dyn Error + Send + Sync>> {
        let segment = JobSegment::inherited(seat.descriptor).map_err(|error| {
            format!("the process was started as rank {} of a job, and finds no job: {error}", seat.rank)
        })?;
        let starter = i32::try_from(segment.starter()).ok().and_then(Pid::from_raw);
        let rank = ProcessRank::new(Arc::new(segment), seat.rank, follow_the_parent)?;
        // Asked after the attendant has begun to follow the parent, as `BellAttendant::start` says,
        // or the process would outlive a parent that ended before.
        match starter.is_some_and(has_not_ended) {
            true => Ok(rank),
            false => Err("the process that started the job has ended".into()),
        }
    }

    /// This process, which has started the others, is rank 0.
    pub(crate) fn first(job: &LocalJob) -> Result<ProcessRank, Box<dyn Error + Send + Sync>> {
        ProcessRank::new(job.segment().clone(), 0, || Ok(()))
    }

    /// This process, or a part of it, is also a rank of a job that joins two worlds. Its segment
    /// has this path.
    ///
    /// # Errors
    /// If the segment cannot be opened, as on another machine.
    pub(crate) fn join_worlds(
        path: String,
        rank: usize,
    ) -> Result<ProcessRank, Box<dyn Error + Send + Sync>> {
        let segment = JobSegment::open(path).map_err(|error| format!("the job of both worlds: {error}"))?;
        ProcessRank::new(Arc::new(segment), rank, || Ok(()))
    }

    /// From now on the ends of the other processes are noticed, of which each has taken its rank.
    ///
    /// # Errors
    /// If the kernel has no descriptor or no OS thread left.
    pub(crate) fn watch_others(&self) -> io::Result<()> {
        let watch = PeerWatch::start(LocalJob::of(self.job.link().segment().clone()))?;
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        Ok(())
    }

    fn new(
        segment: Arc<JobSegment>,
        rank: usize,
        begin: fn() -> io::Result<()>,
    ) -> Result<ProcessRank, Box<dyn Error + Send + Sync>> {
        let size = segment.size();
        if rank >= size {
            return Err(format!("the job has ranks 0 to {}, and no rank {rank}", size - 1).into());
        }
        if let Err(process) = segment.take_rank(rank) {
            let text = if process == std::process::id() {
                format!("a process of a job has one run, and this one has been rank {rank} before")
            } else {
                format!(
                    "process {process} is rank {rank} of the job already: a process that a rank starts is none"
                )
            };
            return Err(text.into());
        }
        // SAFETY: `take_rank` succeeds once for each rank of a job.
        let rings = Arc::new(unsafe { RankRings::new(segment, rank) });
        let job = Arc::new(JobRank::new(rank, size, rings.clone()));
        rings.serve(&job);
        let attendant = Mutex::new(BellAttendant::start(job.clone(), begin)?);
        Ok(ProcessRank { job, attendant, watch: Mutex::new(None) })
    }

    /// Waits until all ranks have ended and all messages are sent.
    pub(crate) async fn finish(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.job.all_have_ended().await;
        drop(self.watch.lock().unwrap_or_else(PoisonError::into_inner).take());
        let os_thread = self.attendant.lock().unwrap_or_else(PoisonError::into_inner).dismiss();
        if let Some(os_thread) = os_thread {
            on_an_os_thread(move || os_thread.join()).await?.map_err(|_| "the attendant has panicked")?;
        }
        Ok(())
    }
}

/// Whether a process runs. One that has ended does not, also if its parent has not asked for its
/// end yet, as kill(2) would say.
fn has_not_ended(process: Pid) -> bool {
    let Ok(descriptor) = pidfd_open(process, PidfdFlags::empty()) else { return false };
    let mut waits = [PollFd::new(&descriptor, PollFlags::IN)];
    matches!(poll(&mut waits, Some(&Timespec::default())), Ok(0))
}

/// The process ends with its parent. The kernel keeps this for an OS thread, and
/// the attendant, which calls it, lives as long as the rank.
fn follow_the_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_process_that_waits_to_be_asked_for_its_end_has_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Pid::from_child(&child);
        assert!(has_not_ended(process));
        child.kill().unwrap();
        while has_not_ended(process) {
            std::thread::yield_now();
        }
        // It is there still.
        rustix::process::test_kill_process(process).unwrap();
        child.wait().unwrap();
        assert!(!has_not_ended(process));
    }
}
