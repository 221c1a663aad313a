//! The programs about message passing: `mpi-latency 0 2 1000` is the program `latency` on the
//! scheduler with one OS thread, with two ranks.
//!
//! `child.rs` calls `run`. Each program is one text on every engine: the ranks are those of the
//! launcher that has started the process, and else threads, or the processes that
//! `SELVEDGE_MPI_ENGINE` asks for. Rank 0 alone prints. The same programs in C, Rust and Python are
//! in `figures/peers`.

mod bandwidth;
mod cholesky;
mod collectives;
mod idle;
mod lanes;
mod latency;
mod primes;
mod report;
mod serialise;
mod trapezoid;
mod waiting;
mod waves;

pub(crate) use trapezoid::micro_area;

use super::runtime::{Ours, Runtime, Waits};
use selvedge_mpi::Communicator;
use std::fmt;

/// Runs a program on this number of workers, with this number of ranks. `fault` is 1 if it must
/// give a wrong answer, else 0.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(program: &str, numbers: &[u64], fault: u64) -> Result<(), String> {
    report::be_wrong_by(fault);
    match (program, numbers) {
        ("latency", &[w, n, rounds]) => ranks(w, n, move |world| latency::latency(world, rounds)),
        ("bandwidth", &[w, n, bytes]) => ranks(w, n, move |world| bandwidth::bandwidth(world, bytes)),
        ("collectives", &[w, n, calls]) => ranks(w, n, move |world| collectives::all(world, calls)),
        ("crowded", &[w, n, calls]) => ranks(w, n, move |world| collectives::crowded(world, calls)),
        ("waiting", &[w, n, threads, messages]) => {
            ranks(w, n, move |world| waiting::waiting(world, threads, messages));
        }
        ("idle", &[w, n, messages, interval, rest, busy]) => {
            let sparse = idle::Sparse { messages, interval, rest, busy };
            ranks(w, n, move |world| idle::idle(world, sparse));
        }
        ("trapezoid", &[w, n, count]) => ranks(w, n, move |world| trapezoid::plain(world, count)),
        ("trapezoid-lanes", &[w, n, count]) => ranks(w, n, move |world| trapezoid::in_lanes(world, count)),
        ("cholesky", &[w, n, tiles, block]) => {
            ranks(w, n, move |world| cholesky::cholesky(world, tiles as u32, block as u32));
        }
        ("waves", &[w, n, tiles, block]) => {
            ranks(w, n, move |world| waves::waves(world, tiles as u32, block as u32));
        }
        ("primes", &[w, n, below]) => ranks(w, n, move |world| primes::primes(world, below as u32)),
        ("serialise", &[w]) => Ours::run(w as usize, Waits::Nothing, serialise::serialise()),
        _ => return Err(format!("no such program: mpi-{program}")),
    }
    Ok(())
}

/// Runs `body` as each rank.
fn ranks<R, E>(workers: u64, ranks: u64, body: impl Fn(Communicator) -> R + Send + Sync + 'static)
where
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    let ended = Ours::run(workers as usize, Waits::World, selvedge_mpi::run(ranks as usize, body));
    ended.expect("no rank fails");
}
