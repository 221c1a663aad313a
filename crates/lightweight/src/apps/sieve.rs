//! The sieve of Eratosthenes: a chain of threads that grows by a filter for each prime.
//!
//! ```text
//! integers ── filter 2 ── filter 3 ── … ── sift ── output
//! ```
//!
//! # Paper
//! [Del §3.2], [Del Figure 2], [Del Figure 19].

use super::{AppFound, Printed};
use crate::{Async, Direct, Indirect};

/// The threads of a sieve, but for the filters.
const ENDS: u64 = 3;

/// In direct style. The system stops at the first prime that is not below `last`.
pub fn direct<S: Direct>(last: u64) -> AppFound {
    fn integers<S: Direct>(out: S::MVar<u64>) {
        for i in 2.. {
            S::put_mvar(&out, i);
        }
    }

    fn output<S: Direct>(inp: S::MVar<u64>, last: u64, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp);
            printed.print(v);
            if v >= last {
                S::stop();
            }
        }
    }

    fn filter<S: Direct>(n: u64, inp: S::MVar<u64>, out: S::MVar<u64>) {
        loop {
            let v = S::take_mvar(&inp);
            if v % n != 0 {
                S::put_mvar(&out, v);
            }
        }
    }

    fn sift<S: Direct>(mut inp: S::MVar<u64>, out: S::MVar<u64>, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp);
            S::put_mvar(&out, v);
            let mid = S::make_mvar();
            let (from, to) = (inp, mid.clone());
            S::spawn(move || filter::<S>(v, from, to));
            printed.created(1);
            inp = mid;
        }
    }

    let (mi, mo) = (S::make_mvar(), S::make_mvar());
    let printed = Printed::default();
    printed.created(ENDS);
    let (out, inp, to, shown) = (mi.clone(), mi, mo.clone(), printed.clone());
    S::spawn(move || integers::<S>(out));
    S::spawn(move || sift::<S>(inp, to, shown));
    let shown = printed.clone();
    S::spawn(move || output::<S>(mo, last, shown));
    printed.found(S::start())
}

/// In indirect style.
pub fn indirect<S: Indirect>(last: u64) -> AppFound {
    fn integers<S: Indirect>(out: S::MVar<u64>, i: u64) -> S::Rest {
        S::put_mvar(out, i, move || integers::<S>(out, i + 1))
    }

    fn output<S: Indirect>(inp: S::MVar<u64>, last: u64, printed: Printed) -> S::Rest {
        S::take_mvar(inp, move |v| {
            printed.print(v);
            if v < last { output::<S>(inp, last, printed) } else { S::stop() }
        })
    }

    fn filter<S: Indirect>(n: u64, inp: S::MVar<u64>, out: S::MVar<u64>) -> S::Rest {
        S::take_mvar(inp, move |v| {
            let again = move || filter::<S>(n, inp, out);
            if v % n != 0 { S::put_mvar(out, v, again) } else { S::skip(again) }
        })
    }

    fn sift<S: Indirect>(inp: S::MVar<u64>, out: S::MVar<u64>, printed: Printed) -> S::Rest {
        S::take_mvar(inp, move |v| {
            S::put_mvar(out, v, move || {
                let mid = S::make_mvar();
                S::spawn(move || filter::<S>(v, inp, mid));
                printed.created(1);
                sift::<S>(mid, out, printed)
            })
        })
    }

    let (mi, mo) = (S::make_mvar(), S::make_mvar());
    let printed = Printed::default();
    printed.created(ENDS);
    let shown = [printed.clone(), printed.clone()];
    let [of_sift, of_output] = shown;
    S::spawn(move || integers::<S>(mi, 2));
    S::spawn(move || sift::<S>(mi, mo, of_sift));
    S::spawn(move || output::<S>(mo, last, of_output));
    printed.found(S::start())
}

/// With `await`.
pub fn awaited<S: Async>(last: u64) -> AppFound {
    async fn integers<S: Async>(out: S::MVar<u64>) {
        for i in 2.. {
            S::put_mvar(&out, i).await;
        }
    }

    async fn output<S: Async>(inp: S::MVar<u64>, last: u64, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp).await;
            printed.print(v);
            if v >= last {
                S::stop().await;
            }
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice")]
    fn filter<S: Async>(n: u64, inp: S::MVar<u64>, out: S::MVar<u64>) -> impl Future<Output = ()> {
        async move {
            loop {
                let v = S::take_mvar(&inp).await;
                if v % n != 0 {
                    S::put_mvar(&out, v).await;
                }
            }
        }
    }

    async fn sift<S: Async>(mut inp: S::MVar<u64>, out: S::MVar<u64>, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp).await;
            S::put_mvar(&out, v).await;
            let mid = S::make_mvar();
            S::spawn(filter::<S>(v, inp, mid.clone()));
            printed.created(1);
            inp = mid;
        }
    }

    let (mi, mo) = (S::make_mvar(), S::make_mvar());
    let printed = Printed::default();
    printed.created(ENDS);
    S::spawn(integers::<S>(mi.clone()));
    S::spawn(sift::<S>(mi, mo.clone(), printed.clone()));
    S::spawn(output::<S>(mo, last, printed.clone()));
    printed.found(S::start())
}
