//! What holds of every implementation in direct style.

use super::{Log, MANY};
use selvedge_lightweight::{Callcc, Direct, Dlcont, RunEnd, SelvedgeDirect, Sys, Vm};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Values go through MVars and Fifos, and each side waits for the other.
fn operations<S: Direct>() {
    let log = Log::default();
    let (numbers, words) = (S::make_mvar::<u32>(), S::make_fifo::<String>());
    let (inp, out, said) = (numbers.clone(), words.clone(), log.clone());
    S::spawn(move || {
        for _ in 0..4 {
            said.say(S::take_mvar(&inp).to_string());
        }
        S::put_fifo(&out, "end".to_owned());
    });
    let said = log.clone();
    S::spawn(move || {
        for number in 0..4 {
            S::put_mvar(&numbers, number);
        }
        said.say(S::take_fifo(&words));
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "0 1 2 3 end");
}

/// A thread that nothing can wake is counted, and what it owns is dropped.
fn blocked<S: Direct>() {
    let log = Log::default();
    let (never, full) = (S::make_mvar::<u32>(), S::make_mvar::<u32>());
    let empty = S::make_fifo::<u32>();
    let guards = ["a", "b", "c"].map(|name| log.guard(name));
    let [a, b, c] = guards;
    S::spawn(move || {
        let _a = a;
        S::take_mvar(&never);
    });
    S::spawn(move || {
        let _b = b;
        S::put_mvar(&full, 1);
        S::put_mvar(&full, 2);
    });
    S::spawn(move || {
        let _c = c;
        S::take_fifo(&empty);
    });
    S::spawn(S::yield_);
    assert_eq!(S::start(), RunEnd { blocked: 3, ..RunEnd::default() });
    assert_eq!(log.words(), ["drop-a", "drop-b", "drop-c"]);
}

/// No thread runs after `stop`, and all are dropped.
fn stop<S: Direct>() {
    let log = Log::default();
    let never = S::make_mvar::<u32>();
    let guard = log.guard("waits");
    S::spawn(move || {
        let _guard = guard;
        S::take_mvar(&never);
    });
    let guard = log.guard("yields");
    S::spawn(move || {
        let _guard = guard;
        loop {
            S::yield_();
        }
    });
    let (guard, said) = (log.guard("stops"), log.clone());
    S::spawn(move || {
        let _guard = guard;
        for _ in 0..10 {
            S::yield_();
        }
        said.say("stop");
        S::stop();
    });
    let ended = S::start();
    assert!(ended.stopped && ended.panicked == 0, "{ended:?}");
    assert_eq!(log.words(), ["drop-stops", "drop-waits", "drop-yields", "stop"]);
    // The next start has none of them.
    assert_eq!(S::start(), RunEnd::default());
}

/// A thread that a thread spawns runs in the same start.
fn spawn_during_start<S: Direct>() {
    let log = Log::default();
    let said = log.clone();
    S::spawn(move || {
        let child = said.clone();
        S::spawn(move || child.say("child"));
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "child");
}

/// `halt` ends the thread from whatever depth, with its destructors.
fn halt<S: Direct>() {
    let log = Log::default();
    let said = log.clone();
    S::spawn(move || {
        let _guard = said.guard("halted");
        let deep = || S::halt();
        deep();
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "drop-halted");
}

/// A panic ends its thread alone.
fn panic<S: Direct>() {
    let log = Log::default();
    let (guard, said) = (log.guard("panicked"), log.clone());
    S::spawn(move || {
        let _guard = guard;
        S::yield_();
        std::panic::resume_unwind(Box::new("a panic that no hook reports"));
    });
    S::spawn(move || {
        (0..5).for_each(|_| S::yield_());
        said.say("lives");
    });
    assert_eq!(S::start(), RunEnd { panicked: 1, ..RunEnd::default() });
    assert_eq!(log.words(), ["drop-panicked", "lives"]);
}

/// The code that calls `start` is no thread.
fn starter<S: Direct>() {
    fn refused(operation: impl FnOnce()) {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
    }
    refused(|| S::halt());
    refused(|| S::stop());
    refused(S::yield_);
    S::spawn(|| {
        S::start();
    });
    assert_eq!(S::start().panicked, 1);
}

/// A second thread that waits on the same side fails.
fn second_waiter<S: Direct>() {
    let never = S::make_mvar::<u32>();
    for _ in 0..2 {
        let never = never.clone();
        S::spawn(move || {
            S::take_mvar(&never);
        });
    }
    assert_eq!(S::start(), RunEnd { blocked: 1, panicked: 1, stopped: false });
}

/// A chain of threads, each of which waits for the one before.
fn many<S: Direct>(threads: u64) {
    let (log, first) = (Log::default(), S::make_mvar::<u64>());
    let mut last = first.clone();
    for _ in 0..threads {
        let (inp, out) = (last, S::make_mvar());
        last = out.clone();
        S::spawn(move || S::put_mvar(&out, S::take_mvar(&inp) + 1));
    }
    let said = log.clone();
    S::spawn(move || said.say(S::take_mvar(&last).to_string()));
    S::spawn(move || S::put_mvar(&first, 0));
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), threads.to_string());
}

macro_rules! direct {
    ($($name:ident: $system:ty, $many:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn operations() {
                super::operations::<$system>();
            }
            #[test]
            fn blocked() {
                super::blocked::<$system>();
            }
            #[test]
            fn stop() {
                super::stop::<$system>();
            }
            #[test]
            fn spawn_during_start() {
                super::spawn_during_start::<$system>();
            }
            #[test]
            fn halt() {
                super::halt::<$system>();
            }
            #[test]
            fn panic() {
                super::panic::<$system>();
            }
            #[test]
            fn starter() {
                super::starter::<$system>();
            }
            #[test]
            fn many() {
                super::many::<$system>($many);
            }
        }
    )*};
}

direct! {
    sys: Sys, MANY / 25;
    vm: Vm, MANY / 25;
    callcc: Callcc, MANY;
    dlcont: Dlcont, MANY;
    selvedge_direct: SelvedgeDirect, MANY;
}

#[test]
fn a_second_waiter_fails() {
    second_waiter::<Sys>();
    second_waiter::<Vm>();
    second_waiter::<Callcc>();
    second_waiter::<Dlcont>();
    second_waiter::<SelvedgeDirect>();
}
