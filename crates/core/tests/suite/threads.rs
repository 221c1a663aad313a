//! The guarantees that threads and schedulers rely on, seen from outside.

use crate::never::Never;
use selvedge_core::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

/// A scheduler of the test's own: first in, first out, for threads that wait for one another.
fn run(cpu: &mut Cpu, main: impl Future<Output = ()> + 'static) {
    let mut ready = VecDeque::from([cpu.thread(main).unwrap()]);
    while let Some(thread) = ready.pop_front() {
        match thread.step(cpu) {
            Trace::Yield(t) => ready.push_back(t),
            Trace::Fork { child, parent } => ready.extend([child, parent]),
            Trace::Nbio(n) => ready.push_back(n.perform()),
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
        while let Some(t) = cpu.woken() {
            ready.push_back(t);
        }
    }
}

fn log() -> (Rc<RefCell<Vec<String>>>, impl Fn(&str) + Clone) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let to = log.clone();
    (log, move |s: &str| to.borrow_mut().push(s.to_string()))
}

#[test]
fn a_thread_that_only_yields_takes_sixteen_bytes() {
    fn size<F: Future<Output = ()>>(_: F) -> usize {
        Thread::size_of::<F>()
    }
    assert_eq!(
        size(async {
            loop {
                yield_now().await
            }
        }),
        16
    );
}

#[test]
fn yields_take_turns_and_forks_run() {
    let (seen, say) = log();
    run(&mut Cpu::new().unwrap(), async move {
        let other = say.clone();
        fork_local(async move {
            other("b1");
            yield_now().await;
            other("b2");
        })
        .await;
        say("a1");
        yield_now().await;
        say("a2");
    });
    assert_eq!(*seen.borrow(), ["b1", "a1", "b2", "a2"]);
}

#[test]
fn dropping_a_thread_runs_its_destructors() {
    struct Bell(Rc<Cell<u32>>);
    impl Drop for Bell {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let rung = Rc::new(Cell::new(0));
    let mut cpu = Cpu::new().unwrap();
    let bell = Bell(rung.clone());
    let thread = cpu.thread(async move {
        let _bell = bell;
        loop {
            yield_now().await;
        }
    });
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!() };
    assert_eq!(rung.get(), 0);
    drop(thread);
    assert_eq!(rung.get(), 1);
    // A thread that the CPU keeps is dropped with the CPU.
    let bell = Bell(rung.clone());
    let thread = cpu.thread(async move {
        let _bell = bell;
        std::future::pending::<()>().await;
    });
    assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Blocked));
    assert_eq!((cpu.waiting(), rung.get()), (1, 1));
    drop(cpu);
    assert_eq!(rung.get(), 2);
}

#[test]
fn a_handle_outlives_the_cpu_and_a_thread_its_handle() {
    let handle = Rc::new(RefCell::new(None));
    let to = handle.clone();
    let mut cpu = Cpu::new().unwrap();
    run(&mut cpu, async move {
        *to.borrow_mut() = Some(spawn(async { String::from("kept") }));
        drop(spawn(async { yield_now().await }));
        let early = spawn(std::future::pending::<u8>());
        drop(early);
    });
    drop(cpu);
    let handle = handle.take().unwrap();
    assert!(handle.is_finished());
    assert_eq!(futures::executor::block_on(handle).unwrap(), "kept");
}

#[test]
fn a_cancelled_thread_tells_its_joiner() {
    let handle = Rc::new(RefCell::new(None));
    let to = handle.clone();
    let mut cpu = Cpu::new().unwrap();
    run(&mut cpu, async move {
        *to.borrow_mut() = Some(spawn(std::future::pending::<()>()));
    });
    drop(cpu);
    let end = futures::executor::block_on(handle.take().unwrap());
    assert!(matches!(end, Err(JoinError::Cancelled)));
}

#[test]
fn a_panic_ends_one_thread_and_reaches_its_joiner() {
    let seen = round_robin(async {
        let bad = spawn(async {
            yield_now().await;
            if true {
                std::panic::resume_unwind(Box::new("broken"));
            }
        });
        let good = spawn(async { 7 });
        match bad.await {
            Err(JoinError::Panicked(e)) => (e.message() == Some("broken"), good.await.unwrap()),
            _ => panic!("no panic arrived"),
        }
    });
    assert_eq!(seen.unwrap(), (true, 7));
}

