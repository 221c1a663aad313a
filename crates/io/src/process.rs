//! Child processes: starting programs, talking to them through pipes, and waiting for their end.
//!
//! # The recipe
//!
//! 1. **System call and node.** [`Child::wait`] waits until the child's pidfd is readable
//!    ([`Trace::Wait`](selvedge_core::Trace::Wait)). Threads wait for its pipes as for all
//!    [pipes](crate::pipe).
//! 2. **Interpret and register.** Starting takes as long as `fork` and `exec` take, so the
//!    [blocking pool](crate::pool) starts the child; [`Command::spawn_here`] starts it on the
//!    calling OS thread. [`Launcher::start`] does not wait for `exec`. The pidfd is registered like
//!    every descriptor.
//! 3. **Event loop.** The kernel makes the pidfd readable when the child has ended; the epoll loop
//!    does the rest. A kernel before Linux 5.3 has no pidfd. There the thread looks every few
//!    milliseconds instead.
//!
//! # Examples
//! ```
//! use selvedge::round_robin_over;
//! use selvedge::{EventLoop, process::Command};
//!
//! round_robin_over(&mut EventLoop::new()?, async {
//!     let output = Command::new("echo").arg("hello").output().await?;
//!     assert!(output.status.success());
//!     assert_eq!(output.stdout, b"hello\n");
//!     std::io::Result::Ok(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod launch;
mod launcher;
mod loan;

pub use launch::Launch;
pub use launcher::Launcher;

