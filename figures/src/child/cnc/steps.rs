//! The programs of the figures `cnc-steps`, `cnc-miss` and `cnc-wavefront`: steps that do nothing
//! but put, get and miss an item. `cnc.rs` calls them. The functions `rayon_..` do the same under
//! rayon.
//!
//! A step has no work of its own, because the figures are about the cost of a step; but for
//! `waves`, the wavefront in tiles that stands beside ranks in the figure `mpi-cnc`. Each program
//! prints a count or a last value, which the figure checks.

use super::super::fault;
use super::edges::{self, Edge, border_above, border_before, sum_of, wave};
use super::kernels::cell;
use super::measured::{finish, timed, timed_graph, timed_loop};
use rayon::prelude::*;
use rayon::{Scope, ThreadPool};
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{FinishedGraph, Graph, Items, graph};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Prints how many steps of the graph have come to their end.
fn print_ended(finished: &FinishedGraph<'_>) {
    let ended: u64 = finished.statistics().steps.iter().map(|steps| steps.ended()).sum();
    println!("steps {}", ended + fault());
}

/// Steps that do nothing. The environment puts their tags.
pub(super) fn empty(scheduler: &dyn Scheduler, n: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "empty", |_, _| Ok(()));
        print_ended(&timed(graph, scheduler, n, |env| {
            (0..n as u32).try_for_each(|tag| env.put_tag(tags, tag))
        }));
    });
}

/// Each worker counts its tasks, so that the count costs no exchange between them.
struct PerWorker(Vec<Padded>);

#[repr(align(128))]
#[derive(Default)]
struct Padded(AtomicU64);

impl PerWorker {
    fn new(workers: usize) -> PerWorker {
        PerWorker((0..workers).map(|_| Padded::default()).collect())
    }

    fn count(&self) {
        let Padded(count) = &self.0[rayon::current_thread_index().unwrap_or(0)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn print(&self) {
        println!("steps {}", self.0.iter().map(|of| of.0.load(Ordering::Relaxed)).sum::<u64>());
    }
}

pub(super) fn rayon_empty(pool: &ThreadPool, n: u64) {
    let counts = PerWorker::new(pool.current_num_threads());
    timed_loop(n, || pool.scope(|scope| (0..n).for_each(|_| scope.spawn(|_| counts.count()))));
    counts.print();
}

/// Steps that put an item each, in an array.
pub(super) fn one_put(scheduler: &dyn Scheduler, n: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::dense(n as u32));
        graph.prescribe(tags, "put", move |tag, step| step.put(items, tag, u64::from(tag)));
        let finished =
            timed(graph, scheduler, n, |env| (0..n as u32).try_for_each(|tag| env.put_tag(tags, tag)));
        let sum: u64 = finished.finalize(|view| view.iter(items).map(|(_, value)| value).sum());
        println!("sum {}", sum + fault());
    });
}

/// The same stores, without a check that each is the only one.
pub(super) fn rayon_put(pool: &ThreadPool, n: u64) {
    let items: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
    let items = &items;
    timed_loop(n, || {
        pool.scope(|scope| {
            (0..n).for_each(|tag| {
                scope.spawn(move |_| items[tag as usize].store(tag, Ordering::Release));
            });
        });
    });
    println!("sum {}", items.iter().map(|item| item.load(Ordering::Relaxed)).sum::<u64>());
}

/// Steps each of which puts the tag of the next one.
pub(super) fn chain(scheduler: &dyn Scheduler, n: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(
            tags,
            "next",
            move |left, step| {
                if left > 1 { step.put_tag(tags, left - 1) } else { Ok(()) }
            },
        );
        print_ended(&timed(graph, scheduler, n, |env| env.put_tag(tags, n as u32)));
    });
}

pub(super) fn rayon_chain(pool: &ThreadPool, n: u64) {
    fn next<'s>(left: u64, counts: &'s PerWorker, scope: &Scope<'s>) {
        counts.count();
        if left > 1 {
            scope.spawn(move |scope| next(left - 1, counts, scope));
        }
    }
    let counts = PerWorker::new(pool.current_num_threads());
    timed_loop(n, || pool.scope(|scope| next(n, &counts, scope)));
    counts.print();
}

