//! Join handles with foreign code behind them: a foreign waker, or the `Unpark` of the joiner's
//! event source. The code runs at the end of the thread that is joined. Whatever that code does,
//! the CPU goes on.

use selvedge_core::*;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

thread_local! {
    static HANDLE: RefCell<Option<JoinHandle<[u64; 4]>>> = const { RefCell::new(None) };
    static RAN: Cell<u32> = const { Cell::new(0) };
}

/// A waker that drops the handle of the thread that has just ended, and creates another thread in
/// its block.
struct Usurper;

impl Wake for Usurper {
    fn wake(self: Arc<Self>) {
        drop(HANDLE.take());
        if in_thread() {
            drop(spawn(work()));
        }
    }
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

async fn work() -> [u64; 4] {
    yield_now().await;
    RAN.set(RAN.get() + 1);
    [RAN.get() as u64; 4]
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

/// A CPU with one thread. The thread's handle waits behind `waker`.
fn awaited(waker: Waker) -> Cpu {
    let mut cpu = Cpu::new().unwrap();
    let mut handle = cpu.spawn(work()).unwrap();
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    HANDLE.set(Some(handle));
    cpu
}

#[test]
fn a_waker_that_drops_the_handle_and_spawns() {
    let mut cpu = awaited(Arc::new(Usurper).into());
    let before = RAN.get();
    // The usurper runs on the CPU that ended the thread, so the usurper can spawn too.
    run(&mut cpu);
    assert_eq!(RAN.get(), before + 2);
    assert!(HANDLE.take().is_none());
    assert!(cpu.threads().is_empty(), "{:?}", cpu.threads());
}

#[test]
fn a_waker_that_does_so_when_the_thread_exits() {
    let mut cpu = Cpu::new().unwrap();
    let ended = cpu.spawn(async {
        let victim = spawn(async {
            exit().await;
            [0; 4]
        });
        HANDLE.set(Some(victim));
        HANDLE.with_borrow_mut(|handle| {
            let waker = Waker::from(Arc::new(Usurper));
            assert!(Pin::new(handle.as_mut().unwrap()).poll(&mut Context::from_waker(&waker)).is_pending());
        });
    });
    run(&mut cpu);
    assert!(HANDLE.take().is_none());
    drop(ended);
    assert!(cpu.threads().is_empty(), "{:?}", cpu.threads());
}

#[test]
fn a_waker_that_does_so_when_the_cpu_goes() {
    let mut cpu = awaited(Arc::new(Usurper).into());
    let thread = cpu.woken().unwrap();
    assert!(matches!(thread.step(&mut cpu), Trace::Yield(_)), "and is cancelled");
    assert!(HANDLE.take().is_none());
    drop(awaited(Arc::new(Usurper).into()));
    assert!(HANDLE.take().is_none());
}

#[test]
fn a_waker_that_panics_leaves_the_step_and_the_cpu_whole() {
    let mut cpu = awaited(Arc::new(Bomb).into());
    run(&mut cpu);
    assert!(!in_thread());
    assert!(matches!(HANDLE.take().unwrap().try_join(), Some(Ok(_))));
    drop(cpu);
    drop(awaited(Arc::new(Bomb).into()));
    assert!(!in_thread());
    assert!(matches!(HANDLE.take().unwrap().try_join(), Some(Err(JoinError::Cancelled))));
}

/// An `Unpark` that panics, and counts how often it did.
#[derive(Debug, Default)]
struct BombUnpark(AtomicU32);

impl Unpark for BombUnpark {
    fn unpark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::resume_unwind(Box::new("an unpark that panics"));
    }
}

/// The event source of a joiner's CPU. While the joiner's CPU sleeps in it, it runs the threads of
/// another CPU.
struct RunsOther {
    other: Cpu,
    unpark: Arc<BombUnpark>,
}

impl Events for RunsOther {
    fn submit(&mut self, _: &mut Cpu, node: Trace) -> Result<(), Trace> {
        Err(node)
    }

    fn poll(&mut self, _: &mut Cpu, _: Option<Duration>) -> std::io::Result<()> {
        run(&mut self.other);
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

/// Joins a thread of one CPU from a thread of another one, which sleeps in an event source with a
/// [`BombUnpark`]. Gives the result that the joiner has, and how often the joined thread was
/// dropped.
fn joined_from_a_sleeping_cpu(
    ends: impl Future<Output = ()> + 'static,
) -> (Option<Result<[u64; 4], JoinError>>, u32) {
    struct Counts(Rc<Cell<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let counts = Counts(dropped.clone());
    let (mut cpu, mut other) = (Cpu::new().unwrap(), Cpu::new().unwrap());
    let handle = other.spawn_local(async move {
        let _counts = counts;
        ends.await;
        [7; 4]
    });
    let handle = handle.unwrap();
    let got = Rc::new(RefCell::new(None));
    let gets = got.clone();
    let joiner = cpu.spawn_local(async move { *gets.borrow_mut() = Some(handle.await) });
    drop(joiner.unwrap());
    run(&mut cpu);
    assert!(got.borrow().is_none());

    let unpark = Arc::new(BombUnpark::default());
    let mut events = RunsOther { other, unpark: unpark.clone() };
    cpu.poll(&mut events, true).unwrap();
    assert_eq!(unpark.0.load(Ordering::Relaxed), 1, "the joined thread has ended while the CPU slept");
    assert!(!in_thread());
    let before = RAN.get();
    drop(events.other.spawn(work()).unwrap());
    run(&mut events.other);
    assert_eq!(RAN.get(), before + 1, "the CPU of the joined thread goes on");
    assert!(events.other.threads().is_empty(), "{:?}", events.other.threads());
    run(&mut cpu);
    assert!(cpu.threads().is_empty(), "{:?}", cpu.threads());
    (got.take(), dropped.get())
}

#[test]
fn an_unpark_that_panics_in_the_last_poll_leaves_the_result_as_it_is() {
    let (got, dropped) = joined_from_a_sleeping_cpu(yield_now());
    assert!(matches!(got, Some(Ok([7, 7, 7, 7]))), "{got:?}");
    assert_eq!(dropped, 1);
}

#[test]
fn an_unpark_that_panics_after_an_exit_leaves_the_cpu_whole() {
    let (got, dropped) = joined_from_a_sleeping_cpu(async {
        exit().await;
    });
    assert!(matches!(got, Some(Err(JoinError::Cancelled))), "{got:?}");
    assert_eq!(dropped, 1);
}

#[test]
fn a_handle_polled_elsewhere_gets_its_result_after_its_cpu_has_gone() {
    let mut cpu = awaited(Waker::noop().clone());
    run(&mut cpu);
    drop(cpu);
    let handle = HANDLE.take().unwrap();
    let Poll::Ready(Ok(result)) = std::pin::pin!(handle).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the thread is over");
    };
    assert_eq!(result, [RAN.get() as u64; 4]);
}
