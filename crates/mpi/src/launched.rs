//! [`LaunchedRank`]: a process that a launcher of MPI has started as one rank of a job. The
//! messages go through the MPI library of the machine.
//!
//! `world.rs` starts it, `job.rs` is the engine, and `libmpi` makes the calls of MPI. Messages of
//! all contexts go through one communicator of MPI that is the engine's own, because MPI keeps no
//! order between two. The header of a message follows its bytes.
//!
//! # The death of a rank
//! Most launchers end the job then. Where MPI goes on (ULFM), it tells the driver, and the driver
//! tells the engine after the last message of that rank (`libmpi/comm_line.rs`), as `engine.rs`
//! wants it. Revocations and agreements need no more of MPI: they are messages as on the other
//! engines.
//!
//! # Long messages between ranks of one machine
//! The thread that sends one lends its bytes to the receiver (`processes/lending.rs`), tells it so
//! in a frame, and looks for messages until the receiver has begun to copy them. MPI would do the
//! same, but it would have to own the bytes for an unknown time, so it would need a copy of them;
//! and the receiver would learn of the message before it could say where the bytes are to go. A
//! loan is taken back after some 0.2 ms and the time of a copy, and MPI carries a copy then.

use crate::byte_pieces::{BytePieces, joined, length_of};
use crate::completion::EndedRank;
use crate::job::{JobLink, JobRank, MessageOffer, OfferedBytes, PostEnd, on_an_os_thread};
use crate::job_header::{HeaderTail, JobHeader};
use crate::libmpi::{
    Collective, Comm, CommListener, FRAME_MAX, MessageLoop, MpiError, MpiMemory, OfferedFrame, Received,
};
use crate::processes::{Doorbells, JobSegment, RANKS_MAX, segment_path, this_machine};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use selvedge_core::internal::CallUnderWay;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// The shortest message of which the bytes are lent to the receiver: one that fits into no frame
/// with its header.
const LENT_MIN: usize = FRAME_MAX - HeaderTail::BYTES_MAX;

/// One rank of a job of MPI.
pub(crate) struct LaunchedRank {
    pub(crate) job: Arc<JobRank<CommLink>>,
    mpi: Mutex<Option<MessageLoop>>,
    /// The other ranks may rightly take long, so it is no standstill when all threads wait for
    /// them.
    _others: CallUnderWay,
}

/// Bytes through a communicator of MPI.
pub(crate) struct CommLink {
    comm: Comm,
    /// The ranks of this machine.
    doorbells: Option<Arc<Doorbells>>,
}

impl LaunchedRank {
    /// Starts MPI, as all ranks of the job do.
    pub(crate) async fn start() -> Result<LaunchedRank, Box<dyn Error + Send + Sync>> {
        let others = CallUnderWay::new();
        let mpi = on_an_os_thread(MessageLoop::start).await??;
        let comm = mpi.world().dup().await?;
        let doorbells = doorbells(&comm).await?.map(Arc::new);
        if let Some(doorbells) = &doorbells {
            begin_on_own_cpu(doorbells.own());
            comm.ring_by(doorbells.clone());
        }
        let link = Arc::new(CommLink { comm: comm.clone(), doorbells });
        let job = Arc::new(JobRank::new(comm.rank(), comm.size(), link));
        comm.listen_to_frames(job.clone());
        Ok(LaunchedRank { job, mpi: Mutex::new(Some(mpi)), _others: others })
    }

    /// Waits until all ranks have ended, and ends MPI.
    pub(crate) async fn finish(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.job.all_have_ended().await;
        let mpi = self.mpi.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mpi) = mpi {
            on_an_os_thread(move || mpi.finish()).await??;
        }
        Ok(())
    }
}

/// The bells of the ranks on this machine. All ranks make the call. `None` where no other rank can
/// be rung.
async fn doorbells(comm: &Comm) -> Result<Option<Doorbells>, MpiError> {
    // Each step is a collective call, so all ranks make all of them, whatever fails in one.
    let machines = of_all(comm, &[this_machine(), u64::from(std::process::id())]).await?;
    let here = |rank: usize| machines[rank][0] != 0 && machines[rank][0] == machines[comm.rank()][0];
    let neighbours: Vec<usize> = (0..comm.size()).filter(|&rank| here(rank)).collect();
    let own = neighbours.iter().position(|&rank| rank == comm.rank());
    let mut segment = None;
    let mut descriptor = 0;
    if own == Some(0)
        && (2..=RANKS_MAX).contains(&neighbours.len())
        && let Ok(made) = JobSegment::create(neighbours.len())
    {
        descriptor = made.descriptor() as u64 + 1;
        segment = Some(made);
    }
    let descriptors = of_all(comm, &[descriptor]).await?;
    if let Some(first) = neighbours.first().copied().filter(|_| own != Some(0))
        && let Some(descriptor) = descriptors[first][0].checked_sub(1)
    {
        let path = segment_path(machines[first][1] as u32, descriptor as i32);
        segment = JobSegment::open(path).ok().filter(|segment| segment.size() == neighbours.len());
    }
    let opened = of_all(comm, &[u64::from(segment.is_some())]).await?;
    let place = |rank| neighbours.iter().position(|&it| it == rank).filter(|_| opened[rank][0] == 1);
    let places: Vec<Option<usize>> = (0..comm.size()).map(place).collect();
    Ok(segment.zip(own).map(|(segment, own)| Doorbells::new(segment, own, places)))
}

