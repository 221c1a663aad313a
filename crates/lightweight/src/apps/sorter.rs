//! A sorting network: a thread for each comparator, which waits for two numbers and gives the
//! smaller and the larger one.
//!
//! ```text
//! x ─┐            ┌─ lo      for 4 numbers:   ──┬──────┬────┬──
//!    │ comparator │                           ──┴──┬───┴─┬──┴──
//! y ─┘            └─ hi                       ─────┴──┬──┴─────
//!                                             ────────┴────────
//! ```
//!
//! Of n numbers, n (n - 1) / 2 comparators are the bubble sort and the insertion sort, all at once.
//! The numbers come last, so each comparator has begun to wait before the first number is there: at
//! that moment all threads are blocked.
//!
//! # Paper
//! [Del §3.3], [Del Figure 3].

use super::answers::shuffled;
use super::{AppFound, Printed};
use crate::{Async, Direct, Indirect, RunEnd};

/// How many comparators sort this number of numbers.
pub fn comparators(n: usize) -> u64 {
    let n = n as u64;
    n * n.saturating_sub(1) / 2
}

/// The comparators as pairs of neighbours, in an order in which each comes after the comparators
/// that feed it.
fn pairs(n: usize) -> impl Iterator<Item = usize> {
    (1..n).flat_map(|last| (0..last).rev())
}

/// What is found by a network that is only built.
fn built(n: usize) -> AppFound {
    AppFound { numbers: vec![], threads: comparators(n), ended: RunEnd::default() }
}

/// In direct style. With `only_build` the network is built and not started; its threads are left to
/// the system.
pub fn direct<S: Direct>(n: usize, only_build: bool) -> AppFound {
    fn comparator<S: Direct>(x: S::MVar<u64>, y: S::MVar<u64>, lo: S::MVar<u64>, hi: S::MVar<u64>) {
        let (x, y) = (S::take_mvar(&x), S::take_mvar(&y));
        S::put_mvar(&lo, x.min(y));
        S::put_mvar(&hi, x.max(y));
    }

    let mut wires: Vec<S::MVar<u64>> = (0..n).map(|_| S::make_mvar()).collect();
    let inputs = wires.clone();
    for at in pairs(n) {
        let (lo, hi) = (S::make_mvar(), S::make_mvar());
        let x = std::mem::replace(&mut wires[at], lo.clone());
        let y = std::mem::replace(&mut wires[at + 1], hi.clone());
        S::spawn(move || comparator::<S>(x, y, lo, hi));
    }
    if only_build {
        return built(n);
    }
    let printed = Printed::default();
    printed.created(comparators(n) + 2);
    let shown = printed.clone();
    S::spawn(move || {
        for wire in &wires {
            shown.print(S::take_mvar(wire));
        }
    });
    S::spawn(move || {
        for (wire, number) in inputs.iter().zip(shuffled(n)) {
            S::put_mvar(wire, number);
        }
    });
    printed.found(S::start())
}

/// In indirect style.
pub fn indirect<S: Indirect>(n: usize, only_build: bool) -> AppFound {
    fn comparator<S: Indirect>(
        x: S::MVar<u64>,
        y: S::MVar<u64>,
        lo: S::MVar<u64>,
        hi: S::MVar<u64>,
    ) -> S::Rest {
        S::take_mvar(x, move |x| {
            S::take_mvar(y, move |y| S::put_mvar(lo, x.min(y), move || S::put_mvar(hi, x.max(y), S::halt)))
        })
    }

    fn output<S: Indirect>(mut wires: std::vec::IntoIter<S::MVar<u64>>, printed: Printed) -> S::Rest {
        let Some(wire) = wires.next() else { return S::halt() };
        S::take_mvar(wire, move |number| {
            printed.print(number);
            output::<S>(wires, printed)
        })
    }

    fn input<S: Indirect>(
        mut wires: std::vec::IntoIter<S::MVar<u64>>,
        mut numbers: std::vec::IntoIter<u64>,
    ) -> S::Rest {
        let (Some(wire), Some(number)) = (wires.next(), numbers.next()) else { return S::halt() };
        S::put_mvar(wire, number, || input::<S>(wires, numbers))
    }

    let mut wires: Vec<S::MVar<u64>> = (0..n).map(|_| S::make_mvar()).collect();
    let inputs = wires.clone();
    for at in pairs(n) {
        let (lo, hi) = (S::make_mvar(), S::make_mvar());
        let x = std::mem::replace(&mut wires[at], lo);
        let y = std::mem::replace(&mut wires[at + 1], hi);
        S::spawn(move || comparator::<S>(x, y, lo, hi));
    }
    if only_build {
        return built(n);
    }
    let printed = Printed::default();
    printed.created(comparators(n) + 2);
    let shown = printed.clone();
    S::spawn(move || output::<S>(wires.into_iter(), shown));
    S::spawn(move || input::<S>(inputs.into_iter(), shuffled(n).into_iter()));
    printed.found(S::start())
}

/// With `await`.
pub fn awaited<S: Async>(n: usize, only_build: bool) -> AppFound {
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice")]
    fn comparator<S: Async>(
        x: S::MVar<u64>,
        y: S::MVar<u64>,
        lo: S::MVar<u64>,
        hi: S::MVar<u64>,
    ) -> impl Future<Output = ()> {
        async move {
            let first = S::take_mvar(&x).await;
            let second = S::take_mvar(&y).await;
            S::put_mvar(&lo, first.min(second)).await;
            S::put_mvar(&hi, first.max(second)).await;
        }
    }

    let mut wires: Vec<S::MVar<u64>> = (0..n).map(|_| S::make_mvar()).collect();
    let inputs = wires.clone();
    for at in pairs(n) {
        let (lo, hi) = (S::make_mvar(), S::make_mvar());
        let x = std::mem::replace(&mut wires[at], lo.clone());
        let y = std::mem::replace(&mut wires[at + 1], hi.clone());
        S::spawn(comparator::<S>(x, y, lo, hi));
    }
    if only_build {
        return built(n);
    }
    let printed = Printed::default();
    printed.created(comparators(n) + 2);
    let shown = printed.clone();
    S::spawn(async move {
        for wire in &wires {
            shown.print(S::take_mvar(wire).await);
        }
    });
    S::spawn(async move {
        for (wire, number) in inputs.iter().zip(shuffled(n)) {
            S::put_mvar(wire, number).await;
        }
    });
    printed.found(S::start())
}
