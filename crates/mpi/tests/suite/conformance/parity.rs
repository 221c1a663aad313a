//! A case for each function of Haskell-MPI, under the name that it has there.
//!
//! | File | |
//! |---|---|
//! | `parity/base.rs` | the module `Base`: ranks, groups, datatypes, operators, dynamic processes |
//! | `parity/simple.rs` | the module `Simple`: values |
//! | `parity/fast.rs` | the module `Fast`: elements |
//!
//! The case says which call of ours stands for the function, and what the two promise alike. A
//! header with several names has functions that are one call here: the root's and the others' side
//! of a collective, or a call and the cell that it fills. `tests/suite/parity.rs` compares the
//! names with the list of all, and has the names that are not here, each with the reason. What our
//! calls promise beyond that is in the other files of this directory.

mod base;
mod fast;
mod simple;

use super::Case;

/// The cases of all modules.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    [base::CASES, simple::CASES, fast::CASES].into_iter().flatten()
}

/// The modules, and the names in each of which there is a case.
#[allow(dead_code, reason = "one of the two test programs compares the names")]
pub(crate) const NAMES: [(&str, &[&str]); 3] =
    [("Base", base::NAMES), ("Simple", simple::NAMES), ("Fast", fast::NAMES)];

/// Defines the cases of a module: the names that one call stands for, the number of ranks, and the
/// program of each rank.
macro_rules! haskell {
    ($module:literal: $($first:ident $($more:ident)* ($ranks:literal, $world:ident) $body:block)*) => {
        $(
            #[allow(non_snake_case, reason = "the name is that of Haskell-MPI")]
            async fn $first($world: selvedge_mpi::Communicator) -> Result<(), selvedge_mpi::Error> {
                $body
                Ok(())
            }
        )*

        pub(super) const CASES: &[super::Case] = &[
            $(super::Case {
                name: concat!($module, ".", stringify!($first)),
                ranks: $ranks,
                body: |world| Box::pin($first(world)),
            }),*
        ];

        #[allow(dead_code, reason = "one of the two test programs compares the names")]
        pub(super) const NAMES: &[&str] = &[$(stringify!($first), $(stringify!($more),)*)*];
    };
}
use haskell;
