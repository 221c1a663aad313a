//! Concurrent Collections: the six programs of the paper, small, each as a graph. Every answer is
//! known or checked. Each graph runs under every scheduler, with 1, 2, 4 and 8 workers; all items
//! at the end have the same hash each time.
//!
//! # Prints
//! ```text
//! primes below 2000: 303
//! queens on 6 x 6: 4
//! mandelbrot: 320 of 1260 inside
//! black-scholes: 10.4506, and puts and calls agree
//! n-body: the forces add up to nothing
//! cholesky: the factor times itself is the matrix
//! ```
//!
//! # CPU time
//! 2000 ms.

use selvedge::cnc::schedulers::{Affine, OneByOne, Scheduler, Stealing, TaskPool};
use selvedge::cnc::{GraphError, ItemCol, ItemKey, Items, View, graph};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a program finds out, and the hash of all items at its end.
type Answer<T> = Result<(T, u64), GraphError>;

/// The hash of all items of a collection: of their texts, because floating-point numbers have no
/// hash. A text has all digits of a number.
fn hash<'g, K: ItemKey, V: Debug + Send + Sync>(view: &View<'g>, items: ItemCol<'g, K, V>) -> u64 {
    let mut hasher = DefaultHasher::new();
    view.iter(items).for_each(|item| format!("{item:?}").hash(&mut hasher));
    hasher.finish()
}

fn primes(scheduler: &dyn Scheduler) -> Answer<usize> {
    graph(|graph| {
        let candidates = graph.tags::<u32>("candidates");
        let primes = graph.items("primes");
        graph.prescribe(candidates, "test", move |n, step| {
            let is_prime = (3..).step_by(2).take_while(|d| d * d <= n).all(|d| n % d != 0);
            if is_prime { step.put(primes, n, ()) } else { Ok(()) }
        });
        graph.initialize(|env| (3..2_000).step_by(2).try_for_each(|n| env.put_tag(candidates, n)))?;
        Ok(graph.run(scheduler)?.finalize(|view| (view.iter(primes).count() + 1, hash(view, primes))))
    })
}

/// A tag is a board: the columns of the queens, a row each.
fn queens(scheduler: &dyn Scheduler) -> Answer<usize> {
    graph(|graph| {
        let boards = graph.tags::<Vec<u8>>("boards");
        let solutions = graph.items("solutions");
        graph.prescribe(boards, "place", move |board, step| {
            if board.len() == 6 {
                return step.put(solutions, board, ());
            }
            let is_safe = |&column: &u8| {
                let rows = (1..).zip(board.iter().rev());
                rows.into_iter().all(|(away, &queen)| queen != column && queen.abs_diff(column) != away)
            };
            let next = |column| [&board[..], &[column]].concat();
            (0..6).filter(is_safe).try_for_each(|column| step.put_tag(boards, next(column)))
        });
        graph.initialize(|env| env.put_tag(boards, Vec::new()))?;
        Ok(graph.run(scheduler)?.finalize(|view| (view.iter(solutions).count(), hash(view, solutions))))
    })
}

fn mandelbrot(scheduler: &dyn Scheduler) -> Answer<(usize, usize)> {
    let (rows, columns) = (21, 60);
    graph(|graph| {
        let pixels = graph.tags("pixels");
        let image = graph.items_in("image", Items::dense((rows, columns)));
        graph.prescribe(pixels, "mandel", move |(row, column): (u32, u32), step| {
            let (a, b) = (f64::from(column) / 20.0 - 2.0, f64::from(row) / 10.0 - 1.0);
            let (mut x, mut y, mut count) = (0.0, 0.0, 0);
            while x * x + y * y <= 4.0 && count < 100 {
                (x, y) = (x * x - y * y + a, 2.0 * x * y + b);
                count += 1;
            }
            step.put(image, (row, column), count)
        });
        let mut all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        graph.initialize(|env| all.try_for_each(|pixel| env.put_tag(pixels, pixel)))?;
        Ok(graph.run(scheduler)?.finalize(|view| {
            let inside = view.iter(image).filter(|(_, count)| **count == 100).count();
            ((inside, view.iter(image).count()), hash(view, image))
        }))
    })
}

