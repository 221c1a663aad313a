//! Programs of several ranks with assertions in them: what every engine must run.
//!
//! `every_engine.rs` runs them. A case gets the world of its ranks, uses no other state, and may be
//! run in a process for each rank.

mod collectives;
mod communicators;
mod elements;
mod errors;
mod files;
mod functions;
mod graphs;
mod grids;
mod intercommunicators;
mod layouts;
mod null_rank;
pub(crate) mod parity;
mod persistent;
mod recovery;
mod spawning;
mod started;
mod started_elements;
mod values;
mod windows;

use selvedge_mpi::{Communicator, Error};
use std::pin::Pin;

/// A program of several ranks.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) ranks: usize,
    pub(crate) body: fn(Communicator) -> Body,
}

/// What one rank does.
pub(crate) type Body = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// All cases.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    let files = [
        values::CASES,
        elements::CASES,
        collectives::CASES,
        communicators::CASES,
        errors::CASES,
        functions::CASES,
        null_rank::CASES,
        started::CASES,
        started_elements::CASES,
        persistent::CASES,
        layouts::CASES,
        windows::CASES,
        files::CASES,
        spawning::CASES,
        recovery::CASES,
        grids::CASES,
        graphs::CASES,
        intercommunicators::CASES,
    ];
    files.into_iter().flatten().chain(parity::cases())
}

/// Defines the cases of a file: a name, a number of ranks, and the program of each rank.
macro_rules! cases {
    ($($(#[doc = $doc:literal])* $name:ident($ranks:literal, $world:ident) $body:block)*) => {
        $(
            $(#[doc = $doc])*
            async fn $name($world: selvedge_mpi::Communicator) -> Result<(), selvedge_mpi::Error> {
                $body
                Ok(())
            }
        )*

        pub(super) const CASES: &[super::Case] = &[
            $(super::Case { name: stringify!($name), ranks: $ranks, body: |world| Box::pin($name(world)) }),*
        ];
    };
}
pub(crate) use cases;
