//! Event sources as a scheduler sees them, and what it means that there is nothing left to do.

use crate::observe::Lengths;
use crate::thread::{self, Handle};
use crate::trace::Trace;
use crate::{Cpu, Deadlock, directory};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A source of events that a scheduler drives: an event loop.
///
/// It takes over the trace nodes it knows, threads and all, and returns the threads through
/// [`Cpu::make_ready`] (or, for detached requests, wakes their wakers with [`Cpu::wake`]) when what they wait for has
/// happened.
///
/// # Paper
/// [LZ07 §4.2]: `worker_epoll` and its like, with [LZ07 Figure 16]: the registered event carries the continuation.
pub trait Events {
    /// Takes over a request, or all of [`Cpu::detached`] for [`Trace::Any`].
    ///
    /// # Errors
    /// Gives back a node that it does not know. A scheduler that has no other use for it drops it, which cancels its
    /// thread.
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace>;

    /// Looks for events, waiting for the first at most `timeout`, or without limit.
    ///
    /// # Errors
    /// If the system's event interface fails; the threads that wait stay where they are.
    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()>;

    /// How many things it waits for that could make a thread ready. With 0, `poll` without a limit returns only if it is
    /// unparked.
    fn armed(&self) -> usize;

    /// Cancels the threads that are left in it, and forgets the wakers. A scheduler calls it before its CPU goes.
    fn cancel_all(&mut self, cpu: &mut Cpu);

    /// What wakes a `poll` of this source from another OS thread.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// Tells the lengths of its queues, by name, to whoever observes the program.
    fn lengths(&self, _say: &mut Lengths<'_>) {}
}

/// Wakes an OS thread that waits in [`Events::poll`]. The next poll returns at once if none is waiting.
pub trait Unpark: fmt::Debug + Send + Sync {
    /// Makes the poll return.
    fn unpark(&self);
}

/// The event source of programs whose threads wait only for one another and for foreign wakers.
#[derive(Debug, Default)]
pub struct NoEvents(());

impl NoEvents {
    /// It has nothing to set up.
    pub fn new() -> NoEvents {
        NoEvents(())
    }
}

#[derive(Debug)]
struct StdThread(std::thread::Thread);

impl Unpark for StdThread {
    fn unpark(&self) {
        self.0.unpark();
    }
}

impl Events for NoEvents {
    fn submit(&mut self, _: &mut Cpu, node: Trace) -> Result<(), Trace> {
        Err(node)
    }

    fn poll(&mut self, _: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        match timeout {
            None => std::thread::park(),
            Some(Duration::ZERO) => {}
            Some(d) => std::thread::park_timeout(d),
        }
        Ok(())
    }

    fn armed(&self) -> usize {
        0
    }

    fn cancel_all(&mut self, _: &mut Cpu) {}

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::new(StdThread(std::thread::current()))
    }
}

/// Why a scheduler could not go on.
#[non_exhaustive]
pub enum RunError {
    /// No address space for threads, or no room for one more.
    Memory(String),
    /// The event source failed.
    Io(io::Error),
    /// All threads that are left wait, and nothing can wake them.
    Deadlock(Deadlock),
    /// The main thread was ended by `exit`, and has no result.
    MainExited,
    /// A thread asked for something that neither the scheduler nor its event source knows. It was cancelled.
    UnknownCall(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Memory(e) => f.write_str(e),
            RunError::Io(e) => write!(f, "waiting for events: {e}"),
            RunError::Deadlock(d) => d.fmt(f),
            RunError::MainExited => f.write_str("the main thread called exit() and has no result"),
            RunError::UnknownCall(call) => write!(f, "no one here serves the system call {call}"),
        }
    }
}

/// The same words, because a `main` that returns a `Result` prints its error so.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl From<io::Error> for RunError {
    fn from(e: io::Error) -> RunError {
        RunError::Io(e)
    }
}

impl From<crate::ArenaFull> for RunError {
    fn from(e: crate::ArenaFull) -> RunError {
        RunError::Memory(e.to_string())
    }
}

impl From<crate::Unavailable> for RunError {
    fn from(e: crate::Unavailable) -> RunError {
        RunError::Memory(e.to_string())
    }
}

impl From<Trace> for RunError {
    /// A node that nobody takes. Its thread is cancelled.
    fn from(node: Trace) -> RunError {
        RunError::UnknownCall(match &node {
            Trace::Wait(w) => {
                format!("Wait, asked by {}: there is no event source for descriptors", w.thread.name())
            }
            Trace::Sleep(_) => "Sleep: there is no event source for time".into(),
            Trace::Call(call) => call.to_string(),
            other => format!("{other:?}"),
        })
    }
}

/// OS threads that are known not to wake any thread unless they are woken first.
static QUIET: AtomicUsize = AtomicUsize::new(0);

