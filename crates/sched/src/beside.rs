//! OS threads that start at once, on other CPUs than the caller: [`run_beside`]. `work_stealing`
//! and the schedulers of `cnc` start their workers with it. The caller of `per_core` sleeps while
//! its workers run, so its CPU is not to be avoided.
//!
//! # The late start
//! Linux may queue a new OS thread on the CPU of the OS thread that made it, although another CPU
//! is idle. If the caller computes on, the new one waits there for the end of a time slice, or for
//! a CPU that looks for work. On a virtual machine with two CPUs it began 2.9 ms late (median), in
//! three of four starts. An OS thread that is woken may come as late.
//!
//! So the caller names the CPUs on which the new OS thread may begin: all those on which the caller
//! may run, without the one on which it runs now. If the new one waits in the queue of the caller's
//! CPU, the system moves it. Then it began within 0.1 to 0.2 ms. As its first act it takes the
//! caller's CPUs again, all of them.
//!
//! # The order of both acts
//! The new OS thread must not restore its CPUs before the caller has limited them. Both change
//! [`StartPlace::state`]:
//!
//! ```text
//!             the new one arrives
//!   QUEUED ───────────────────────▶ BEGUN: the caller does nothing
//!     │
//!     │ the caller begins                 the caller ends
//!     └──────────────────────▶ MOVING ─────────────────────▶ MOVED: the new one restores its CPUs
//! ```
//!
//! Only an exchange of `QUEUED` leads on, so one of the two sees the other. The new one waits while
//! the state is `MOVING`, which takes as long as one system call of the caller. So it has not ended
//! either when the caller names it to the system. `tests/loom_beside.rs` checks this.

use std::os::unix::thread::JoinHandleExt;
use std::thread::{self, JoinHandle};
use std::{io, mem};

use crate::primitives::{Arc, AtomicU8, Ordering, yield_now};

/// Runs `here` on the calling OS thread, and each of `others` beside it on an OS thread of its own,
/// which begins on another CPU if the caller may run on several. The caller is to compute: the CPU
/// of a caller that only waits is a good one for one of the others. Returns when all have ended:
/// the result of `here`, and those of the others in their order.
///
/// The iterator is asked for the next one when the one before has been started. `missing` is called
/// at once for each OS thread that the system has refused.
///
/// # Panics
/// With the panic of `here`, of the iterator or of `missing`, when all others have ended.
///
/// # Complexity
/// O(1) system calls for each OS thread beside those that start it: one of the caller, and one of
/// its own.
///
/// # Examples
/// ```
/// use std::thread::Builder;
///
/// let numbers = [1, 2, 3];
/// let sum = || numbers.iter().sum::<i32>();
/// let (here, others) = selvedge::sched::run_beside([(Builder::new(), sum)], || (), sum);
/// let others: Vec<i32> = others.into_iter().map(|end| end.unwrap().unwrap()).collect();
/// assert_eq!((here, others), (6, vec![6]));
/// ```
pub fn run_beside<F, T, R>(
    others: impl IntoIterator<Item = (thread::Builder, F)>,
    missing: impl Fn(),
    here: impl FnOnce() -> R,
) -> (R, Vec<io::Result<thread::Result<T>>>)
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let cpus = StartCpus::of_caller();
    let mut started = StartedThreads(Vec::new());
    for (builder, work) in others {
        // SAFETY: `started` joins the OS thread before this function returns or unwinds, and the
        // types of `work` and of its result outlive the function.
        let handle = unsafe { cpus.start(builder, work) };
        let is_missing = handle.is_err();
        started.0.push(handle);
        if is_missing {
            missing();
        }
    }
    let result = here();
    (result, started.join())
}

/// The OS threads that were started.
struct StartedThreads<T>(Vec<io::Result<JoinHandle<T>>>);

impl<T> StartedThreads<T> {
    /// Waits for the ends of all OS threads.
    fn join(mut self) -> Vec<io::Result<thread::Result<T>>> {
        let mut ends = Vec::with_capacity(self.0.len());
        self.0.reverse();
        while let Some(started) = self.0.pop() {
            ends.push(started.map(JoinHandle::join));
        }
        ends
    }
}

impl<T> Drop for StartedThreads<T> {
    /// Waits for the OS threads that are left when the caller unwinds.
    fn drop(&mut self) {
        while let Some(started) = self.0.pop() {
            drop(started.map(JoinHandle::join));
        }
    }
}

/// The CPUs on which the caller may run; `None` if it is one, or if the system does not say.
#[derive(Clone, Copy)]
struct StartCpus(Option<libc::cpu_set_t>);

impl StartCpus {
    fn of_caller() -> StartCpus {
        if cfg!(any(loom, miri)) {
            return StartCpus(None);
        }
        // SAFETY: a set is an array of numbers.
        let mut all: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the call writes to `all`, and at most its length.
        let error = unsafe { libc::sched_getaffinity(0, size_of_val(&all), &mut all) };
        // SAFETY: the call has no condition.
        let several = error == 0 && unsafe { libc::CPU_COUNT(&all) } > 1;
        StartCpus(several.then_some(all))
    }