#[test]
fn an_unjoined_panic_is_a_node() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async { throw(5u8) }).unwrap();
    let Trace::Panic(panic) = thread.step(&mut cpu) else { panic!() };
    assert_eq!(panic.into_exception().downcast::<u8>().unwrap(), 5);
}

#[test]
fn exit_ends_the_thread_from_within_and_catch_does_not_stop_it() {
    let (seen, say) = log();
    let result = round_robin(async move {
        let told = say.clone();
        let inner = spawn_local(async move {
            let caught = catch(async { exit().await }).await;
            told("after exit");
            drop(caught);
        });
        let end = inner.await;
        say("joined");
        matches!(end, Err(JoinError::Cancelled))
    });
    assert!(result.unwrap());
    assert_eq!(*seen.borrow(), ["joined"]);
}

#[test]
fn catch_returns_a_typed_result() {
    let results = round_robin(async {
        let fine = catch(async {
            yield_now().await;
            3
        })
        .await
        .unwrap();
        let thrown = catch(async {
            yield_now().await;
            throw::<String>("no".into());
        })
        .await
        .unwrap_err();
        let other = thrown.downcast::<u32>().unwrap_err();
        (fine, other.downcast::<String>().unwrap())
    });
    assert_eq!(results.unwrap(), (3, "no".to_string()));
}

#[test]
fn a_deadlock_is_reported_with_its_threads() {
    let line = line!() + 4;
    let error = round_robin(async {
        let stuck = spawn_local(async {
            let door = WaitQueue::<(), (), Local>::new(());
            door.wait::<Never>(()).await;
        });
        let _ = stuck.await;
    });
    // A `main` that returns the error prints this.
    let printed = format!("{:?}", error.as_ref().unwrap_err());
    let Err(RunError::Deadlock(deadlock)) = error else { panic!("{error:?}") };
    assert_eq!((printed, format!("{deadlock:?}")), (deadlock.to_string(), deadlock.to_string()));
    assert_eq!(deadlock.threads.iter().filter(|t| t.name() == "main").count(), 1, "{deadlock}");
    assert!(deadlock.to_string().contains("(main): waits to join"), "{deadlock}");
    assert_eq!(deadlock.threads.len(), 2, "{deadlock}");
    assert!(deadlock.to_string().contains("waits to join another thread"), "{deadlock}");
    let places: Vec<u32> = deadlock.threads.iter().filter_map(|t| t.place()).map(|p| p.line()).collect();
    assert!(places.contains(&line), "{deadlock}");
}

/// A door that a thread opens, for threads of one OS thread.
type Door = WaitQueue<bool, (), Local>;

struct Passes;
impl Role<bool, ()> for Passes {
    type Output = ();
    fn attempt(open: &mut bool, _: &mut Queue<()>, _: &mut ()) -> Option<()> {
        open.then_some(())
    }
    fn granted(_: &mut ()) {}
    fn abandoned(_: &mut bool, _: &mut Queue<()>, _: &mut ()) {}
}

struct OpensWhenDropped(Rc<Door>);
impl Drop for OpensWhenDropped {
    fn drop(&mut self) {
        self.0.with(|open, queue| {
            *open = true;
            queue.grant();
        });
    }
}

/// A thread that waits for ever, and opens the door at its end.
fn doorkeeper(door: &Rc<Door>) -> JoinHandle<()> {
    let opens = OpensWhenDropped(door.clone());
    spawn_local(async move {
        let (_opens, never) = (opens, Door::new(false));
        never.wait::<Passes>(()).await;
    })
}

fn cancels_later(handle: JoinHandle<()>) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        handle.cancel();
    });
}

#[test]
#[cfg_attr(miri, ignore = "to the kernel all its OS threads are one")]
fn it_is_no_deadlock_while_another_os_thread_may_cancel_one_of_the_threads() {
    round_robin(async {
        let door = Rc::new(Door::new(false));
        cancels_later(doorkeeper(&door));
        door.wait::<Passes>(()).await;
    })
    .unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "to the kernel all its OS threads are one")]
