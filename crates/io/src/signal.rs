//! Signals as events: a thread awaits the next SIGTERM as it awaits the next connection.
//!
//! # The recipe
//!
//! 1. **System call and node.** [`Signals::next`] takes a pending signal, and otherwise waits until
//!    the eventfd of its subscription is readable ([`Trace::Wait`](selvedge_core::Trace::Wait)).
//! 2. **Interpret and register.** [`signals`] installs a handler for each signal and takes a
//!    subscription: a mask, a set of pending signals and an eventfd. The eventfd is registered like
//!    every descriptor.
//! 3. **Event loop.** The handler, which the kernel runs on some OS thread, marks the signal as
//!    pending in each subscription that wants it and writes to its eventfd; the epoll loop does the
//!    rest.
//!
//! No signal is blocked, and no OS thread exists for signals. So a program may subscribe at any
//! time, before or after other OS threads have started, and child processes inherit no signal mask.
//!
//! # Other libraries' handlers
//!
//! Our handler calls the handler that was installed before it, after its own work. If another
//! library installs a handler over ours, that handler stays when the last subscription is dropped.
//! Such a handler may call ours, because it has found ours installed. Then our handler may be below
//! and above the same handler. So our handler calls only the handler that it found at its first
//! installation. That handler cannot know ours, so no circle arises.

use crate::NonBlocking;
use crate::sys::{self, Action, Fd};
use crate::wait_reason::with_reason;
use rustix::io::Errno;
use selvedge_core::observe::{Object, WaitReason};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// A signal's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal(i32);

impl Signal {
    /// The user pressed Ctrl-C.
    pub const INT: Signal = Signal(libc::SIGINT);
    /// The request to end.
    pub const TERM: Signal = Signal(libc::SIGTERM);
    /// The terminal is gone; to servers: read the configuration again.
    pub const HUP: Signal = Signal(libc::SIGHUP);
    /// The user pressed Ctrl-\.
    pub const QUIT: Signal = Signal(libc::SIGQUIT);
    /// Free for programs to use; to servers: open the log files again.
    pub const USR1: Signal = Signal(libc::SIGUSR1);
    /// Free for programs to use.
    pub const USR2: Signal = Signal(libc::SIGUSR2);
    /// A child process has ended or stopped.
    pub const CHLD: Signal = Signal(libc::SIGCHLD);
    /// The terminal has another size.
    pub const WINCH: Signal = Signal(libc::SIGWINCH);

    /// The signal with a number, for those not named here.
    pub const fn from_raw(number: i32) -> Signal {
        Signal(number)
    }

