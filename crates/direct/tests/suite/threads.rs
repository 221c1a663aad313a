//! What direct-style threads do, under core's schedulers and a foreign executor.

use crate::common::MVar;
use crate::processes::is_sanitized;
use futures::channel::oneshot;
use futures::stream::{FuturesUnordered, StreamExt};
use selvedge_core::{Cpu, JoinError, Trace, catch, fork_local, round_robin, spawn_local, throw};
use selvedge_direct::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[test]
fn they_take_turns_with_async_threads() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let (one, other) = (log.clone(), log.clone());
    round_robin(async move {
        let a = spawn(move || {
            for i in 0..3 {
                one.borrow_mut().push(format!("direct {i}"));
                yield_now();
            }
        });
        let b = spawn_local(async move {
            for i in 0..3 {
                other.borrow_mut().push(format!("async {i}"));
                selvedge_core::yield_now().await;
            }
        });
        a.await.unwrap();
        b.await.unwrap();
    })
    .unwrap();
    assert_eq!(*log.borrow(), ["direct 0", "async 0", "direct 1", "async 1", "direct 2", "async 2"]);
}

#[test]
fn a_system_call_is_the_threads_own_node() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(direct(|| {
        yield_now();
        fork(|| ());
        sleep(std::time::Duration::from_secs(1));
    }));
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!("no yield") };
    let Trace::Fork { child, parent } = thread.step(&mut cpu) else { panic!("no fork") };
    assert!(matches!(child.step(&mut cpu), Trace::Ret));
    let Trace::Sleep(sleep) = parent.step(&mut cpu) else { panic!("no sleep") };
    drop(sleep);
}

#[test]
fn ten_thousand_pass_a_number_on() {
    const THREADS: usize = 10_000;
    let sum = round_robin(async {
        let vars: Vec<_> = (0..=THREADS).map(|_| MVar::empty()).collect();
        for pair in vars.windows(2) {
            let (from, to) = (pair[0].clone(), pair[1].clone());
            fork_local(direct(move || {
                let n: usize = wait(from.take());
                wait(to.put(n + 1));
            }))
            .await;
        }
        vars[0].put(0).await;
        vars[THREADS].take().await
    });
    assert_eq!(sum.unwrap(), THREADS);
}

#[test]
fn ping_pong_between_direct_and_async() {
    let last = round_robin(async {
        let (ping, pong) = (MVar::empty(), MVar::empty());
        let (from, to) = (ping.clone(), pong.clone());
        fork_local(direct(move || {
            loop {
                let n: u64 = wait(from.take());
                wait(to.put(n + 1));
            }
        }))
        .await;
        let mut n = 0;
        for _ in 0..1000 {
            ping.put(n).await;
            n = pong.take().await;
        }
        n
    });
    assert_eq!(last.unwrap(), 1000);
}

fn fibonacci(n: u32) -> u64 {
    match n {
        0 | 1 => n.into(),
        _ => {
            // One branch in a thread of its own, one by recursion.
            let left = (n > 6).then(|| spawn(move || fibonacci(n - 1)));
            let right = fibonacci(n - 2);
            yield_now();
            right + left.map_or_else(|| fibonacci(n - 1), |left| wait(left).unwrap())
        }
    }
}

#[test]
fn it_waits_in_the_middle_of_recursion() {
    assert_eq!(round_robin(direct(|| fibonacci(15))).unwrap(), 610);
}

#[test]
#[should_panic(expected = "for direct-style threads, and here is none")]
fn waiting_outside_of_one_is_refused() {
    let _ = round_robin(async { wait(async {}) });
}

#[test]
fn one_within_another() {
    let sum = round_robin(direct(|| {
        assert!(in_direct());
        wait(async {
            let inner = direct(|| {
                yield_now();
                wait(async {
                    selvedge_core::yield_now().await;
                    direct(|| {
                        yield_now();
                        1
                    })
                    .await
                })
            });
            let one = inner.await;
            selvedge_core::yield_now().await;
            one + 1
        }) + 1
    }));
    assert_eq!(sum.unwrap(), 3);
    assert!(!in_direct());
}

