//! The ways to suspend, what a holder can do with a coroutine, and what happens to one that is
//! dropped.

use futures::executor::block_on;
use selvedge_coroutine::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how many of it were dropped.
#[derive(Clone, Default)]
struct Dropped(Arc<AtomicUsize>);

impl Dropped {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn guard(&self) -> Guard {
        Guard(self.clone())
    }
}

struct Guard(Dropped);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn message(run: impl FnOnce()) -> String {
    let thrown = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    let text = thrown.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap()
}

#[test]
fn an_iteratee_without_values_panics_when_it_opens_one() {
    let opens = || Iteratee::new(|mut co| async move { co.await_().await + co.await_().await });
    assert_eq!(message(|| assert_eq!(block_on(run_iteratee([1], opens())), 1)), "No more values to feed.");
}

#[test]
fn an_iteratee_without_values_ends_if_it_opens_none() {
    let looks_away = Iteratee::new(|mut co| async move {
        let first: i32 = co.await_().await;
        let _unopened = (co.await_fed().await, co.await_fed().await);
        first
    });
    assert_eq!(block_on(run_iteratee([7], looks_away)), 7);
}

#[test]
fn a_request_gets_its_response() {
    let asks = Coroutine::new(|mut co: Co<Request<u32, String>>| async move {
        let mut all = co.request(1).await;
        all.push_str(&co.request(2).await);
        all
    });
    let all = block_on(async {
        let mut coroutine = asks;
        loop {
            coroutine = match coroutine.resume().await {
                Resumed::Suspended((number, response)) => response.feed(format!("<{number}>")),
                Resumed::Done(all) => return all,
            }
        }
    });
    assert_eq!(all, "<1><2>");
}

#[test]
fn in_or_out_is_one_of_both_each_time() {
    let echoes = Coroutine::new(|mut co: Co<InOrOut<u32, u32>>| async move {
        let first = co.await_().await;
        co.yield_(first + 1).await;
        co.yield_(first + 2).await;
        co.await_().await
    });
    let (out, end) = block_on(async {
        let (mut coroutine, mut inputs, mut out) = (echoes, [10, 20].into_iter(), Vec::new());
        loop {
            coroutine = match coroutine.resume().await {
                Resumed::Suspended(Either::Left((value, rest))) => {
                    out.push(value);
                    rest
                }
                Resumed::Suspended(Either::Right(demand)) => demand.feed(inputs.next().unwrap()),
                Resumed::Done(end) => return (out, end),
            }
        }
    });
    assert_eq!((out, end), (vec![11, 12], 20));
}

#[test]
fn a_composition_suspends_with_both_at_once() {
    type Pairs = Compose<Yield<u8>, Compose<Identity, Yield<char>>>;
    let pairs = Coroutine::new(|mut co: Co<Pairs>| async move { co.suspend((1, ('a', "rest"))).await });
    let end = block_on(async {
        let Resumed::Suspended((1, ('a', rest))) = pairs.resume().await else { panic!("it suspends") };
        rest.resume().await
    });
    assert!(matches!(end, Resumed::Done("rest")));
}

#[test]
fn of_a_list_one_resumption_is_chosen_or_all_are_run() {
    fn choice<'a>() -> Coroutine<'a, Many, u32> {
        let leaf = Coroutine::<Many, u32>::done;
        Coroutine::suspend(vec![leaf(1), Coroutine::suspend(vec![leaf(2), leaf(3)]), leaf(4)])
    }
    let first = block_on(async {
        let mut coroutine = choice();
        loop {
            coroutine = match coroutine.resume().await {
                Resumed::Suspended(rests) => rests.into_iter().nth(1).unwrap(),
                Resumed::Done(end) => return end,
            }
        }
    });
    assert_eq!(first, 3);
    let all = block_on(async {
        let (mut left, mut all) = (vec![choice()], Vec::new());
        while let Some(coroutine) = left.pop() {
            match coroutine.resume().await {
                Resumed::Suspended(rests) => left.extend(rests.into_iter().rev()),
                Resumed::Done(end) => all.push(end),
            }
        }
        all
    });
    assert_eq!(all, [1, 2, 3, 4]);
}

#[test]
fn a_suspension_stands_before_the_rest() {
    let rest = Generator::new(|mut co| async move { co.yield_(2).await });
    let suspended = Generator::suspend((1, rest));
    assert_eq!(block_on(run_generator(suspended)), (vec![1, 2], ()));
}