fn nor_when_the_handle_was_awaited_here_before() {
    round_robin(async {
        let door = Rc::new(Door::new(false));
        let [mut first, second] = [doorkeeper(&door), doorkeeper(&Rc::new(Door::new(false)))];
        let joins = spawn_local(shield(async {
            let mut polled = false;
            std::future::poll_fn(|cx| match std::mem::replace(&mut polled, true) {
                false => Pin::new(&mut first).poll(cx).map(drop),
                true => Poll::Ready(()),
            })
            .await;
            cancels_later(first);
            // The thread still waits to join, but another thread.
            drop(second.await);
        }));
        yield_now().await;
        // The thread is shielded, so that this cancellation wakes it once.
        joins.cancel();
        joins.stays();
        door.wait::<Passes>(()).await;
    })
    .unwrap();
}

#[test]
fn a_future_too_large_or_over_aligned_lives_on_the_heap() {
    #[repr(align(64))]
    struct Wide([u8; 64]);
    let sum = round_robin(async {
        let big = [1u8; 20_000];
        let large = spawn(async move {
            yield_now().await;
            big.iter().map(|&b| b as u32).sum::<u32>()
        });
        let wide = spawn(async {
            let wide = Wide([2; 64]);
            yield_now().await;
            assert_eq!((&raw const wide).addr() % 64, 0);
            wide.0.iter().map(|&b| b as u32).sum::<u32>()
        });
        let result = spawn(async { [3u8; 10_000] });
        large.await.unwrap() + wide.await.unwrap() + result.await.unwrap()[9_999] as u32
    });
    assert_eq!(sum.unwrap(), 20_000 + 128 + 3);
}

#[test]
fn nbio_is_performed_by_the_scheduler() {
    assert_eq!(round_robin(async { nbio(|| 6).await * nbio(|| 7).await }).unwrap(), 42);
}