/// Puts this OS thread on the CPU that this rank would have if each rank of the machine had one.
/// The kernel may move it again.
///
/// Two ranks may begin on one CPU, although another one is idle. While they look for messages in
/// turn there, each has run so lately that the kernel leaves both where they are, for tens of
/// milliseconds, and a message takes 5 µs instead of 1.
fn begin_on_own_cpu(own: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cpus = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let Some(cpu) = cpus().cycle().nth(own) else { return };
    let mut alone = CpuSet::new();
    alone.set(cpu);
    // A launcher that has bound the rank to one CPU has chosen.
    if allowed.count() > 1 && sched_setaffinity(None, &alone).is_ok() {
        let _ = sched_setaffinity(None, &allowed);
    }
}

/// The numbers of all ranks, in their order.
async fn of_all<const N: usize>(comm: &Comm, own: &[u64; N]) -> Result<Vec<[u64; N]>, MpiError> {
    let collected = comm.collective(Collective::Allgather, MpiMemory::from(own.to_vec())).await?;
    let all = collected.received.and_then(|received| received.into_vec::<u64>().ok());
    Ok(all.expect("each rank gives numbers").as_chunks::<N>().0.to_vec())
}

impl JobLink for CommLink {
    const NAME: &'static str = "MPI";

    fn try_post(&self, to: usize, header: &JobHeader, bytes: BytePieces<'_>) -> bool {
        let [head, body] = bytes;
        self.comm.send_frame(to, [head, body, header.to_tail(self.comm.rank()).as_bytes()])
    }

    fn try_lend(&self, to: usize, header: &JobHeader, bytes: BytePieces<'_>, others_wait: bool) -> bool {
        let Some(doorbells) = self.doorbells.as_ref().filter(|_| length_of(bytes) >= LENT_MIN) else {
            return false;
        };
        let Some(mut lent) = doorbells.lend(to, bytes) else { return false };
        let tail = header.to_tail(self.comm.rank());
        if !self.comm.send_loan(to, &lent, tail.as_bytes()) {
            return false;
        }
        self.comm.watch_loan(others_wait, &lent);
        if !lent.end() {
            let mut copy = joined(bytes, HeaderTail::BYTES_MAX);
            copy.extend_from_slice(tail.as_bytes());
            self.comm.send_late(to, copy);
        }
        true
    }

    fn post(&self, to: usize, header: JobHeader, mut bytes: Vec<u8>, end: PostEnd) {
        bytes.extend_from_slice(header.to_tail(self.comm.rank()).as_bytes());
        self.comm.send_framed(to, bytes, move |result| match result {
            Ok(_) => end.sent(),
            Err(_) => end.failed(to),
        });
    }

    fn look_out(&self, others_wait: bool, offer: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool) {
        let mut offer = |from: usize, frame: OfferedFrame<'_>| {
            let Some((bytes, header)) = JobHeader::split_tail(frame.bytes, from) else { return false };
            offer(from, &header, frame.lent.map_or(OfferedBytes::Here(bytes), OfferedBytes::Lent))
        };
        self.comm.watch(others_wait, &mut offer, until);
    }
}

impl CommListener for JobRank<CommLink> {
    fn message(&self, message: Received) {
        let from = message.source;
        let Ok(mut bytes) = message.memory.into_vec::<u8>() else { return };
        let Some((rest, header)) = JobHeader::split_tail(&bytes, from) else { return };
        bytes.truncate(rest.len());
        self.arrived(from, header, bytes);
    }

    fn failed(&self, _: MpiError) {
        self.all_are_lost();
    }

    fn rank_died(&self, rank: usize) {
        self.ended(EndedRank { rank: rank as u32, failed: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_begins_on_a_cpu_of_its_own_and_may_use_all_that_it_could() {
        let before = sched_getaffinity(None).unwrap();
        for own in [0, 1, 7, RANKS_MAX] {
            begin_on_own_cpu(own);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        }
    }
}
