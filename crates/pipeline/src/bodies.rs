//! Stages that are written as coroutines: the transducer and its handle `Io` (`body`), the other
//! roles (`roles`), and the items that wait for a body (`queue`).

pub(crate) mod body;
pub(crate) mod queue;
pub(crate) mod roles;
