//! The MPI library that the machine has, found and loaded when the program runs.
//!
//! [`MessageLoop::start`] loads the library with dlopen(3): Open MPI 4 or 5, MPICH 4 or 5 or one
//! derived from it, or a library with the standard interface of MPI 5. One binary serves all of
//! them, and no MPI is needed to build it. [`Comm`] has the calls.
//!
//! # Where to start reading
//!
//! | file | what |
//! |---|---|
//! | `launcher.rs`, `library.rs` | which MPI is meant, and its library |
//! | `family.rs`, `functions.rs` | the binary interfaces: handles, constants, functions |
//! | `start.rs` | the start of MPI |
//! | `calls.rs`, `error.rs` | each function of the library as a method, with its error; ranks that have died |
//! | `scalar.rs`, `memory.rs`, `collective.rs` | what calls give to MPI |
//! | `comm.rs`, `ongoing.rs`, `received.rs`, `orders.rs` | the threads' side: orders, and what happens at their ends |
//! | `shared_driver.rs`, `mail_lock.rs` | which OS thread makes a call |
//! | `driver.rs`, `comm_line.rs`, `frames.rs`, `in_order.rs` | carrying orders out, and receiving |
//! | `message_loop.rs`, `pace.rs` | looking when no thread does |
//!
//! **Architecture Invariant:** at any time one OS thread at most is in a call of MPI: the holder of
//! the driver. Where the library is not made for calls by several OS threads in turn, the message
//! loop's OS thread is always the holder. What MPI reads and writes belongs to the driver's list of
//! calls until MPI has done with it, and no future that is dropped changes that.

mod calls;
mod collective;
mod comm;
mod comm_line;
mod driver;
mod error;
mod family;
mod frames;
mod functions;
mod in_order;
mod launcher;
mod library;
mod mail_lock;
mod memory;
mod message_loop;
mod ongoing;
mod orders;
mod pace;
mod primitives;
mod received;
mod scalar;
mod shared_driver;
mod start;

pub use collective::{Collected, Collective};
pub use comm::Comm;
pub use error::{MpiError, MpiErrorClass};
pub use family::MpiFamily;
pub(crate) use frames::{FRAME_MAX, OfferedFrame};
pub use launcher::{Launched, MpiLauncher};
pub use library::{LoadError, PATH_VARIABLE};
pub use memory::MpiMemory;
pub use message_loop::{About, MessageLoop};
pub use ongoing::Ongoing;
pub use received::{CommListener, Received};
pub use scalar::{ReduceOp, Scalar, ScalarType};
pub use start::StartError;
