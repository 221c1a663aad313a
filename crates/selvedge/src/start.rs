//! A start that ends with the last thread, and a stop for all threads: [`start`], [`start_on`],
//! [`stop`], [`StartEnd`].
//!
//! Programs call them. The loop is `steps` of `core`. `stop` is a system call of this file's own
//! ([`StopAll`]), which [`UntilStop`] takes from the scheduler, so no thread runs after it.

use crate::{refuse_within, seeing};
use selvedge_core::observe::Lengths;
use selvedge_core::{Cpu, Events, Relief, RunError, Syscall, Trace, Unpark, call, steps};
use selvedge_io::EventLoop;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What [`start`] tells when no thread can run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartEnd {
    /// The threads that were blocked at the end: they waited for other threads, and no thread was
    /// left that could wake them. After a [`stop`], the threads that waited for other threads at
    /// that moment. Threads that wait for an event do not count.
    pub blocked: usize,
    /// Whether a thread called [`stop`].
    pub stopped: bool,
}

/// Runs `main` and the threads it creates on this OS thread, round-robin, until no thread can run
/// any more, and tells how many are blocked. These are cancelled.
///
/// [`run_local`](crate::run_local) ends with `main`, and there a thread that waits for ever is an
/// error. Here it may be how a program ends: a network of threads in which each has consumed its
/// input, for example.
///
/// # Errors
/// As for [`run_local`](crate::run_local), but for the deadlock, which is none here.
///
/// # Panics
/// If it is called within a thread. A panic of a thread, also of `main`, is reported and ends that
/// thread alone.
///
/// # Paper
/// [Del §2.1] `start`.
///
/// # Differences
/// 1. It tells how many threads stay blocked.
///
/// # Examples
/// ```
/// use selvedge::{MVar, spawn_local, start};
/// use std::rc::Rc;
///
/// let ended = start(async {
///     let numbers = Rc::new(MVar::empty_local());
///     let from = numbers.clone();
///     // The consumer never ends by itself.
///     drop(spawn_local(async move {
///         loop {
///             let _: u32 = from.take().await;
///         }
///     }));
///     for number in 0..10 {
///         numbers.put(number).await;
///     }
/// })?;
/// assert_eq!(ended.blocked, 1);
/// assert!(!ended.stopped);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn start(main: impl Future<Output = ()> + 'static) -> Result<StartEnd, RunError> {
    refuse_within("start()");
    let _seeing = seeing();
    let mut cpu = Cpu::new()?;
    let main = cpu.thread(main)?;
    cpu.make_ready(main);
    start_on(cpu, &mut EventLoop::new()?)
}

/// As [`start`], for the threads that have been created on this CPU, with an event source for them.
///
/// # Errors
/// As for [`start`].
///
/// # Panics
/// As [`start`].
///
/// # Examples
/// ```
/// use selvedge::{Cpu, StartEnd, NoEvents, start_on, yield_now};
///
/// let mut cpu = Cpu::new()?;
/// for _ in 0..1000 {
///     let thread = cpu.thread(yield_now())?;
///     cpu.make_ready(thread);
/// }
/// assert_eq!(start_on(cpu, &mut NoEvents::new())?, StartEnd::default());
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn start_on(mut cpu: Cpu, events: &mut impl Events) -> Result<StartEnd, RunError> {
    refuse_within("start_on()");
    let mut events = UntilStop { events, stopped: false };
    let ended = loop {
        match steps(&mut cpu, &mut events).and_then(|()| cpu.poll(&mut events, true)) {
            Ok(true) => {}
            Ok(false) | Err(RunError::Deadlock(_)) => break Ok(()),
            Err(_) if events.stopped => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let ended = ended.map(|()| StartEnd { blocked: cpu.waiting(), stopped: events.stopped });
    events.cancel_all(&mut cpu);
    ended
}

/// Ends all threads of the [`start`] that runs the calling thread, and with them the calling one:
/// no thread takes another step. Their destructors run, and `start` returns.
///
/// A thread awaits it by itself, and not within a `join` or `select`. Other runners do not know
/// this system call: there it is [`RunError::UnknownCall`].
///
/// # Paper
/// [Del §2.1] `stop`.
///
/// # Examples
/// ```
/// use selvedge::{spawn_local, start, stop, yield_now};
///
/// let ended = start(async {
///     drop(spawn_local(async {
///         loop {
///             yield_now().await;
///         }
///     }));
///     stop().await;
/// })?;
/// assert!(ended.stopped);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn stop() -> Infallible {
    call(StopAll).await
}

/// The system call of [`stop`]. It has no reply.
struct StopAll;

impl Syscall for StopAll {
    type Reply = Infallible;
}

/// An event source that takes [`StopAll`] too: it refuses the node, so that the scheduler's loop
/// ends at once.
struct UntilStop<'a, E> {
    events: &'a mut E,
    stopped: bool,
}

impl<E: Events> Events for UntilStop<'_, E> {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Call(call) if call.is::<StopAll>() => {
                self.stopped = true;
                Err(Trace::Call(call))
            }
            node => self.events.submit(cpu, node),
        }
    }

    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        self.events.poll(cpu, timeout)
    }

    fn armed(&self) -> usize {
        self.events.armed()
    }

    fn cancel_all(&mut self, cpu: &mut Cpu) {
        self.events.cancel_all(cpu);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.events.unparker()
    }

    fn relief(&self) -> Option<Weak<dyn Relief>> {
        self.events.relief()
    }

    fn lengths(&self, say: &mut Lengths<'_>) {
        self.events.lengths(say);
    }
}
