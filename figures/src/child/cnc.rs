//! The programs of the figures about graphs of steps: what a step, a miss and an item cost,
//! wavefronts, and the six programs of [NCM11 §4]. `child.rs` calls `run`; the figures in
//! `figures/src/cnc.rs` give the numbers.
//!
//! Beside each graph are the same kernels in a plain loop and under rayon. The first number of a
//! program names its `Engine` by the place in `ENGINES`, so that list is only extended at its end.

pub(crate) mod cholesky;
pub(crate) mod edges;
mod engine;
mod items;
pub(crate) mod kernels;
mod kinds;
mod measured;
#[path = "../../../crates/cnc/tests/suite/on_rayon.rs"]
mod on_rayon;
mod six;
pub(crate) mod steps;
mod stuck;
pub(crate) mod trace;

use self::engine::{ASYNC, DECLARED, Engine, rayon};
pub(crate) use self::engine::{ENGINES, LOOP, RAYON, STEALING};
use self::kinds::StepKind;
use selvedge_cnc::schedulers::Stealing;

/// Runs a program of graphs.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<(), String> {
    match (name, numbers) {
        ("empty", &[workers, n]) => steps::empty(&Stealing::new(workers as usize), n),
        ("rayon-empty", &[workers, n]) => steps::rayon_empty(&rayon(workers as usize), n),
        ("put", &[workers, n]) => steps::one_put(&Stealing::new(workers as usize), n),
        ("rayon-put", &[workers, n]) => steps::rayon_put(&rayon(workers as usize), n),
        ("chain", &[workers, n]) => steps::chain(&Stealing::new(workers as usize), n),
        ("rayon-chain", &[workers, n]) => steps::rayon_chain(&rayon(workers as usize), n),
        ("tree", &[workers, depth]) => steps::tree(&Stealing::new(workers as usize), depth),
        ("rayon-tree", &[workers, depth]) => steps::rayon_tree(&rayon(workers as usize), depth),
        ("get", &[kind, workers, n]) => steps::gets(kind, &Stealing::new(workers as usize), n, false),
        ("miss", &[kind, workers, n]) => steps::gets(kind, &Stealing::new(workers as usize), n, true),
        ("stuck", &[workers, n]) => stuck::stuck(&Stealing::new(workers as usize), n),
        ("trace", &[kind, workers, n]) => trace::trace(kind, &Stealing::new(workers as usize), n),
        ("wavefront", &[kind, workers, side]) => {
            steps::wavefront(kind, &Stealing::new(workers as usize), side as u32);
        }
        ("rayon-wavefront", &[workers, side]) => {
            steps::rayon_wavefront(&rayon(workers as usize), side as u32);
        }
        ("loop-wavefront", &[side]) => steps::loop_wavefront(side as u32),
        ("waves", &[workers, tiles, block]) => {
            steps::waves(&Stealing::new(workers as usize), tiles as u32, block as u32);
        }
        ("loop-waves", &[tiles, block]) => steps::loop_waves(tiles as u32, block as u32),
        ("items", &[kind, workers, n]) => items::items(kind, &Stealing::new(workers as usize), n as u32),
        ("once-lock", &[workers, n]) => items::once_lock(workers as usize, n as u32),
        (
            "mandel" | "primes" | "nbody" | "blackscholes" | "queens" | "cholesky",
            &[engine, workers, ref sizes @ ..],
        ) if engine == ASYNC || engine == DECLARED => {
            let kind = if engine == ASYNC { StepKind::Async } else { StepKind::Declared };
            kinds::run(kind, &Stealing::new(workers as usize), name, sizes)?;
        }
        ("mandel", &[engine, workers, side, depth]) => {
            six::mandel(&Engine::new(engine, workers)?, side as u32, depth as u32);
        }
        ("primes", &[engine, workers, n]) => six::primes(&Engine::new(engine, workers)?, n as u32),
        ("nbody", &[engine, workers, n]) => six::nbody(&Engine::new(engine, workers)?, n),
        ("blackscholes", &[engine, workers, n]) => six::blackscholes(&Engine::new(engine, workers)?, n),
        ("queens", &[engine, workers, size]) => six::queens(&Engine::new(engine, workers)?, size as u32),
        ("cholesky", &[engine, workers, tiles, block]) => {
            cholesky::cholesky(&Engine::new(engine, workers)?, tiles as u32, block as u32);
        }
        _ => return Err(format!("no such program of graphs: {name} {numbers:?}")),
    }
    Ok(())
}
