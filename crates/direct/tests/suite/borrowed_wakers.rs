//! A thread that waits within a poll keeps the poll's context, and with it a waker that its CPU has
//! only lent.

use selvedge_core::{Cpu, Thread, Trace};
use selvedge_direct::{direct, wait, yield_now};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Poll, Waker};

/// Uses the context's waker when the stack is unwound.
struct WakesWhenDropped<'a>(&'a Waker, &'static AtomicBool);

impl Drop for WakesWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.wake_by_ref();
        self.1.store(true, Ordering::Relaxed);
    }
}

/// A thread that yields in the middle of a poll, and notes when it is unwound. What it leaves when
/// it is not is no memory of the heap's.
fn yields_within_a_poll(cpu: &mut Cpu, unwound: &'static AtomicBool) -> Thread {
    let thread = cpu.thread(direct(move || {
        wait(poll_fn(|cx| {
            let _wakes = WakesWhenDropped(cx.waker(), unwound);
            yield_now();
            Poll::Ready(())
        }));
    }));
    let Trace::Yield(thread) = thread.unwrap().step(cpu) else { panic!("no yield") };
    thread
}

#[test]
fn one_that_outlives_its_cpu_does_not_come_back_to_what_the_cpu_has_lent() {
    static UNWOUND: AtomicBool = AtomicBool::new(false);
    let mut cpu = Cpu::new().unwrap();
    let thread = yields_within_a_poll(&mut cpu, &UNWOUND);
    drop(cpu);
    drop(thread);
    assert!(!UNWOUND.load(Ordering::Relaxed), "its stack is given up");
}

#[test]
fn one_that_goes_with_its_cpu_is_unwound() {
    static UNWOUND: AtomicBool = AtomicBool::new(false);
    let mut cpu = Cpu::new().unwrap();
    let thread = yields_within_a_poll(&mut cpu, &UNWOUND);
    cpu.make_ready(thread);
    drop(cpu);
    assert!(UNWOUND.load(Ordering::Relaxed));
}

/// Seen by the address sanitizer.
#[test]
fn an_os_thread_that_works_for_a_poll_may_use_its_waker_when_the_poll_is_given_up_and_the_cpu_gone() {
    let (wake, to_wake) = mpsc::channel();
    let (done, is_done) = mpsc::channel();
    let mut cpu = Cpu::new().unwrap();
    let mut work = Some((to_wake, done));
    let thread = cpu.thread(direct(move || {
        wait(poll_fn(|cx| {
            let (waker, (to_wake, done)) = (cx.waker(), work.take().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for () in to_wake {
                        waker.wake_by_ref();
                        drop(waker.clone());
                        done.send(()).unwrap();
                    }
                });
                yield_now();
            });
            Poll::Ready(())
        }));
    }));
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!("no yield") };
    drop(cpu);
    drop(thread);
    let once = || {
        wake.send(()).unwrap();
        is_done.recv().unwrap();
    };
    once();
    // The CPU that has its number now is not disturbed.
    let mut cpu = Cpu::new().unwrap();
    once();
    let thread = cpu.thread(selvedge_core::yield_now()).unwrap();
    let Trace::Yield(thread) = thread.step(&mut cpu) else { panic!("no yield") };
    once();
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));
    // The OS thread waits for ever, and holds what is on the heap.
    std::mem::forget(wake);
}
