//! [`Running`]: a program that answers a request.
//!
//! Three threads have to do with it. The thread of the connection reads the program's output and
//! writes the request's body, both as futures of one task. The *keeper* owns the child: it ends the
//! child's process group when the time is over or the connection's thread has dropped the
//! [`Running`], and frees the slot when the child has ended. The third thread reads the error
//! output. The keeper and the connection's thread are on one OS thread, and share a [`Cell`].

use super::claimed_length::ClaimedLength;
use super::head::{self, BadHead, ProgramHead};
use crate::error_log::{ErrorLines, ErrorLog};
use crate::slots::ProgramSlot;
use bytes::Bytes;
use selvedge_core::{Time, spawn_local};
use selvedge_handler::{Body, BodyError, Cause};
use selvedge_io::pipe::{Receiver, Sender};
use selvedge_io::process::{Child, Launch};
use selvedge_io::time::{sleep_until, timeout, timeout_at};
use selvedge_scope::{Selected, select};
use selvedge_sync::{Local, Replier, Reply, one_shot_local};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

/// The time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);

/// The time from the kill to the end of the answer. A process that has left the group lives on, and
/// may hold the output.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// How long after the end of the output a program may be on its way out. One that goes on without
/// output delays the end of its answer by this time.
const LEAVING: Duration = Duration::from_millis(100);

/// The number of bytes that one read of the output asks for.
const PIECE_BYTES: usize = 16 << 10;

/// What the threads around a program have to know.
pub(crate) struct Orders {
    /// The program's name, for the log.
    pub(crate) program: String,
    pub(crate) limit: Duration,
    pub(crate) log: ErrorLog,
    pub(crate) slot: ProgramSlot,
}

/// Writes a request's body into a program.
type InputFeed = Pin<Box<dyn Future<Output = Result<(), BodyError>>>>;

/// A program, with a request's body on its way into it.
pub(crate) struct Running {
    stdout: Receiver,
    /// Writes the request's body; `None` when it has ended.
    feed: Option<InputFeed>,
    /// Why the request's body broke off.
    body_error: Option<BodyError>,
    /// Output that was read and not passed on.
    early: Vec<u8>,
    /// When the output is given up, whichever process holds it.
    until: Time,
    is_too_late: Rc<Cell<bool>>,
    /// Tells the keeper that the output has ended. Dropping it has the program ended.
    finished: Option<Replier<(), Local>>,
    outcome: Reply<Outcome, Local>,
}

/// How a program has ended.
#[derive(Debug)]
enum Outcome {
    NotLoaded(io::Error),
    Ended(ExitStatus),
}

/// Why a program gave no answer.
#[derive(Debug)]
pub(crate) enum ProgramFailure {
    TooLate,
    NotLoaded(io::Error),
    Ended(Option<ExitStatus>),
    BadHead(BadHead),
    Io(io::Error),
    /// The request's body broke off.
    Client(BodyError),
}

impl fmt::Display for ProgramFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramFailure::TooLate => f.write_str("no answer within the time limit"),
            ProgramFailure::NotLoaded(error) => write!(f, "the program cannot be started: {error}"),
            ProgramFailure::Ended(Some(status)) => write!(f, "it ended without an answer: {status}"),
            ProgramFailure::Ended(None) => f.write_str("it ended without an answer"),
            ProgramFailure::BadHead(BadHead(why)) => write!(f, "its answer is not valid: {why}"),
            ProgramFailure::Client(error) => write!(f, "the request broke off: {error}"),
            ProgramFailure::Io(error) => write!(f, "its answer could not be read: {error}"),
        }
    }
}

