//! A thread that waits within a poll keeps the poll's context, and with it a waker that its CPU has only lent.

use selvedge_core::{Cpu, Thread, Trace};
use selvedge_direct::{direct, wait, yield_now};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// Uses the context's waker when the stack is unwound.
struct WakesWhenDropped<'a>(&'a Waker, &'static AtomicBool);

impl Drop for WakesWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.wake_by_ref();
        self.1.store(true, Ordering::Relaxed);
    }
}

/// A thread that yields in the middle of a poll, and notes when it is unwound. What it leaves when it is not is no memory of the heap's.
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
