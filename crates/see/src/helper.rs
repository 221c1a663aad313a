//! The one OS thread of this crate: it watches over long steps ([`watchdog`]) and waits for signals
//! ([`on_signal`]). It starts with the first order.
//!
//! Programs call these two; `environment.rs` calls `watch` and `answer_signal`, for actions that
//! wake no thread. The difference matters for deadlocks: while the helper may run code of the
//! program, it counts as active (`core`'s `quiet.rs`), and no deadlock is reported.
//!
//! No code of the program runs under the lock of the [`Orders`], because an action may itself give
//! an order.

use crate::lock::lock;
use crate::{records, seats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use selvedge_core::Quiet;
use selvedge_core::observe::{self, ThreadId};
use selvedge_io::signal::{Signal, Signals, signals};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A step that has lasted too long already. Its thread lets no other thread of its CPU run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LongStep {
    /// The thread's number.
    pub thread: u32,
    /// The type of its future.
    pub name: &'static str,
    /// The name that it was [given](crate::named).
    pub called: Option<Arc<str>>,
    /// The number of the CPU that it holds up.
    pub cpu: u32,
    /// The name of that CPU's OS thread.
    pub os_thread: String,
    /// How long the step has lasted, at least.
    pub lasts: Duration,
}

impl fmt::Display for LongStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ", self.thread)?;
        if let Some(called) = &self.called {
            write!(f, "\"{called}\" ")?;
        }
        let LongStep { name, cpu, os_thread, lasts, .. } = self;
        write!(f, "({name}) has made no system call for {lasts:.0?}, and holds up cpu {cpu} ({os_thread})")
    }
}

/// The action for a long step.
type LongStepAction = Box<dyn Fn(&LongStep) + Send>;
/// The action for a signal.
type SignalAction = fn();

#[derive(Default)]
struct Orders {
    watch: Option<(Duration, LongStepAction)>,
    signals: Vec<(Signals, SignalAction)>,
    /// Whether the helper, the OS thread of this crate, has been started.
    running: bool,
    /// While the helper runs no code of the program's own, it wakes no thread: see
    /// [`helps`](Orders::helps).
    quiet: Option<Quiet>,
    /// Whether any order runs code of the program's own.
    runs_foreign_code: bool,
}

impl Orders {
    /// The helper begins. The actions of the library wake no thread, so the helper is quiet and a
    /// deadlock can be reported. An action of the program may wake any thread.
    fn helps(&mut self) {
        self.quiet = (!self.runs_foreign_code).then(Quiet::new);
    }

    /// From now on there is code of the program's own to run.
    fn run_foreign_code(&mut self) {
        self.runs_foreign_code = true;
        self.quiet = None;
    }
}

static ORDERS: Mutex<Option<Orders>> = Mutex::new(None);

/// Reports each step that lasts `limit` or longer, once, while it lasts: to `report`, on an OS
/// thread of its own. [`on`](crate::on) comes first. A later call replaces an earlier one.
///
/// `report` is code of the program's and may wake any thread. So no deadlock is reported from now
/// on.
///
/// It looks four times per `limit`, so that a step is reported when it has lasted that long and at
/// most half as long again.
///
/// # Panics
/// If no OS thread can be started.
pub fn watchdog(limit: Duration, report: impl Fn(&LongStep) + Send + 'static) {
    let earlier = order(|orders| {
        orders.run_foreign_code();
        orders.watch.replace((limit, Box::new(report)))
    });
    drop(earlier);
}

/// As [`watchdog`], with a report that wakes no thread.
pub(crate) fn watch(limit: Duration, report: impl Fn(&LongStep) + Send + 'static) {
    let earlier = order(|orders| orders.watch.replace((limit, Box::new(report))));
    drop(earlier);
}

/// When one of these signals comes, does what `answer` does, on an OS thread of its own; the
/// signals no longer do what they did. `answer` is code of the program's and may wake any thread.
/// So no deadlock is reported from now on.
///
/// # Errors
/// As for [`signals`].
///
/// # Panics
/// If no OS thread can be started.
///
/// # Examples
/// ```
/// use selvedge::signal::Signal;
///
/// selvedge::see::on();
/// selvedge::see::on_signal(&[Signal::USR1], || eprintln!("{}", selvedge::see::dump()))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_signal(which: &[Signal], answer: fn()) -> io::Result<()> {
    let signals = signals(which)?;
    order(|orders| {
        orders.run_foreign_code();
        orders.signals.push((signals, answer));
    });
    Ok(())
}

