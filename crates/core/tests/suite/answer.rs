//! `Cpu::answer`: it answers calls of the program's own, alone and within combinators, and leaves
//! other requests alone.

use selvedge_core::{Cpu, Request, Syscall, Trace, call, sleep};
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

struct Double(u32);

impl Syscall for Double {
    type Reply = u32;
}

struct Name;

impl Syscall for Name {
    type Reply = &'static str;
}

/// Polls both futures until the first is ready.
async fn first_of<T>(one: impl Future<Output = T>, other: impl Future) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        let ready = one.as_mut().poll(cx);
        if ready.is_pending() {
            let _ = other.as_mut().poll(cx);
        }
        ready
    })
    .await
}

#[test]
fn a_call_is_answered_wherever_it_was_made() {
    let mut cpu = Cpu::new().unwrap();
    let plain = cpu.thread(async { assert_eq!(call(Double(1)).await, 2) }).unwrap();
    let node = plain.step(&mut cpu);
    assert!(matches!(node, Trace::Call(_)));
    assert!(matches!(cpu.answer(node, |Double(n)| 2 * n), Trace::Blocked));
    let thread = cpu.woken().unwrap();
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));

    // A thread that can be cancelled makes the same call through `Trace::Detached`.
    let mut handle = cpu.spawn_local(async { call(Double(21)).await }).unwrap();
    let node = cpu.woken().unwrap().step(&mut cpu);
    assert!(matches!(node, Trace::Detached));
    assert!(matches!(cpu.answer(node, |Double(n)| 2 * n), Trace::Blocked));
    cpu.woken().unwrap().step(&mut cpu);
    assert_eq!(handle.try_join().unwrap().unwrap(), 42);
}

#[test]
fn what_is_not_of_the_type_is_left_in_order() {
    let mut cpu = Cpu::new().unwrap();
    let other = cpu.thread(async { assert_eq!(call(Name).await, "never") }).unwrap();
    let node = other.step(&mut cpu);
    assert!(matches!(cpu.answer(node, |Double(n)| n), Trace::Call(_)));

    let sleeps = sleep(Duration::from_secs(60));
    let within = first_of(call(Double(4)), first_of(sleeps, call(Name)));
    let mut handle = cpu.spawn_local(within).unwrap();
    let node = cpu.woken().unwrap().step(&mut cpu);
    let node = cpu.answer(node, |Double(n)| 2 * n);
    assert!(matches!(node, Trace::Detached));
    assert!(matches!(cpu.answer(node, |Name| "selvedge"), Trace::Detached));
    let left = cpu.detached().unwrap();
    assert!(matches!(left.request, Request::Sleep(_)));
    assert!(cpu.detached().is_none());
    cpu.woken().unwrap().step(&mut cpu);
    assert_eq!(handle.try_join().unwrap().unwrap(), 8);
}

#[test]
fn nodes_without_a_call_pass() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(selvedge_core::yield_now()).unwrap();
    let node = thread.step(&mut cpu);
    let Trace::Yield(thread) = cpu.answer(node, |Double(n)| n) else { panic!("a yield is no call") };
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));
}
