//! Fault injection: chosen system calls fail, are interrupted, or transfer less than they were
//! asked to.
//!
//! [`Faults`] register a function at the interposition point of the [system-call
//! layer](crate::sys), which asks it before each call. The layer does not name this module.
//!
//! Tests install them, as `sim::Faults`. Faults of one OS thread and faults of the whole process
//! are kept apart, because tests run side by side in one process.

pub use crate::sys::Call;
use crate::sys::{INTERPOSED, ask};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A change of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this error number, without effect.
    Errno(i32),
    /// The call transfers at most this number of bytes.
    ///
    /// This fault is for [`Call::SendFile`], [`Call::Pread`] and [`Call::Pwrite`], because the
    /// kernel may cut a transfer of a file short at any time. It cuts a transfer of a socket short
    /// only if there are no more bytes, or no more room, and callers rely on that; the simulated
    /// network cuts those short where a kernel may.
    Short(usize),
}

impl Fault {
    /// A signal interrupts the call before it has any effect (`EINTR`).
    pub const INTERRUPTED: Fault = Fault::Errno(libc::EINTR);
}

/// Decides for each call. The number says how many calls of its kind were made before it since the
/// faults were installed.
type Plan = Box<dyn FnMut(Call, u64) -> Option<Fault> + Send>;

struct InstalledFaults {
    plan: Plan,
    counts: [u64; Call::ALL.len()],
}

impl InstalledFaults {
    fn new(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> InstalledFaults {
        InstalledFaults { plan: Box::new(plan), counts: [0; Call::ALL.len()] }
    }

    fn of(&mut self, call: Call) -> Option<Fault> {
        let count = &mut self.counts[call as usize];
        *count += 1;
        (self.plan)(call, *count - 1)
    }
}

thread_local! {
    static HERE: RefCell<Option<InstalledFaults>> = const { RefCell::new(None) };
}

static EVERYWHERE: Mutex<Option<InstalledFaults>> = Mutex::new(None);

/// Installed faults. They stay as long as the value lives. With them a test reaches the code behind
/// an error that the kernel hardly ever returns.
///
/// # Examples
/// ```
/// use selvedge::net::TcpListener;
/// use selvedge::sim::{Call, Fault, Faults};
///
/// let faults = Faults::here(|call, nth| {
///     (call == Call::Listen && nth == 0).then_some(Fault::Errno(98))
/// });
/// let error = TcpListener::bind("127.0.0.1:0".parse()?).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
/// drop(faults);
/// TcpListener::bind("127.0.0.1:0".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it takes the faults away"]
pub struct Faults {
    everywhere: bool,
    /// The value stays on its OS thread, because its destructor removes the faults of that OS
    /// thread.
    _local: std::marker::PhantomData<*const ()>,
}

impl Faults {
    /// Installs faults of the calls that this OS thread makes. `plan` decides about each call
    /// before it is made, given the number of calls of its kind that were made before it. `plan`
    /// itself makes no call.
    ///
    /// # Panics
    /// If this OS thread has faults already.
    pub fn here(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> Faults {
        HERE.with_borrow_mut(|here| {
            assert!(here.is_none(), "this OS thread has faults already");
            *here = Some(InstalledFaults::new(plan));
        });
        Faults::installed(false)
    }

    /// Installs faults of the calls of all OS threads of the process, which include the blocking
    /// pool's.
    ///
    /// # Panics
    /// If the process has faults already.
    pub fn everywhere(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> Faults {
        let mut everywhere = everywhere();
        assert!(everywhere.is_none(), "the process has faults already");
        *everywhere = Some(InstalledFaults::new(plan));
        Faults::installed(true)
    }

    fn installed(everywhere: bool) -> Faults {
        ask(of);
        INTERPOSED.fetch_add(1, Ordering::SeqCst);
        Faults { everywhere, _local: std::marker::PhantomData }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        INTERPOSED.fetch_sub(1, Ordering::SeqCst);
        let plan = if self.everywhere { everywhere().take() } else { HERE.take() };
        drop(plan);
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("everywhere", &self.everywhere).finish_non_exhaustive()
    }
}

fn everywhere() -> MutexGuard<'static, Option<InstalledFaults>> {
    EVERYWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many bytes a call may transfer that is about to be made.
fn of(call: Call) -> Result<usize, Errno> {
    let here = HERE.with_borrow_mut(|here| here.as_mut().and_then(|here| here.of(call)));
    match here.or_else(|| everywhere().as_mut().and_then(|everywhere| everywhere.of(call))) {
        None => Ok(usize::MAX),
        Some(Fault::Errno(errno)) => Err(Errno::from_raw_os_error(errno)),
        Some(Fault::Short(limit)) => Ok(limit),
    }
}
