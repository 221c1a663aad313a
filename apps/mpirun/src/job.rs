//! The processes of a job: [`run`].
//!
//! A thread for each rank waits for the end of its process, or for a signal to pass on; two more
//! write what the process writes. All of them run on one OS thread.

use crate::lines::forward;
use crate::options::Options;
use selvedge::mpi::processes::LocalJob;
use selvedge::process::{Child, Command};
use selvedge::scope::{race, scope};
use selvedge::signal::{Signal, signals};
use selvedge::stdio::{Output, stderr, stdout};
use selvedge::{Fifo, Mutex};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;

/// The status of a program that cannot be started, as a shell has it.
const NOT_STARTED: u8 = 127;

/// Where the lines of all ranks go. The locks keep them whole.
#[derive(Clone)]
struct Outputs {
    output: Arc<Mutex<Output>>,
    errors: Arc<Mutex<Output>>,
}

/// What a rank's thread waits for.
enum RankNews {
    Ended(io::Result<ExitStatus>),
    Signal(Signal),
}

/// Runs the job, and gives the exit status for its end.
///
/// # Errors
/// If the kernel has no memory or no descriptors for it.
pub(crate) async fn run(options: Options) -> io::Result<u8> {
    let job = LocalJob::new(options.ranks)?;
    let mut passed_on = vec![Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];
    // A terminal sends these two to all processes of its foreground.
    if File::open("/dev/tty").is_err() {
        passed_on.extend([Signal::INT, Signal::QUIT]);
    }
    let mut arriving = signals(&passed_on)?;
    let mailboxes: Vec<Arc<Fifo<Signal>>> = (0..options.ranks).map(|_| Arc::new(Fifo::new())).collect();
    let outputs =
        Outputs { output: Arc::new(Mutex::new(stdout()?)), errors: Arc::new(Mutex::new(stderr()?)) };
    let first_failure = Rc::new(RefCell::new(None));
    scope(async |ranks| {
        let receivers = mailboxes.clone();
        let watches = ranks.spawn_local(async move {
            while let Ok(signal) = arriving.next().await {
                receivers.iter().for_each(|mailbox| mailbox.put(signal));
            }
        });
        let mut running = Vec::new();
        for (rank, mailbox) in mailboxes.iter().enumerate() {
            match start(&job, &options, rank) {
                Ok(child) => {
                    let (job, mailbox, failure) = (job.clone(), mailbox.clone(), first_failure.clone());
                    let outputs = outputs.clone();
                    let prefix = if options.is_plain { String::new() } else { format!("[{rank}] ") };
                    running.push(ranks.spawn_local(async move {
                        let end = watch(child, prefix, outputs, &mailbox, || job.departed(rank)).await;
                        if let Some(code) = told(rank, end) {
                            failure.borrow_mut().get_or_insert(code);
                        }
                    }));
                }
                Err(error) => {
                    job.departed(rank);
                    eprintln!("selvedge-mpirun: rank {rank}: {error}");
                    first_failure.borrow_mut().get_or_insert(NOT_STARTED);
                    if rank == 0 {
                        break;
                    }
                }
            }
        }
        for rank in running {
            // A panic of such a thread ends the program.
            let _ = rank.await;
        }
        watches.cancel();
    })
    .await;
    let failure = *first_failure.borrow();
    Ok(failure.unwrap_or(0))
}

/// Starts the process of a rank.
fn start(job: &LocalJob, options: &Options, rank: usize) -> io::Result<Child> {
    let (name, value) = job.variable(rank);
    let mut command = Command::new(&options.program);
    command.args(&options.arguments).env(name, value);
    command.stdin(if rank == 0 { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // On this OS thread: those of the pool come and go.
    command.spawn_here()
}

/// Waits for the end of a rank's process, and passes signals on to it.
async fn watch(
    mut child: Child,
    prefix: String,
    outputs: Outputs,
    mailbox: &Fifo<Signal>,
    departed: impl Fn(),
) -> io::Result<ExitStatus> {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let of_errors = prefix.clone();
    scope(async |writers| {
        if let Some(output) = output {
            let to = outputs.output;
            let write = async move |bytes: &[u8]| to.lock().await.write_all(bytes).await;
            drop(writers.spawn_local(async move { forward(output, &prefix, write).await }));
        }
        if let Some(errors) = errors {
            let to = outputs.errors;
            let write = async move |bytes: &[u8]| to.lock().await.write_all(bytes).await;
            drop(writers.spawn_local(async move { forward(errors, &of_errors, write).await }));
        }
        let end = loop {
            let ends = async { RankNews::Ended(child.wait().await) };
            let comes = async { RankNews::Signal(mailbox.take().await) };
            match race((ends, comes)).await {
                RankNews::Ended(end) => break end,
                // A process that has ended meanwhile needs none.
                RankNews::Signal(signal) => drop(child.signal(signal)),
            }
        };
        departed();
        end
    })
    .await
}

/// Says how a rank has failed, and gives its exit status as a shell has it.
fn told(rank: usize, end: io::Result<ExitStatus>) -> Option<u8> {
    match end {
        Ok(status) if status.success() => None,
        Ok(status) => {
            eprintln!("selvedge-mpirun: rank {rank} has ended with {status}");
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("selvedge-mpirun: rank {rank}: {error}");
            Some(1)
        }
    }
}
