//! OS threads that start at once, on other CPUs than the caller: [`run_beside`]. `work_stealing`
//! and the schedulers of `cnc` start their workers with it. The caller of `per_core` sleeps while
//! its workers run, so its CPU is not to be avoided.
//!
//! `elsewhere.rs` says why a new OS thread may begin late, and how its caller and the new one meet.

use crate::elsewhere::{CpuSet, MovePlace, OsThread, has_caller_several_cpus};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Runs `here` on the calling OS thread, and each of `others` beside it on an OS thread of its own,
/// which begins on another CPU if the caller may run on several. The caller is to compute: the CPU
/// of a caller that only waits is a good one for one of the others. Returns when all have ended:
/// the result of `here`, and those of the others in their order.
///
/// An OS thread takes some 0.1 ms to begin on a CPU that was idle. `here` may have ended by then.
/// So `here` can [call off](Beside::call_off) the others that have not begun, and this function
/// does not wait for these. Each of them has `None` for its end.
///
/// The iterator is asked for the next one when the one before has been started. `missing` is called
/// at once for each OS thread that the system has refused.
///
/// # Panics
/// With the panic of `here`, of the iterator or of `missing`, when all others have ended.
///
/// # Complexity
/// O(1) system calls for each OS thread, beside the calls that start it: two of the caller, and two
/// of its own.
///
/// # Examples
/// ```
/// use std::thread::Builder;
///
/// let numbers = [1, 2, 3];
/// let sum = || numbers.iter().sum::<i32>();
/// let others = [(Builder::new(), sum)];
/// let (here, others) = selvedge::sched::run_beside(others, || (), |_| sum());
/// let others: Vec<i32> = others.into_iter().flatten().map(|end| end.unwrap().unwrap()).collect();
/// assert_eq!((here, others), (6, vec![6]));
/// ```
pub fn run_beside<F, T, R>(
    others: impl IntoIterator<Item = (thread::Builder, F)>,
    missing: impl Fn(),
    here: impl FnOnce(&Beside<'_>) -> R,
) -> (R, Vec<Option<io::Result<thread::Result<T>>>>)
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let has_several_cpus = has_caller_several_cpus();
    let mut started = StartedThreads(Vec::new());
    for (builder, work) in others {
        // SAFETY: before this function returns or unwinds, `started` joins the OS thread, or `here`
        // has called it off. The types of `work` and of its result outlive the function.
        let thread = unsafe { StartedThread::start(builder, work, has_several_cpus) };
        let is_missing = thread.is_err();
        started.0.push(thread);
        if is_missing {
            missing();
        }
    }
    let result = here(&Beside { call_off: &|| started.call_off() });
    (result, started.join())
}

/// The OS threads beside a caller of [`run_beside`].
pub struct Beside<'a> {
    call_off: &'a dyn Fn() -> usize,
}

impl Beside<'_> {
    /// Calls off the OS threads that have not begun: none of them runs its part any more, and the
    /// parts are dropped here. Returns how many were called off by this call.
    pub fn call_off(&self) -> usize {
        (self.call_off)()
    }
}

impl fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

/// The OS threads that were started.
struct StartedThreads<F, T>(Vec<io::Result<StartedThread<F, T>>>);

impl<F, T> StartedThreads<F, T> {
    fn call_off(&self) -> usize {
        self.0.iter().flatten().filter(|thread| thread.call_off()).count()
    }

    /// Waits for the ends of all OS threads that were not called off.
    fn join(mut self) -> Vec<Option<io::Result<thread::Result<T>>>> {
        let mut ends = Vec::with_capacity(self.0.len());
        self.0.reverse();
        while let Some(started) = self.0.pop() {
            ends.push(started.map(StartedThread::join).transpose());
        }
        ends
    }
}

impl<F, T> Drop for StartedThreads<F, T> {
    /// Waits for the OS threads that are left when the caller unwinds.
    fn drop(&mut self) {
        while let Some(started) = self.0.pop() {
            drop(started.map(StartedThread::join));
        }
    }
}

/// An OS thread that was started.
struct StartedThread<F, T> {
    handle: JoinHandle<Option<T>>,
    /// The part that the OS thread runs. The OS thread takes it when it begins. The caller takes it
    /// when it calls the OS thread off.
    work: Arc<Mutex<Option<F>>>,
    is_called_off: Cell<bool>,
}

