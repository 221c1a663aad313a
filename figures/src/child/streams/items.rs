//! The programs of the pipeline figures over numbers: five stages, a hop over an edge, branches,
//! two halves side by side, and idle pipelines. `streams.rs` calls them for
//! `figures/src/streams/items.rs`.
//!
//! Beside each pipeline are the same functions by iterators or by the crate `futures`. All of them
//! print the sum that a plain loop gives.

use super::super::clock::{Times, rss_bytes};
use super::super::fault;
use super::super::runtime::{Ours, Runtime, Waits};
use futures::StreamExt;
use selvedge_flow as flow;
use selvedge_pipeline::*;
use selvedge_sync::Fifo;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Spreads the bits of a number.
fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn is_kept(n: u64) -> bool {
    n >> 62 != 0
}

fn fold_bits(n: u64) -> u64 {
    n ^ n >> 7
}

fn is_odd_mix(n: u64) -> bool {
    n & 7 != 0
}

/// What a report can hold of a sum.
fn shown(sum: u64) -> u64 {
    sum >> 16
}

/// Prints the time of one of `n` items, and the sum.
fn print(first: Times, n: u64, sum: u64) {
    first.print_until(Times::now(), n);
    println!("sum {}", shown(sum) + fault());
}

fn add(sum: &mut u64, n: &u64) {
    *sum = sum.wrapping_add(*n);
}

/// The sum that five stages yield, by a plain loop.
pub(crate) fn five(n: u64) -> u64 {
    let kept = (0..n).map(spread).filter(|n| is_kept(*n)).map(fold_bits);
    shown(kept.filter(|n| is_odd_mix(*n)).fold(0, |sum, n| sum.wrapping_add(n.wrapping_add(3))))
}

/// Five lifted stages.
pub(super) fn stages(n: u64) {
    let first = Times::now();
    let sum = from_iter(0..n)
        >> lift121(|n: &u64| spread(*n))
        >> filter(|n: &u64| is_kept(*n))
        >> lift121(|n: &u64| fold_bits(*n))
        >> filter(|n: &u64| is_odd_mix(*n))
        >> lift121(|n: &u64| n.wrapping_add(3))
        >> fold(0, add);
    print(first, n, sum.run());
}

/// The same by iterators, which the compiler fuses.
pub(super) fn stages_iterator(n: u64) {
    let first = Times::now();
    let kept = (0..n).map(spread).filter(|n| is_kept(*n)).map(fold_bits);
    let sum =
        kept.filter(|n| is_odd_mix(*n)).map(|n| n.wrapping_add(3)).fold(0u64, |sum, n| sum.wrapping_add(n));
    print(first, n, sum);
}

/// The same by streams of the crate `futures`.
pub(super) fn stages_futures(n: u64) {
    let first = Times::now();
    let sum = futures::stream::iter(0..n)
        .map(spread)
        .filter(|n| std::future::ready(is_kept(*n)))
        .map(fold_bits)
        .filter(|n| std::future::ready(is_odd_mix(*n)))
        .map(|n| n.wrapping_add(3))
        .fold(0u64, |sum, n| std::future::ready(sum.wrapping_add(n)));
    let sum = Ours::run(0, Waits::Nothing, sum);
    print(first, n, sum);
}

/// A stage that is a coroutine: it takes an item, and puts what `f` makes of it.
fn body<F>(f: F) -> Transducer<u64, u64, impl Transduce<u64, u64>>
where
    F: Fn(u64) -> Option<u64> + Copy + 'static,
{
    transducer(move |mut io: Io<u64, u64>| async move {
        while let Some(n) = io.next().await {
            if let Some(n) = f(n) {
                io.put(n).await;
            }
        }
    })
}

/// Five stages, each of them a coroutine.
pub(super) fn bodies(n: u64) {
    let first = Times::now();
    let sum = from_iter(0..n)
        >> body(|n| Some(spread(n)))
        >> body(|n| is_kept(n).then_some(n))
        >> body(|n| Some(fold_bits(n)))
        >> body(|n| is_odd_mix(n).then_some(n))
        >> body(|n| Some(n.wrapping_add(3)))
        >> fold(0, add);
    print(first, n, sum.run());
}

/// How many bytes a chunk has that goes over an edge.
const CHUNK: usize = 1 << 10;

/// `n` chunks over no edge but that to the consumer, or over one more that no call of the compiler
/// takes away.
pub(super) fn hop(n: u64, edges: u64) {
    let mut sum = 0u64;
    let chunk = vec![1u8; CHUNK];
    let chunks = std::iter::repeat_n(&chunk[..], n as usize);
    let consumer = |block: &[u8]| {
        sum += black_box(block).len() as u64;
        ControlFlow::Continue(())
    };
    let first = Times::now();
    match edges {
        0 => (from_chunks(chunks) >> each_chunk(consumer)).run(),
        _ => (from_chunks(chunks) >> black_box(id::<u8>().boxed()) >> each_chunk(consumer)).run(),
    }
    first.print_until(Times::now(), n);
    println!("sum {}", sum / CHUNK as u64 + fault());
}

