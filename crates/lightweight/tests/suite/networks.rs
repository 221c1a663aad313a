//! Random networks: each implementation runs them in the same order, step for step, and the
//! kernel's threads come equally far.
//!
//! A network has a list of operations for each thread, and a seed determines it. Each MVar and Fifo
//! has one thread that puts and one that takes, so how far the threads come does not depend on the
//! order (it is a Kahn network). A scheduler that runs threads in turn determines the order too.

use super::Log;
use selvedge_lightweight::equeue::{After, Directed, InTurn};
use selvedge_lightweight::{
    Async, Callcc, ContMonad, Direct, Dlcont, Equeue, Indirect, LibraryThreads, PromiseMonad, RunEnd,
    Selvedge, SelvedgeDirect, Sys, Tasks, Tramp, Vm,
};

#[derive(Clone, Copy)]
enum Operation {
    Yield,
    Put(usize),
    Take(usize),
    PutFifo(usize),
    TakeFifo(usize),
}

use Operation::{Put, PutFifo, Take, TakeFifo, Yield};

const THREADS: usize = 4;
/// Edges of each kind.
const EDGES: usize = 4;

/// The operations of each thread.
fn network(seed: u64) -> Vec<Vec<Operation>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below
    };
    // The thread that puts into each edge, and the thread that takes.
    let ends: Vec<(usize, usize)> = (0..2 * EDGES).map(|_| (draw(THREADS), draw(THREADS))).collect();
    let mut threads = vec![Vec::new(); THREADS];
    for _ in 0..40 {
        let edge = draw(2 * EDGES);
        let (puts, takes) = ends[edge];
        let (at, is_put) = (edge % EDGES, draw(2) == 0);
        match (edge < EDGES, is_put) {
            (true, true) => threads[puts].push(Put(at)),
            (true, false) => threads[takes].push(Take(at)),
            (false, true) => threads[puts].push(PutFifo(at)),
            (false, false) => threads[takes].push(TakeFifo(at)),
        }
        if draw(4) == 0 {
            threads[draw(THREADS)].push(Yield);
        }
    }
    threads
}

/// What one implementation did: each operation that was done, with its value, in order.
fn done(log: &Log, thread: usize, step: usize, value: u64) {
    log.say(format!("{thread}.{step}:{value}"));
}

fn by_direct<S: Direct>(seed: u64) -> (Log, RunEnd) {
    let log = Log::default();
    let mvars: [S::MVar<u64>; EDGES] = std::array::from_fn(|_| S::make_mvar());
    let fifos: [S::Fifo<u64>; EDGES] = std::array::from_fn(|_| S::make_fifo());
    for (thread, operations) in network(seed).into_iter().enumerate() {
        let (mvars, fifos, log) = (mvars.clone(), fifos.clone(), log.clone());
        S::spawn(move || {
            for (step, operation) in operations.into_iter().enumerate() {
                let mut value = (100 * thread + step) as u64;
                match operation {
                    Yield => S::yield_(),
                    Put(at) => S::put_mvar(&mvars[at], value),
                    Take(at) => value = S::take_mvar(&mvars[at]),
                    PutFifo(at) => S::put_fifo(&fifos[at], value),
                    TakeFifo(at) => value = S::take_fifo(&fifos[at]),
                }
                done(&log, thread, step, value);
            }
        });
    }
    let ended = S::start();
    (log, ended)
}

fn by_indirect<S: Indirect>(seed: u64) -> (Log, RunEnd) {
    struct Thread<S: Indirect> {
        number: usize,
        operations: Vec<Operation>,
        mvars: [S::MVar<u64>; EDGES],
        fifos: [S::Fifo<u64>; EDGES],
        log: Log,
    }

    fn go_on<S: Indirect>(thread: Thread<S>, step: usize) -> S::Rest {
        let Some(operation) = thread.operations.get(step).copied() else { return S::halt() };
        let own = (100 * thread.number + step) as u64;
        let (mvars, fifos) = (thread.mvars, thread.fifos);
        let rest = move |value| {
            done(&thread.log, thread.number, step, value);
            go_on::<S>(thread, step + 1)
        };
        match operation {
            Yield => S::yield_(move || rest(own)),
            Put(at) => S::put_mvar(mvars[at], own, move || rest(own)),
            Take(at) => S::take_mvar(mvars[at], rest),
            PutFifo(at) => {
                S::put_fifo(fifos[at], own);
                S::skip(move || rest(own))
            }
            TakeFifo(at) => S::take_fifo(fifos[at], rest),
        }
    }

    let log = Log::default();
    let mvars: [S::MVar<u64>; EDGES] = std::array::from_fn(|_| S::make_mvar());
    let fifos: [S::Fifo<u64>; EDGES] = std::array::from_fn(|_| S::make_fifo());
    for (number, operations) in network(seed).into_iter().enumerate() {
        let thread = Thread::<S> { number, operations, mvars, fifos, log: log.clone() };
        S::spawn(move || go_on::<S>(thread, 0));
    }
    let ended = S::start();
    (log, ended)
}

