//! Programs over ranks, each with its answer by a plain loop: the six graphs of [NCM11 §4], the
//! usual graphs of tiles, rows and fields, loops over ranges, async steps, and a pipeline.
//!
//! `every_engine.rs` and `launched.rs` run all of them. A program returns the bits of its items on
//! rank 0. They are to be equal for any number of ranks.

mod continued;
mod fields;
mod loops;
mod six;
mod streams;
mod tiles;

use selvedge_distributed::DistributedError;
use selvedge_mpi::Communicator;
use std::pin::Pin;

/// What one rank does.
pub(crate) type Body = Pin<Box<dyn Future<Output = Result<Option<Vec<u64>>, DistributedError>> + Send>>;

/// A program, and its answer.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) body: fn(Communicator) -> Body,
    pub(crate) answer: fn() -> Vec<u64>,
}

/// Defines the programs of a file: the function of a rank, and that of the answer.
macro_rules! programs {
    ($($name:ident: $answer:ident),* $(,)?) => {
        pub(crate) const PROGRAMS: &[$crate::programs::Program] = &[$(
            $crate::programs::Program {
                name: stringify!($name),
                body: |world| Box::pin($name(world)),
                answer: $answer,
            },
        )*];
    };
}
use programs;

/// All programs.
pub(crate) fn all() -> impl Iterator<Item = &'static Program> {
    let graphs = [six::PROGRAMS, tiles::PROGRAMS, fields::PROGRAMS, loops::PROGRAMS, continued::PROGRAMS];
    graphs.into_iter().chain([streams::PROGRAMS]).flatten()
}

/// The program of this name.
#[allow(dead_code, reason = "the program that starts processes runs all of them")]
pub(crate) fn named(name: &str) -> &'static Program {
    all().find(|program| program.name == name).expect("there is such a program")
}

/// The bits of numbers.
fn bits<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> Vec<u64> {
    numbers.into_iter().map(|number| number.to_bits()).collect()
}