/// For as long as it lives, the calling OS thread declares that it does nothing until somebody gives it work. The helper
/// threads of an event source hold one while they idle, so that a deadlock can be told from waiting for them.
#[derive(Debug)]
pub struct Quiet(());

impl Quiet {
    /// The calling OS thread is quiet from now on.
    #[expect(clippy::new_without_default, reason = "it is a declaration, not a value")]
    pub fn new() -> Quiet {
        QUIET.fetch_add(1, Ordering::SeqCst);
        Quiet(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often a CPU that waits for an unknown OS thread looks whether that thread still exists.
const SUSPICION: Duration = Duration::from_millis(250);

impl Cpu {
    /// A scheduler's turn at the event source: it looks for events, and waits for one if the scheduler is `idle`, that is, has
    /// no thread to run but those that [`woken`](Cpu::woken) may return. False when no thread is left; in a [`Group`](crate::Group) the
    /// others may have some, so that it is always true.
    ///
    /// Mail, as that of a waker on another OS thread, ends the wait; so does unparking the event source.
    ///
    /// # Errors
    /// - [`RunError::Io`] if the event source fails.
    /// - [`RunError::Deadlock`] if the scheduler is idle, threads wait for other threads, and nothing is left that could wake
    ///   one: no event is awaited, no message is under way, and no other OS thread could send one. (While the process
    ///   has OS threads of which that is not known, this waits, and looks again four times a second.) In a group it is reported by one CPU,
    ///   or by several, when all of them sleep.
    pub fn poll<E: Events + ?Sized>(&mut self, events: &mut E, idle: bool) -> Result<bool, RunError> {
        if self.turn() {
            self.survey_all(events);
        }
        if self.has_woken() || !idle {
            if events.armed() > 0 {
                events.poll(self, Some(Duration::ZERO))?;
            }
            return Ok(true);
        }
        if self.inner().has_detached() {
            // Left by a thread that panicked, or by a destructor.
            events.submit(self, Trace::Any)?;
            return Ok(true);
        }
        if events.armed() > 0 {
            self.sleep(events, |cpu, events| Ok(events.poll(cpu, None)?))?;
            return Ok(true);
        }
        let alone = self.inner().members.is_none();
        if alone && self.waiting() == 0 {
            return Ok(false);
        }
        if alone && self.waiting() == self.waiting_here() && !self.may_be_cancelled() {
            return Err(RunError::Deadlock(self.deadlock()));
        }
        self.sleep(events, |cpu, events| {
            let _quiet = Quiet::new();
            if cpu.nobody_else_is_awake() && cpu.waiting() > 0 {
                return Err(RunError::Deadlock(cpu.deadlock()));
            }
            // A CPU of the group that is awake looks for itself before it sleeps.
            let members = cpu.inner().members.as_ref();
            let suspicious = members.is_none_or(|members| members.all_asleep_but(cpu.inner().entry));
            Ok(events.poll(cpu, suspicious.then_some(SUSPICION))?)
        })?;
        Ok(true)
    }

    /// Does `wait` as a sleeper, whom mail wakes; nothing if there is mail already.
    fn sleep<E: Events + ?Sized>(
        &mut self,
        events: &mut E,
        wait: impl FnOnce(&mut Cpu, &mut E) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let entry = self.inner().entry;
        self.inner().know_unparker(events.unparker());
        if !entry.inbox.sleep() {
            return Ok(());
        }
        self.inner().tell(|observer| observer.asleep());
        let waited = wait(self, events);
        self.inner().tell(|observer| observer.awake());
        entry.inbox.wake();
        waited
    }

    fn has_woken(&self) -> bool {
        self.inner().has_woken()
    }

    /// Whether somebody on another OS thread may hold the handle of one of the threads that wait here for one another, and cancel it. The
    /// handle that a thread is about to join is taken to be that thread's.
    fn may_be_cancelled(&self) -> bool {
        let cpu = self.inner();
        self.threads().iter().filter(|thread| thread.waits_here()).any(|waits| {
            let key = waits.thread().0;
            // SAFETY: it waits in this CPU's keeping.
            match unsafe { thread::handle(key) } {
                Handle::None => false,
                Handle::AwaitedBy(id, joiner) => !(id == cpu.step.id && cpu.joins_here(joiner, key)),
                Handle::Anywhere => true,
            }
        })
    }

    /// Whether all OS threads of the process are quiet, this one included, and no message is on its way to any.
    ///
    /// A CPU leaves quiet before it leaves ASLEEP, and a message moves its state to MAIL. So if the count is full and then
    /// all CPUs are found asleep, nobody was awake in between.
    fn nobody_else_is_awake(&self) -> bool {
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
        QUIET.load(Ordering::SeqCst) == tasks.count()
            && directory::all_asleep_but(self.inner().entry)
            && self.inner().entry.inbox.is_asleep()
    }
}
