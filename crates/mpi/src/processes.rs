//! Ranks that are processes of one machine, over memory that they share.
//!
//! `selvedge-mpirun` starts such a job, or the program itself by
//! [`Ranks::processes`](crate::Ranks::processes). A program that starts the processes in its own
//! way makes a [`LocalJob`].
//!
//! # Where to start reading
//!
//! | file | what |
//! |---|---|
//! | `local_job.rs`, `started.rs` | starting the processes, and watching them |
//! | `machine.rs` | whether two processes are on one machine |
//! | `segment.rs` | the shared memory, and what is where in it |
//! | `ring.rs` | bytes from one process to another: the protocol |
//! | `bell.rs` | waking a process that sleeps: the protocol |
//! | `rings.rs` | messages through the rings of one rank |
//! | `attendant.rs` | the OS thread that sleeps until another process has something |
//! | `process_rank.rs` | this process as a rank |
//! | `peer_watch.rs` | noticing that a process has ended which this one has not started |
//! | `doorbells.rs` | bells and loans alone, for the ranks of a job of MPI |
//! | `loan.rs` | lending memory to another process: the protocol |
//! | `lending.rs` | a long message that its receiver copies from the sender's memory |
//!
//! **Architecture Invariant:** a process that is killed at any instruction leaves the others able
//! to go on. So no lock lies in shared memory, and each word there has one process that writes it,
//! or is changed by single atomic operations.

mod attendant;
mod bell;
mod doorbells;
mod lending;
mod loan;
mod local_job;
mod machine;
mod peer_watch;
mod primitives;
mod process_rank;
mod ring;
mod rings;
mod segment;
mod started;

pub(crate) use doorbells::Doorbells;
pub(crate) use lending::{BorrowedBytes, LOAN_BYTES, LentBytes};
pub use local_job::LocalJob;
pub(crate) use local_job::{ParentRanks, RankSeat};
pub(crate) use machine::this_machine;
pub(crate) use process_rank::ProcessRank;
pub(crate) use segment::{JobSegment, RANKS_MAX, segment_path};
pub(crate) use started::StartedRanks;
