//! What is done with the sections of a splitter: branches, loops, lists of them, and stages that
//! begin anew for each.

pub(crate) mod branch;
pub(crate) mod foreach;
pub(crate) mod group;
pub(crate) mod located;
pub(crate) mod recur;
pub(crate) mod section_parts;
