//! Join handles that wait behind foreign wakers. The waker's code runs at the end of the thread.
//! Whatever that code does, the CPU goes on.

use selvedge_core::*;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

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
