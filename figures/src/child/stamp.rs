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
mod numbers;
mod threads;
mod treap;
pub(crate) mod vacation;

use self::genome::Sequence;
use self::intruder::Traffic;
use self::kmeans::Cloud;
use self::labyrinth::Maze;
use self::maps::{Trees, Tries};
use self::vacation::TravelMix;

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
