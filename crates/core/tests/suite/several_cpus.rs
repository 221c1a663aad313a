//! CPUs that come and go, on one OS thread and on several, while handles of their threads live on.

use selvedge_core::*;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::{Poll, Waker};

fn run(cpu: &mut Cpu) {
    while let Some(thread) = cpu.woken() {
        match thread.step(cpu) {
            Trace::Yield(thread) => cpu.make_ready(thread),
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn another_cpu_never_reads_a_block_that_a_handle_here_still_holds() {
    // Handles stay here after their CPU is gone, while another OS thread starts CPUs that want
    // blocks of the same size.
    let (begin, begun) = mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        begun.recv().unwrap();
        for _ in 0..if cfg!(miri) { 4 } else { 20 } {
            let mut cpu = Cpu::new().unwrap();
            drop(cpu.spawn(async { [1u64; 7] }).unwrap());
            assert_eq!(cpu.threads().len(), 1);
            run(&mut cpu);
        }
    });
    let mut cpu = Cpu::new().unwrap();
    let mut over: Vec<_> = (0..10).map(|_| cpu.spawn(async { [1u64; 7] }).unwrap()).collect();
    run(&mut cpu);
    let held: RunQueue = {
        let mut queue = RunQueue::new();
        queue.extend((0..10).map(|_| cpu.thread(async { yield_now().await }).unwrap()));
        queue
    };
    drop(cpu);
    begin.send(()).unwrap();
    while let Some(mut handle) = over.pop() {
        assert_eq!(handle.try_join().unwrap().unwrap(), [1; 7]);
        // Time for the other OS thread to run its CPUs.
        (0..200).for_each(|_| std::thread::yield_now());
    }
    drop(held);
    other.join().unwrap();
}

#[test]
fn a_chunk_serves_again_when_its_last_handle_is_gone() {
    fn one() -> (u32, JoinHandle<[u64; 37]>) {
        let mut cpu = Cpu::new().unwrap();
        let handle = cpu.spawn(async { [1u64; 37] }).unwrap();
        let id = cpu.threads()[0].id();
        run(&mut cpu);
        (id, handle)
    }
    let (first, held) = one();
    let (second, _) = one();
    assert_ne!(first, second);
    drop(held);
    assert_eq!(one().0.min(one().0), first.min(second));
    let ids = [one(), one()].map(|(id, _)| id);
    assert!(ids.contains(&first) && ids.contains(&second), "{first} {second} {ids:?}");
}

#[test]
fn a_thread_that_waits_is_kept_by_its_own_cpu_only() {
    let (mut here, mut there) = (Cpu::new().unwrap(), Cpu::new().unwrap());
    let thread = here.thread(std::future::pending()).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| thread.step(&mut there))).is_err());
    let orphan = here.thread(std::future::pending()).unwrap();
    drop(here);
    assert!(catch_unwind(AssertUnwindSafe(|| orphan.step(&mut there))).is_err());
    assert!(!in_thread());
    assert_eq!(there.waiting(), 0);
}

#[test]
fn a_scheduler_runs_within_a_thread_of_another() {
    let seen = round_robin(async {
        let outer = spawn(async { 1 });
        let inner = round_robin(async {
            let one = spawn(async {
                yield_now().await;
                2
            });
            one.await.unwrap()
        });
        outer.await.unwrap() + inner.unwrap()
    });
    assert_eq!(seen.unwrap(), 3);
}

#[test]
fn a_stale_waker_is_no_harm_to_a_later_cpu() {
    let mut wakers = Vec::new();
    for _ in 0..if cfg!(miri) { 5 } else { 20 } {
        let (sender, given) = mpsc::channel();
        let mut cpu = Cpu::new().unwrap();
        let thread = cpu.thread(park(move |waker| sender.send(waker).unwrap())).unwrap();
        assert!(matches!(thread.step(&mut cpu), Trace::Blocked));
        wakers.push(given.recv().unwrap());
        let stale = wakers.clone();
        let waking = std::thread::spawn(move || stale.into_iter().for_each(|w| w.wake()));
        let woken = loop {
            if let Some(thread) = cpu.woken() {
                break thread;
            }
            std::thread::yield_now();
        };
        assert!(matches!(woken.step(&mut cpu), Trace::Ret));
        drop(cpu);
        waking.join().unwrap();
    }
}

/// Miri checks the memory accesses of this test.
#[test]
fn what_a_cpu_has_lent_may_be_used_when_it_is_gone() {
    // A poll on a stack that is never resumed does this: it keeps the waker that it has borrowed.
    let mut cpu = Cpu::new().unwrap();
    let (keep, kept) = mpsc::channel();
    let thread = cpu.thread(std::future::poll_fn(move |cx| {
        // SAFETY: a bitwise copy is used as a reference to the waker would be, and never dropped.
        keep.send(ManuallyDrop::new(unsafe { std::ptr::read(cx.waker()) })).unwrap();
        Poll::Ready(())
    }));
    assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Ret));
    let lent = kept.recv().unwrap();
    drop(cpu);
    let use_it = || {
        lent.wake_by_ref();
        Waker::clone(&lent).wake();
    };
    use_it();
    let elsewhere = std::thread::scope(|scope| {
        // This runs beside the beginnings and ends of the next CPUs.
        let other = scope.spawn(|| (0..if cfg!(miri) { 10 } else { 1000 }).for_each(|_| use_it()));
        for _ in 0..if cfg!(miri) { 2 } else { 20 } {
            let mut cpu = Cpu::new().unwrap();
            assert_eq!(
                cpu.spawn(async { 1 })
                    .map(|mut one| (run(&mut cpu), one.try_join()))
                    .unwrap()
                    .1
                    .unwrap()
                    .unwrap(),
                1
            );
        }
        other.join()
    });
    elsewhere.unwrap();
}
