//! The six programs of [NCM11 §4] with other kinds of steps than those of `six.rs` and
//! `cholesky.rs`: async steps, the continuations of [NCM11 §3.3], and steps with declared items.
//! The figure `cnc-schedulers` has a row for each kind; `cnc.rs` calls `run`.
//!
//! Both kinds run the kernels of `kernels.rs`, and print the same answers as the other programs.

use super::super::clock::Times;
use super::super::fault;
use super::kernels::{self, Placed, Tile};
use super::measured::{finish, print_times, timed_graph};
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{Items, graph};

/// A kind of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Async,
    Declared,
}

/// The options of one step of `blackscholes`.
const BLOCK: usize = 1000;
/// The first rows: steps of their own place the queens of these.
const ROWS: u32 = 3;

/// Runs a program by its name.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(
    kind: StepKind,
    scheduler: &dyn Scheduler,
    name: &str,
    numbers: &[u64],
) -> Result<(), String> {
    let answer = match (name, numbers) {
        ("mandel", &[side, depth]) => {
            let (side, depth) = (side as u32, depth as u32);
            let kernel = |pixel| kernels::mandel(pixel, side, depth);
            values(kind, scheduler, side * side, 16, kernel, |pixels| {
                kernels::mandel_check(pixels.iter().map(|&&turns| turns), depth)
            })
        }
        ("primes", &[n]) => {
            let odd = |number| kernels::is_prime(2 * number + 3);
            values(kind, scheduler, (n as u32 - 2) / 2, 8, odd, |are_primes| {
                1 + are_primes.iter().filter(|&&&is_prime| is_prime).count() as u64
            })
        }
        ("nbody", &[n]) => {
            let bodies = kernels::bodies(n);
            let pull = |of| kernels::acceleration(&bodies, of as usize);
            values(kind, scheduler, n as u32, 4, pull, |pulls| {
                kernels::bodies_check(&bodies, &pulls.iter().map(|&&pull| pull).collect::<Vec<_>>())
            })
        }
        ("blackscholes", &[n]) => {
            let options = kernels::options(n);
            let blocks: Vec<_> = options.chunks(BLOCK).collect();
            let of = |block: u32| kernels::prices(blocks[block as usize]);
            values(kind, scheduler, blocks.len() as u32, 1, of, |prices| {
                kernels::prices_check(&options, prices.iter().flat_map(|block| block.iter().copied()))
            })
        }
        ("queens", &[size]) => queens(kind, scheduler, size as u32),
        ("cholesky", &[tiles, block]) => cholesky(kind, scheduler, tiles as u32, block as u32),
        _ => return Err(format!("no such program of graphs: {name} {numbers:?}")),
    };
    println!("answer {}", answer + fault());
    Ok(())
}

/// The answer that `check` makes of the values of a kernel for all numbers below `n`. A step takes
/// `grain` of the numbers. The clock is that of `values` in `six.rs`.
fn values<V: Send + Sync>(
    kind: StepKind,
    scheduler: &dyn Scheduler,
    n: u32,
    grain: u32,
    kernel: impl Fn(u32) -> V + Send + Sync,
    check: impl FnOnce(&[&V]) -> u64,
) -> u64 {
    let first = Times::now();
    graph(|graph| {
        let parts = graph.tags::<u32>("parts");
        let items = graph.items_in("values", Items::dense(n));
        let (kernel, numbers) = (&kernel, move |part: u32| part * grain..(part * grain + grain).min(n));
        match kind {
            StepKind::Async => graph.prescribe_async(parts, "compute", move |part, step| async move {
                numbers(part).try_for_each(|number| step.put(items, number, kernel(number)))
            }),
            StepKind::Declared => graph.prescribe_depends(
                parts,
                "compute",
                |_, _| Ok(()),
                move |part, step| {
                    numbers(part).try_for_each(|number| step.put(items, number, kernel(number)))
                },
            ),
        };
        let finished = finish(graph, scheduler, |env| {
            (0..n.div_ceil(grain)).try_for_each(|part| env.put_tag(parts, part))
        });
        finished.finalize(|view| {
            let values: Vec<&V> = view.iter(items).map(|(_, value)| value).collect();
            print_times(first, u64::from(n));
            check(&values)
        })
    })
}

/// The board of a tag, and the number of its rows with queens. A tag is the columns of the first
/// rows, 5 bits each, and 0 in the others.
fn board(tag: u32) -> (Placed, u32) {
    let columns = (0..ROWS).map(|row| tag >> (5 * row) & 31).take_while(|&column| column > 0);
    columns.fold((Placed::default(), 0), |(board, rows), column| (board.with(1 << (column - 1)), rows + 1))
}

/// The tags of the boards with one queen more.
fn next_boards(tag: u32, size: u32) -> impl Iterator<Item = u32> {
    let (board, rows) = board(tag);
    kernels::bits(board.free(size)).map(move |queen| tag | (queen.trailing_zeros() + 1) << (5 * rows))
}