#[test]
fn an_action_that_panics_ends_its_thread_even_if_that_is_woken_meanwhile() {
    // The thread has another request in this step, so its CPU performs the action at once.
    let ended = round_robin(async {
        spawn_local(async {
            let mut parks = Box::pin(park(drop));
            std::future::poll_fn(|cx| {
                assert!(parks.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            nbio(|| throw(7)).await
        })
        .await
    });
    let Err(JoinError::Panicked(panic)) = ended.unwrap().map(|never: ()| never) else { panic!("a result") };
    assert_eq!(panic.downcast::<i32>().unwrap(), 7);
}

#[test]
fn foreign_futures_run_unchanged() {
    use futures::channel::{mpsc, oneshot};
    use futures::{SinkExt, StreamExt};
    let sum = round_robin(async {
        let (mut tx, mut rx) = mpsc::channel(1);
        let (done, end) = oneshot::channel();
        let _sender = spawn(async move {
            for i in 0..100u32 {
                tx.send(i).await.unwrap();
            }
            end.await.unwrap()
        });
        let mut sum = 0;
        for _ in 0..100 {
            sum += rx.next().await.unwrap();
        }
        done.send(()).unwrap();
        sum
    });
    assert_eq!(sum.unwrap(), 4950);
}

#[test]
fn a_waker_may_be_cloned_and_woken_on_another_os_thread_during_the_step() {
    let rounds = round_robin(async {
        let mut rounds = 0;
        std::future::poll_fn(move |cx| {
            rounds += 1;
            if rounds == 20 {
                return Poll::Ready(rounds);
            }
            // Both functions of the lent waker are called from elsewhere, while the step runs.
            std::thread::scope(|s| {
                let waker: &Waker = cx.waker();
                match rounds % 3 {
                    0 => s.spawn(|| waker.wake_by_ref()),
                    1 => s.spawn(|| {
                        let clone = waker.clone();
                        clone.wake()
                    }),
                    _ => s.spawn(|| {
                        let waker = waker.clone();
                        std::thread::spawn(move || waker.wake());
                    }),
                };
            });
            Poll::Pending
        })
        .await
    });
    assert_eq!(rounds.unwrap(), 20);
}

#[test]
fn our_system_calls_live_in_foreign_combinators() {
    use futures::stream::{FuturesUnordered, StreamExt};
    let result = round_robin(async {
        futures::join!(yield_now(), yield_now(), async { nbio(|| ()).await });
        let mut all: FuturesUnordered<_> = (0..10)
            .map(|i| async move {
                for _ in 0..i {
                    yield_now().await;
                }
                i
            })
            .collect();
        let mut sum = 0;
        while let Some(i) = all.next().await {
            sum += i;
        }
        let handles = [spawn(async { 1 }), spawn(async { 2 })];
        for h in futures::future::join_all(handles).await {
            sum += h.unwrap();
        }
        sum
    });
    assert_eq!(result.unwrap(), 48);
}

#[test]
fn a_leaf_dropped_in_its_step_takes_its_request_back() {
    use futures::future::{Either, select};
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async {
        // The sleep asks, then loses against a future that is ready. The scheduler must see the
        // next request.
        let sleep = std::pin::pin!(sleep(std::time::Duration::from_secs(1000)));
        match select(sleep, std::future::ready(())).await {
            Either::Right(_) => {}
            Either::Left(_) => panic!("slept"),
        }
        yield_now().await;
    });
    // The loser lives until the end of the scope, so its request is detached, and not lost.
    let node = thread.unwrap().step(&mut cpu);
    assert!(matches!(node, Trace::Detached), "{node:?}");
    assert!(matches!(cpu.detached().unwrap().request, Request::Sleep(_)));

    let thread = cpu.thread(async {
        {
            let mut yields = std::pin::pin!(yield_now());
            let _ = std::future::poll_fn(|cx| Poll::Ready(yields.as_mut().poll(cx))).await;
        }
        std::future::pending::<()>().await;
    });
    let node = thread.unwrap().step(&mut cpu);
    assert!(matches!(node, Trace::Blocked), "{node:?}");
}

#[test]
fn a_call_of_ones_own_in_a_join_is_answered_through_the_waker() {
    struct Double(u32);
    impl Syscall for Double {
        type Reply = u32;
    }
    let mut cpu = Cpu::new().unwrap();
    let seen = Rc::new(Cell::new(0));
    let to = seen.clone();
    let main = cpu.thread(async move {
        let (a, b) = futures::join!(call(Double(4)), call(Double(5)));
        to.set(a + b);
    });
    cpu.make_ready(main.unwrap());
    while let Some(thread) = cpu.woken() {
        match thread.step(&mut cpu) {
            Trace::Detached => {
                while let Some(detached) = cpu.detached() {
                    let Request::Call(call) = detached.request else { panic!() };
                    let (Double(n), answer) = call.take::<Double>().unwrap();
                    assert!(answer.reply(2 * n).is_none());
                }
            }
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen.get(), 18);
}

#[test]
fn many_threads_come_and_go() {
    let n = if cfg!(miri) { 200 } else { 100_000 };
    let done = Rc::new(Cell::new(0));
    let to = done.clone();
    round_robin(async move {
        for _ in 0..n {
            let to = to.clone();
            fork_local(async move {
                yield_now().await;
                to.set(to.get() + 1);
            })
            .await;
        }
        while to.get() < n {
            yield_now().await;
        }
    })
    .unwrap();
    assert_eq!(done.get(), n);
}

struct WakesNothing;

impl Wake for WakesNothing {
    fn wake(self: Arc<Self>) {
        panic!("as it should");
    }
}

#[test]
fn a_foreign_waker_that_panics_does_not_end_the_scheduler_that_wakes_it() {
    let mut cpu = Cpu::new().unwrap();
    cpu.wake(Arc::new(WakesNothing).into());
    run(&mut cpu, yield_now());
}

/// A thrown value that panics when it is dropped.
struct Thorny;

impl Drop for Thorny {
    fn drop(&mut self) {
        panic!("as it should");
    }
}

#[test]
fn what_a_thread_throws_may_panic_as_it_is_dropped_and_the_others_run_on() {
    let ended = round_robin(async {
        fork(async { throw(Thorny) }).await;
        detach(async { throw(Thorny) });
        yield_now().await;
        yield_now().await;
        7
    });
    assert_eq!(ended.unwrap(), 7);
}