    /// The signal's number.
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    /// The signal's bit in a mask. `None` if no thread can await the signal: there is no such
    /// signal, it cannot be caught, or the faulty instruction behind it would be repeated for ever.
    #[doc(hidden)]
    pub fn bit(self) -> Option<u64> {
        use libc::{SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTRAP};
        let awaitable = (1..=64).contains(&self.0)
            && ![SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP].contains(&self.0);
        awaitable.then(|| 1 << (self.0 - 1))
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Signal::INT => "INT",
            Signal::TERM => "TERM",
            Signal::HUP => "HUP",
            Signal::QUIT => "QUIT",
            Signal::USR1 => "USR1",
            Signal::USR2 => "USR2",
            Signal::CHLD => "CHLD",
            Signal::WINCH => "WINCH",
            Signal(number) => return write!(f, "signal {number}"),
        };
        write!(f, "SIG{name}")
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Subscribes to signals. From now on they go to the returned [`Signals`], and the kernel's default
/// action no longer happens. A handler that another library has installed before is called all the
/// same.
///
/// When the last subscription to a signal is dropped, the signal has again the action that it had
/// before the first subscription. But if another library has installed a handler meanwhile, that
/// handler stays. (While it is installed, signals reach the subscriptions only if it calls the
/// handler that it has found.)
///
/// # Errors
/// - `InvalidInput` for a signal that cannot be awaited (SIGKILL, SIGSTOP, faults such as SIGSEGV).
/// - `ResourceBusy` when the process has 16 subscriptions already.
/// - The error of `eventfd` when there are no descriptors left.
///
/// # Examples
/// ```no_run
/// # async fn f() -> std::io::Result<()> {
/// use selvedge::signal::{Signal, signals};
///
/// let mut signals = signals(&[Signal::TERM, Signal::INT])?;
/// let signal = signals.next().await?;
/// println!("{signal}: finishing what is in flight");
/// # Ok(()) }
/// ```
#[doc(alias = "ctrl_c")]
pub fn signals(wanted: &[Signal]) -> io::Result<Signals> {
    let mut mask = 0;
    for &signal in wanted {
        let text = || io::Error::new(io::ErrorKind::InvalidInput, format!("{signal} cannot be awaited"));
        mask |= signal.bit().ok_or_else(text)?;
    }
    if let Some(subscription) = sys::simulated_signals(mask) {
        return Ok(Signals { source: Source::Simulated(NonBlocking::unserved(subscription?)), mask });
    }
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(slot) = (0..SUBSCRIPTIONS_MAX).find(|&i| !table.taken[i]) else {
        let text = format!("{SUBSCRIPTIONS_MAX} subscriptions to signals are open already");
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    };
    let subscription = &SUBSCRIPTIONS[slot];
    let eventfd = match subscription.eventfd.load(SeqCst) {
        NO_EVENTFD => {
            let eventfd = sys::eventfd()?;
            let copy = sys::duplicate(&eventfd)?;
            subscription.eventfd.store(eventfd.into_raw_fd(), SeqCst);
            copy
        }
        // SAFETY: the eventfd of a subscription is never closed once it is made.
        eventfd => sys::duplicate(unsafe { BorrowedFd::borrow_raw(eventfd) })?,
    };
    // The mask is set before the handlers are installed, so each signal either has its former
    // action or is delivered.
    subscription.pending.store(0, SeqCst);
    subscription.mask.store(mask, SeqCst);
    for signal in in_mask(mask) {
        if let Err(error) = table.subscribe(signal) {
            subscription.mask.store(0, SeqCst);
            in_mask(mask).take_while(|&done| done != signal).for_each(|done| table.unsubscribe(done));
            return Err(error);
        }
    }
    table.taken[slot] = true;
    Ok(Signals { source: Source::Process { slot, eventfd: NonBlocking::unserved(eventfd) }, mask })
}

/// A subscription to signals, created by [`signals`].
#[derive(Debug)]
pub struct Signals {
    source: Source,
    /// The signals of this subscription.
    mask: u64,
}

#[derive(Debug)]
enum Source {
    Process {
        slot: usize,
        eventfd: NonBlocking<Fd>,
    },
    /// A subscription in a simulated kernel, in which `selvedge-sim` raises signals.
    Simulated(NonBlocking<Fd>),
}

impl Signals {
    /// The names of the signals of this subscription.
    fn names(&self) -> String {
        let names = in_mask(self.mask).map(|signal| signal.to_string());
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Waits for the next signal of this subscription. Several signals of one kind that come in
    /// before the thread awaits them are merged into one, as in the kernel. Of several kinds the
    /// lowest number comes first.
    ///
    /// # Errors
    /// Only if the eventfd cannot be read, which does not happen.
    pub async fn next(&mut self) -> io::Result<Signal> {
        // Here and not in `signals`, because `selvedge-see` subscribes in every program and never
        // awaits: so a program without waits has no such loop linked into it.
        crate::reactor::fallback::install();
        loop {
            if let Some(signal) = self.try_next() {
                return Ok(signal);
            }
            let reason = || WaitReason { call: "get", object: Object::Name(self.names().into()) };
            match &self.source {
                Source::Process { eventfd, .. } => {
                    let read = |eventfd: &Fd| Ok(sys::read(eventfd, &mut [0; 8])?);
                    with_reason(reason, eventfd.read_with(read)).await?;
                }
                Source::Simulated(subscription) => {
                    let take = |subscription: &Fd| Ok(sys::take_simulated_signal(subscription)?);
                    return Ok(Signal(with_reason(reason, subscription.read_with(take)).await? as i32));
                }
            }
        }
    }

    /// The next signal that has come in already.
    pub fn try_next(&mut self) -> Option<Signal> {
        let slot = match &self.source {
            Source::Process { slot, .. } => *slot,
            Source::Simulated(subscription) => {
                return sys::take_simulated_signal(subscription.get_ref()).ok().map(|n| Signal(n as i32));
            }
        };
        let pending = &SUBSCRIPTIONS[slot].pending;
        let signal = in_mask(pending.load(SeqCst)).next()?;
        pending.fetch_and(!(1 << (signal.0 - 1)), SeqCst);
        Some(signal)
    }
}

/// The descriptor that becomes readable with each signal: for code that waits for it by
/// other means than [`Signals::next`], then reads it empty and calls [`Signals::try_next`].
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::Process { eventfd, .. } => eventfd.as_fd(),
            Source::Simulated(subscription) => subscription.as_fd(),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let Source::Process { slot, .. } = self.source else { return };
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let mask = SUBSCRIPTIONS[slot].mask.swap(0, SeqCst);
        for signal in in_mask(mask) {
            table.unsubscribe(signal);
        }
        table.taken[slot] = false;
    }
}

const SUBSCRIPTIONS_MAX: usize = 16;
const NO_EVENTFD: i32 = -1;

/// The part of a subscription that the handler sees. The handler runs between any two instructions
/// of the process, so this has only atomics and a descriptor. The descriptor is never closed once
/// it is made, because a late handler must not write to a descriptor of other code.
struct SignalMailbox {
    mask: AtomicU64,
    pending: AtomicU64,
    eventfd: AtomicI32,
}