impl<F, T> StartedThread<F, T> {
    /// Starts an OS thread, on another CPU than the caller's if there are several.
    ///
    /// # Safety
    /// Before anything ends that `work` or its result borrows, the caller joins the OS thread, or
    /// calls it off.
    unsafe fn start(builder: thread::Builder, work: F, has_several_cpus: bool) -> io::Result<Self>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let place = Arc::new(MovePlace::<CpuSet>::queued());
        let arrived = place.clone();
        let work = Arc::new(Mutex::new(Some(work)));
        let part = work.clone();
        let run = move || {
            arrived.arrive(&OsThread::caller());
            take(&part).map(|work| work())
        };
        // SAFETY: as promised by the caller. An OS thread that was called off finds no part, so it
        // has neither the part nor a result of it, and nothing else here borrows.
        let handle = unsafe { builder.spawn_unchecked(run) }?;
        if has_several_cpus && let Some(moving) = place.begin_move(|_| true) {
            // SAFETY: the handle was neither joined nor dropped, and the OS thread has not ended,
            // because it waits in `arrive` until the move has ended.
            let new = unsafe { OsThread::new(handle.as_pthread_t()) };
            moving.limit(&new, CpuSet::without_mine);
        }
        Ok(StartedThread { handle, work, is_called_off: Cell::new(false) })
    }

    /// Whether this call has called the OS thread off.
    fn call_off(&self) -> bool {
        let has_not_begun = take(&self.work).is_some();
        self.is_called_off.set(self.is_called_off.get() || has_not_begun);
        has_not_begun
    }

    /// Waits for the OS thread's end, unless it was called off: then `None`. Miri asks that all OS
    /// threads end before the program does.
    fn join(self) -> Option<thread::Result<T>> {
        match self.is_called_off.get() && !cfg!(miri) {
            true => None,
            false => self.handle.join().transpose(),
        }
    }
}

/// Takes the part of an OS thread, unless it was taken before.
fn take<F>(work: &Mutex<Option<F>>) -> Option<F> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::elsewhere::HasCpus;
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    /// The CPUs on which the calling OS thread may run.
    fn allowed() -> String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
        line.expect("Linux writes such a line").to_owned()
    }

    fn allowed_beside(threads: usize) -> Vec<String> {
        let others = (0..threads).map(|_| (thread::Builder::new(), allowed));
        let ((), ends) = run_beside(others, || panic!("no OS thread is missing"), |_| ());
        ends.into_iter().flatten().map(|end| end.unwrap().unwrap()).collect()
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
        let ends = thread::spawn(|| {
            assert!(OsThread::caller().set_cpus(&CpuSet::mine()));
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
        let (was_told, ends) = run_beside(others, missing, |_| told.load(Ordering::Relaxed));
        assert!(was_told);
        assert!(matches!(&ends[..], [Some(Ok(Ok(7))), Some(Err(_))]), "{ends:?}");
    }

    #[test]
    fn a_caller_that_unwinds_waits_for_the_others() {
        let ended = AtomicBool::new(false);
        let other = || {
            thread::sleep(Duration::from_millis(20));
            ended.store(true, Ordering::Relaxed);
        };
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            run_beside([(thread::Builder::new(), other)], || (), |_| panic!("on purpose"))
        }));
        assert!(unwound.is_err() && ended.load(Ordering::Relaxed));
    }

    #[test]
    fn a_panic_of_another_is_its_end() {
        let others = [(thread::Builder::new(), || panic!("on purpose"))];
        let (here, ends) = run_beside::<_, (), _>(others, || (), |_| 5);
        assert_eq!(here, 5);
        assert!(matches!(&ends[..], [Some(Ok(Err(_)))]));
    }

    /// The numbers of parts that were dropped, and of parts that have run.
    #[derive(Default)]
    struct Parts {
        dropped: AtomicUsize,
        run: AtomicUsize,
    }

    struct Part<'a>(&'a Parts);

    impl Drop for Part<'_> {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_has_not_begun_is_called_off_and_the_rest_ends() {
        const OTHERS: usize = 3;
        for _ in 0..100 {
            let parts = Parts::default();
            let others = (0..OTHERS).map(|_| {
                let part = Part(&parts);
                (thread::Builder::new(), move || part.0.run.fetch_add(1, Ordering::SeqCst))
            });
            let call_off = |beside: &Beside<'_>| (beside.call_off(), beside.call_off());
            let ((called_off, again), ends) = run_beside(others, || (), call_off);
            assert_eq!((again, parts.dropped.into_inner()), (0, OTHERS));
            assert_eq!(parts.run.into_inner(), OTHERS - called_off);
            assert_eq!(ends.iter().filter(|end| end.is_none()).count(), called_off);
        }
    }

    #[test]
    fn an_os_thread_that_has_begun_is_not_called_off() {
        let (begun, may_end) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        };
        let other = || {
            begun.store(true, Ordering::SeqCst);
            wait_for(&may_end);
            7
        };
        let (called_off, ends) = run_beside(
            [(thread::Builder::new(), other)],
            || (),
            |beside| {
                wait_for(&begun);
                let called_off = beside.call_off();
                may_end.store(true, Ordering::SeqCst);
                called_off
            },
        );
        assert_eq!(called_off, 0);
        assert!(matches!(&ends[..], [Some(Ok(Ok(7)))]));
    }
}
