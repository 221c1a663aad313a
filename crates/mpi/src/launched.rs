//! [`LaunchedRank`]: a process that a launcher of MPI has started as one rank of a job. The
//! messages go through the MPI library of the machine.
//!
//! `world.rs` starts it, `job.rs` is the engine, and `libmpi` makes the calls of MPI, on an OS
//! thread of its own. Messages of all contexts go through one communicator of MPI that is the
//! engine's own, because MPI keeps no order between two. The header of a message follows its bytes.

use crate::job::{JobHeader, JobLink, JobRank, PostEnd, on_an_os_thread};
use crate::libmpi::{Comm, CommListener, MessageLoop, MpiError, MpiMemory, Received};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// One rank of a job of MPI.
pub(crate) struct LaunchedRank {
    pub(crate) job: Arc<JobRank<CommLink>>,
    mpi: Mutex<Option<MessageLoop>>,
}

/// Bytes through a communicator of MPI.
pub(crate) struct CommLink(Comm);

impl LaunchedRank {
    /// Starts MPI, as all ranks of the job do.
    pub(crate) async fn start() -> Result<LaunchedRank, Box<dyn Error + Send + Sync>> {
        let mpi = on_an_os_thread(MessageLoop::start).await??;
        let comm = mpi.world().dup().await?;
        let link = Arc::new(CommLink(comm.clone()));
        let job = Arc::new(JobRank::new(comm.rank(), comm.size(), link));
        comm.listen(job.clone());
        Ok(LaunchedRank { job, mpi: Mutex::new(Some(mpi)) })
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

impl JobLink for CommLink {
    const NAME: &'static str = "MPI";

    /// MPI tells later whether a message is on its way.
    fn try_post(&self, _: usize, _: &JobHeader, _: &[u8]) -> bool {
        false
    }

    fn post(&self, to: usize, header: JobHeader, mut bytes: Vec<u8>, end: PostEnd) {
        bytes.extend_from_slice(&header.to_bytes());
        self.0.send_then(to, 0, MpiMemory::from(bytes), move |result| match result {
            Ok(_) => end.sent(),
            Err(_) => end.failed(to),
        });
    }

    /// The message loop's OS thread alone may look.
    fn look_out(&self, _: &mut dyn FnMut() -> bool) {}
}

impl CommListener for JobRank<CommLink> {
    fn message(&self, message: Received) {
        let from = message.source;
        let Ok(mut bytes) = message.memory.into_vec::<u8>() else { return };
        let Some((rest, header)) = bytes.split_last_chunk() else { return };
        let Some(header) = JobHeader::from_bytes(header) else { return };
        bytes.truncate(rest.len());
        self.arrived(from, header, bytes);
    }

    fn failed(&self, _: MpiError) {
        self.all_are_lost();
    }
}
