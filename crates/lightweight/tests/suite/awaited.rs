//! What holds of every implementation with `await`. The tests are those of `direct.rs`.

use super::{Log, MANY};
use selvedge_lightweight::{Async, LibraryThreads, RunEnd, Selvedge, Tasks};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn operations<S: Async>() {
    let log = Log::default();
    let (numbers, words) = (S::make_mvar::<u32>(), S::make_fifo::<String>());
    let (inp, out, said) = (numbers.clone(), words.clone(), log.clone());
    S::spawn(async move {
        for _ in 0..4 {
            said.say(S::take_mvar(&inp).await.to_string());
        }
        S::put_fifo(&out, "end".to_owned());
    });
    let said = log.clone();
    S::spawn(async move {
        for number in 0..4 {
            S::put_mvar(&numbers, number).await;
        }
        said.say(S::take_fifo(&words).await);
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "0 1 2 3 end");
}

fn blocked<S: Async>() {
    let log = Log::default();
    let (never, full) = (S::make_mvar::<u32>(), S::make_mvar::<u32>());
    let empty = S::make_fifo::<u32>();
    let [a, b, c] = ["a", "b", "c"].map(|name| log.guard(name));
    S::spawn(async move {
        let _a = a;
        S::take_mvar(&never).await;
    });
    S::spawn(async move {
        let _b = b;
        S::put_mvar(&full, 1).await;
        S::put_mvar(&full, 2).await;
    });
    S::spawn(async move {
        let _c = c;
        S::take_fifo(&empty).await;
    });
    S::spawn(async { S::yield_().await });
    assert_eq!(S::start(), RunEnd { blocked: 3, ..RunEnd::default() });
    assert_eq!(log.words(), ["drop-a", "drop-b", "drop-c"]);
}

fn stop<S: Async>() {
    let log = Log::default();
    let never = S::make_mvar::<u32>();
    let guard = log.guard("waits");
    S::spawn(async move {
        let _guard = guard;
        S::take_mvar(&never).await;
    });
    let guard = log.guard("yields");
    S::spawn(async move {
        let _guard = guard;
        loop {
            S::yield_().await;
        }
    });
    let (guard, said) = (log.guard("stops"), log.clone());
    S::spawn(async move {
        let _guard = guard;
        for _ in 0..10 {
            S::yield_().await;
        }
        said.say("stop");
        S::stop().await;
    });
    let said = log.clone();
    S::spawn(async move {
        for _ in 0..10 {
            S::yield_().await;
        }
        said.say("too late");
    });
    assert_eq!(S::start(), RunEnd { blocked: 1, panicked: 0, stopped: true });
    assert_eq!(log.words(), ["drop-stops", "drop-waits", "drop-yields", "stop"]);
    assert_eq!(S::start(), RunEnd::default());
}

fn spawn_during_start<S: Async>() {
    let log = Log::default();
    let said = log.clone();
    S::spawn(async move {
        let child = said.clone();
        S::spawn(async move { child.say("child") });
        said.say("parent");
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "parent child");
}

/// A thread that is created comes before one that is woken later in the same step, and behind one
/// that was woken before.
fn order_of_birth_and_wake<S: Async>() {
    let log = Log::default();
    let (first, second) = (S::make_mvar::<u32>(), S::make_mvar::<u32>());
    for (name, inp) in [("first", first.clone()), ("second", second.clone())] {
        let said = log.clone();
        S::spawn(async move {
            S::take_mvar(&inp).await;
            said.say(name);
        });
    }
    let said = log.clone();
    S::spawn(async move {
        let child = |name: &'static str| {
            let said = said.clone();
            S::spawn(async move { said.say(name) });
        };
        child("one");
        S::put_mvar(&first, 1).await;
        child("two");
        child("three");
        S::put_mvar(&second, 2).await;
        child("four");
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "one first two three second four");
}

/// What a destructor spawns when `start` ends runs in the next one.
fn spawn_by_destructor<S: Async>() {
    struct Spawns(Log, fn(Log));
    impl Drop for Spawns {
        fn drop(&mut self) {
            self.1(self.0.clone());
        }
    }

    let (log, never) = (Log::default(), S::make_mvar::<u32>());
    let spawns = Spawns(log.clone(), |log| S::spawn(async move { log.say("later") }));
    S::spawn(async move {
        let _spawns = spawns;
        S::take_mvar(&never).await;
    });
    assert_eq!(S::start().blocked, 1);
    assert_eq!(log.text(), "");
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "later");
}

fn halt<S: Async>() {
    let log = Log::default();
    let said = log.clone();
    S::spawn(async move {
        let _guard = said.guard("halted");
        S::halt().await;
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "drop-halted");
}

fn panic<S: Async>() {
    let log = Log::default();
    let (guard, said) = (log.guard("panicked"), log.clone());
    S::spawn(async move {
        let _guard = guard;
        S::yield_().await;
        std::panic::resume_unwind(Box::new("a panic that no hook reports"));
    });
    S::spawn(async move {
        for _ in 0..5 {
            S::yield_().await;
        }
        said.say("lives");
    });
    assert_eq!(S::start(), RunEnd { panicked: 1, ..RunEnd::default() });
    assert_eq!(log.text(), "drop-panicked lives");
}

fn starter<S: Async>() {
    S::spawn(async {
        S::start();
    });
    assert_eq!(S::start().panicked, 1);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let halt = || std::pin::pin!(S::halt()).poll(&mut context).is_pending();
    assert!(catch_unwind(AssertUnwindSafe(halt)).is_err());
}

fn many<S: Async>() {
    let (log, first) = (Log::default(), S::make_mvar::<u64>());
    let mut last = first.clone();
    for _ in 0..MANY {
        let (inp, out) = (last, S::make_mvar());
        last = out.clone();
        S::spawn(async move {
            let number = S::take_mvar(&inp).await;
            S::put_mvar(&out, number + 1).await;
        });
    }
    let said = log.clone();
    S::spawn(async move { said.say(S::take_mvar(&last).await.to_string()) });
    S::spawn(async move { S::put_mvar(&first, 0).await });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), MANY.to_string());
}

macro_rules! awaited {
    ($($name:ident: $system:ty;)*) => {$(
        mod $name {
            use super::*;

            awaited!(@ $system: operations, blocked, stop, spawn_during_start, order_of_birth_and_wake, halt, panic, starter, many);
        }
    )*};
    (@ $system:ty: $($test:ident),*) => {$(
        #[test]
        fn $test() {
            super::$test::<$system>();
        }
    )*};
}

#[test]
fn what_a_destructor_spawns_runs_in_the_next_start() {
    spawn_by_destructor::<Selvedge>();
}

awaited! {
    selvedge: Selvedge;
    library: LibraryThreads;
    tasks: Tasks;
}
