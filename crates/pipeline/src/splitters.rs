//! The splitters: which sections of a stream are true. `split` has the splitters that are made of
//! no other splitter. The other files make a splitter of one or two.

pub(crate) mod any;
pub(crate) mod choose;
pub(crate) mod flow;
pub(crate) mod followed;
pub(crate) mod having;
pub(crate) mod logic;
pub(crate) mod record;
pub(crate) mod split;
