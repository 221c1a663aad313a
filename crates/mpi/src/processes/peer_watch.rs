//! [`PeerWatch`]: the OS thread that notices the ends of the processes with which this one shares a
//! job, where no process has started all of them.
//!
//! `process_rank.rs` starts it for a job that joins two worlds. Each process watches all others, so
//! each hears of an end also when the process that made the job has ended.

use super::local_job::LocalJob;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;

/// It watches until it is dropped.
#[derive(Debug)]
pub(super) struct PeerWatch {
    stop: Arc<OwnedFd>,
}

/// A process, and the ranks that it is.
type WatchedPeer = (OwnedFd, Vec<usize>);

impl PeerWatch {
    /// Watches the processes of all ranks, which have taken their ranks. A process that is not
    /// there has ended.
    ///
    /// # Errors
    /// If the kernel has no descriptor or no OS thread left.
    pub(super) fn start(job: LocalJob) -> io::Result<PeerWatch> {
        let mut processes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for rank in 0..job.ranks() {
            if let Some(process) = job.segment().process(rank).filter(|&it| it != std::process::id()) {
                processes.entry(process).or_default().push(rank);
            }
        }
        let mut peers: Vec<WatchedPeer> = Vec::new();
        for (process, ranks) in processes {
            let process = i32::try_from(process).ok().and_then(Pid::from_raw);
            match process.map(|process| pidfd_open(process, PidfdFlags::empty())) {
                Some(Ok(descriptor)) => peers.push((descriptor, ranks)),
                Some(Err(error)) if error != rustix::io::Errno::SRCH => return Err(error.into()),
                _ => ranks.iter().for_each(|&rank| job.departed(rank)),
            }
        }
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let told = stop.clone();
        thread::Builder::new().name("mpi-peers".to_string()).spawn(move || watch(&job, peers, &told))?;
        Ok(PeerWatch { stop })
    }
}

impl Drop for PeerWatch {
    fn drop(&mut self) {
        // A counter that is full is readable too.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

/// Tells of each process that ends, until `stop` can be read.
fn watch(job: &LocalJob, mut peers: Vec<WatchedPeer>, stop: &OwnedFd) {
    while !peers.is_empty() {
        let descriptors = peers.iter().map(|(descriptor, _)| descriptor).chain([stop]);
        let mut waits: Vec<PollFd<'_>> =
            descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        match poll(&mut waits, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let ended: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
        if ended[peers.len()] {
            return;
        }
        let mut number = 0;
        peers.retain(|(_, ranks)| {
            number += 1;
            if ended[number - 1] {
                ranks.iter().for_each(|&rank| job.departed(rank));
            }
            !ended[number - 1]
        });
    }
}
