//! Requests that a thread makes beside others, takes back, or leaves behind.

use futures::future::{Either, select};
use selvedge_core::*;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

#[test]
fn a_sleeper_that_is_run_before_its_time_asks_again() {
    let mut cpu = Cpu::new().unwrap();
    let until = Time::now() + Duration::from_millis(if cfg!(miri) { 500 } else { 20 });
    let mut thread = cpu.thread(sleep_until(until)).unwrap();
    let mut steps = 0;
    loop {
        steps += 1;
        match thread.step(&mut cpu) {
            Trace::Sleep(sleep) => {
                assert_eq!(sleep.until(), until);
                thread = sleep.into_thread();
            }
            Trace::Ret => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(steps > 1 && Time::now() >= until);
}

/// If another OS thread drops a future, the CPU that it has asked must not write to the future,
/// because the memory may have a new owner when the step ends.
#[test]
fn a_sleep_that_another_os_thread_drops_in_the_step_that_asked_is_not_written_to() {
    const WORDS: usize = size_of::<SleepUntil>() / size_of::<u64>();
    let mut cpu = Cpu::new().unwrap();
    let (send, new_owner) = std::sync::mpsc::channel::<Box<[u64; WORDS]>>();
    let asks = async move {
        let mut asked = Some(Box::pin(sleep(Duration::from_secs(100))));
        std::future::poll_fn(|cx| {
            if let Some(mut sleep) = asked.take() {
                assert!(sleep.as_mut().poll(cx).is_pending());
                let send = send.clone();
                let elsewhere = move || {
                    drop(sleep);
                    send.send(Box::new([7; WORDS])).unwrap();
                };
                std::thread::spawn(elsewhere).join().unwrap();
            }
            Poll::<()>::Pending
        })
        .await;
    };
    // The thread can be cancelled, so its request is served with a waker.
    let _handle = cpu.spawn_local(asks).unwrap();
    let thread = cpu.woken().unwrap();
    assert!(matches!(thread.step(&mut cpu), Trace::Detached));
    assert_eq!(*new_owner.recv().unwrap(), [7; WORDS]);
}

#[test]
fn a_request_to_exit_stays_whatever_is_dropped_after_it() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async {
        // The yield has asked in an earlier step. It is dropped in the step that exits.
        let mut earlier = Box::pin(yield_now());
        let mut first = true;
        std::future::poll_fn(|cx| {
            if std::mem::take(&mut first) {
                assert!(earlier.as_mut().poll(cx).is_pending());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        let mut earlier = Some(earlier);
        let mut end = pin!(exit());
        std::future::poll_fn(|cx| {
            let polled = end.as_mut().poll(cx).map(drop);
            drop(earlier.take());
            polled
        })
        .await;
    });
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!() };
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));
}

#[test]
fn a_call_that_moves_after_it_has_asked_is_not_taken_back_by_another_at_its_old_place() {
    struct Ask;
    impl Syscall for Ask {
        type Reply = u32;
    }
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async {
        let mut moved = None;
        let got = std::future::poll_fn(|cx: &mut Context<'_>| {
            let call = match &mut moved {
                Some(call) => call,
                none => {
                    let mut place = Some(call(Ask));
                    assert!(Pin::new(place.as_mut().unwrap()).poll(cx).is_pending());
                    let call = none.insert(place.take().unwrap());
                    place = Some(selvedge_core::call(Ask));
                    assert!(Pin::new(place.as_mut().unwrap()).poll(cx).is_pending());
                    drop(place);
                    call
                }
            };
            Pin::new(call).poll(cx)
        });
        assert_eq!(got.await, 7);
    });
    let mut answered = false;
    cpu.make_ready(thread.unwrap());
    while let Some(thread) = cpu.woken() {
        match thread.step(&mut cpu) {
            Trace::Detached => {
                while let Some(Detached { request: Request::Call(call), .. }) = cpu.detached() {
                    let (Ask, answer) = call.take::<Ask>().unwrap();
                    assert!(answer.reply(7).is_none());
                }
            }
            Trace::Ret => answered = true,
            other => panic!("{other:?}"),
        }
    }
    assert!(answered);
}

