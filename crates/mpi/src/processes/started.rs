//! [`StartedRanks`]: the other processes of a program that starts itself again as several ranks.

use super::local_job::LocalJob;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// The processes of ranks 1 to n.
pub(crate) struct StartedRanks {
    job: LocalJob,
    ends: Receiver<(usize, io::Result<ExitStatus>)>,
}

impl StartedRanks {
    /// Starts this program again, with the same arguments, as each rank but rank 0.
    ///
    /// # Errors
    /// If the job cannot be made. A process that cannot be started is a rank that has failed.
    pub(crate) fn start(ranks: usize) -> io::Result<StartedRanks> {
        let job = LocalJob::new(ranks)?;
        let program = std::env::current_exe()?;
        let (tell, ends) = channel();
        for rank in 1..ranks {
            let (name, value) = job.variable(rank);
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).env(name, value);
            let (tells, watched) = (tell.clone(), job.clone());
            // The OS thread that starts a process waits for its end, because the kernel ends a rank
            // with the very OS thread that has started it.
            let watch = move || {
                let end = command.status();
                watched.departed(rank);
                let _ = tells.send((rank, end));
            };
            if let Err(error) = thread::Builder::new().name(format!("rank-{rank}")).spawn(watch) {
                job.departed(rank);
                let _ = tell.send((rank, Err(error)));
            }
        }
        Ok(StartedRanks { job, ends })
    }

    pub(crate) fn job(&self) -> &LocalJob {
        &self.job
    }

    /// Waits for the ends of the processes: blocks the OS thread. They come in their order.
    pub(crate) fn wait(self) -> Vec<(usize, io::Result<ExitStatus>)> {
        self.ends.into_iter().collect()
    }
}