impl Running {
    /// Starts a program with `body` as its input.
    ///
    /// # Errors
    /// No room for another process or pipe.
    pub(crate) fn start(launch: &Launch, orders: Orders, body: Body) -> io::Result<Running> {
        let mut child = launch.start()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a program without streams"));
        };
        let Orders { program, limit, log, slot } = orders;
        let deadline = Time::now() + limit;
        let until = deadline + GRACE + AFTER_KILL;
        let lines = ErrorLines::new(log, program);
        drop(spawn_local(async move {
            // What holds the error output then is no part of the program.
            let _ = timeout_at(until, read_errors(&stderr, lines)).await;
        }));
        let is_too_late = Rc::new(Cell::new(false));
        let (finished, finish) = one_shot_local();
        let (outcome_end, outcome) = one_shot_local();
        let keeper = ProgramKeeper { child, until: deadline, is_too_late: is_too_late.clone(), _slot: slot };
        drop(spawn_local(async move {
            let ended = keeper.keep(finish).await;
            // The connection's thread may be gone.
            let _ = outcome_end.reply(ended);
        }));
        let feed = Some(Box::pin(feed(stdin, body)) as InputFeed);
        let finished = Some(finished);
        let early = Vec::new();
        Ok(Running { stdout, feed, body_error: None, early, until, is_too_late, finished, outcome })
    }

    /// Reads the head of the program's answer.
    ///
    /// # Errors
    /// Why there is none. The program is ended then.
    pub(crate) async fn head(&mut self, is_raw: bool) -> Result<ProgramHead, ProgramFailure> {
        loop {
            if let Some(length) = head::length(&self.early).map_err(ProgramFailure::BadHead)? {
                let rest = self.early.split_off(length);
                let head = std::mem::replace(&mut self.early, rest);
                return head::parse(&head, is_raw).map_err(ProgramFailure::BadHead);
            }
            let piece = match self.read().await {
                Ok(piece) => piece,
                Err(error) => {
                    return Err(self
                        .body_error
                        .take()
                        .map_or(ProgramFailure::Io(error), ProgramFailure::Client));
                }
            };
            if piece.is_empty() {
                return Err(self.unanswered().await);
            }
            self.early.extend_from_slice(&piece);
        }
    }

    /// Why the output ended before the head.
    async fn unanswered(&mut self) -> ProgramFailure {
        if self.is_too_late.get() {
            return ProgramFailure::TooLate;
        }
        let outcome = self.outcome.take().await;
        match outcome {
            _ if self.is_too_late.get() => ProgramFailure::TooLate,
            Ok(Outcome::NotLoaded(error)) => ProgramFailure::NotLoaded(error),
            Ok(Outcome::Ended(status)) => ProgramFailure::Ended(Some(status)),
            Err(_) => ProgramFailure::Ended(None),
        }
    }

    /// Reads output while the request's body flows in. Empty at the end, which it tells the keeper,
    /// and when the output is given up.
    async fn read(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = loop {
            let read = timeout_at(self.until, self.stdout.read(&mut piece));
            let read = match &mut self.feed {
                Some(feed) => select((read, feed.as_mut())).await,
                None => Selected::First(read.await),
            };
            match read {
                Selected::First(Ok(read)) => break read?,
                Selected::First(Err(_)) => {
                    self.is_too_late.set(true);
                    return Ok(Bytes::new());
                }
                Selected::Second(Ok(())) => self.feed = None,
                Selected::Second(Err(error)) => {
                    // The program must not take the part for the whole: its input stays open, and
                    // it is ended.
                    self.body_error = Some(error);
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        };
        if read == 0
            && let Some(finished) = self.finished.take()
        {
            // The keeper may have seen the end before.
            let _ = finished.reply(());
        }
        piece.truncate(read);
        Ok(piece.into())
    }

    /// Whether a signal has ended the program, of which the output has ended.
    async fn is_killed(&mut self) -> bool {
        let ended = timeout(LEAVING, self.outcome.take()).await;
        matches!(ended, Ok(Ok(Outcome::Ended(status))) if status.signal().is_some())
    }

    /// The rest of the output as the body of an answer. The end of the output is the end of a body
    /// without a length, unless a signal has ended the program.
    pub(crate) fn into_body(mut self, length: Option<u64>) -> Body {
        Body::produce(async move |mut out| {
            let mut measured = ClaimedLength::new(length);
            let mut piece = Bytes::from(std::mem::take(&mut self.early));
            loop {
                let taken = measured.take(piece);
                if !taken.is_empty() {
                    out.put(taken).await;
                }
                piece = self.read().await?;
                if piece.is_empty() {
                    break;
                }
            }
            if self.is_too_late.get() {
                return Err(BodyError::new(Cause::TimedOut));
            }
            if length.is_none() && self.is_killed().await {
                return Err(BodyError::failed("a signal has ended the program amid its answer"));
            }
            measured.end().map_err(BodyError::from)
        })
    }

    /// Lets the program run to its end, although its output is not wanted.
    pub(crate) fn run_on(mut self) {
        drop(spawn_local(async move { while self.read().await.is_ok_and(|piece| !piece.is_empty()) {} }));
    }
}

/// Writes a request's body into a program. A program need not read it: what it says counts.
async fn feed(stdin: Sender, mut body: Body) -> Result<(), BodyError> {
    while let Some(piece) = body.next().await.transpose()? {
        if stdin.write_all(&piece).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn read_errors(stderr: &Receiver, mut lines: ErrorLines) {
    let mut piece = vec![0; 4 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        lines.put(&piece[..read]);
    }
}

/// The owner of a program.
struct ProgramKeeper {
    child: Child,
    until: Time,
    is_too_late: Rc<Cell<bool>>,
    _slot: ProgramSlot,
}

impl ProgramKeeper {
    /// Waits for the program's end, or brings it about.
    async fn keep(mut self, mut finish: Reply<(), Local>) -> Outcome {
        let ended = match select((finish.take(), sleep_until(self.until))).await {
            // It has closed its output, and may have something to do yet.
            Selected::First(Ok(())) => match timeout_at(self.until, self.child.wait()).await {
                Ok(ended) => ended,
                Err(_) => self.child.stop_group(GRACE).await,
            },
            // The client is gone.
            Selected::First(Err(_)) => self.child.stop_group(GRACE).await,
            Selected::Second(()) => {
                self.is_too_late.set(true);
                self.child.stop_group(GRACE).await
            }
        };
        match (self.child.load_error(), ended) {
            (Some(error), _) | (None, Err(error)) => Outcome::NotLoaded(error),
            (None, Ok(status)) => Outcome::Ended(status),
        }
    }
}
