//! The generators: where the items come from.

pub(crate) mod generate;
pub(crate) mod try_from_fn;
