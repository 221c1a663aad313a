//! Event sources as a scheduler sees them ([`Events`], [`Unpark`]), and a scheduler's turn at its
//! event source ([`Cpu::poll`]), which also finds deadlocks.
//!
//! The event loops of `selvedge-io` implement [`Events`]. The schedulers call [`Cpu::poll`].

use crate::directory::Entry;
use crate::observer::Lengths;
use crate::trace::Trace;
use crate::unpark::Unpark;
use crate::vtable::HandleSite;
use crate::{Cpu, Deadlock, Quiet, Time, body, directory, quiet, standstill};
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A source of events that a scheduler drives: an event loop.
///
/// It takes over the trace nodes that it knows, together with their threads. When the event of a
/// node has happened, it returns the thread through [`Cpu::make_ready`]. For a detached request it
/// wakes the waker with [`Cpu::wake`].
///
/// # Paper
/// [LZ07 §4.2]: `worker_epoll` and its like, with [LZ07 Figure 16]: the registered event carries
/// the continuation.
pub trait Events {
    /// Takes over a request, or all of [`Cpu::detached`] for [`Trace::Detached`].
    ///
    /// # Errors
    /// Gives back a node that it does not know. A scheduler that has no other use for the node
    /// drops it, which cancels its thread.
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace>;

    /// Looks for events. It waits for the first event at most for `timeout`, or without limit.
    ///
    /// # Errors
    /// If the system's event interface fails. The threads that wait stay in the event source.
    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()>;

    /// The number of awaited events that could make a thread ready. With 0, a `poll` without a
    /// limit returns only if it is unparked.
    fn armed(&self) -> usize;

    /// Cancels the threads that are left in it, and forgets the wakers. A scheduler calls this
    /// before its CPU is dropped.
    fn cancel_all(&mut self, cpu: &mut Cpu);

    /// The handle that wakes a `poll` of this source from another OS thread. It is for the CPU;
    /// other code uses the [`unparker`](Cpu::unparker) of the CPU.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// The handle by which another OS thread serves the threads that wait in this source, while the
    /// OS thread of the source is in a long step or sleeps. `None`, the default, if no other OS
    /// thread can serve them.
    fn relief(&self) -> Option<Weak<dyn Relief>> {
        None
    }

    /// Tells the observer of the program the lengths of its queues, with their names.
    fn lengths(&self, _say: &mut Lengths<'_>) {}
}

/// An event source, as another OS thread serves it while the OS thread of the source is busy, or
/// sleeps.
pub trait Relief: fmt::Debug + Send + Sync {
    /// Looks for events without waiting, and wakes their threads with [`Cpu::wake`] of `cpu`. A
    /// mobile thread then runs on `cpu`. A thread that was submitted with its trace node goes on
    /// when the OS thread of the source polls, and ends that OS thread's wait. Gives the number of
    /// threads that were woken. It is 0 if the OS thread of the source works on the source at the
    /// moment.
    ///
    /// # Errors
    /// If the system's event interface fails.
    fn relieve(&self, cpu: &mut Cpu) -> io::Result<usize>;
}

/// The event source for threads that wait only for one another and for foreign wakers.
#[derive(Debug, Default)]
pub struct NoEvents(());

impl NoEvents {
    /// A new one. There is nothing to set up.
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

/// The reason why a scheduler could not go on.
#[non_exhaustive]
pub enum RunError {
    /// There is no address space for threads, or no room for one more.
    Memory(String),
    /// The event source failed.
    Io(io::Error),
    /// All threads that are left wait, and no thread or event can wake them.
    Deadlock(Deadlock),
    /// The main thread was ended by `exit`, and has no result.
    MainExited,
    /// A thread made a request that neither the scheduler nor its event source knows. The thread
    /// was cancelled.
    UnknownCall(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Memory(e) => f.write_str(e),
            RunError::Io(e) => write!(f, "waiting for events: {e}"),
            RunError::Deadlock(d) => d.fmt(f),
            RunError::MainExited => f.write_str("the main thread called exit() and has no result"),
            RunError::UnknownCall(call) => {
                write!(f, "neither the scheduler nor its event source serves the system call {call}")
            }
        }
    }
}

/// Writes the same words as `Display`, because a `main` that returns a `Result` prints its error
/// with `Debug`.
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

impl From<crate::ArenaFullError> for RunError {
    fn from(e: crate::ArenaFullError) -> RunError {
        RunError::Memory(e.to_string())
    }
}

impl From<crate::CpuError> for RunError {
    fn from(e: crate::CpuError) -> RunError {
        RunError::Memory(e.to_string())
    }
}

impl From<Trace> for RunError {
    /// A node that no event source takes. Its thread is cancelled.
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

/// The first and the longest time for which a CPU waits for an unknown OS thread, before it checks
/// whether that OS thread still exists. Each time is twice as long as the one before.
pub(crate) const SUSPICION_MIN: Duration = Duration::from_millis(1);
const SUSPICION_MAX: Duration = Duration::from_millis(250);

impl Cpu {
    /// A scheduler's turn at the event source. It looks for events. If the scheduler is `idle`, it
    /// also waits for one: an idle scheduler has no thread to run, except for threads that
    /// [`woken`](Cpu::woken) may return. False when no thread is left. In a [`Group`](crate::Group)
    /// it is always true, because the other CPUs may have threads.
    ///
    /// Mail ends the wait, for example a wake-up from another OS thread. Unparking the event source
    /// ends it too.
    ///
    /// # Errors
    /// - [`RunError::Io`] if the event source fails.
    /// - [`RunError::Deadlock`] if the scheduler is idle, threads wait for other threads, and
    ///   nothing is left that could wake one: no event is awaited, and every other OS thread of the
    ///   process is [`Quiet`]. (While the process has active OS threads, `poll` waits and checks
    ///   again, in the end four times a second.) In a group, one CPU or several report it when all
    ///   of them sleep, with the places of the threads alone. When all CPUs of the group have
    ///   stopped, [`deadlock`](Cpu::deadlock) of each says more.
    pub fn poll<E: Events + ?Sized>(&mut self, events: &mut E, idle: bool) -> Result<bool, RunError> {
        self.poll_or_wait(events, idle, None)
    }