static SUBSCRIPTIONS: [SignalMailbox; SUBSCRIPTIONS_MAX] = [const {
    SignalMailbox { mask: AtomicU64::new(0), pending: AtomicU64::new(0), eventfd: AtomicI32::new(NO_EVENTFD) }
}; SUBSCRIPTIONS_MAX];

static TABLE: Mutex<HandlerTable> =
    Mutex::new(HandlerTable { taken: [false; SUBSCRIPTIONS_MAX], handlers: [const { None }; 65], known: 0 });

/// The state that only subscribing and unsubscribing use.
struct HandlerTable {
    taken: [bool; SUBSCRIPTIONS_MAX],
    /// By signal number: the number of subscriptions, and the former action.
    handlers: [Option<(usize, Action)>; 65],
    /// The signals for which another library's handler may know our handler and call it.
    known: u64,
}

impl HandlerTable {
    fn subscribe(&mut self, signal: Signal) -> io::Result<()> {
        let handler = &mut self.handlers[signal.0 as usize];
        if let Some((subscriptions, _)) = handler {
            *subscriptions += 1;
            return Ok(());
        }
        // SAFETY: all-zero is a valid sigaction: no flags, an empty mask.
        let mut action: Action = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = ours();
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        let failed = |error: Errno| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("{signal}: {error}"))
        };
        // SAFETY: the call installs no handler.
        let before = unsafe { sys::signal_action(signal.0, None) }.map_err(failed)?;
        if self.known & 1 << (signal.0 - 1) == 0 {
            EARLIER[signal.0 as usize].set(&before);
        }
        // SAFETY: `handle` is async-signal-safe and has the signature for a handler with
        // SA_SIGINFO.
        unsafe { sys::signal_action(signal.0, Some(&action)) }.map_err(failed)?;
        *handler = Some((1, before));
        Ok(())
    }

    fn unsubscribe(&mut self, signal: Signal) {
        let handler = &mut self.handlers[signal.0 as usize];
        match handler {
            Some((subscriptions @ 2.., _)) => *subscriptions -= 1,
            Some((_, before)) => {
                // SAFETY: the call installs no handler.
                let now = unsafe { sys::signal_action(signal.0, None) };
                let is_ours = now.is_ok_and(|now| now.sa_sigaction == ours());
                // SAFETY: `sigaction` returned `before` for this signal, so its handler is as its
                // flags say.
                if !is_ours || unsafe { sys::signal_action(signal.0, Some(before)) }.is_err() {
                    self.known |= 1 << (signal.0 - 1);
                }
                *handler = None;
            }
            None => unreachable!("{signal} is unsubscribed from more often than subscribed to"),
        }
    }
}

/// A handler that was there before ours, as the handler sees it: 0 if there was none.
struct Earlier {
    handler: AtomicUsize,
    /// Whether it has the signature for a handler with SA_SIGINFO.
    takes_info: AtomicBool,
}

static EARLIER: [Earlier; 65] =
    [const { Earlier { handler: AtomicUsize::new(0), takes_info: AtomicBool::new(false) } }; 65];

impl Earlier {
    /// Stores the handler. The caller does this while our handler is not installed.
    fn set(&self, action: &Action) {
        let is_none = [libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
        self.takes_info.store(action.sa_flags & libc::SA_SIGINFO != 0, SeqCst);
        self.handler.store(if is_none { 0 } else { action.sa_sigaction }, SeqCst);
    }

    fn call(&self, number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        type WithInfo = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        let handler = self.handler.load(SeqCst);
        if handler == 0 {
            return;
        }
        if self.takes_info.load(SeqCst) {
            // SAFETY: `set` has taken the handler from a sigaction with SA_SIGINFO, so this is its
            // signature.
            let handler: WithInfo = unsafe { std::mem::transmute(handler) };
            handler(number, info, context);
        } else {
            // SAFETY: `set` has taken the handler from a sigaction without SA_SIGINFO, so this is
            // its signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(number);
        }
    }
}

/// Our handler, in the form that `sigaction` takes.
fn ours() -> usize {
    handle as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) as usize
}

/// The handler. Async-signal-safe: atomics and write(2), and errno is left as it was.
extern "C" fn handle(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(bit) = Signal(number).bit() else { return };
    for subscription in &SUBSCRIPTIONS {
        if subscription.mask.load(SeqCst) & bit != 0 {
            subscription.pending.fetch_or(bit, SeqCst);
            // SAFETY: a subscription with a mask has an eventfd, which is never closed. (rustix
            // makes the system call itself and does not touch errno.)
            let eventfd = unsafe { BorrowedFd::borrow_raw(subscription.eventfd.load(SeqCst)) };
            // The write fails only if the counter is full, and then the eventfd is readable
            // already.
            let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
        }
    }
    EARLIER[number as usize].call(number, info, context);
}

fn in_mask(mask: u64) -> impl Iterator<Item = Signal> {
    (1..=64).filter(move |n| mask & 1 << (n - 1) != 0).map(Signal)
}
