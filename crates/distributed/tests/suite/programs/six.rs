//! The six programs of [NCM11 §4] but for the factor in tiles, which is in `tiles.rs`.

use super::{bits, programs};
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::Communicator;

programs! {
    mandelbrot: mandelbrot_answer,
    primes: primes_answer,
    queens: queens_answer,
    black_scholes: black_scholes_answer,
    n_body: n_body_answer,
}

type Answer = Result<Option<Vec<u64>>, DistributedError>;

const ROWS: u32 = 11;
const COLUMNS: u32 = 20;

fn turns(row: u32, column: u32) -> u64 {
    let (a, b) = (f64::from(column) / 7.0 - 2.0, f64::from(row) / 5.0 - 1.0);
    let (mut x, mut y, mut count) = (0.0, 0.0, 0);
    while x * x + y * y <= 4.0 && count < 50 {
        (x, y) = (x * x - y * y + a, 2.0 * x * y + b);
        count += 1;
    }
    count
}

/// Rank 0 puts the tags, and gets the pixels.
async fn mandelbrot(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let pixels = graph.tags("pixels", move |&(row, _): &(u32, u32)| row as usize % ranks);
        let image = graph.items("image", ItemPlacement::consumed_on(|_: &(u32, u32)| [0]));
        graph.prescribe(pixels, "mandel", move |(row, column), step| {
            step.put(image, (row, column), turns(row, column))
        });
        if graph.rank() == 0 {
            let mut all = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
            graph.initialize(|env| all.try_for_each(|pixel| env.put_tag(pixels, pixel)))?;
        }
        let finished = graph.run()?;
        let all = finished.finalize(|view| view.iter(image.local()).map(|(_, turns)| *turns).collect());
        Ok((graph.rank() == 0).then_some(all))
    })
    .await
}

fn mandelbrot_answer() -> Vec<u64> {
    (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| turns(row, column))).collect()
}

fn is_prime(n: u64) -> bool {
    (3..n).step_by(2).all(|divisor| !n.is_multiple_of(divisor))
}

async fn primes(world: Communicator) -> Answer {
    let ranks = world.size() as u64;
    graph(&world, move |graph| {
        let candidates = graph.tags("candidates", move |n: &u64| (n / 2 % ranks) as usize);
        let stays = ItemPlacement::consumed_on(move |n: &u64| [(n / 2 % ranks) as usize]);
        let primes = graph.items("primes", stays);
        graph.prescribe(
            candidates,
            "test",
            move |n, step| {
                if is_prime(n) { step.put(primes, n, ()) } else { Ok(()) }
            },
        );
        graph
            .initialize_everywhere(|env| (3..600).step_by(2).try_for_each(|n| env.put_tag(candidates, n)))?;
        let all = graph.run()?.gather(0, primes)?;
        Ok(all.map(|all| all.into_iter().map(|(n, ())| n).collect()))
    })
    .await
}

fn primes_answer() -> Vec<u64> {
    (3..600).step_by(2).filter(|&n| is_prime(n)).collect()
}

const QUEENS: u8 = 6;

/// Whether a queen in the next row is safe.
fn is_safe(board: &[u8], column: u8) -> bool {
    let rows = (1..).zip(board.iter().rev());
    rows.into_iter().all(|(away, &queen)| queen != column && queen.abs_diff(column) != away)
}

/// The tags are boards, which steps put for other ranks.
async fn queens(world: Communicator) -> Answer {
    let ranks = world.size();
    let owner = move |board: &Vec<u8>| board.iter().map(|&queen| usize::from(queen)).sum::<usize>() % ranks;
    graph(&world, move |graph| {
        let boards = graph.tags("boards", owner);
        let solutions = graph.items("solutions", ItemPlacement::consumed_on(|_: &Vec<u8>| [0]));
        graph.prescribe(boards, "place", move |board, step| {
            if board.len() == usize::from(QUEENS) {
                return step.put(solutions, board, ());
            }
            let next = |column: u8| [&board[..], &[column]].concat();
            let mut safe = (0..QUEENS).filter(|&column| is_safe(&board, column));
            safe.try_for_each(|column| step.put_tag(boards, next(column)))
        });
        graph.initialize_everywhere(|env| env.put_tag(boards, Vec::new()))?;
        let all = graph.run()?.gather(0, solutions)?;
        Ok(all.map(|all| all.iter().flat_map(|(board, ())| board).map(|&queen| queen.into()).collect()))
    })
    .await
}