#[test]
fn a_dropped_coroutine_drops_what_its_body_has() {
    let dropped = Dropped::default();
    let guard = dropped.guard();
    let coroutine = Trampoline::new(|mut co| async move {
        let _guard = guard;
        co.pause().await;
        panic!("it is dropped at the pause");
    });
    let Resumed::<_, ()>::Suspended(rest) = block_on(coroutine.resume()) else { panic!("it pauses") };
    assert_eq!(dropped.count(), 0);
    drop(rest);
    assert_eq!(dropped.count(), 1);
}

#[test]
fn a_drained_producer_drops_its_values_one_by_one() {
    let dropped = Dropped::default();
    let watched = dropped.clone();
    let producer = Generator::new(|mut co| async move {
        let mut counts = Vec::new();
        for _ in 0..3 {
            co.yield_(watched.guard()).await;
            counts.push(watched.count());
        }
        counts
    });
    let (counts, ()) = block_on(pipe1(producer, Iteratee::done(())));
    assert_eq!(counts, [1, 2, 3]);
}

#[test]
fn a_bounce_waits_for_what_its_body_awaits() {
    let (gives, takes) = futures::channel::oneshot::channel();
    let waits = Trampoline::new(|mut co| async move {
        let got: u32 = takes.await.unwrap();
        co.pause().await;
        got
    });
    let gives = Trampoline::new(|mut co| async move {
        co.pause().await;
        gives.send(5).unwrap();
    });
    // In one thread, the second bounce of `gives` cannot come before the first one of `waits`.
    let mut both = Box::pin(run(mzip_with_by(Concurrent, |a, ()| a, waits, gives)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..3 {
        assert!(both.as_mut().poll(&mut cx).is_pending());
    }
}

#[test]
fn a_step_that_waits_lets_the_other_step_run() {
    let (gives, takes) = futures::channel::oneshot::channel();
    let waits = Trampoline::new(|_| async move { takes.await.unwrap() });
    let gives = Trampoline::new(|_| async move { gives.send(5).unwrap() });
    assert_eq!(block_on(run(mzip_with_by(Concurrent, |a: u32, ()| a, waits, gives))), 5);
}

#[test]
fn a_suspension_that_the_body_gives_up_is_none() {
    let coroutine = Generator::new(|mut co| async move {
        {
            let mut given_up = std::pin::pin!(co.yield_(1));
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
        }
        co.yield_(2).await;
    });
    assert_eq!(block_on(run_generator(coroutine)), (vec![2], ()));
}

#[test]
fn a_coroutine_goes_to_another_os_thread_between_two_resumptions() {
    let coroutine = Trampoline::new(|mut co| async move {
        let before = std::thread::current().id();
        co.pause().await;
        before != std::thread::current().id()
    });
    let Resumed::Suspended(rest) = block_on(coroutine.resume()) else { panic!("it pauses") };
    assert!(std::thread::spawn(|| block_on(run(rest))).join().unwrap());
}

#[test]
fn a_transducer_without_input_finds_it_ended() {
    let asks = Transducer::<Naught, u32, _>::new(|mut co| async move {
        co.yield_(1).await;
        (co.await_().await.is_none(), co.await_().await.is_none())
    });
    assert_eq!(block_on(run_generator(to_generator(asks))), (vec![1], (true, true)));
    let asks = Transducer::<Naught, Naught, _>::new(|mut co| async move { co.await_().await.is_none() });
    assert!(block_on(run(to_trampoline(asks))));
}

#[test]
fn a_trampoline_cast_to_a_transducer_runs_to_its_end() {
    let pauses = Trampoline::new(|mut co| async move {
        co.pause().await;
        "end"
    });
    assert_eq!(block_on(run(to_trampoline(from_trampoline(pauses)))), "end");
}

#[test]
fn a_thousand_trampolines_bounce_together() {
    let count = |pauses: usize| {
        Trampoline::new(move |mut co| async move {
            for _ in 0..pauses {
                co.pause().await;
            }
            pauses
        })
    };
    let results = block_on(run(interleave((0..1000).map(|number| count(number % 7)))));
    assert!(results.into_iter().eq((0..1000).map(|number| number % 7)));
}