/// The sums of `branch` and of `plain`.
pub(crate) fn branched(n: u64) -> [u64; 2] {
    let flip = |n: u64| if n.is_multiple_of(4) { spread(n) ^ 1 } else { spread(n).wrapping_add(3) };
    let sum = |sum: u64, n: u64| sum.wrapping_add(n);
    [shown((0..n).map(flip).fold(0, sum)), shown((0..n).map(|n| spread(n) ^ 1).fold(0, sum))]
}

/// Each number goes into one of two branches, and they are merged in order.
pub(super) fn branch(n: u64) {
    let first = Times::now();
    let sum = from_iter(0..n)
        >> if_then_else(
            satisfies(|n: &u64| n.is_multiple_of(4)),
            lift121(|n: &u64| spread(*n) ^ 1),
            lift121(|n: &u64| spread(*n).wrapping_add(3)),
        )
        >> fold(0, |sum, n: &u64| add(sum, black_box(n)));
    print(first, n, sum.run());
}

/// Each number goes over one plain hop.
pub(super) fn plain(n: u64) {
    let first = Times::now();
    let sum = from_iter(0..n)
        >> lift121(|n: &u64| spread(*n) ^ 1)
        >> fold(0, |sum, n: &u64| add(sum, black_box(n)));
    print(first, n, sum.run());
}

/// How often a half of the work spreads the bits of a number.
const ROUNDS: u64 = 64;

fn half(n: u64) -> u64 {
    (0..ROUNDS).fold(n, |n, round| spread(n ^ round) ^ n >> 31)
}

/// The sum of all work.
pub(crate) fn halves(n: u64) -> u64 {
    shown((0..n).map(|n| half(half(n))).fold(0, |sum: u64, n| sum.wrapping_add(n)))
}

/// Two halves of the work, one after the other, or side by side.
pub(super) fn ahead(workers: u64, n: u64) {
    let first = Times::now();
    let upstream = flow::made(from_iter(0..n)) >> lift121(|n: &u64| half(*n));
    let sum = Ours::run(workers as usize, Waits::Nothing, async move {
        let downstream = lift121(|n: &u64| half(*n)) >> fold(0, add);
        match workers {
            0 => (upstream >> flow::seq() >> downstream).run().await,
            _ => (upstream >> flow::ahead(8) >> downstream).run().await,
        }
    });
    print(first, n, sum.expect("no stage fails"));
}

/// Pipelines of four stages that wait for their first item, each in a thread of its own.
pub(super) fn memory_of_threads(n: u64) {
    Ours::run(0, Waits::Nothing, async move {
        let inputs: Vec<_> = (0..n).map(|_| Arc::new(Fifo::new())).collect();
        let mut idle = Vec::with_capacity(n as usize);
        let before = rss_bytes();
        for input in &inputs {
            let stages = lift121(|n: &u64| spread(*n))
                >> filter(|n: &u64| is_kept(*n))
                >> lift121(|n: &u64| fold_bits(*n))
                >> lift121(|n: &u64| n.wrapping_add(3));
            let pipeline = flow::from_fifo(input.clone()) >> stages >> take(1) >> count();
            idle.push(Ours::spawn(pipeline.run()));
        }
        // Each thread has come to its first wait when this one runs again.
        Ours::yield_now().await;
        println!("bytes {:.1}", (rss_bytes() - before) as f64 / n as f64);
        let mut live = fault();
        for (input, pipeline) in inputs.iter().zip(idle) {
            input.put(1);
            live += pipeline.await.expect("no stage fails");
        }
        println!("live {live}");
    });
}

/// Pipelines of four stages that wait for their first item, and that their holder steps.
pub(super) fn memory(n: u64) {
    let pipeline = || {
        let stages = lift121(|n: &u64| spread(*n))
            >> filter(|n: &u64| is_kept(*n))
            >> lift121(|n: &u64| fold_bits(*n))
            >> lift121(|n: &u64| n.wrapping_add(3));
        stages.step()
    };
    let mut idle = Vec::with_capacity(n as usize);
    let before = rss_bytes();
    idle.extend((0..n).map(|_| Box::new(pipeline())));
    println!("bytes {:.1}", (rss_bytes() - before) as f64 / n as f64);
    let live = idle.iter_mut().map(|stages| u64::from(stages.put_chunk(&[1]).len() == 1)).sum::<u64>();
    println!("live {}", live + fault());
}
