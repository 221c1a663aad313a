//! An event source with an `Unpark` that panics. The `Unpark` is foreign code, and runs when a
//! thread wakes a thread of a CPU that sleeps. Whatever it does, the CPU of the former thread goes
//! on.

use selvedge_core::*;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Counts its calls, and panics in each of them.
#[derive(Debug, Default)]
struct Bomb(AtomicU32);

impl Unpark for Bomb {
    fn unpark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::resume_unwind(Box::new("an unpark that panics"));
    }
}

/// The event source of a CPU. While the CPU sleeps in it, it calls `meanwhile`.
struct Sleeps<F> {
    meanwhile: F,
    unpark: Arc<Bomb>,
}

impl<F: FnMut()> Events for Sleeps<F> {
    fn submit(&mut self, _: &mut Cpu, node: Trace) -> Result<(), Trace> {
        Err(node)
    }

    fn poll(&mut self, _: &mut Cpu, _: Option<Duration>) -> std::io::Result<()> {
        (self.meanwhile)();
        Ok(())
    }

    /// One, so that the CPU sleeps and looks for no deadlock.
    fn armed(&self) -> usize {
        1
    }

    fn cancel_all(&mut self, _: &mut Cpu) {}

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.unpark.clone()
    }
}

/// Lets `cpu` sleep, and calls `meanwhile`, which wakes one of its threads.
fn while_asleep(cpu: &mut Cpu, meanwhile: impl FnMut()) {
    let unpark = Arc::new(Bomb::default());
    cpu.poll(&mut Sleeps { meanwhile, unpark: unpark.clone() }, true).unwrap();
    assert_eq!(unpark.0.load(Ordering::Relaxed), 1, "the sleeping CPU was unparked");
    assert!(!in_thread());
}

fn run(cpu: &mut Cpu) {
    while let Some(thread) = cpu.woken() {
        match thread.step(cpu) {
            Trace::Yield(thread) => cpu.make_ready(thread),
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Joins a thread of one CPU from a thread of another one, which sleeps. Gives the result that the
/// joiner has, and the number of times that the joined thread was dropped.
fn joined_by_a_sleeping_cpu(
    ends: impl Future<Output = ()> + 'static,
) -> (Option<Result<u32, JoinError>>, u32) {
    struct CountsDrops(Rc<Cell<u32>>);
    impl Drop for CountsDrops {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let drops = Rc::new(Cell::new(0));
    let counts = CountsDrops(drops.clone());
    let (mut cpu, mut other) = (Cpu::new().unwrap(), Cpu::new().unwrap());
    let joined = other.spawn_local(async move {
        let _counts = counts;
        ends.await;
        7
    });
    let joined = joined.unwrap();
    let result = Rc::new(RefCell::new(None));
    let joiners = result.clone();
    drop(cpu.spawn_local(async move { *joiners.borrow_mut() = Some(joined.await) }).unwrap());
    run(&mut cpu);
    assert!(result.borrow().is_none());

    while_asleep(&mut cpu, || run(&mut other));
    let after = other.spawn_local(async { 8 }).unwrap();
    run(&mut other);
    assert!(after.is_finished(), "the CPU of the joined thread goes on");
    drop(after);
    assert!(other.threads().is_empty(), "{:?}", other.threads());
    run(&mut cpu);
    assert!(cpu.threads().is_empty(), "{:?}", cpu.threads());
    (result.take(), drops.get())
}

#[test]
fn in_the_last_poll_of_a_thread_that_is_joined() {
    let (result, drops) = joined_by_a_sleeping_cpu(yield_now());
    assert!(matches!(result, Some(Ok(7))), "{result:?}");
    assert_eq!(drops, 1);
}

#[test]
fn after_the_exit_of_a_thread_that_is_joined() {
    let (result, drops) = joined_by_a_sleeping_cpu(async {
        exit().await;
    });
    assert!(matches!(result, Some(Err(JoinError::Cancelled))), "{result:?}");
    assert_eq!(drops, 1);
}

struct CountsWakes(AtomicU32);

impl Wake for CountsWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until it is granted.
enum UntilGranted {}

impl Role<(), ()> for UntilGranted {
    type Output = ();

    fn attempt(_: &mut (), _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        None
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), _: &mut Queue<'_, ()>, _: &mut ()) {}
}

#[test]
fn by_one_of_two_grants() {
    let object = Rc::new(WaitQueue::<(), ()>::new(()));
    let mut cpu = Cpu::new().unwrap();
    let waited_for = object.clone();
    let first = cpu.spawn_local(async move { waited_for.wait::<UntilGranted>(()).await }).unwrap();
    run(&mut cpu);
    let wakes = Arc::new(CountsWakes(AtomicU32::new(0)));
    let waker = Waker::from(wakes.clone());
    let mut second = pin!(object.wait::<UntilGranted>(()));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

    while_asleep(&mut cpu, || {
        let granted = catch_unwind(AssertUnwindSafe(|| {
            object.with(|_, queue| {
                queue.grant();
                queue.grant();
            });
        }));
        assert!(granted.is_err(), "the panic goes on to the granter");
    });
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "the second waiter is woken all the same");
    assert_eq!(second.poll(&mut Context::from_waker(&waker)), Poll::Ready(()));
    run(&mut cpu);
    assert!(first.is_finished());
}
