//! The sorter of [Del §3.3]: a network of comparators, each a thread, between MVars.
//! `streams.rs` calls it for the figure `pipe-sort` in `figures/src/streams/bytes.rs`.
//!
//! Each comparator takes two values from its two inputs and puts the smaller one into its first
//! output, the greater one into the other. `n` values need `n * (n - 1) / 2` comparators and as
//! many threads. The paper does not print its network; this one is that of an insertion sort.

use super::super::clock::Times;
use super::bytes::{print_output, print_rate};
use selvedge_core::{Local, NoEvents, round_robin_over, spawn_local};
use selvedge_sync::MVar;
use std::io::Write;
use std::rc::Rc;

type Wire = Rc<MVar<u32, Local>>;

fn wire() -> Wire {
    Rc::new(MVar::empty_local())
}

/// Starts a comparator between the wires `at` and `at + 1`, and puts its outputs into their places.
fn compare(wires: &mut [Wire], at: usize) {
    let outputs = [wire(), wire()];
    let [x, y] = [0, 1].map(|side| std::mem::replace(&mut wires[at + side], outputs[side].clone()));
    let [low, high] = outputs;
    let _runs_on = spawn_local(async move {
        let (x, y) = (x.take().await, y.take().await);
        low.put(x.min(y)).await;
        high.put(x.max(y)).await;
    });
}

/// The values in order.
async fn sorted(values: Vec<u32>) -> Vec<u32> {
    let mut wires: Vec<Wire> = values.iter().map(|_| wire()).collect();
    let inputs = wires.clone();
    for last in 1..wires.len() {
        for at in (0..last).rev() {
            compare(&mut wires, at);
        }
    }
    for (input, value) in inputs.iter().zip(values) {
        input.put(value).await;
    }
    let mut sorted = Vec::with_capacity(wires.len());
    for wire in wires {
        sorted.push(wire.take().await);
    }
    sorted
}

/// Sorts the numbers of a file, one in a line.
pub(super) fn sort(input: &str, output: &str) {
    let first = Times::now();
    let text = std::fs::read_to_string(input).expect("the input is there");
    let values = text.lines().map(|line| line.parse().expect("a number is in each line")).collect();
    let sorted = round_robin_over(&mut NoEvents::new(), sorted(values)).expect("each comparator is fed");
    let mut made = Vec::new();
    for number in sorted {
        writeln!(made, "{number}").expect("vectors can be written");
    }
    std::fs::write(output, made).expect("the output can be written");
    print_rate(first, input);
    print_output(output);
}