#[test]
fn a_wait_within_the_poll_of_a_wait() {
    let sum = round_robin(direct(|| {
        let var = MVar::empty();
        let to = var.clone();
        let sum = wait(async {
            selvedge_core::yield_now().await;
            let putter = spawn_local(async move { to.put(20).await });
            let a: i32 = wait(var.take());
            yield_now();
            // The outer future goes on after the thread was switched away within its poll.
            selvedge_core::yield_now().await;
            putter.await.unwrap();
            a + wait(async {
                yield_now();
                1
            })
        });
        yield_now();
        sum * 2
    }));
    assert_eq!(sum.unwrap(), 42);
}

/// Says when it is dropped.
struct Mark(Rc<Cell<u32>>, u32);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.set(self.0.get() * 10 + self.1);
    }
}

/// The thread runs again for a wake-up that is meant for the poll around the wait in which it
/// stands.
#[test]
fn a_poll_that_was_woken_while_the_stack_was_left_within_it_comes_again() {
    let ended = round_robin(async {
        let (outer, inner) = (MVar::empty(), MVar::empty());
        let (outers, inners) = (outer.clone(), inner.clone());
        let thread = spawn_local(direct(move || {
            let both = async { futures::future::join(outers.take(), async { wait(inners.take()) }).await };
            wait(both)
        }));
        selvedge_core::yield_now().await;
        outer.put(1).await;
        for _ in 0..3 {
            selvedge_core::yield_now().await;
        }
        inner.put(2).await;
        thread.await.unwrap()
    });
    assert_eq!(ended.unwrap(), (1, 2));
}

