//! Fault injection: chosen system calls fail, are interrupted, or do less than they were asked to.

pub use crate::sys::Call;
use crate::sys::{INTERPOSED, ask};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error number, without effect.
    Errno(i32),
    /// It transfers at most so many bytes.
    ///
    /// The kernel cuts short what concerns files whenever it likes, but what concerns sockets only when there are no more
    /// bytes (or no more room), and callers here rely on it. So it is for [`Call::SendFile`], [`Call::Pread`] and
    /// [`Call::Pwrite`]; the simulated network cuts the others short where they may be.
    Short(usize),
}

impl Fault {
    /// It is interrupted by a signal before it has done anything (`EINTR`).
    pub const INTERRUPTED: Fault = Fault::Errno(libc::EINTR);
}

/// Decides for each call, given how many of its kind were before it since the faults were installed.
type Plan = Box<dyn FnMut(Call, u64) -> Option<Fault> + Send>;

struct Installed {
    plan: Plan,
    counts: [u64; Call::ALL.len()],
}

impl Installed {
    fn new(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> Installed {
        Installed { plan: Box::new(plan), counts: [0; Call::ALL.len()] }
    }

    fn of(&mut self, call: Call) -> Option<Fault> {
        let count = &mut self.counts[call as usize];
        *count += 1;
        (self.plan)(call, *count - 1)
    }
}

thread_local! {
    static HERE: RefCell<Option<Installed>> = const { RefCell::new(None) };
}

static EVERYWHERE: Mutex<Option<Installed>> = Mutex::new(None);

/// Faults that are installed, for as long as it lives: a test's way to reach what is behind an error that the kernel
/// hardly ever returns.
///
/// # Examples
/// ```
/// use selvedge::net::TcpListener;
/// use selvedge::sim::{Call, Fault, Faults};
///
/// let faults = Faults::here(|call, nth| (call == Call::Listen && nth == 0).then_some(Fault::Errno(98)));
/// let error = TcpListener::bind("127.0.0.1:0".parse()?).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
/// drop(faults);
/// TcpListener::bind("127.0.0.1:0".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it takes the faults away"]
pub struct Faults {
    everywhere: bool,
    /// Those of an OS thread are taken away where they were installed.
    _local: std::marker::PhantomData<*const ()>,
}

impl Faults {
    /// Faults of the calls that this OS thread makes. `plan` is asked for each call that is about to be made, with the number of calls of
    /// its kind that were before it; it makes none itself.
    ///
    /// # Panics
    /// If this OS thread has faults already.
    pub fn here(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> Faults {
        HERE.with_borrow_mut(|here| {
            assert!(here.is_none(), "this OS thread has faults already");
            *here = Some(Installed::new(plan));
        });
        Faults::installed(false)
    }

    /// Faults of the calls of all OS threads of the process, those of the blocking pool among them.
    ///
    /// # Panics
    /// If the process has faults already.
    pub fn everywhere(plan: impl FnMut(Call, u64) -> Option<Fault> + Send + 'static) -> Faults {
        let mut everywhere = everywhere();
        assert!(everywhere.is_none(), "the process has faults already");
        *everywhere = Some(Installed::new(plan));
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

fn everywhere() -> MutexGuard<'static, Option<Installed>> {
    EVERYWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What happens to a call that is about to be made: how many bytes it may transfer.
fn of(call: Call) -> Result<usize, Errno> {
    let here = HERE.with_borrow_mut(|here| here.as_mut().and_then(|here| here.of(call)));
    match here.or_else(|| everywhere().as_mut().and_then(|everywhere| everywhere.of(call))) {
        None => Ok(usize::MAX),
        Some(Fault::Errno(errno)) => Err(Errno::from_raw_os_error(errno)),
        Some(Fault::Short(limit)) => Ok(limit),
    }
}