use crate::NonBlocking;
use crate::error::doing;
use crate::pipe::{Receiver, Sender};
use crate::pool::Lane;
use crate::signal::Signal;
use crate::sys::{self, Fd, Orders};
use crate::time::{sleep, timeout};
use crate::wait_reason::with_reason;
use loan::Loan;
use rustix::process::{Pid, WaitOptions, waitpid};
use selvedge_core::observe::{Object, WaitReason};
use selvedge_scope::join;
use std::ffi::OsStr;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{self, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use std::process::Output;

/// A program to be started, with its arguments, environment and standard streams. It is a
/// [`std::process::Command`] that starts without blocking a worker.
///
/// By default the child has the standard streams of this process.
#[derive(Debug)]
pub struct Command {
    /// While it is lent, another command stands here, which has the program's name alone.
    command: process::Command,
    /// Present from a start on the pool until its end is known: a job of the pool may have the
    /// command.
    loan: Option<Loan>,
    kill_on_drop: bool,
}

impl Command {
    /// A program by its path, or by its name, which is looked for in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        Command::from(process::Command::new(program))
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Command {
        self.as_std_mut().arg(argument);
        self
    }

    /// Adds several arguments.
    pub fn args(&mut self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> &mut Command {
        self.as_std_mut().args(arguments);
        self
    }

    /// Sets a variable of the child's environment. The other variables are those of this process.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        self.as_std_mut().env(name, value);
        self
    }

    /// Leaves a variable out of the child's environment.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.as_std_mut().env_remove(name);
        self
    }

    /// Starts with an empty environment.
    pub fn env_clear(&mut self) -> &mut Command {
        self.as_std_mut().env_clear();
        self
    }

    /// The directory that the child begins in.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.as_std_mut().current_dir(directory);
        self
    }

    /// The child's standard input. With [`Stdio::piped`] it comes as [`Child::stdin`].
    pub fn stdin(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.as_std_mut().stdin(stdio);
        self
    }

    /// The child's standard output. With [`Stdio::piped`] it comes as [`Child::stdout`].
    pub fn stdout(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.as_std_mut().stdout(stdio);
        self
    }

    /// The child's standard error. With [`Stdio::piped`] it comes as [`Child::stderr`].
    pub fn stderr(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.as_std_mut().stderr(stdio);
        self
    }

    /// Whether the child is killed if its [`Child`] is dropped before the child has ended, or if
    /// the start is given up. By default the child lives on.
    pub fn kill_on_drop(&mut self, yes: bool) -> &mut Command {
        self.kill_on_drop = yes;
        self
    }

    /// The standard library's command, for all other settings. (A hook of `pre_exec` runs on an OS
    /// thread of the blocking pool.)
    ///
    /// After a [`spawn`](Self::spawn) that was given up, the command may be in use on the blocking
    /// pool. Then this method, as every other that changes the command, blocks the calling OS
    /// thread until that start has ended.
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        if let Some(mut loan) = self.loan.take() {
            self.command = loan.end_here();
        }
        &mut self.command
    }

    /// Starts the program.
    ///
    /// If the start is given up, the command stays as it was, and can be started again. The program
    /// may have been started by then: see [`kill_on_drop`](Self::kill_on_drop).
    ///
    /// # Errors
    /// With the program in the message: not there, not permitted, no room for another process.
    pub async fn spawn(&mut self) -> io::Result<Child> {
        reap_orphans();
        let program: Arc<str> = self.command.get_program().to_string_lossy().into();
        let reason = || WaitReason { call: "start", object: Object::Name(program.clone()) };
        if let Some(loan) = &mut self.loan {
            self.command = with_reason(reason, loan.end()).await;
        }
        let named = process::Command::new(self.command.get_program());
        let (loan, mut lent) = Loan::of(mem::replace(&mut self.command, named));
        let loan = self.loan.insert(loan);
        let kill_on_drop = self.kill_on_drop;
        let started = Lane::Lookups.run(move || {
            let child = sys::start(lent.command());
            child.and_then(|child| Child::of(child, kill_on_drop))
        });
        let started = with_reason(reason, started).await;
        self.command = loan.end().await;
        self.loan = None;
        started?.map_err(self.starting())
    }

    /// Starts the program on the calling OS thread, which is blocked until the kernel has loaded
    /// the program: some 100 µs if its file is in the cache, and as long as a disk or a file server
    /// takes otherwise. Meanwhile no other thread of this worker runs. [`spawn`](Self::spawn)
    /// leaves that to the blocking pool, which costs two switches between OS threads.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    ///
    /// # Examples
    /// ```
    /// use selvedge::process::Command;
    ///
    /// selvedge::run_local(async {
    ///     let mut child = Command::new("true").spawn_here()?;
    ///     assert!(child.wait().await?.success());
    ///     std::io::Result::Ok(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_here(&mut self) -> io::Result<Child> {
        reap_orphans();
        let child = sys::start(self.as_std_mut());
        child.and_then(|child| Child::of(child, self.kill_on_drop)).map_err(self.starting())
    }

    /// Starts the program, and waits for its end.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    pub async fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn().await?.wait().await
    }

    /// Starts the program with empty standard input, and waits for its end and all that it writes
    /// to standard output and standard error.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn), and those of reading.
    pub async fn output(&mut self) -> io::Result<Output> {
        self.as_std_mut().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.spawn().await?.wait_with_output().await
    }

    fn starting(&self) -> impl FnOnce(io::Error) -> io::Error {
        doing(format!("start {}", self.command.get_program().display()))
    }
}

impl From<process::Command> for Command {
    fn from(command: process::Command) -> Command {
        Command { command, loan: None, kill_on_drop: false }
    }
}

/// A child process.
///
/// Dropping it does not end the child, except after [`Command::kill_on_drop`]. The kernel keeps the
/// status of a child that ends later. This crate clears it away when another child is started,
/// waited for or dropped.
#[derive(Debug)]
pub struct Child {
    id: Pid,
    /// The status with which the child has ended, after it is known.
    ended: Option<ExitStatus>,
    /// What a child of a [`Launcher`] reads before it is another program.
    orders: Option<Box<Orders>>,
    pidfd: Option<NonBlocking<Fd>>,
    kill_on_drop: bool,
    /// The child's standard input, if it is piped.
    pub stdin: Option<Sender>,
    /// The child's standard output, if it is piped.
    pub stdout: Option<Receiver>,
    /// The child's standard error, if it is piped.
    pub stderr: Option<Receiver>,
}