#[test]
fn a_poll_that_wakes_itself_before_the_stack_is_left_comes_again() {
    let polls = Rc::new(Cell::new(0));
    let counted = polls.clone();
    let ended = round_robin(direct(move || {
        wait(std::future::poll_fn(|cx| {
            counted.set(counted.get() + 1);
            if counted.get() == 2 {
                return std::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            yield_now();
            std::task::Poll::Pending
        }));
    }));
    ended.unwrap();
    assert_eq!(polls.get(), 2);
}

#[test]
fn dropping_one_that_waits_runs_its_destructors() {
    let mut cpu = Cpu::new().unwrap();
    let marks = Rc::new(Cell::new(0));
    let var = MVar::<()>::empty();
    let (m, v) = (marks.clone(), var.clone());
    let thread = cpu
        .thread(direct(move || {
            let _one = Mark(m.clone(), 1);
            fn deeper(m: &Rc<Cell<u32>>, v: &MVar<()>) {
                let _two = Mark(m.clone(), 2);
                wait(v.take());
                m.set(0);
            }
            deeper(&m, &v);
            m.set(0);
        }))
        .unwrap();
    assert!(matches!(thread.step(&mut cpu), Trace::Blocked));
    drop(cpu);
    assert_eq!(marks.get(), 21);
    // It has left the queue: a value that is put stays.
    round_robin(async move {
        var.put(()).await;
        var.take().await;
    })
    .unwrap();
    assert!(!std::thread::panicking());
}

#[test]
fn dropping_one_that_never_ran_drops_its_body() {
    let marks = Rc::new(Cell::new(0));
    let mark = Mark(marks.clone(), 1);
    drop(direct(move || drop(mark)));
    assert_eq!(marks.get(), 1);
}

#[test]
fn cancelled_at_each_of_its_waits() {
    for steps in 0..6 {
        let mut cpu = Cpu::new().unwrap();
        let marks = Rc::new(Cell::new(0));
        let m = marks.clone();
        let mut thread = cpu
            .thread(direct(move || {
                let _first = Mark(m.clone(), 1);
                for i in 2..6 {
                    let _in_turn = Mark(m.clone(), i);
                    wait(async {
                        let _held = Mark(m.clone(), 9);
                        yield_now();
                    });
                }
            }))
            .unwrap();
        for _ in 0..steps {
            match thread.step(&mut cpu) {
                Trace::Yield(rest) => thread = rest,
                end => {
                    assert!(matches!(end, Trace::Ret));
                    thread = cpu.thread(async {}).unwrap();
                }
            }
        }
        drop(thread);
        assert_eq!(marks.get(), [0, 921, 92931, 9293941, 929394951, 929394951][steps], "after {steps} steps");
    }
}

#[test]
fn a_panic_is_the_threads() {
    round_robin(async {
        let marks = Rc::new(Cell::new(0));
        let mark = Mark(marks.clone(), 1);
        let thread = spawn(move || {
            let _mark = mark;
            yield_now();
            panic!("in the middle");
        });
        let Err(JoinError::Panicked(exception)) = thread.await else { panic!("no panic") };
        assert_eq!(exception.message(), Some("in the middle"));
        assert_eq!(marks.get(), 1);
        // Others go on, also on the stack that it had.
        spawn(yield_now).await.unwrap();
    })
    .unwrap();
    assert!(!std::thread::panicking());
}

#[test]
fn exceptions_pass_stacks_both_ways() {
    round_robin(direct(|| {
        let caught = wait(catch(direct(|| {
            yield_now();
            throw(7_u8)
        })));
        assert_eq!(caught.unwrap_err().downcast::<u8>().unwrap(), 7);
        let caught = std::panic::catch_unwind(|| {
            wait(async {
                selvedge_core::yield_now().await;
                throw(8_u8)
            })
        });
        assert_eq!(*caught.unwrap_err().downcast::<u8>().unwrap(), 8);
        yield_now();
    }))
    .unwrap();
}

#[test]
fn it_can_exit_from_any_depth() {
    round_robin(async {
        let marks = Rc::new(Cell::new(0));
        let mark = Mark(marks.clone(), 1);
        let thread = spawn(move || {
            let _mark = mark;
            exit();
        });
        assert!(matches!(thread.await, Err(JoinError::Cancelled)));
        assert_eq!(marks.get(), 1);
    })
    .unwrap();
}

#[test]
fn its_handle_cancels_it_wherever_it_waits() {
    round_robin(async {
        let marks = Rc::new(Cell::new(0));
        let waits: [fn(); 4] = [
            yield_now,
            || wait(std::future::pending()),
            || wait(async { wait(std::future::pending()) }),
            || wait(direct(|| wait(std::future::pending()))),
        ];
        for (n, wait_there) in waits.into_iter().enumerate() {
            let mark = Mark(marks.clone(), 1);
            let thread = spawn(move || {
                let _mark = mark;
                loop {
                    wait_there();
                }
            });
            selvedge_core::yield_now().await;
            selvedge_core::yield_now().await;
            thread.cancel();
            assert!(matches!(thread.await, Err(JoinError::Cancelled)), "{n}");
            assert_eq!(marks.take(), 1, "{n}");
        }
    })
    .unwrap();
    assert!(!std::thread::panicking());
}

#[test]
fn a_shield_holds_in_direct_style_too() {
    round_robin(async {
        let marks = Rc::new(Cell::new(0));
        let m = marks.clone();
        let thread = spawn(move || {
            wait(selvedge_core::shield(async {
                selvedge_core::yield_now().await;
                selvedge_core::yield_now().await;
                m.set(3);
            }));
            shield(|| {
                for _ in 0..5 {
                    yield_now();
                    wait(async {
                        yield_now();
                        selvedge_core::yield_now().await;
                    });
                }
                m.set(m.get() - 2);
            });
            yield_now();
            m.set(2);
        });
        selvedge_core::yield_now().await;
        selvedge_core::yield_now().await;
        thread.cancel();
        assert!(thread.await.is_err());
        assert_eq!(marks.get(), 1);
    })
    .unwrap();
}

/// Waits for its turn in a destructor.
struct PutsBack(Rc<MVar<u32>>, Rc<Cell<u32>>);

impl Drop for PutsBack {
    fn drop(&mut self) {
        wait(self.0.put(7));
        self.1.set(self.1.get() + 1);
    }
}

#[test]
fn a_destructor_waits_while_the_stack_is_unwound() {
    let done = Rc::new(Cell::new(0));
    let d = done.clone();
    round_robin(async move {
        let var = MVar::empty();
        for full in [false, true] {
            let back = PutsBack(var.clone(), d.clone());
            let mut thread = Box::pin(direct(move || {
                let _back = back;
                loop {
                    yield_now();
                }
            }));
            if full {
                var.put(1).await;
            }
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(thread.as_mut().poll(cx).is_pending()));
            assert!(polled.await);
            drop(thread);
            assert_eq!(d.get(), 1, "it has waited only if it must");
            if full {
                assert_eq!(var.take().await, 1);
            }
            assert_eq!(var.take().await, 7);
            selvedge_core::yield_now().await;
        }
    })
    .unwrap();
    assert_eq!(done.get(), 2);
    assert!(!std::thread::panicking());
}