#[test]
fn a_queue_can_wake_a_thread_that_went_on_to_wait_for_something_else() {
    enum Get {}
    impl Role<bool, ()> for Get {
        type Output = ();
        fn attempt(open: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
            open.then_some(())
        }
        fn granted(_: &mut ()) {}
        fn abandoned(_: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) {}
    }
    let door = std::rc::Rc::new(WaitQueue::<bool, (), Local>::new(false));
    let inside = door.clone();
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async move {
        // One step polls the door alone, and yields. The next step waits for a sleep, and relies on
        // the door to wake the thread.
        let mut through = pin!(inside.wait::<Get>(()));
        let mut yields = pin!(yield_now());
        let mut sleeps = pin!(sleep(Duration::from_secs(1000)));
        let mut turn = 0;
        std::future::poll_fn(|cx| {
            turn += 1;
            match turn {
                1 => {
                    assert!(through.as_mut().poll(cx).is_pending());
                    yields.as_mut().poll(cx)
                }
                2 => sleeps.as_mut().poll(cx),
                _ => through.as_mut().poll(cx),
            }
        })
        .await;
    });
    let Trace::Yield(thread) = thread.unwrap().step(&mut cpu) else { panic!() };
    assert!(matches!(thread.step(&mut cpu), Trace::Detached));
    assert!(matches!(cpu.detached().unwrap().request, Request::Sleep(_)));
    door.with(|_, queue| queue.grant());
    let thread = cpu.woken().expect("the door wakes it");
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));
}

#[test]
fn what_a_panicking_thread_has_asked_for_others_is_served() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async {
        let both = select(sleep_pinned(1), sleep_pinned(2));
        let _ = futures::FutureExt::now_or_never(both);
        throw(());
    });
    assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Panic(_)));
    let next = cpu.thread(async { yield_now().await }).unwrap();
    assert!(matches!(next.step(&mut cpu), Trace::Detached));
    assert!(cpu.detached().is_some() && cpu.detached().is_some());
    assert!(cpu.woken().is_some());
}

fn sleep_pinned(seconds: u64) -> Pin<Box<SleepUntil>> {
    Box::pin(sleep(Duration::from_secs(seconds)))
}

#[test]
fn a_loser_of_a_select_gives_its_place_in_the_slot_free() {
    let ended = round_robin(async {
        for _ in 0..3 {
            let handle = spawn(async { 1 });
            match select(handle, std::future::ready(2)).await {
                Either::Left(_) => panic!("it has not run yet"),
                Either::Right((two, handle)) => assert_eq!(two + handle.await.unwrap(), 3),
            }
        }
    });
    ended.unwrap();
}

fn of_descriptor(fd: i32) -> WaitFd {
    WaitFd::new(Readiness { fd, deadline: Deadline::NEVER, interest: Interest::READ, fresh: true })
}

/// The descriptors that a thread waits for after its step.
fn descriptors(cpu: &mut Cpu, step: Trace) -> Vec<i32> {
    let fd = |readiness: Readiness| readiness.fd;
    match step {
        Trace::Wait(wait) => vec![fd(wait.readiness)],
        Trace::Detached => std::iter::from_fn(|| cpu.detached())
            .map(|detached| match detached.request {
                Request::Wait(readiness) => fd(readiness),
                other => panic!("{other:?}"),
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_stands_when_its_future_has_moved_and_another_is_dropped_where_it_was() {
    let mut cpu = Cpu::new().unwrap();
    let mut moved = Vec::new();
    let thread = cpu.thread(std::future::poll_fn(move |cx| {
        let mut place = Some(of_descriptor(3));
        assert!(Pin::new(place.as_mut().unwrap()).poll(cx).is_pending());
        moved.extend(place.take());
        place = Some(of_descriptor(4));
        assert!(Pin::new(place.as_mut().unwrap()).poll(cx).is_pending());
        // The future is dropped at the address at which it was polled.
        place = None;
        assert!(place.is_none());
        Poll::Pending
    }));
    let step = thread.unwrap().step(&mut cpu);
    let mut waits = descriptors(&mut cpu, step);
    waits.sort_unstable();
    assert_eq!(waits, [3, 4]);
}

#[test]
fn nor_does_a_join_handle_take_it_back() {
    let mut cpu = Cpu::new().unwrap();
    let mut moved = Vec::new();
    let thread = cpu.thread(std::future::poll_fn(move |cx| {
        // The allocator gives the handles the memory in which the future was.
        {
            let mut waits = Box::new(of_descriptor(3));
            assert!(Pin::new(&mut *waits).poll(cx).is_pending());
            moved.push(*waits);
        }
        let handles: Vec<_> = (0..8).map(|_| Box::new(spawn_local(async {}))).collect();
        drop(handles);
        Poll::Pending
    }));
    let step = thread.unwrap().step(&mut cpu);
    assert_eq!(descriptors(&mut cpu, step), [3]);
}
