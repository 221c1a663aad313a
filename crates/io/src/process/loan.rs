//! [`Loan`] and [`Lent`]: the two ends of a command that a job of the blocking pool has, between
//! `Command::spawn` and the start of the program.
//!
//! The job has a `Lent`, and `Command` keeps the `Loan`. The command comes back when the job drops
//! its `Lent`: after the start, or when the job is taken out of the queue before its turn. So a
//! start that is given up loses nothing of the command.

use selvedge_core::internal::{ReplyCell, run_blocking};
use std::future::poll_fn;
use std::process;
use std::sync::Arc;

/// The end of the owner, which gets the command back.
#[derive(Debug)]
pub(super) struct Loan(Arc<ReplyCell<process::Command>>);

/// The end of the job, which has the command.
#[derive(Debug)]
pub(super) struct Lent {
    /// Present until the drop.
    command: Option<process::Command>,
    back: Arc<ReplyCell<process::Command>>,
}

impl Loan {
    pub(super) fn of(command: process::Command) -> (Loan, Lent) {
        let back = Arc::new(ReplyCell::default());
        (Loan(back.clone()), Lent { command: Some(command), back })
    }

    /// Waits for the command. Giving up loses nothing.
    pub(super) async fn end(&mut self) -> process::Command {
        poll_fn(|cx| self.0.poll(cx.waker().clone())).await.expect("the job puts it, and this takes it once")
    }

    /// As [`end`](Self::end), on the calling OS thread, which sleeps until the job has ended.
    pub(super) fn end_here(&mut self) -> process::Command {
        run_blocking(self.end(), None).unwrap_or_else(|| unreachable!("there was no time limit"))
    }
}

impl Lent {
    pub(super) fn command(&mut self) -> &mut process::Command {
        self.command.as_mut().expect("only the drop takes it")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The owner may have been dropped. Then the command is dropped with the cell.
        if let Some(command) = self.command.take() {
            drop(self.back.put(command));
        }
    }
}
