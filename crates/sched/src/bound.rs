//! [`bound`]: starts an OS thread for one thread of the program, which never leaves it.
//!
//! The façade's `selvedge::bound` calls it with an event loop. The OS thread runs a round-robin
//! scheduler of its own.

use crate::Spawned;
use selvedge_core::{Events, round_robin_over, spawn_local};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Starts an OS thread and runs on it one thread, the *bound* thread, which never leaves it.
/// Returns a handle to wait for the thread's result.
///
/// This is for code that must run on one OS thread: a library that keeps its state in thread-local
/// variables, an interface that only the OS thread that opened it may use, a signal mask or a
/// priority of its own. Such code may block in `future`, because no other thread waits for this OS
/// thread. `make` creates `future` on the OS thread, so that `future` need not be `Send`.
///
/// The OS thread has a CPU and an event source of its own, scheduled round-robin. Threads that the
/// bound thread [spawns locally](spawn_local) run on it too, and are cancelled when the bound
/// thread ends. The bound thread does not end with the scheduler from which it was started.
///
/// If the event source cannot be made, or if threads there wait for each other for ever, the OS
/// thread reports that on standard error and the bound thread counts as cancelled.
///
/// # Errors
/// If the operating system has no thread left.
///
/// # Paper
/// [HMP05 §2.2]: bound threads, which "have a dedicated OS thread" so that native code finds its
/// thread-local state.
///
/// # Examples
/// ```
/// use selvedge::{NoEvents, round_robin};
/// use selvedge::sched::bound;
/// use std::cell::Cell;
///
/// thread_local!(static CURRENT: Cell<u32> = const { Cell::new(0) }); // as of a native library
///
/// let sum = round_robin(async {
///     let context = bound(|| Ok(NoEvents::new()), || async {
///         CURRENT.set(41);
///         selvedge::yield_now().await;
///         CURRENT.get() + 1
///     });
///     assert_eq!(CURRENT.get(), 0);
///     context.expect("an OS thread").await.unwrap()
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// # Complexity
/// An OS thread: some tens of microseconds, and a stack.
#[doc(alias = "forkOS")]
pub fn bound<E, F>(
    events: impl FnOnce() -> io::Result<E> + Send + 'static,
    make: impl FnOnce() -> F + Send + 'static,
) -> io::Result<Spawned<F::Output>>
where
    E: Events,
    F: Future + 'static,
    F::Output: Send,
{
    let (spawned, duty) = Spawned::promised();
    std::thread::Builder::new().name("bound".to_string()).spawn(move || {
        let ended = events().map_err(Into::into).and_then(|mut events| {
            round_robin_over(&mut events, async move {
                let end = Rc::new(BodyEnd::default());
                let at_end = EndsWith(end.clone());
                duty.created(spawn_local(async move {
                    let _at_end = at_end;
                    make().await
                }));
                end.come().await;
            })
        });
        if let Err(error) = ended {
            eprintln!("a bound thread is cancelled: {error}");
        }
    })?;
    Ok(spawned)
}

/// Whether the bound thread's future is gone, and the waker of the main thread that waits for that.
#[derive(Default)]
struct BodyEnd {
    is_here: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl BodyEnd {
    async fn come(&self) {
        poll_fn(|cx| {
            if self.is_here.get() {
                return Poll::Ready(());
            }
            self.waiting.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

struct EndsWith(Rc<BodyEnd>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.is_here.set(true);
        if let Some(waiting) = self.0.waiting.take() {
            waiting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use selvedge_core::{JoinError, NoEvents, yield_now};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    fn no_events() -> io::Result<NoEvents> {
        Ok(NoEvents::new())
    }

    #[test]
    fn it_stays_on_an_os_thread_of_its_own() {
        let ids = bound(no_events, || async {
            let mut ids = vec![std::thread::current().id()];
            for _ in 0..100 {
                yield_now().await;
                ids.push(std::thread::current().id());
            }
            ids
        });
        let ids = block_on(ids.unwrap()).unwrap();
        assert!(ids.iter().all(|id| *id == ids[0] && *id != std::thread::current().id()));
    }

    #[test]
    fn a_panic_reaches_the_joiner() {
        let spawned = bound(no_events, || async {
            std::panic::resume_unwind(Box::new("in native code"));
            #[expect(unreachable_code, reason = "the type of the result")]
            0_u8
        });
        match block_on(spawned.unwrap()) {
            Err(JoinError::Panicked(_)) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_can_be_cancelled_from_elsewhere() {
        struct Dropped(Arc<AtomicBool>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let gone = Arc::new(AtomicBool::new(false));
        let dropped = Dropped(gone.clone());
        let spawned = bound(no_events, move || async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        })
        .unwrap();
        spawned.cancel();
        assert!(matches!(block_on(spawned), Err(JoinError::Cancelled)));
        while !gone.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn without_an_event_source_it_counts_as_cancelled() {
        let spawned = bound(|| Err::<NoEvents, _>(io::ErrorKind::OutOfMemory.into()), || async {});
        assert!(matches!(block_on(spawned.unwrap()), Err(JoinError::Cancelled)));
    }

    #[test]
    fn threads_that_it_leaves_behind_are_cancelled_with_it() {
        let left = Arc::new(Mutex::new(()));
        let held = left.clone();
        let spawned = bound(no_events, move || async move {
            drop(spawn_local(async move {
                let _held = held;
                std::future::pending::<()>().await;
            }));
            yield_now().await;
        });
        block_on(spawned.unwrap()).unwrap();
        while Arc::strong_count(&left) > 1 {
            std::thread::yield_now();
        }
    }
}