/// As [`on_signal`], with an answer that wakes no thread.
pub(crate) fn answer_signal(which: &[Signal], answer: fn()) -> io::Result<()> {
    let signals = signals(which)?;
    order(|orders| orders.signals.push((signals, answer)));
    Ok(())
}

/// Gives an order. The caller drops what `what` returns, without the lock.
fn order<T>(what: impl FnOnce(&mut Orders) -> T) -> T {
    let mut orders = lock(&ORDERS);
    let orders = orders.get_or_insert_default();
    let replaced = what(orders);
    if !std::mem::replace(&mut orders.running, true) {
        let helper = std::thread::Builder::new().name("selvedge-see".into());
        helper.spawn(help).expect("an OS thread for the watchdog");
    }
    replaced
}

/// The longest time until the helper finds a new order.
const LOOK: Duration = Duration::from_millis(100);

fn help() {
    lock(&ORDERS).get_or_insert_default().helps();
    let mut watched = Vec::new();
    loop {
        let (watch, answers) = {
            let mut orders = lock(&ORDERS);
            let orders = orders.get_or_insert_default();
            let answers: Vec<SignalAction> = orders
                .signals
                .iter_mut()
                .filter_map(|(signals, answer)| signals.try_next().map(|_| *answer))
                .collect();
            (orders.watch.take(), answers)
        };
        let mut wait = LOOK;
        if let Some((limit, report)) = watch {
            wait = wait.min(limit / 4);
            look(limit, &report, &mut watched);
            put_back((limit, report));
        }
        let waited = answers.is_empty();
        answers.into_iter().for_each(|answer| answer());
        if waited {
            wait_for_signals(wait);
        }
    }
}

/// Gives the order to watch back to the [`Orders`], unless a later one has come meanwhile.
fn put_back(watch: (Duration, LongStepAction)) {
    let replaced = order(|orders| match orders.watch {
        Some(_) => Some(watch),
        None => orders.watch.replace(watch),
    });
    drop(replaced);
}

/// Waits for the next signal, but not for longer than that.
fn wait_for_signals(limit: Duration) {
    let timeout = Timespec::try_from(limit.max(Duration::from_micros(100))).ok();
    let fds: Vec<_> = {
        let orders = lock(&ORDERS);
        let signals = orders.iter().flat_map(|orders| &orders.signals);
        signals.filter_map(|(signals, _)| signals.as_fd().try_clone_to_owned().ok()).collect()
    };
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    // An interruption is as good as a timeout.
    let _ = poll(&mut polled, timeout.as_ref());
    for (fd, _) in fds.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty()) {
        // Emptied, so that the next poll waits again.
        let _ = rustix::io::read(fd, &mut [0; 8]);
    }
}

/// A step that was seen running.
struct SeenStep {
    cpu: u32,
    thread: ThreadId,
    /// How many steps its CPU had made before.
    steps: u64,
    since: Instant,
    reported: bool,
}

fn look(limit: Duration, report: &LongStepAction, watched: &mut Vec<SeenStep>) {
    let running = observe::running();
    watched.retain(|seen| running.iter().any(|(running, _)| *running == seen.cpu));
    let seats = seats::seats();
    for (cpu, thread) in running {
        let Some(seat) = seats.iter().find(|seat| seat.cpu == cpu) else { continue };
        let steps = seat.counting.read().steps;
        watched.retain(|seen| seen.cpu != cpu || (seen.thread, seen.steps) == (thread, steps));
        if watched.iter().all(|seen| seen.cpu != cpu) {
            watched.push(SeenStep { cpu, thread, steps, since: Instant::now(), reported: false });
        }
        let Some(seen) = watched.iter_mut().find(|seen| seen.cpu == cpu) else { continue };
        let lasts = seen.since.elapsed();
        if lasts >= limit && !seen.reported {
            seen.reported = true;
            let name = thread.info().map_or("it is over", |info| info.name());
            let os_thread = seat.os_thread.clone();
            let called = records::called(thread);
            report(&LongStep { thread: thread.get(), name, called, cpu, os_thread, lasts });
        }
    }
}
