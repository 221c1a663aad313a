//! What holds of every implementation in indirect style. The tests are those of `direct.rs`.

use super::{Log, MANY};
use selvedge_lightweight::equeue::{After, Directed, InTurn};
use selvedge_lightweight::{ContMonad, Equeue, Indirect, PromiseMonad, RunEnd, Tramp};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Yields this number of times, and goes on.
fn yields<S: Indirect>(times: u32, rest: impl FnOnce() -> S::Rest + 'static) -> S::Rest {
    let rest: Box<dyn FnOnce() -> S::Rest> = Box::new(rest);
    match times {
        0 => rest(),
        _ => S::yield_(move || yields::<S>(times - 1, rest)),
    }
}

fn operations<S: Indirect>() {
    fn takes<S: Indirect>(inp: S::MVar<u32>, out: S::Fifo<String>, left: u32, log: Log) -> S::Rest {
        if left == 0 {
            S::put_fifo(out, "end".to_owned());
            return S::halt();
        }
        S::take_mvar(inp, move |number| {
            log.say(number.to_string());
            takes::<S>(inp, out, left - 1, log)
        })
    }
    fn puts<S: Indirect>(out: S::MVar<u32>, inp: S::Fifo<String>, number: u32, log: Log) -> S::Rest {
        if number == 4 {
            return S::take_fifo(inp, move |word| {
                log.say(word);
                S::halt()
            });
        }
        S::put_mvar(out, number, move || puts::<S>(out, inp, number + 1, log))
    }
    let log = Log::default();
    let (numbers, words) = (S::make_mvar(), S::make_fifo());
    let (one, two) = (log.clone(), log.clone());
    S::spawn(move || takes::<S>(numbers, words, 4, one));
    S::spawn(move || puts::<S>(numbers, words, 0, two));
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "0 1 2 3 end");
}

fn blocked<S: Indirect>() {
    let log = Log::default();
    let (never, full) = (S::make_mvar::<u32>(), S::make_mvar::<u32>());
    let empty = S::make_fifo::<u32>();
    let [a, b, c] = ["a", "b", "c"].map(|name| log.guard(name));
    // What waits is what the MVar's thread owns, and it owns a name of the MVar: a circle.
    S::spawn(move || {
        S::take_mvar(never, move |_| {
            drop(a);
            S::put_mvar(never, 0, S::halt)
        })
    });
    S::spawn(move || {
        S::put_mvar(full, 1, move || {
            S::put_mvar(full, 2, move || {
                drop(b);
                S::halt()
            })
        })
    });
    S::spawn(move || {
        S::take_fifo(empty, move |_| {
            drop(c);
            S::halt()
        })
    });
    S::spawn(|| S::yield_(S::halt));
    assert_eq!(S::start(), RunEnd { blocked: 3, ..RunEnd::default() });
    assert_eq!(log.words(), ["drop-a", "drop-b", "drop-c"]);
}

fn stop<S: Indirect>() {
    fn for_ever<S: Indirect>(guard: super::SaysDropped) -> S::Rest {
        S::yield_(move || {
            let _owned = &guard;
            for_ever::<S>(guard)
        })
    }
    let log = Log::default();
    let never = S::make_mvar::<u32>();
    let guard = log.guard("waits");
    S::spawn(move || {
        S::take_mvar(never, move |_| {
            drop(guard);
            S::halt()
        })
    });
    let guard = log.guard("yields");
    S::spawn(move || for_ever::<S>(guard));
    let (guard, said) = (log.guard("stops"), log.clone());
    S::spawn(move || {
        yields::<S>(10, move || {
            let _guard = guard;
            said.say("stop");
            S::stop()
        })
    });
    assert_eq!(S::start(), RunEnd { blocked: 1, panicked: 0, stopped: true });
    assert_eq!(log.words(), ["drop-stops", "drop-waits", "drop-yields", "stop"]);
    assert_eq!(S::start(), RunEnd::default());
}