fn by_await<S: Async>(seed: u64) -> (Log, RunEnd) {
    let log = Log::default();
    let mvars: [S::MVar<u64>; EDGES] = std::array::from_fn(|_| S::make_mvar());
    let fifos: [S::Fifo<u64>; EDGES] = std::array::from_fn(|_| S::make_fifo());
    for (thread, operations) in network(seed).into_iter().enumerate() {
        let (mvars, fifos, log) = (mvars.clone(), fifos.clone(), log.clone());
        S::spawn(async move {
            for (step, operation) in operations.into_iter().enumerate() {
                let mut value = (100 * thread + step) as u64;
                match operation {
                    Yield => S::yield_().await,
                    Put(at) => S::put_mvar(&mvars[at], value).await,
                    Take(at) => value = S::take_mvar(&mvars[at]).await,
                    PutFifo(at) => S::put_fifo(&fifos[at], value),
                    TakeFifo(at) => value = S::take_fifo(&fifos[at]).await,
                }
                done(&log, thread, step, value);
            }
        });
    }
    let ended = S::start();
    (log, ended)
}

/// The others are compared with the trampoline, because its queue is one line.
fn is_in_the_same_order(by: fn(u64) -> (Log, RunEnd), seeds: u64) {
    let mut blocked = 0;
    for seed in 0..seeds {
        let (expected, ended) = by_indirect::<Tramp>(seed);
        let (log, own) = by(seed);
        assert_eq!(log.text(), expected.text(), "seed {seed}");
        assert_eq!(own, ended, "seed {seed}");
        blocked += ended.blocked;
    }
    assert!(blocked > 0, "no network has a thread that stays blocked");
}

const SEEDS: u64 = if cfg!(miri) { 2 } else { 100 };

#[test]
fn cont() {
    is_in_the_same_order(by_indirect::<ContMonad>, SEEDS);
}

#[test]
fn promise() {
    is_in_the_same_order(by_indirect::<PromiseMonad>, SEEDS);
}

#[test]
fn equeue() {
    is_in_the_same_order(by_indirect::<Equeue<InTurn>>, SEEDS);
    is_in_the_same_order(by_indirect::<Equeue<After>>, SEEDS);
    is_in_the_same_order(by_indirect::<Equeue<Directed>>, SEEDS);
}

#[test]
fn tasks() {
    is_in_the_same_order(by_await::<Tasks>, SEEDS);
}

#[test]
fn selvedge() {
    is_in_the_same_order(by_await::<Selvedge>, SEEDS);
    is_in_the_same_order(by_await::<LibraryThreads>, SEEDS);
}

#[test]
fn stacks_in_direct_style() {
    is_in_the_same_order(by_direct::<SelvedgeDirect>, SEEDS);
    is_in_the_same_order(by_direct::<Callcc>, SEEDS);
    is_in_the_same_order(by_direct::<Dlcont>, SEEDS);
}

#[test]
fn vm_in_direct_style() {
    is_in_the_same_order(by_direct::<Vm>, SEEDS.min(30));
}

#[test]
fn sys_in_direct_style_comes_equally_far() {
    for seed in 0..SEEDS.min(30) {
        let ((log, ended), (expected, as_expected)) = (by_direct::<Sys>(seed), by_indirect::<Tramp>(seed));
        assert_eq!(log.words(), expected.words(), "seed {seed}");
        assert_eq!(ended, as_expected, "seed {seed}");
    }
}