fn queens_answer() -> Vec<u64> {
    let mut boards = vec![Vec::new()];
    for _ in 0..QUEENS {
        let next = |board: &Vec<u8>| {
            let safe = (0..QUEENS).filter(|&column| is_safe(board, column));
            safe.map(|column| [&board[..], &[column]].concat()).collect::<Vec<_>>()
        };
        boards = boards.iter().flat_map(next).collect();
    }
    boards.concat().into_iter().map(u64::from).collect()
}

const OPTIONS: u64 = 40;

/// The price of a call, by the series of the normal distribution.
fn price(n: u64) -> f64 {
    let normal = |x: f64| {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= x * x / f64::from(2 * n + 1);
            sum += term;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let (spot, strike, rate, volatility, years) = (100.0, 90.0 + n as f64, 0.05, 0.2, 1.0);
    let d1 = (f64::ln(spot / strike) + (rate + volatility * volatility / 2.0) * years) / volatility;
    spot * normal(d1) - strike * f64::exp(-rate * years) * normal(d1 - volatility)
}

/// Blocks of options.
async fn black_scholes(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let owner = move |block: &u64| *block as usize % ranks;
        let blocks = graph.tags("blocks", owner);
        let prices = graph.items("prices", ItemPlacement::produced_on(owner));
        graph.prescribe(blocks, "price", move |block, step| {
            step.put(prices, block, (8 * block..8 * block + 8).map(price).collect::<Vec<f64>>())
        });
        graph
            .initialize_everywhere(|env| (0..OPTIONS / 8).try_for_each(|block| env.put_tag(blocks, block)))?;
        let all = graph.run()?.gather(0, prices)?;
        Ok(all.map(|all| all.iter().flat_map(|(_, prices)| bits(prices)).collect()))
    })
    .await
}

fn black_scholes_answer() -> Vec<u64> {
    (0..OPTIONS).map(|n| price(n).to_bits()).collect()
}

const BODIES: u64 = 12;

fn place(n: u64) -> [f64; 3] {
    [1, 7, 49].map(|k| (n * k % 101) as f64 / 10.0)
}

fn pull(mine: [f64; 3], others: impl Iterator<Item = [f64; 3]>) -> [f64; 3] {
    others.fold([0.0; 3], |sum, other| {
        let way: [f64; 3] = std::array::from_fn(|axis| other[axis] - mine[axis]);
        let square = way.iter().map(|x| x * x).sum::<f64>() + 1e-9;
        std::array::from_fn(|axis| sum[axis] + way[axis] / (square * square.sqrt()))
    })
}

/// Every body gets every other one: each rank fetches the places of the others once.
async fn n_body(world: Communicator) -> Answer {
    let ranks = world.size() as u64;
    graph(&world, move |graph| {
        let owner = move |n: &u64| (n % ranks) as usize;
        let bodies = graph.tags("bodies", owner);
        let places = graph.items("places", ItemPlacement::produced_on(owner));
        let forces = graph.items("forces", ItemPlacement::produced_on(owner));
        graph.prescribe(bodies, "attract", move |n, step| {
            let mine = *step.get(places, n)?;
            let others: Result<Vec<[f64; 3]>, _> = (0..BODIES)
                .filter(|&other| other != n)
                .map(|other| step.get(places, other).copied())
                .collect();
            step.put(forces, n, pull(mine, others?.into_iter()))
        });
        graph.initialize_everywhere(|env| {
            (0..BODIES).try_for_each(|n| env.put(places, n, place(n)).and_then(|()| env.put_tag(bodies, n)))
        })?;
        let all = graph.run()?.gather(0, forces)?;
        Ok(all.map(|all| all.iter().flat_map(|(_, force)| bits(force)).collect()))
    })
    .await
}

fn n_body_answer() -> Vec<u64> {
    let others = |n| (0..BODIES).filter(move |&other| other != n).map(place);
    (0..BODIES).flat_map(|n| bits(&pull(place(n), others(n)))).collect()
}