/// A tree of steps each of which puts two tags, down to a depth.
pub(super) fn tree(scheduler: &dyn Scheduler, depth: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "split", move |left, step| {
            if left == 0 {
                return Ok(());
            }
            step.put_tag(tags, left - 1)?;
            step.put_tag(tags, left - 1)
        });
        let steps = (2 << depth) - 1;
        print_ended(&timed(graph, scheduler, steps, |env| env.put_tag(tags, depth as u32)));
    });
}

pub(super) fn rayon_tree(pool: &ThreadPool, depth: u64) {
    fn split<'s>(left: u64, counts: &'s PerWorker, scope: &Scope<'s>) {
        counts.count();
        if left > 0 {
            scope.spawn(move |scope| split(left - 1, counts, scope));
            scope.spawn(move |scope| split(left - 1, counts, scope));
        }
    }
    let counts = PerWorker::new(pool.current_num_threads());
    timed_loop((2 << depth) - 1, || pool.scope(|scope| split(depth, &counts, scope)));
    counts.print();
}

/// Steps each of which gets an item, and puts the next one. In the worst order each step but one
/// misses its item. Kinds: 0 replay, 1 declared items, 2 async.
pub(super) fn gets(kind: u64, scheduler: &dyn Scheduler, n: u64, worst: bool) {
    graph(|graph: &Graph<'_, '_>| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::dense(n as u32 + 1));
        match kind {
            0 => graph.prescribe(tags, "next", move |tag, step| {
                let before: u64 = *step.get(items, tag)?;
                step.put(items, tag + 1, before + 1)
            }),
            1 => graph.prescribe_depends(
                tags,
                "next",
                move |tag, needs| needs.on(items, tag),
                move |tag, step| {
                    let before: u64 = *step.get(items, tag)?;
                    step.put(items, tag + 1, before + 1)
                },
            ),
            _ => graph.prescribe_async(tags, "next", move |tag, step| async move {
                let before: u64 = *step.get(items, tag).await?;
                step.put(items, tag + 1, before + 1)
            }),
        };
        let first = graph.tags::<()>("first");
        graph.prescribe(first, "first", move |(), step| step.put(items, 0, 0));
        let finished = timed(graph, scheduler, n, |env| {
            if worst {
                (0..n as u32).rev().try_for_each(|tag| env.put_tag(tags, tag))?;
                env.put_tag(first, ())
            } else {
                env.put_tag(first, ())?;
                (0..n as u32).try_for_each(|tag| env.put_tag(tags, tag))
            }
        });
        let misses: u64 = finished.statistics().steps.iter().map(|steps| steps.misses).sum();
        println!("misses {misses}");
        let last = finished.finalize(|view| view.get(items, n as u32).copied().unwrap_or(0));
        println!("last {}", last + fault());
    });
}

/// The last cell of a wavefront on a square with this side. The cells of the border are 1.
pub(crate) fn corner(side: u32) -> u32 {
    let mut row = vec![1; side as usize];
    for _ in 1..side {
        let mut north_west = 1;
        for at in 1..side as usize {
            let north = row[at];
            row[at] = cell(north_west, north, row[at - 1]);
            north_west = north;
        }
    }
    row[side as usize - 1]
}

/// The number of cells that are computed.
fn cells(side: u32) -> u64 {
    u64::from(side - 1).pow(2)
}

