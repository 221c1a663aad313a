//! A Kahn process network with circles: the numbers 2^a 3^b 5^c in ascending order.
//!
//! ```text
//!            ┌─ fifo ── times 2 ─ m2 ─┐
//! m235 ─ x ──┼─ fifo ── times 3 ─ m3 ─┴ merge ─ m23 ─┐
//!            └─ fifo ── times 5 ─ m5 ────────────────┴ merge ─ m235
//! ```
//!
//! The network begins when 1 is put into m235. `x` stops it after `n` numbers.
//!
//! # Paper
//! [Del §3.1], [Del Figure 1].

use super::{AppFound, Printed};
use crate::{Async, Direct, Indirect};

/// The threads of the network, with the thread that puts 1.
const THREADS: u64 = 7;

/// In direct style.
pub fn direct<S: Direct>(n: usize) -> AppFound {
    fn x<S: Direct>(inp: S::MVar<u64>, outs: [S::Fifo<u64>; 3], n: usize, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp);
            if printed.print(v) == n {
                S::stop();
            }
            for out in &outs {
                S::put_fifo(out, v);
            }
        }
    }

    fn times<S: Direct>(a: u64, inp: S::Fifo<u64>, out: S::MVar<u64>) {
        loop {
            S::put_mvar(&out, a * S::take_fifo(&inp));
        }
    }

    fn merge<S: Direct>(inp1: S::MVar<u64>, inp2: S::MVar<u64>, out: S::MVar<u64>) {
        let (mut v1, mut v2) = (S::take_mvar(&inp1), S::take_mvar(&inp2));
        loop {
            S::put_mvar(&out, v1.min(v2));
            let (take1, take2) = (v1 <= v2, v2 <= v1);
            if take1 {
                v1 = S::take_mvar(&inp1);
            }
            if take2 {
                v2 = S::take_mvar(&inp2);
            }
        }
    }

    let fifos: [S::Fifo<u64>; 3] = std::array::from_fn(|_| S::make_fifo());
    let [m2, m3, m5, m23, m235]: [S::MVar<u64>; 5] = std::array::from_fn(|_| S::make_mvar());
    let printed = Printed::default();
    printed.created(THREADS);
    let (inp, outs, shown) = (m235.clone(), fifos.clone(), printed.clone());
    S::spawn(move || x::<S>(inp, outs, n, shown));
    for ((a, inp), out) in [2, 3, 5].into_iter().zip(fifos).zip([m2.clone(), m3.clone(), m5.clone()]) {
        S::spawn(move || times::<S>(a, inp, out));
    }
    let (out, begin) = (m23.clone(), m235.clone());
    S::spawn(move || S::put_mvar(&begin, 1));
    S::spawn(move || merge::<S>(m2, m3, out));
    S::spawn(move || merge::<S>(m23, m5, m235));
    printed.found(S::start())
}

/// In indirect style.
pub fn indirect<S: Indirect>(n: usize) -> AppFound {
    fn x<S: Indirect>(inp: S::MVar<u64>, outs: [S::Fifo<u64>; 3], n: usize, printed: Printed) -> S::Rest {
        S::take_mvar(inp, move |v| {
            if printed.print(v) == n {
                return S::stop();
            }
            for out in outs {
                S::put_fifo(out, v);
            }
            x::<S>(inp, outs, n, printed)
        })
    }

    fn times<S: Indirect>(a: u64, inp: S::Fifo<u64>, out: S::MVar<u64>) -> S::Rest {
        S::take_fifo(inp, move |v| S::put_mvar(out, a * v, move || times::<S>(a, inp, out)))
    }

    /// The inputs of a merge, and its output.
    type Edges<S> = [<S as Indirect>::MVar<u64>; 3];

    fn merge<S: Indirect>(edges: Edges<S>, v1: u64, v2: u64) -> S::Rest {
        let [inp1, inp2, out] = edges;
        S::put_mvar(out, v1.min(v2), move || match v1.cmp(&v2) {
            std::cmp::Ordering::Less => S::take_mvar(inp1, move |v1| merge::<S>(edges, v1, v2)),
            std::cmp::Ordering::Greater => S::take_mvar(inp2, move |v2| merge::<S>(edges, v1, v2)),
            std::cmp::Ordering::Equal => both::<S>(edges),
        })
    }

    fn both<S: Indirect>(edges: Edges<S>) -> S::Rest {
        let [inp1, inp2, _] = edges;
        S::take_mvar(inp1, move |v1| S::take_mvar(inp2, move |v2| merge::<S>(edges, v1, v2)))
    }

    let fifos: [S::Fifo<u64>; 3] = std::array::from_fn(|_| S::make_fifo());
    let [m2, m3, m5, m23, m235]: [S::MVar<u64>; 5] = std::array::from_fn(|_| S::make_mvar());
    let printed = Printed::default();
    printed.created(THREADS);
    let shown = printed.clone();
    S::spawn(move || x::<S>(m235, fifos, n, shown));
    for ((a, inp), out) in [2, 3, 5].into_iter().zip(fifos).zip([m2, m3, m5]) {
        S::spawn(move || times::<S>(a, inp, out));
    }
    S::spawn(move || S::put_mvar(m235, 1, S::halt));
    S::spawn(move || both::<S>([m2, m3, m23]));
    S::spawn(move || both::<S>([m23, m5, m235]));
    printed.found(S::start())
}

/// With `await`.
pub fn awaited<S: Async>(n: usize) -> AppFound {
    async fn x<S: Async>(inp: S::MVar<u64>, outs: [S::Fifo<u64>; 3], n: usize, printed: Printed) {
        loop {
            let v = S::take_mvar(&inp).await;
            if printed.print(v) == n {
                S::stop().await;
            }
            for out in &outs {
                S::put_fifo(out, v);
            }
        }
    }

    async fn times<S: Async>(a: u64, inp: S::Fifo<u64>, out: S::MVar<u64>) {
        loop {
            let v = S::take_fifo(&inp).await;
            S::put_mvar(&out, a * v).await;
        }
    }

    async fn merge<S: Async>(inp1: S::MVar<u64>, inp2: S::MVar<u64>, out: S::MVar<u64>) {
        let (mut v1, mut v2) = (S::take_mvar(&inp1).await, S::take_mvar(&inp2).await);
        loop {
            S::put_mvar(&out, v1.min(v2)).await;
            let (take1, take2) = (v1 <= v2, v2 <= v1);
            if take1 {
                v1 = S::take_mvar(&inp1).await;
            }
            if take2 {
                v2 = S::take_mvar(&inp2).await;
            }
        }
    }

    let fifos: [S::Fifo<u64>; 3] = std::array::from_fn(|_| S::make_fifo());
    let [m2, m3, m5, m23, m235]: [S::MVar<u64>; 5] = std::array::from_fn(|_| S::make_mvar());
    let printed = Printed::default();
    printed.created(THREADS);
    S::spawn(x::<S>(m235.clone(), fifos.clone(), n, printed.clone()));
    for ((a, inp), out) in [2, 3, 5].into_iter().zip(fifos).zip([m2.clone(), m3.clone(), m5.clone()]) {
        S::spawn(times::<S>(a, inp, out));
    }
    let begin = m235.clone();
    S::spawn(async move { S::put_mvar(&begin, 1).await });
    S::spawn(merge::<S>(m2, m3, m23.clone()));
    S::spawn(merge::<S>(m23, m5, m235));
    printed.found(S::start())
}