fn queens(kind: StepKind, scheduler: &dyn Scheduler, size: u32) -> u64 {
    timed_graph(1, |graph| {
        let boards = graph.tags::<u32>("boards");
        let counts = graph.items::<u32, u64>("counts");
        match kind {
            StepKind::Async => graph.prescribe_async(boards, "place", move |tag, step| async move {
                match board(tag) {
                    (board, ROWS) => step.put(counts, tag, kernels::queens(board, size)),
                    _ => next_boards(tag, size).try_for_each(|tag| step.put_tag(boards, tag)),
                }
            }),
            StepKind::Declared => graph.prescribe_depends(
                boards,
                "place",
                |_, _| Ok(()),
                move |tag, step| match board(tag) {
                    (board, ROWS) => step.put(counts, tag, kernels::queens(board, size)),
                    _ => next_boards(tag, size).try_for_each(|tag| step.put_tag(boards, tag)),
                },
            ),
        };
        let finished = finish(graph, scheduler, |env| env.put_tag(boards, 0));
        finished.finalize(|view| view.iter(counts).map(|(_, count)| count).sum())
    })
}

/// A step for each tile and round. It takes the tile of the round before and changes it in place.
fn cholesky(kind: StepKind, scheduler: &dyn Scheduler, tiles: u32, block: u32) -> u64 {
    let places = move || (0..tiles).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let matrix: Vec<Tile> = places().map(|(i, j)| kernels::tile([i, j], tiles, block)).collect();
    let (first, side) = (Times::now(), block as usize);
    graph(|graph| {
        let rounds = graph.tags::<(u16, u16, u16)>("rounds");
        let changing = graph.items_in("changing", Items::dense((tiles, tiles, tiles)).counted(|_| Some(1)));
        let factor = graph.items_in("factor", Items::<_, Tile>::dense((tiles, tiles)));
        let steps = match kind {
            StepKind::Async => graph.prescribe_async(rounds, "change", move |tag, step| async move {
                let (k, i, j) = wide(tag);
                if j > k {
                    let left = step.get(factor, (i, k)).await?;
                    let right = step.get(factor, (j, k)).await?;
                    let mut tile: Tile = step.take(changing, (k, i, j)).await?;
                    kernels::update(&mut tile, left, right, side);
                    return step.put(changing, (k + 1, i, j), tile);
                }
                let diagonal = if i > k { Some(step.get(factor, (k, k)).await?) } else { None };
                let mut tile = step.take(changing, (k, i, k)).await?;
                finish_tile(&mut tile, diagonal, side);
                step.put(factor, (i, k), tile)
            }),
            StepKind::Declared => graph.prescribe_depends(
                rounds,
                "change",
                move |tag, needs| {
                    let (k, i, j) = wide(tag);
                    if j > k {
                        needs.on(factor, (i, k))?;
                        needs.on(factor, (j, k))?;
                    } else if i > k {
                        needs.on(factor, (k, k))?;
                    }
                    needs.to_take(changing, (k, i, j))
                },
                move |tag, step| {
                    let (k, i, j) = wide(tag);
                    if j > k {
                        let (left, right) = (step.get(factor, (i, k))?, step.get(factor, (j, k))?);
                        let mut tile: Tile = step.take(changing, (k, i, j))?;
                        kernels::update(&mut tile, left, right, side);
                        return step.put(changing, (k + 1, i, j), tile);
                    }
                    let diagonal = if i > k { Some(step.get(factor, (k, k))?) } else { None };
                    let mut tile = step.take(changing, (k, i, k))?;
                    finish_tile(&mut tile, diagonal, side);
                    step.put(factor, (i, k), tile)
                },
            ),
        };
        steps.priority(|&(k, _, j)| -i64::from(k + j));
        let finished = finish(graph, scheduler, |env| {
            for ((i, j), tile) in places().zip(matrix) {
                env.put(changing, (0, i, j), tile)?;
            }
            let tiles = tiles as u16;
            (0..tiles).try_for_each(|k| {
                (k..tiles).try_for_each(|j| (j..tiles).try_for_each(|i| env.put_tag(rounds, (k, i, j))))
            })
        });
        print_times(first, 1);
        finished.finalize(|view| {
            kernels::factor_check(tiles, block, |i, j| {
                view.get(factor, (i, j)).expect("the run has ended well").as_slice()
            })
        })
    })
}

fn wide((k, i, j): (u16, u16, u16)) -> (u32, u32, u32) {
    (k.into(), i.into(), j.into())
}

/// The last change of a tile: by the tile on the diagonal, or as that tile.
fn finish_tile(tile: &mut Tile, diagonal: Option<&Tile>, side: usize) {
    match diagonal {
        Some(diagonal) => kernels::solve(tile, diagonal, side),
        None => kernels::factor(tile, side),
    }
}