fn spawn_during_start<S: Indirect>() {
    let log = Log::default();
    let said = log.clone();
    S::spawn(move || {
        let child = said.clone();
        S::spawn(move || {
            child.say("child");
            S::halt()
        });
        said.say("parent");
        S::halt()
    });
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), "parent child");
}

fn panic<S: Indirect>() {
    let log = Log::default();
    let (guard, said) = (log.guard("panicked"), log.clone());
    S::spawn(move || {
        S::yield_(move || {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("a panic that no hook reports"))
        })
    });
    S::spawn(move || {
        yields::<S>(5, move || {
            said.say("lives");
            S::halt()
        })
    });
    assert_eq!(S::start(), RunEnd { panicked: 1, ..RunEnd::default() });
    assert_eq!(log.text(), "drop-panicked lives");
}

fn starter<S: Indirect>() {
    fn refused(operation: impl FnOnce()) {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
    }
    refused(|| drop(S::halt()));
    refused(|| drop(S::stop()));
    S::spawn(|| {
        S::start();
        S::halt()
    });
    assert_eq!(S::start().panicked, 1);
}

fn second_waiter<S: Indirect>() {
    let never = S::make_mvar::<u32>();
    for _ in 0..2 {
        S::spawn(move || S::take_mvar(never, |_| S::halt()));
    }
    assert_eq!(S::start(), RunEnd { blocked: 1, panicked: 1, stopped: false });
}

fn many<S: Indirect>() {
    let (log, first) = (Log::default(), S::make_mvar::<u64>());
    let mut last = first;
    for _ in 0..MANY {
        let (inp, out) = (last, S::make_mvar());
        last = out;
        S::spawn(move || S::take_mvar(inp, move |number| S::put_mvar(out, number + 1, S::halt)));
    }
    let said = log.clone();
    S::spawn(move || {
        S::take_mvar(last, move |number| {
            said.say(number.to_string());
            S::halt()
        })
    });
    S::spawn(move || S::put_mvar(first, 0, S::halt));
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), MANY.to_string());
}

/// A thread that never blocks takes no more stack the longer it runs.
fn long<S: Indirect>() {
    fn fill<S: Indirect>(out: S::Fifo<u64>, left: u64) -> S::Rest {
        if left == 0 {
            return S::halt();
        }
        S::put_fifo(out, left);
        S::skip(move || fill::<S>(out, left - 1))
    }
    fn empty<S: Indirect>(inp: S::Fifo<u64>, sum: u64, log: Log) -> S::Rest {
        S::take_fifo(inp, move |number| {
            if number == 1 {
                log.say((sum + number).to_string());
                return S::halt();
            }
            empty::<S>(inp, sum + number, log)
        })
    }
    let n = if cfg!(miri) { 60 } else { 40 * MANY };
    let (log, numbers) = (Log::default(), S::make_fifo());
    let said = log.clone();
    S::spawn(move || fill::<S>(numbers, n));
    S::spawn(move || empty::<S>(numbers, 0, said));
    assert_eq!(S::start(), RunEnd::default());
    assert_eq!(log.text(), (n * (n + 1) / 2).to_string());
}

/// An MVar is of no use after the `start` that it belongs to.
fn old_names<S: Indirect>() {
    let old = S::make_mvar::<u32>();
    assert_eq!(S::start(), RunEnd::default());
    S::spawn(move || S::put_mvar(old, 1, S::halt));
    assert_eq!(S::start(), RunEnd { panicked: 1, ..RunEnd::default() });
}

macro_rules! indirect {
    ($($name:ident: $system:ty;)*) => {$(
        mod $name {
            use super::*;

            indirect!(@ $system: operations, blocked, stop, spawn_during_start, panic, starter, second_waiter, many, long, old_names);
        }
    )*};
    (@ $system:ty: $($test:ident),*) => {$(
        #[test]
        fn $test() {
            super::$test::<$system>();
        }
    )*};
}

indirect! {
    tramp: Tramp;
    cont: ContMonad;
    promise: PromiseMonad;
    equeue: Equeue<InTurn>;
    equeue_after: Equeue<After>;
    equeue_directed: Equeue<Directed>;
}
