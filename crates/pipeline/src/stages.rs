//! The transducers and iteratees that take items as they come, and know of no sections.

pub(crate) mod consume;
pub(crate) mod cycle;
pub(crate) mod decimal;
pub(crate) mod fallible;
pub(crate) mod finally;
pub(crate) mod lift;
pub(crate) mod named;
pub(crate) mod plain;
pub(crate) mod select_numbered;
