//! Message passing: a program runs as several ranks, which share nothing and send messages to one
//! another. The calls are those of MPI.
//!
//! | for | there is |
//! |---|---|
//! | starting the ranks | [`run()`], [`Ranks`] |
//! | values of any type that serde knows (the paper's simple interface) | [`send`](Communicator::send), [`ssend`](Communicator::ssend), [`recv`](Communicator::recv), [`sendrecv`](Communicator::sendrecv) |
//! | elements of plain data (the paper's fast interface) | [`send_slice`](Communicator::send_slice), [`send_vec`](Communicator::send_vec), [`recv_into`](Communicator::recv_into), [`recv_vec`](Communicator::recv_vec), [`sendrecv_into`](Communicator::sendrecv_into) |
//! | structs of a program as elements | [`Plain`] and its derive |
//! | elements within a value, in one piece | [`raw`] |
//! | operations that go on by themselves | [`isend`](Communicator::isend), [`issend`](Communicator::issend), [`irecv`](Communicator::irecv), [`isend_vec`](Communicator::isend_vec), [`irecv_into`](Communicator::irecv_into), [`Request`], [`wait_all`] |
//! | looking before receiving | [`probe`](Communicator::probe), [`iprobe`](Communicator::iprobe), [`mprobe`](Communicator::mprobe), [`improbe`](Communicator::improbe) |
//! | no rank, where a neighbour is missing | [`PROC_NULL`] |
//! | all ranks together, on values | [`barrier`](Communicator::barrier), [`bcast`](Communicator::bcast), [`gather`](Communicator::gather), [`scatter`](Communicator::scatter), [`allgather`](Communicator::allgather), [`alltoall`](Communicator::alltoall), [`reduce`](Communicator::reduce), [`allreduce`](Communicator::allreduce), [`reduce_scatter`](Communicator::reduce_scatter), [`scan`](Communicator::scan), [`exscan`](Communicator::exscan) |
//! | the same on elements | [`bcast_into`](Communicator::bcast_into), [`gather_slice`](Communicator::gather_slice) and so on, with [`Parts`] |
//! | either without waiting for the end | [`ibarrier`](Communicator::ibarrier), [`ibcast`](Communicator::ibcast), [`ibcast_into`](Communicator::ibcast_into), [`igather_slice`](Communicator::igather_slice) and so on |
//! | elements at any places of a slice | [`Layout`], [`send_layout`](Communicator::send_layout), [`recv_layout`](Communicator::recv_layout), [`sendrecv_layout`](Communicator::sendrecv_layout) |
//! | the same operation again and again | [`send_init`](Communicator::send_init), [`recv_init`](Communicator::recv_init), [`allreduce_init`](Communicator::allreduce_init) and so on, [`PersistentCollective`] |
//! | memory that other ranks read and change | [`window`](Communicator::window), [`Window`] |
//! | ranks as a grid with neighbours | [`cartesian`](Communicator::cartesian), [`Cartesian`] |
//! | ranks as a graph, in which each names its neighbours | [`neighbourhood`](Communicator::neighbourhood), [`Neighbourhood`] |
//! | a file of all ranks (MPI-IO) | [`SharedFile`], [`FileView`] |
//! | functions that other ranks execute | [`Functions`], [`RankPool::call`], [`RankPool::submit`], [`RankPool::map`] |
//! | going on when a rank has ended | [`revoke`](Communicator::revoke), [`shrink`](Communicator::shrink), [`agree`](Communicator::agree), [`acknowledge_failed`](Communicator::acknowledge_failed) |
//! | two groups of ranks that send to one another | [`intercommunicator`](Communicator::intercommunicator), [`InterCommunicator`] |
//! | more ranks at run time | [`spawn`](Communicator::spawn), [`spawn_program`](Communicator::spawn_program), [`parent`](Communicator::parent) |
//! | worlds that did not start together | [`Port`], [`accept`](Communicator::accept), [`connect`](Communicator::connect), [`lookup_name`] |
//! | what a library keeps with a communicator | [`attribute`](Communicator::attribute) |
//! | some of the ranks | [`split`](Communicator::split), [`dup`](Communicator::dup), [`create`](Communicator::create), [`Group`] |
//!
//! ```
//! use selvedge::mpi::{self, Communicator};
//!
//! async fn rank(world: Communicator) -> Result<(), mpi::Error> {
//!     let square = world.rank() * world.rank();
//!     // The other ranks send, and rank 0 gets all values in the order of the ranks.
//!     if let Some(squares) = world.gather(0, square).await? {
//!         assert_eq!(squares, [0, 1, 4, 9]);
//!     }
//!     Ok(())
//! }
//!
//! #[selvedge::main]
//! async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
//!     mpi::run(4, rank).await.map(drop)
//! }
//! ```
//!
//! # Messages
//! A message goes from one rank to another, with a tag. Messages between the same two ranks in one
//! communicator do not overtake: a receive takes the first of the messages that it could take. A
//! receive names its source and tag, or takes [`ANY`].
//!
//! # Waiting
//! Each operation is a future, and a thread that awaits it is parked until its message has come. A
//! rank may have any number of threads, each with a clone of the [`Communicator`]. If the
//! future of a receive is dropped, it has taken no message.
//!
//! # Engines
//! The ranks are groups of threads of one process, and a value is moved from one to the other
//! ([`threads`]). [`Ranks::processes`] and `selvedge-mpirun` make them processes of this machine,
//! which share memory ([`processes`]). If a launcher of MPI has started the process, it is one rank
//! of that job, and the MPI library of the machine carries the messages. It is loaded at run time
//! ([`libmpi`]), so a program needs no MPI to be built. What carries messages is behind one trait,
//! [`engine::Engine`].
//!
//! The variable `SELVEDGE_MPI_ENGINE` names an engine for a program that names none: `threads`,
//! `processes` or `mpi`.
// # For readers of the source
//
// The crate has three levels. An *engine* (`engine.rs`) carries messages, and has one operation for
// it, `send`. It gives what arrives to the *mailbox* of the receiving rank (`mailbox.rs`), where
// messages meet receives by the hash of context, source and tag (`matching.rs`). Above it the
// *communicator* (`communicator.rs`) has contexts, ranks and errors, and makes all operations of
// MPI of its send and its receive: also elements that lie apart (`layout.rs`), operations that are
// started again (`persistent.rs`), two groups that send to one another (`intercommunicator.rs`),
// memory that other ranks change (`window.rs`), and files (`file.rs`). So an engine knows no
// wildcard, no communicator and no collective.
//
// In `threads.rs` ranks are groups of threads of one process. In the other two engines the process
// is one rank of a job (`job.rs`): in `launched.rs` through the MPI library of the machine
// (`libmpi/`, loaded with dlopen), in `processes/` through shared memory. The tables in
// `processes.rs` and `libmpi.rs` say where to start reading. A new world is made by
// `world.rs`, and groups of two worlds have an engine of their own (`joined.rs`). When a rank has
// ended, `recovery.rs` revokes and `agreement.rs` argues why all ranks agree.

