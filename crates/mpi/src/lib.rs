//! Message passing between ranks.
#![deny(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod collective;
mod communicator;
pub mod completion;
pub mod engine;
pub mod envelope;
mod error;
mod fast;
mod group;
#[allow(unsafe_code, reason = "it calls the MPI library")]
pub mod libmpi;
pub mod mailbox;
mod matching;
pub mod op;
mod payload;
mod probe;
mod request;
mod simple;
mod split;
mod tag;
pub mod threads;
mod wire;
mod world;

pub use collective::Parts;
pub use communicator::Communicator;
pub use envelope::Status;
pub use error::{Call, Error, ErrorClass};
pub use group::{Comparison, Group};
pub use payload::Message;
pub use probe::Matched;
pub use request::{Request, wait_all};
pub use tag::{ANY, Any, Source, Tag, Tags};
pub use world::{Cause, Failure, World, run};
