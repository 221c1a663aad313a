//! The programs of STAMP over our transactions, written from their published description: C. Cao
//! Minh and others, "STAMP: Stanford Transactional Applications for Multi-Processing", IISWC 2008.
//!
//! `figures/peers/haskell/Stamp.hs` has the same programs over GHC's transactions: the same
//! algorithms, the same random numbers, the same answers. A program prints the milliseconds of its
//! transactional part, without the preparation of its input and the check of its result.

pub(crate) mod genome;
pub(crate) mod intruder;
pub(crate) mod kmeans;
pub(crate) mod labyrinth;
pub(super) mod maps;
mod treap;
pub(crate) mod vacation;

use std::future::Future;
use std::time::Instant;

use self::genome::Sequence;
use self::intruder::Traffic;
use self::kmeans::Cloud;
use self::labyrinth::Maze;
use self::maps::{Trees, Tries};
use self::vacation::TravelMix;
use super::fault;
use super::runtime::{Ours, Runtime, Waits};

/// Runs the program `name` with its numbers. `false` if it is no program about STAMP.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("vacation", &[w, queries, range, users, rows, actions]) => {
            vacation::vacation::<Tries>(w, TravelMix { queries, range, users, rows, actions });
        }
        ("vacation-tree", &[w, queries, range, users, rows, actions]) => {
            vacation::vacation::<Trees>(w, TravelMix { queries, range, users, rows, actions });
        }
        ("intruder", &[w, attacks, longest, flows]) => {
            intruder::intruder::<Tries>(w, Traffic { attacks, longest, flows });
        }
        ("intruder-tree", &[w, attacks, longest, flows]) => {
            intruder::intruder::<Trees>(w, Traffic { attacks, longest, flows });
        }
        ("genome", &[w, gene, segment, segments]) => {
            genome::genome(w, Sequence { gene, segment, segments });
        }
        ("kmeans", &[w, clusters, points]) => kmeans::kmeans(w, Cloud { clusters, points }),
        ("labyrinth", &[w, side, layers, pairs]) => labyrinth::labyrinth(w, Maze { side, layers, pairs }),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A xorshift generator. The Haskell programs have the same one.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, which is below 2^32.
    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}

/// The part of a report's number that a float keeps exactly.
const EXACT: u64 = (1 << 48) - 1;

/// Adds a number to a checksum.
fn mixed(sum: u64, number: u64) -> u64 {
    (sum ^ number).wrapping_mul(0x0000_0100_0000_01B3)
}

/// Runs `part` in this number of threads of ours, on as many workers; their results, in their
/// order.
async fn together<F>(threads: u64, mut part: impl FnMut(u64) -> F) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let handles: Vec<_> = (0..threads).map(|number| Ours::spawn(part(number))).collect();
    let mut ends = Vec::new();
    for handle in handles {
        ends.push(handle.await);
    }
    ends
}

/// Runs `main` on this number of workers, and prints the milliseconds that it took.
fn timed<F>(workers: u64, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (ms, output) = Ours::run(workers as usize, Waits::Nothing, async move {
        let first = Instant::now();
        let output = main.await;
        (first.elapsed().as_secs_f64() * 1e3, output)
    });
    println!("ms {ms:.4}");
    output
}