    /// Starts an OS thread on another CPU than the caller's.
    ///
    /// # Safety
    /// The caller joins the OS thread before anything ends that `work` or its result borrows.
    unsafe fn start<F, T>(self, builder: thread::Builder, work: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let place = Arc::new(StartPlace::new());
        let arrived = place.clone();
        let run = move || {
            if arrived.arrive() {
                self.restore();
            }
            work()
        };
        // SAFETY: as promised by the caller.
        let handle = unsafe { builder.spawn_unchecked(run) }?;
        if let Some(mut elsewhere) = self.0
            && let Some(_moving) = place.begin_move()
        {
            // SAFETY: the call has no condition.
            let here = unsafe { libc::sched_getcpu() };
            if let Ok(here) = usize::try_from(here)
                && here < libc::CPU_SETSIZE as usize
            {
                // SAFETY: the number is within the set.
                unsafe { libc::CPU_CLR(here, &mut elsewhere) };
                // An error costs speed alone.
                // SAFETY: the handle was neither joined nor dropped, and the OS thread has not
                // ended, because it waits in `arrive` until the move has ended.
                unsafe {
                    libc::pthread_setaffinity_np(handle.as_pthread_t(), size_of_val(&elsewhere), &elsewhere)
                };
            }
        }
        Ok(handle)
    }

    /// Has the calling OS thread run on all of these CPUs again.
    fn restore(self) {
        if let Some(all) = self.0 {
            // SAFETY: the call reads the set. An error costs speed alone.
            unsafe { libc::sched_setaffinity(0, size_of_val(&all), &all) };
        }
    }
}

const QUEUED: u8 = 0;
const MOVING: u8 = 1;
const MOVED: u8 = 2;
const BEGUN: u8 = 3;

/// Where a new OS thread and the caller meet.
struct StartPlace {
    state: AtomicU8,
}

impl StartPlace {
    fn new() -> StartPlace {
        StartPlace { state: AtomicU8::new(QUEUED) }
    }

    /// Arrives as the new OS thread. Returns true if the caller has limited its CPUs.
    fn arrive(&self) -> bool {
        if self.state.compare_exchange(QUEUED, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        while self.state.load(Ordering::Acquire) == MOVING {
            yield_now();
        }
        true
    }

    /// Begins to move the new OS thread, unless it has arrived. The move ends when the result is
    /// dropped.
    fn begin_move(&self) -> Option<Move<'_>> {
        let begun = self.state.compare_exchange(QUEUED, MOVING, Ordering::AcqRel, Ordering::Acquire);
        begun.is_ok().then_some(Move(self))
    }
}

/// A move of a new OS thread by the caller.
struct Move<'a>(&'a StartPlace);

impl Drop for Move<'_> {
    fn drop(&mut self) {
        self.0.state.store(MOVED, Ordering::Release);
    }
}

/// For `tests/loom_beside.rs`: an OS thread that arrives while its caller may limit its CPUs has all
/// of them in the end.
#[cfg(loom)]
#[doc(hidden)]
pub fn model_of_a_start() {
    use crate::primitives::AtomicU32;
    const ALL: u32 = 2;
    let place = Arc::new((StartPlace::new(), AtomicU32::new(ALL)));
    let arrived = place.clone();
    let other = loom::thread::spawn(move || {
        if arrived.0.arrive() {
            arrived.1.store(ALL, Ordering::Relaxed);
        }
    });
    if let Some(_moving) = place.0.begin_move() {
        place.1.store(1, Ordering::Relaxed);
    }
    other.join().unwrap();
    assert_eq!(place.1.load(Ordering::Relaxed), ALL);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use crate::primitives::AtomicBool;
    use std::time::Duration;

    /// The CPUs on which the calling OS thread may run.
    fn allowed() -> String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
        line.expect("Linux writes such a line").to_owned()
    }

    fn allowed_beside(threads: usize) -> Vec<String> {
        let others = (0..threads).map(|_| (thread::Builder::new(), allowed));
        let ((), ends) = run_beside(others, || panic!("no OS thread is missing"), || ());
        ends.into_iter().map(|end| end.unwrap().unwrap()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads a file of the system")]
    fn an_os_thread_has_all_cpus_of_its_caller() {
        let mine = allowed();
        for _ in 0..50 {
            assert!(allowed_beside(3).iter().all(|theirs| *theirs == mine), "{mine}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "limits the CPUs of an OS thread")]
    fn a_caller_with_one_cpu_starts_others_there() {
        // SAFETY: as in `StartCpus::of_caller`; and the number is one of a CPU, within the set.
        let set = unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
            set
        };
        let ends = thread::spawn(move || {
            StartCpus(Some(set)).restore();
            (allowed(), allowed_beside(2))
        });
        let (mine, theirs) = ends.join().unwrap();
        assert_eq!(theirs, [mine.clone(), mine]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri makes no stack of a wanted size")]
    fn an_os_thread_that_is_refused_is_told_at_once() {
        let (told, large) = (AtomicBool::new(false), 1 << 47);
        let builders = [thread::Builder::new(), thread::Builder::new().stack_size(large)];
        let others = builders.map(|builder| (builder, || 7));
        let missing = || told.store(true, Ordering::Relaxed);
        let (was_told, ends) = run_beside(others, missing, || told.load(Ordering::Relaxed));
        assert!(was_told);
        assert!(matches!(&ends[..], [Ok(Ok(7)), Err(_)]), "{ends:?}");
    }

    #[test]
    fn a_caller_that_unwinds_waits_for_the_others() {
        let ended = AtomicBool::new(false);
        let other = || {
            thread::sleep(Duration::from_millis(20));
            ended.store(true, Ordering::Relaxed);
        };
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            run_beside([(thread::Builder::new(), other)], || (), || panic!("on purpose"))
        }));
        assert!(unwound.is_err() && ended.load(Ordering::Relaxed));
    }

    #[test]
    fn a_panic_of_another_is_its_end() {
        let others = [(thread::Builder::new(), || panic!("on purpose"))];
        let (here, ends) = run_beside::<_, (), _>(others, || (), || 5);
        assert_eq!(here, 5);
        assert!(matches!(&ends[..], [Ok(Err(_))]));
    }
}
