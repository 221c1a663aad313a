//! [`StartedRanks`]: processes that this one has started as ranks of a job: the program itself
//! again, or programs that it spawns.

use super::local_job::LocalJob;
use std::io;
use std::ops::Range;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// The processes of some ranks.
pub(crate) struct StartedRanks {
    ends: Receiver<StartedEnd>,
}

/// A rank, and how its process has ended.
pub(crate) type StartedEnd = (usize, io::Result<ExitStatus>);

impl StartedRanks {
    /// Starts this program again, with the same arguments, as each rank but rank 0.
    ///
    /// # Errors
    /// If the system does not tell the path of the program.
    pub(crate) fn start_itself(job: &LocalJob) -> io::Result<StartedRanks> {
        let program = std::env::current_exe()?;
        Ok(StartedRanks::start(job, 1..job.ranks(), |rank| {
            let (name, value) = job.variable(rank);
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).env(name, value);
            command
        }))
    }

    /// Starts a command as each of these ranks. A process that cannot be started is a rank that has
    /// failed.
    pub(crate) fn start(
        job: &LocalJob,
        ranks: Range<usize>,
        mut command: impl FnMut(usize) -> Command,
    ) -> StartedRanks {
        let (tell, ends) = channel();
        for rank in ranks {
            let mut command = command(rank);
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
        StartedRanks { ends }
    }

    /// Waits for the ends of the processes: blocks the OS thread. They come in their order.
    pub(crate) fn wait(self) -> Vec<StartedEnd> {
        self.ends.into_iter().collect()
    }
}