    /// As [`poll`](Cpu::poll) of an idle scheduler. With a `limit`, it waits at most for that time.
    /// It may return sooner.
    ///
    /// # Errors
    /// As for [`poll`](Cpu::poll).
    pub fn poll_for<E: Events + ?Sized>(
        &mut self,
        events: &mut E,
        limit: Option<Duration>,
    ) -> Result<bool, RunError> {
        self.poll_or_wait(events, true, limit)
    }

    #[inline]
    fn poll_or_wait<E: Events + ?Sized>(
        &mut self,
        events: &mut E,
        idle: bool,
        limit: Option<Duration>,
    ) -> Result<bool, RunError> {
        if self.turn() {
            self.survey_all(|say| events.lengths(say));
        }
        if self.has_woken() || !idle {
            self.inner().suspicion.set(SUSPICION_MIN);
            if events.armed() > 0 {
                events.poll(self, Some(Duration::ZERO))?;
            }
            return Ok(true);
        }
        if self.inner().has_detached() {
            // A thread that panicked has left these requests, or a destructor has.
            events.submit(self, Trace::Detached)?;
            return Ok(true);
        }
        if events.armed() > 0 {
            self.sleep(events, |cpu, events| Ok(events.poll(cpu, limit)?))?;
            return Ok(true);
        }
        let alone = self.inner().members.is_none();
        if alone && self.waiting() == 0 {
            return Ok(false);
        }
        // The order matters. `may_be_cancelled` lists the threads, and in a group a listing may
        // make a mobile thread ready. That thread would then lie in the queue of a CPU that goes to
        // sleep.
        if alone
            && self.waiting() == self.waiting_here()
            && !self.inner().is_reached()
            && !self.may_be_cancelled()
        {
            return Err(RunError::Deadlock(self.deadlock()));
        }
        let mut is_deadlock = false;
        self.sleep(events, |cpu, events| {
            let entry = cpu.inner().entry;
            entry.inbox.declare(Quiet::of_scheduler);
            // A CPU of the group that is awake is active, and checks for itself before it sleeps.
            // If two fall asleep at once, the scheduler that is declared quiet last finds that the
            // other sleeps.
            let members = cpu.inner().members.as_ref();
            let suspicious = members.is_none_or(|members| members.all_asleep_but(entry));
            if suspicious && quiet::are_all_quiet() && cpu.waiting() > 0 {
                is_deadlock = true;
                return Ok(());
            }
            let suspicion = cpu.inner().suspicion.get();
            if suspicion == SUSPICION_MIN {
                cpu.inner().suspicious_since.set(Some(Time::now()));
            }
            if let Some(since) = cpu.inner().suspicious_since.get() {
                standstill::notice(since);
            }
            cpu.inner().suspicion.set(SUSPICION_MAX.min(2 * suspicion));
            let suspicion = suspicious.then_some(suspicion);
            Ok(events.poll(cpu, limit.into_iter().chain(suspicion).min())?)
        })?;
        match is_deadlock {
            true if alone => Err(RunError::Deadlock(self.deadlock())),
            // The other CPUs of the group may not have stopped, so no thread is asked yet.
            true => Err(RunError::Deadlock(Deadlock { threads: self.threads() })),
            false => Ok(true),
        }
    }

    /// Runs `wait` while the inbox says that the owner sleeps, so that mail wakes it. If there is
    /// mail already, it does nothing.
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

    /// Whether an OS thread elsewhere may hold the handle of one of the threads that wait here for
    /// one another, and may cancel that thread. A handle that a thread of this CPU is about to join
    /// is taken to be that thread's.
    fn may_be_cancelled(&self) -> bool {
        let cpu = self.inner();
        self.threads().iter().filter(|thread| thread.waits_here()).any(|waits| {
            let key = waits.thread().0;
            // SAFETY: `threads` has listed the thread as one that waits here, and it stays in this
            // CPU's keeping, because only this OS thread could resume it.
            match unsafe { body::handle(key) } {
                HandleSite::None => false,
                HandleSite::AwaitedBy(id, joiner) => !(id == cpu.step.id && cpu.joins_here(joiner, key)),
                HandleSite::Anywhere => true,
            }
        })
    }

    /// The handle that ends a wait of this CPU's [`poll`](Cpu::poll) from another OS thread. If the
    /// CPU is not waiting, its next wait ends at once.
    ///
    /// A scheduler wakes its other CPUs with this handle and not with the [event
    /// source's](Events::unparker), because the CPU does not notice the latter. The search for
    /// deadlocks would count the CPU as asleep, and could report a deadlock that is none.
    pub fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::new(Caller(self.inner().entry))
    }
}

/// Calls a CPU. When that CPU is gone, this calls a later CPU with the same number. That CPU then
/// looks for events once too often.
struct Caller(&'static Entry);

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Unpark for Caller {
    fn unpark(&self) {
        directory::call(self.0);
    }
}
