//! OS threads that start at once, on other CPUs than the caller: [`run_beside`]. `work_stealing`
//! and the schedulers of `cnc` start their workers with it. The caller of `per_core` sleeps while
//! its workers run, so its CPU is not to be avoided.
//!
//! `elsewhere.rs` says why a new OS thread may begin late, and how its caller and the new one meet.

use crate::elsewhere::{CpuSet, MovePlace, OsThread, has_caller_several_cpus};
use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

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
/// O(1) system calls for each OS thread, beside the calls that start it: two of the caller, and two
/// of its own.
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
    let has_several_cpus = has_caller_several_cpus();
    let mut started = StartedThreads(Vec::new());
    for (builder, work) in others {
        // SAFETY: `started` joins the OS thread before this function returns or unwinds, and the
        // types of `work` and of its result outlive the function.
        let handle = unsafe { start(builder, work, has_several_cpus) };
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

/// Starts an OS thread, on another CPU than the caller's if there are several.
///
/// # Safety
/// The caller joins the OS thread before anything ends that `work` or its result borrows.
unsafe fn start<F, T>(builder: thread::Builder, work: F, has_several_cpus: bool) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let place = Arc::new(MovePlace::<CpuSet>::queued());
    let arrived = place.clone();
    let run = move || {
        arrived.arrive(&OsThread::caller());
        work()
    };
    // SAFETY: as promised by the caller.
    let handle = unsafe { builder.spawn_unchecked(run) }?;
    if has_several_cpus && let Some(moving) = place.begin_move(|_| true) {
        // SAFETY: the handle was neither joined nor dropped, and the OS thread has not ended,
        // because it waits in `arrive` until the move has ended.
        let new = unsafe { OsThread::new(handle.as_pthread_t()) };
        moving.limit(&new, CpuSet::without_mine);
    }
    Ok(handle)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::elsewhere::HasCpus;
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
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