#[test]
fn a_destructor_waits_while_a_panic_unwinds() {
    round_robin(async {
        let (var, done) = (MVar::empty(), Rc::new(Cell::new(0)));
        var.put(1).await;
        let back = PutsBack(var.clone(), done.clone());
        let thread = spawn(move || {
            let _back = back;
            panic!("with a destructor that waits");
        });
        selvedge_core::yield_now().await;
        assert_eq!((var.take().await, var.take().await), (1, 7));
        assert!(matches!(thread.await, Err(JoinError::Panicked(_))));
        assert_eq!(done.get(), 1);
    })
    .unwrap();
    assert!(!std::thread::panicking());
}

#[test]
fn code_that_catches_its_cancellation_is_thrown_it_again() {
    let caught = Rc::new(Cell::new(0));
    let c = caught.clone();
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(direct(move || {
        for _ in 0..2 {
            while std::panic::catch_unwind(yield_now).is_ok() {}
            c.set(c.get() + 1);
        }
        yield_now();
        c.set(0);
    }));
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!("no yield") };
    drop(thread);
    assert_eq!(caught.get(), 2);
}

/// Waits with nothing to drop on its frame.
#[inline(never)]
fn idles() {
    loop {
        yield_now();
    }
}

/// Runs the body for a step, and drops its thread.
fn cancelled_after_a_step(body: impl FnOnce() + 'static) {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(direct(body)).unwrap();
    let Trace::Yield(thread) = thread.step(&mut cpu) else { panic!("no yield") };
    drop(thread);
}

#[test]
fn what_is_owned_around_frames_with_nothing_to_drop_is_dropped() {
    let owned = Rc::new(());
    let captured = owned.clone();
    cancelled_after_a_step(move || {
        idles();
        drop(captured);
    });
    assert_eq!(Rc::strong_count(&owned), 1, "captured by the body");
    let captured = owned.clone();
    cancelled_after_a_step(move || {
        let _moved = captured;
        idles();
    });
    assert_eq!(Rc::strong_count(&owned), 1, "on the body's frame");
    fn outer(_owned: Rc<()>, depth: u32) {
        if depth == 0 { idles() } else { outer(Rc::new(()), depth - 1) }
    }
    let captured = owned.clone();
    cancelled_after_a_step(move || outer(captured, 5));
    assert_eq!(Rc::strong_count(&owned), 1, "an argument of an outer frame");
}

#[test]
fn code_that_catches_goes_on_although_there_is_nothing_to_drop() {
    let caught = Rc::new(Cell::new(0));
    let c = Rc::as_ptr(&caught);
    cancelled_after_a_step(move || {
        assert!(std::panic::catch_unwind(idles).is_err());
        // SAFETY: the test keeps it until the thread has ended.
        unsafe { (*c).set(1) };
        assert!(std::panic::catch_unwind(idles).is_err());
        // SAFETY: as above.
        unsafe { (*c).set(2) };
        idles();
    });
    assert_eq!(caught.get(), 2);
}

