//! Five of the six programs of [NCM11 §4]: `mandel`, `primes`, `nbody`, `blackscholes` and
//! `queens`. The sixth one is in `cholesky.rs`. `cnc.rs` calls them.
//!
//! The engine is a plain loop, rayon or a graph, and all of them call the kernels of `kernels.rs`.
//! So a row compares the engines and not the kernels. Each program prints an answer that the figure
//! knows.

use super::super::clock::Times;
use super::super::fault;
use super::engine::Engine;
use super::kernels::{self, Placed};
use super::measured::{finish, print_times, timed_graph, timed_loop};
use rayon::prelude::*;
use selvedge_cnc::{Items, graph};

/// The options of one step of `blackscholes`.
const BLOCK: usize = 1000;

/// Computes a kernel for all numbers below `n`, and prints the answer that `check` makes of the
/// values. A graph takes `grain` of the numbers at a time.
///
/// The clock stops when the program has the values in order. No engine copies what a value owns: a
/// loop has moved each value into an array, and a graph has its own items, to which it refers.
fn values<V: Send + Sync>(
    engine: &Engine,
    n: u32,
    grain: u32,
    kernel: impl Fn(u32) -> V + Send + Sync,
    check: impl FnOnce(&[&V]) -> u64,
) {
    let values: Vec<V> = match engine {
        Engine::Loop => timed_loop(u64::from(n), || (0..n).map(kernel).collect()),
        Engine::Rayon(pool) => {
            timed_loop(u64::from(n), || pool.install(|| (0..n).into_par_iter().map(kernel).collect()))
        }
        Engine::Graph(scheduler) => {
            let first = Times::now();
            return graph(|graph| {
                let loops = graph.tags("loops");
                let items = graph.items_in("values", Items::dense(n));
                let kernel = &kernel;
                graph.prescribe_range(loops, "compute", grain, move |numbers, step| {
                    numbers.into_iter().try_for_each(|number| step.put(items, number, kernel(number)))
                });
                let finished = finish(graph, &**scheduler, |env| env.put_tag(loops, (0, n)));
                finished.finalize(|view| {
                    let values: Vec<&V> = view.iter(items).map(|(_, value)| value).collect();
                    print_times(first, u64::from(n));
                    print_answer(check(&values));
                });
            });
        }
    };
    print_answer(check(&values.iter().collect::<Vec<_>>()));
}

fn print_answer(answer: u64) {
    println!("answer {}", answer + fault());
}

pub(super) fn mandel(engine: &Engine, side: u32, depth: u32) {
    let kernel = |pixel| kernels::mandel(pixel, side, depth);
    values(engine, side * side, 16, kernel, |pixels| {
        kernels::mandel_check(pixels.iter().map(|&&turns| turns), depth)
    });
}

pub(super) fn primes(engine: &Engine, n: u32) {
    // The odd numbers from 3; 2 is a prime too.
    let kernel = |number| kernels::is_prime(2 * number + 3);
    values(engine, (n - 2) / 2, 8, kernel, |are_primes| {
        1 + are_primes.iter().filter(|&&&is_prime| is_prime).count() as u64
    });
}

pub(super) fn nbody(engine: &Engine, n: u64) {
    let bodies = kernels::bodies(n);
    let kernel = |of| kernels::acceleration(&bodies, of as usize);
    values(engine, n as u32, 4, kernel, |pulls| {
        kernels::bodies_check(&bodies, &pulls.iter().map(|&&pull| pull).collect::<Vec<_>>())
    });
}

pub(super) fn blackscholes(engine: &Engine, n: u64) {
    let options = kernels::options(n);
    let blocks: Vec<_> = options.chunks(BLOCK).collect();
    let kernel = |block| kernels::prices(blocks[block as usize]);
    values(engine, blocks.len() as u32, 1, kernel, |prices| {
        kernels::prices_check(&options, prices.iter().flat_map(|block| block.iter().copied()))
    });
}

/// The first rows: steps of their own place the queens of these.
const ROWS: u32 = 3;

pub(super) fn queens(engine: &Engine, size: u32) {
    let answer = match engine {
        Engine::Loop => timed_loop(1, || kernels::queens(Placed::default(), std::hint::black_box(size))),
        Engine::Rayon(pool) => timed_loop(1, || pool.install(|| rayon_queens(Placed::default(), size, ROWS))),
        Engine::Graph(scheduler) => timed_graph(1, |graph| {
            // A tag is the columns of the first rows, 5 bits each, and 0 in the others.
            let boards = graph.tags::<u32>("boards");
            let counts = graph.items::<u32, u64>("counts");
            graph.prescribe(boards, "place", move |tag, step| {
                let mut board = Placed::default();
                let mut rows = 0;
                for row in 0..ROWS {
                    let column = tag >> (5 * row) & 31;
                    if column > 0 {
                        board = board.with(1 << (column - 1));
                        rows += 1;
                    }
                }
                if rows == ROWS {
                    return step.put(counts, tag, kernels::queens(board, size));
                }
                kernels::bits(board.free(size)).try_for_each(|queen| {
                    step.put_tag(boards, tag | (queen.trailing_zeros() + 1) << (5 * rows))
                })
            });
            let finished = finish(graph, &**scheduler, |env| env.put_tag(boards, 0));
            finished.finalize(|view| view.iter(counts).map(|(_, count)| count).sum())
        }),
    };
    print_answer(answer);
}

fn rayon_queens(board: Placed, size: u32, rows: u32) -> u64 {
    if rows == 0 {
        return kernels::queens(board, size);
    }
    let next: Vec<Placed> = kernels::bits(board.free(size)).map(|queen| board.with(queen)).collect();
    next.into_par_iter().map(|board| rayon_queens(board, size, rows - 1)).sum()
}