/// The normal distribution, by the series of its integral.
fn normal(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= x * x / (2 * n + 1) as f64;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The price of the first option, and the largest difference to what a call tells of a put.
fn black_scholes(scheduler: &dyn Scheduler) -> Answer<(f64, f64)> {
    const OPTIONS: u32 = 200;
    graph(|graph| {
        let blocks = graph.tags("blocks");
        let prices = graph.items_in("prices", Items::dense(OPTIONS));
        graph.prescribe_range(blocks, "price", 16, move |block, step| {
            block.into_iter().try_for_each(|n| {
                let (spot, strike, rate, volatility, years) =
                    (100.0, 100.0 + f64::from(n % 20), 0.05, 0.2, 1.0 + f64::from(n / 20) / 10.0);
                let width = volatility * f64::sqrt(years);
                let d1 = (f64::ln(spot / strike) + (rate + volatility * volatility / 2.0) * years) / width;
                let (d2, later) = (d1 - width, strike * f64::exp(-rate * years));
                let call = spot * normal(d1) - later * normal(d2);
                let put = later * normal(-d2) - spot * normal(-d1);
                step.put(prices, n, (call, (call - put - spot + later).abs()))
            })
        });
        graph.initialize(|env| env.put_tag(blocks, (0, OPTIONS)))?;
        Ok(graph.run(scheduler)?.finalize(|view| {
            let first = view.get(prices, 0).map_or(0.0, |price| price.0);
            let largest = view.iter(prices).map(|(_, price)| price.1).fold(0.0, f64::max);
            ((first, largest), hash(view, prices))
        }))
    })
}

/// The sum of all forces, each component.
fn n_body(scheduler: &dyn Scheduler) -> Answer<[f64; 3]> {
    const BODIES: u32 = 100;
    let place = |n: u32| [1, 7, 49].map(|k| f64::from(n * k % 101) / 10.0);
    graph(|graph| {
        let bodies = graph.tags("bodies");
        let forces = graph.items_in("forces", Items::dense(BODIES));
        graph.prescribe(bodies, "attract", move |n, step| {
            let (mut force, mine) = ([0.0; 3], place(n));
            for other in (0..BODIES).filter(|&other| other != n) {
                let way: [f64; 3] = std::array::from_fn(|axis| place(other)[axis] - mine[axis]);
                let distance = way.iter().map(|x| x * x).sum::<f64>().sqrt();
                force.iter_mut().zip(way).for_each(|(force, way)| *force += way / distance.powi(3));
            }
            step.put(forces, n, force)
        });
        graph.initialize(|env| (0..BODIES).try_for_each(|n| env.put_tag(bodies, n)))?;
        Ok(graph.run(scheduler)?.finalize(|view| {
            let add = |sum: [f64; 3], force: &[f64; 3]| std::array::from_fn(|axis| sum[axis] + force[axis]);
            (view.iter(forces).fold([0.0; 3], |sum, (_, force)| add(sum, force)), hash(view, forces))
        }))
    })
}

/// The largest difference between the matrix and its factor times itself. The matrix is factored
/// column by column. Each element is taken by the one step that changes it, and put for the next.
fn cholesky(scheduler: &dyn Scheduler) -> Answer<f64> {
    const SIDE: u32 = 12;
    let element = |i: u32, j: u32| 1.0 / f64::from(i.abs_diff(j) + 1) + if i == j { 2.0 } else { 0.0 };
    graph(|graph| {
        let changes = graph.tags::<(u32, u32, u32)>("changes");
        let count = |&(i, j, round): &(u32, u32, u32)| (round <= i.min(j)).then_some(1);
        let partial = graph.items_in("partial", Items::hashed().counted(count));
        let factor = graph.items_in("factor", Items::dense((SIDE, SIDE)));
        graph.prescribe(changes, "change", move |(i, j, round), step| {
            if round < j {
                let product: f64 = step.get(factor, (i, round))? * step.get(factor, (j, round))?;
                let mut value: f64 = step.take(partial, (i, j, round))?;
                value -= product;
                return step.put(partial, (i, j, round + 1), value);
            }
            let diagonal = if i == j { None } else { Some(*step.get(factor, (j, j))?) };
            let value = step.take(partial, (i, j, round))?;
            step.put(factor, (i, j), diagonal.map_or(value.sqrt(), |diagonal| value / diagonal))
        });
        graph.initialize(|env| {
            (0..SIDE).flat_map(|i| (0..=i).map(move |j| (i, j))).try_for_each(|(i, j)| {
                env.put(partial, (i, j, 0), element(i, j))?;
                (0..=j).rev().try_for_each(|round| env.put_tag(changes, (i, j, round)))
            })
        })?;
        Ok(graph.run(scheduler)?.finalize(|view| {
            let at = |i, j| view.get(factor, (i, j)).copied().unwrap_or(0.0);
            let product = |i, j| (0..=j).map(|k| at(i, k) * at(j, k)).sum::<f64>();
            let all = (0..SIDE).flat_map(|i| (0..=i).map(move |j| (i, j)));
            let difference = |(i, j)| f64::abs(product(i, j) - element(i, j));
            (all.map(difference).fold(0.0, f64::max), hash(view, factor) ^ hash(view, partial))
        }))
    })
}

/// The answer of a program, which is the same under every scheduler, and so are all its items.
fn everywhere<T: PartialEq + Debug>(program: impl Fn(&dyn Scheduler) -> Answer<T>) -> Result<T, GraphError> {
    let expected = program(&OneByOne)?;
    for workers in [1, 2, 4, 8] {
        let all: [&dyn Scheduler; 8] = [
            &Stealing::new(workers),
            &TaskPool::lifo(workers),
            &TaskPool::fifo(workers),
            &TaskPool::fifo(workers).spinning(),
            &TaskPool::priority(workers),
            &TaskPool::fuzz(workers, 1),
            &TaskPool::fuzz(workers, 2),
            &Affine::new(workers),
        ];
        for (number, scheduler) in all.into_iter().enumerate() {
            assert_eq!(program(scheduler)?, expected, "scheduler {number} with {workers} workers");
        }
    }
    Ok(expected.0)
}

fn main() -> Result<(), GraphError> {
    println!("primes below 2000: {}", everywhere(primes)?);
    println!("queens on 6 x 6: {}", everywhere(queens)?);
    let (inside, pixels) = everywhere(mandelbrot)?;
    println!("mandelbrot: {inside} of {pixels} inside");
    let (price, difference) = everywhere(black_scholes)?;
    println!(
        "black-scholes: {price:.4}, and puts and calls {}",
        if difference < 1e-9 { "agree" } else { "differ" }
    );
    let still = everywhere(n_body)?.iter().all(|force| force.abs() < 1e-9);
    println!("n-body: the forces add up to {}", if still { "nothing" } else { "something" });
    let right = everywhere(cholesky)? < 1e-12;
    println!("cholesky: the factor times itself is {}the matrix", if right { "" } else { "not " });
    Ok(())
}