#[test]
fn a_stack_that_was_left_is_used_again() {
    for round in 0..300 {
        cancelled_after_a_step(idles);
        cancelled_after_a_step(|| {
            idles();
            unreachable!("it was dropped");
        });
        assert_eq!(round_robin(direct(move || fibonacci(8) + round)).unwrap(), 21 + round);
    }
    // One within another: the inner one has nothing to drop, the outer one has the inner one.
    cancelled_after_a_step(|| {
        wait(direct(idles));
    });
}

#[test]
fn forty_thousand_wait_at_a_time() {
    if !marks_guards() || is_sanitized() {
        return; // There is room for some 30,000; the sanitizer needs 60 GB for them.
    }
    let sum = round_robin(async {
        let first = Rc::new(Cell::new(0));
        for _ in 0..40_000 {
            let waits = first.clone();
            drop(spawn(move || {
                yield_now();
                waits.set(waits.get() + 1);
            }));
        }
        while Rc::strong_count(&first) > 1 {
            selvedge_core::yield_now().await;
        }
        first.get()
    });
    assert_eq!(sum.unwrap(), 40_000);
}

/// Whether the kernel marks the guards of stacks: Linux 6.13.
fn marks_guards() -> bool {
    const MADV_GUARD_INSTALL: i32 = 102;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which no code uses.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        libc::madvise(page, 4096, MADV_GUARD_INSTALL) == 0
    }
}

#[test]
fn dropped_by_another_thread_that_panics() {
    let marks = Rc::new(Cell::new(0));
    let mark = Mark(marks.clone(), 1);
    round_robin(async move {
        let outer = spawn_local(async move {
            let mut inner = Box::pin(direct(move || {
                let _mark = mark;
                loop {
                    yield_now();
                }
            }));
            std::future::poll_fn(|cx| {
                let _ = inner.as_mut().poll(cx);
                std::task::Poll::Ready(())
            })
            .await;
            panic!("with a direct-style thread inside");
        });
        assert!(matches!(outer.await, Err(JoinError::Panicked(_))));
    })
    .unwrap();
    assert_eq!(marks.get(), 1);
}

#[test]
fn under_a_foreign_executor() {
    let (to, from) = oneshot::channel();
    let helper = std::thread::spawn(move || to.send(40).unwrap());
    let sum = futures::executor::block_on(direct(|| {
        let threads: FuturesUnordered<_> = (0..3)
            .map(|n| {
                direct(move || {
                    wait(async {
                        yield_now();
                        selvedge_core::yield_now().await;
                    });
                    n
                })
            })
            .collect();
        let sum = wait(threads.fold(0, |a, b| async move { a + b }));
        sum + wait(from).unwrap()
    }));
    helper.join().unwrap();
    assert_eq!(sum, 43);
}

#[test]
fn its_size_is_a_few_words() {
    fn size<F: Future<Output = ()>>(_: &F) -> usize {
        selvedge_core::Thread::size_of::<F>()
    }
    let thread = direct(|| ());
    assert!(size(&thread) <= 72, "{} bytes", size(&thread));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn stacks_are_used_again() {
    fn here() -> usize {
        let stack_pointer: usize;
        // SAFETY: reads a register. (Under the address sanitizer, the address of a local variable
        // says nothing.)
        unsafe { std::arch::asm!("mov {}, rsp", out(reg) stack_pointer, options(nomem, nostack)) };
        stack_pointer
    }
    let first = round_robin(direct(here)).unwrap();
    assert!(first.abs_diff(here()) > STACK_BYTES);
    assert!(round_robin(direct(here)).unwrap().abs_diff(first) < 4096);
}