#![deny(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod agreement;
mod attributes;
mod byte_pieces;
mod cartesian;
mod collective;
mod communicator;
pub mod completion;
mod couriers;
#[cfg(all(test, not(loom)))]
mod cut_short;
mod disconnect;
pub mod engine;
pub mod envelope;
mod error;
mod failure;
mod fast;
#[cfg(not(loom))]
mod file;
mod functions;
mod group;
mod info;
mod intercommunicator;
mod job;
mod job_header;
mod joined;
mod kept_values;
mod laid_out;
mod lane;
mod launched;
mod layout;
#[allow(unsafe_code, reason = "it calls the MPI library")]
pub mod libmpi;
pub mod mailbox;
mod matching;
mod neighbourhood;
pub mod op;
mod patience;
mod payload;
mod persistent;
mod plain;
#[cfg(not(loom))]
mod port;
mod probe;
#[allow(unsafe_code, reason = "it uses memory that processes share")]
pub mod processes;
pub mod raw;
#[allow(unsafe_code, reason = "it lends memory that has no value yet")]
mod receive_room;
mod recovery;
mod request;
mod revocation;
mod running;
mod sending;
mod shared_payload;
mod simple;
mod spare_memory;
mod spawn;
mod split;
mod tag;
pub mod threads;
mod window;
mod wire;
mod world;

pub use cartesian::Cartesian;
pub use collective::{InterRoot, Parts, PersistentCollective};
pub use communicator::Communicator;
pub use envelope::Status;
pub use error::{CallSite, Error, ErrorClass};
pub use failure::{Cause, RanksError};
#[cfg(not(loom))]
pub use file::{FileView, SharedFile, SharedFileOptions};
pub use functions::{Functions, RankPool, RemoteFunction};
pub use group::{ComparisonResult, Group};
pub use info::Info;
pub use intercommunicator::InterCommunicator;
pub use layout::Layout;
pub use neighbourhood::Neighbourhood;
pub use payload::Message;
pub use persistent::{PersistentReceive, PersistentSend};
pub use plain::Plain;
#[doc(hidden)]
pub use plain::derived;
#[cfg(not(loom))]
pub use port::{NameTakenError, Port, lookup_name};
pub use probe::Matched;
pub use request::{Request, wait_all};
#[doc(inline)]
pub use selvedge_mpi_derive::Plain;
pub use tag::{ANY, Any, PROC_NULL, Source, Tag, Tags};
pub use window::{LockedWindow, Window, WindowElement, WindowLock};
pub use world::{Ranks, run};