/// A step for each cell. Kinds: 0 the environment puts all tags, 1 a step puts the tags of those
/// after it, 2 the environment puts all tags of steps with declared items, in the worst order.
pub(super) fn wavefront(kind: u64, scheduler: &dyn Scheduler, side: u32) {
    graph(|graph: &Graph<'_, '_>| {
        let tags = graph.tags::<(u32, u32)>("tags");
        let matrix = graph.items_in("matrix", Items::dense((side, side)));
        match kind {
            0 => graph.prescribe(tags, "cell", move |(i, j), step| {
                let north_west = *step.get(matrix, (i - 1, j - 1))?;
                let north = *step.get(matrix, (i - 1, j))?;
                let west = *step.get(matrix, (i, j - 1))?;
                step.put(matrix, (i, j), cell(north_west, north, west))
            }),
            1 => graph.prescribe(tags, "cell", move |(i, j), step| {
                let north_west = *step.get(matrix, (i - 1, j - 1))?;
                let north = *step.get(matrix, (i - 1, j))?;
                let west = *step.get(matrix, (i, j - 1))?;
                step.put(matrix, (i, j), cell(north_west, north, west))?;
                if j == 1 && i + 1 < side {
                    step.put_tag(tags, (i + 1, 1))?;
                }
                if j + 1 < side { step.put_tag(tags, (i, j + 1)) } else { Ok(()) }
            }),
            _ => graph.prescribe_depends(
                tags,
                "cell",
                move |(i, j), needs| {
                    needs.on(matrix, (i - 1, j - 1))?;
                    needs.on(matrix, (i - 1, j))?;
                    needs.on(matrix, (i, j - 1))
                },
                move |(i, j), step| {
                    let north_west = *step.get(matrix, (i - 1, j - 1))?;
                    let north = *step.get(matrix, (i - 1, j))?;
                    let west = *step.get(matrix, (i, j - 1))?;
                    step.put(matrix, (i, j), cell(north_west, north, west))
                },
            ),
        };
        let finished = timed(graph, scheduler, cells(side), |env| {
            (0..side).try_for_each(|i| env.put(matrix, (i, 0), 1))?;
            (1..side).try_for_each(|j| env.put(matrix, (0, j), 1))?;
            let row = |i| (1..side).map(move |j| (i, j));
            match kind {
                0 => (1..side).flat_map(row).try_for_each(|tag| env.put_tag(tags, tag)),
                1 => env.put_tag(tags, (1, 1)),
                _ => (1..side).flat_map(row).rev().try_for_each(|tag| env.put_tag(tags, tag)),
            }
        });
        let last = finished.finalize(|view| view.get(matrix, (side - 1, side - 1)).copied().unwrap_or(0));
        println!("corner {}", u64::from(last) + fault());
    });
}

/// Diagonal after diagonal, each as a parallel loop.
pub(super) fn rayon_wavefront(pool: &ThreadPool, side: u32) {
    let side = side as usize;
    let matrix: Vec<AtomicU32> = (0..side * side).map(|_| AtomicU32::new(1)).collect();
    timed_loop(cells(side as u32), || {
        pool.install(|| {
            for diagonal in 2..2 * side - 1 {
                let rows = diagonal.saturating_sub(side - 1).max(1)..diagonal.min(side);
                rows.into_par_iter().with_min_len(64).for_each(|i| {
                    let at = i * side + (diagonal - i);
                    let get = |at: usize| matrix[at].load(Ordering::Relaxed);
                    matrix[at]
                        .store(cell(get(at - side - 1), get(at - side), get(at - 1)), Ordering::Relaxed);
                });
            }
        });
    });
    println!("corner {}", matrix[side * side - 1].load(Ordering::Relaxed));
}

pub(super) fn loop_wavefront(side: u32) {
    let corner = timed_loop(cells(side), || corner(std::hint::black_box(side)));
    println!("corner {corner}");
}

/// The wavefront in tiles, in a plain loop.
pub(super) fn loop_waves(tiles: u32, block: u32) {
    println!("answer {}", timed_loop(1, || edges::answer(std::hint::black_box(tiles), block)));
}

/// A step for each tile of the wavefront.
pub(super) fn waves(scheduler: &dyn Scheduler, tiles: u32, block: u32) {
    let sum = timed_graph(1, |graph| {
        let tags = graph.tags::<(u32, u32)>("tiles");
        let rows = graph.items_in("rows", Items::<_, Edge>::dense((tiles + 1, tiles)));
        let columns = graph.items_in("columns", Items::<_, Edge>::dense((tiles, tiles)));
        graph.prescribe(tags, "wave", move |(i, j), step| {
            let (below, last) = wave(step.get(rows, (i, j))?, step.get(columns, (i, j))?);
            step.put(rows, (i + 1, j), below)?;
            if j + 1 < tiles { step.put(columns, (i, j + 1), last) } else { Ok(()) }
        });
        let finished = finish(graph, scheduler, |env| {
            (0..tiles).try_for_each(|j| env.put(rows, (0, j), border_above(block)))?;
            (0..tiles).try_for_each(|i| env.put(columns, (i, 0), border_before(block)))?;
            let mut all = (0..tiles).flat_map(|i| (0..tiles).map(move |j| (i, j)));
            all.try_for_each(|tile| env.put_tag(tags, tile))
        });
        finished.finalize(|view| {
            view.iter(rows).filter(|((i, _), _)| *i > 0).map(|(_, below)| sum_of(below)).sum::<u64>()
        })
    });
    println!("answer {}", sum + fault());
}