/// The pause between two looks at a child where there are no pidfds: the first, and the longest.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

impl Child {
    /// Takes over a started child with its descriptors.
    fn of(mut child: process::Child, kill_on_drop: bool) -> io::Result<Child> {
        let mut taken = Child::new(Pid::from_child(&child), None);
        taken.kill_on_drop = kill_on_drop;
        taken.stdin = child.stdin.take().map(|end| Sender::from_fd(OwnedFd::from(end))).transpose()?;
        taken.stdout = child.stdout.take().map(|end| Receiver::from_fd(OwnedFd::from(end))).transpose()?;
        taken.stderr = child.stderr.take().map(|end| Receiver::from_fd(OwnedFd::from(end))).transpose()?;
        Ok(taken)
    }

    /// A child without pipes. It reads its orders, if there are any, until it is another program.
    fn new(id: Pid, orders: Option<Box<Orders>>) -> Child {
        let (stdin, stdout, stderr) = (None, None, None);
        Child { id, ended: None, orders, pidfd: None, kill_on_drop: false, stdin, stdout, stderr }
    }

    /// The child's process number. No other process gets it before this process has waited for the
    /// child's end.
    pub fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the child's end, and returns its status. Closes its standard input first, so that
    /// the child does not wait for more. Later calls return the same status.
    ///
    /// # Errors
    /// Only if other code has waited for the child already, by `waitpid`.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        let (mut pause, id) = (LOOKS.0, self.id());
        loop {
            if let Some(status) = self.try_wait()? {
                reap_orphans();
                return Ok(status);
            }
            if self.pidfd.is_none() {
                // Most callers read the child's output to its end first, and then the child has
                // often ended, so a descriptor that was opened at the start would be of no use.
                // Without one (no room for a descriptor, a kernel that has none, a sandbox that
                // forbids it) the thread looks again and again.
                self.pidfd = sys::process_descriptor(id).ok().map(NonBlocking::assume);
            }
            match &self.pidfd {
                Some(pidfd) => with_reason(|| ending(id), pidfd.readable()).await?,
                None => {
                    with_reason(|| ending(id), sleep(pause)).await;
                    pause = (2 * pause).min(LOOKS.1);
                }
            }
        }
    }

    /// The child's status, if it has ended.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = ended(self.id)?;
        }
        Ok(self.ended)
    }

    /// Why the program of a child of a [`Launcher`] was not loaded. `None` if it was, and as long
    /// as it is not known that the child has ended.
    pub fn load_error(&self) -> Option<io::Error> {
        let error = self.orders.as_ref().filter(|_| self.ended.is_some())?.error()?;
        Some(error.into())
    }

    /// Waits for the child's end, and collects all that it writes to its piped standard streams, as
    /// far as they have not been taken out of this `Child`.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait), and those of reading.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let read = async |receiver: Option<Receiver>| match receiver {
            Some(receiver) => receiver.read_to_end().await,
            None => Ok(Vec::new()),
        };
        // The child may end only after both streams have been read.
        self.stdin = None;
        let (stdout, stderr) = join((read(stdout), read(stderr))).await;
        let status = self.wait().await?;
        Ok(Output { status, stdout: stdout?, stderr: stderr? })
    }

    /// Asks the child to end (SIGTERM), waits for its end, and kills it (SIGKILL) if it has not
    /// ended after `grace`. Returns its status.
    ///
    /// The child's standard input is closed first, because many programs end when it ends.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait), and if it is not this process's to signal: it has changed its
    /// user.
    ///
    /// # Examples
    /// ```
    /// use selvedge::process::Command;
    /// use std::os::unix::process::ExitStatusExt;
    /// use std::time::Duration;
    ///
    /// selvedge::run_local(async {
    ///     let mut sleep = Command::new("sleep").arg("3600").spawn().await?;
    ///     let status = sleep.stop(Duration::from_secs(10)).await?;
    ///     assert_eq!(status.signal(), Some(15)); // it heeded SIGTERM, and ended at once
    ///     std::io::Result::Ok(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "terminate")]
    pub async fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        match timeout(grace, self.wait()).await {
            Ok(ended) => ended,
            Err(_) => self.kill().await,
        }
    }

    /// Sends the child a signal. Nothing happens if the child has ended.
    ///
    /// # Errors
    /// If this process may not signal the child, or there is no such signal.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // Only `try_wait` waits for the child's end, and until then the number belongs to the
        // child.
        match self.try_wait()? {
            Some(_) => Ok(()),
            None => Ok(sys::signal_process(self.id(), signal.as_raw())?),
        }
    }

    /// Sends a signal to the child and to all processes of its group: the processes that it has
    /// started, if they have made no group of their own. Nothing happens if this `Child` has seen
    /// the child's end, because its number may belong to another group then.
    ///
    /// Only the child of a [`Launcher`] or of a [`Launch`] is sure to have a group of its own. (A
    /// [`Command`] gives it one by
    /// [`process_group`](std::os::unix::process::CommandExt::process_group).)
    ///
    /// # Errors
    /// As for [`signal`](Self::signal), and if the child leads no group.
    pub fn signal_group(&mut self, signal: Signal) -> io::Result<()> {
        match self.ended {
            Some(_) => Ok(()),
            None => Ok(sys::signal_group(self.id(), signal.as_raw())?),
        }
    }

    /// Ends the child and all processes of its group: asks them to end (SIGTERM), waits until the
    /// child has ended, but at most `grace`, and kills what is left of the group (SIGKILL). Returns
    /// the child's status. Otherwise like [`signal_group`](Self::signal_group).
    ///
    /// # Errors
    /// As for [`signal_group`](Self::signal_group), and for [`wait`](Self::wait).
    pub async fn stop_group(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.stdin = None;
        if self.ended.is_none() {
            self.signal_group(Signal::TERM)?;
            // The child is not waited for meanwhile, so the group keeps its number.
            let id = self.id();
            match sys::process_descriptor(id).ok().map(NonBlocking::assume) {
                Some(pidfd) => drop(timeout(grace, with_reason(|| ending(id), pidfd.readable())).await),
                None => with_reason(|| ending(id), sleep(grace)).await,
            }
            self.signal_group(Signal::from_raw(libc::SIGKILL))?;
        }
        self.wait().await
    }

    /// Kills the child (SIGKILL), and waits for its end.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.start_kill()?;
        self.wait().await
    }

    /// Kills the child (SIGKILL). Nothing happens if it has ended.
    ///
    /// # Errors
    /// If this process may not kill the child, because the child has changed its user.
    pub fn start_kill(&mut self) -> io::Result<()> {
        self.signal(Signal::from_raw(libc::SIGKILL))
    }
}

/// How a child has ended, if it has. The kernel forgets the child then.
fn ended(child: Pid) -> io::Result<Option<ExitStatus>> {
    let ended = waitpid(Some(child), WaitOptions::NOHANG)?;
    Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
}

/// The reason of the wait of a thread that waits for the end of a child.
fn ending(child: u32) -> WaitReason {
    WaitReason { call: "end", object: Object::Process(child) }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.kill_on_drop {
            let _ = self.start_kill();
        }
        if let Ok(None) = self.try_wait() {
            orphans().push((self.id, self.orders.take()));
        }
        reap_orphans();
    }
}

/// A child that no thread waits for, and what it may still read.
type Orphan = (Pid, Option<Box<Orders>>);

/// The kernel keeps the status of each orphan until this process asks for it.
static ORPHANS: Mutex<Vec<Orphan>> = Mutex::new(Vec::new());

fn orphans() -> MutexGuard<'static, Vec<Orphan>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reap_orphans() {
    orphans().retain(|(child, _)| matches!(ended(*child), Ok(None)));
}
