//! Pipelines between things that wait: files, sockets, child processes, queues, and stages that run
//! side by side in threads of their own.
//!
//! The stages of [`pipeline`](selvedge_pipeline) never wait. This crate has
//! the ends that do: a [`FlowSource`] gives items when they come, and a [`FlowTarget`] takes them
//! when it can. The stages stand between the two, and `a >> b` joins the parts as in that module.
//!
//! Programs use the crate as `selvedge::flow`. `apps/pipe` runs its scripts with it.
//!
//! ```
//! use selvedge::pipeline::*;
//! use selvedge::flow;
//!
//! selvedge::run(async {
//!     let home = std::env::temp_dir().join(format!("flow-{}", std::process::id()));
//!     selvedge::fs::write(&home, "warp\nweft\nno warp\n").await?;
//!     // grep: only the lines that match leave the block that was read.
//!     let grep = group_by(whole_line()) >> select(any(substring(b"warp"))) >> concatenate();
//!     let found = (flow::file(&home) >> grep.clone() >> collect()).run().await?;
//!     assert_eq!(found, b"warp\nno warp\n");
//!     // The search runs in a thread of its own, and lines are counted here.
//!     let lines = flow::file(&home) >> grep >> flow::ahead(4) >> group_by(line()) >> count();
//!     assert_eq!(lines.run().await?, 2);
//!     selvedge::fs::remove_file(&home).await?;
//!     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! })
//! .unwrap()
//! .unwrap();
//! ```
//!
//! | for | there is |
//! |---|---|
//! | bytes to read | [`file()`], [`read`], [`stdin`], [`command`], [`async_read`] |
//! | bytes to write | [`create`], [`write()`], [`stdout`], [`async_write`] |
//! | a process in the middle | [`through`] |
//! | a graph of [`cnc`](selvedge_cnc) in the middle | [`through_graph`], [`GraphEnds`] |
//! | items of threads | [`from_taker`], [`from_fifo`], [`from_mvar`], [`to_putter`], [`to_fifo`], [`to_mvar`] |
//! | a generator, an iterator, a stream | [`made`], [`from_iter`](selvedge_pipeline::from_iter), [`stream`], [`FlowSource::into_stream`] |
//! | stages side by side | [`ahead`], [`par`], [`map_par`], [`in_parts`]; [`seq`] in their place |
//! | one stream of two that wait | [`join_sources`] |
//! | a source that is run to its end | [`FlowSource::drain`] |
//! | a source with a name in its failures | [`FlowSource::named`] |
//! | a pipeline that is put together while the program runs | [`FlowSource::boxed`], [`BoxedFlowSource`], [`FlowSource::into_source`] |
//! | a source that several iteratees read in turn | [`FlowSource::pull`], [`Reading`] |
//! | ends of your own | [`Source`], [`Target`] |
//!
//! # Design
//! The thread that runs a pipeline waits at its source or at its target, and runs all stages on
//! each chunk in between. So a pipeline needs no thread of its own, no queue, and no lock.
//! [`ahead`] adds a thread and a queue: the thread runs all that is upstream of it, and is ahead by
//! at most this number of chunks. [`map_par`], [`in_parts`] and [`through`] add threads too. The
//! items that come through are the same, whether a pipeline has such places or not.
//!
//! When a consumer is finished, or a stage fails, the source is closed before the pipeline gives
//! its result: a file is shut, the thread of an [`ahead`] has stopped and has run its destructors,
//! a child process has been killed and has ended.
//!
//! # Pipes that do not fit
//! The compiler refuses the first pipe of each pair, and accepts the second one. The two differ
//! only by the mistake.
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! use selvedge::flow::{create, made};
//! // The target takes bytes: put `decimal() >> concatenate()` before it.
//! let _ = made(naturals()) >> create("numbers");
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! # use selvedge::flow::{create, made};
//! let _ = made(naturals()) >> decimal() >> concatenate() >> create("numbers");
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! use selvedge::flow::{create, file};
//! // Nothing comes out of a target.
//! let _ = file("warp") >> create("weft") >> id();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! # use selvedge::flow::{create, file};
//! let _ = file("warp") >> id() >> create("weft");
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! use selvedge::flow::{file, through};
//! use selvedge::process::Command;
//! // A process reads bytes: put `concatenate()` before it.
//! let _ = file("warp") >> group_by(line()) >> through(Command::new("sort"));
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! # use selvedge::flow::{file, through};
//! # use selvedge::process::Command;
//! let _ = file("warp") >> group_by(line()) >> concatenate() >> through(Command::new("sort"));
//! ```
//! ```compile_fail,E0277
//! use selvedge::flow::file;
//! // A source is no whole pipeline: it has no consumer.
//! let _ = file("warp").run();
//! ```
//! ```
//! # use selvedge::{flow::file, pipeline::count};
//! let _ = (file("warp") >> count()).run();
//! ```

// # For readers of the source
//
// Read `role.rs` (a source with its stages, a target with its stages, and the one loop that runs
// them) and `beside.rs` (a thread that is ahead, and how it is stopped). A source lends the block
// that it read, so the stages search the memory that the kernel filled. `graph.rs` has a graph of
// `cnc` as a stage, with the argument that it cannot deadlock. `reading.rs` keeps the items that a
// consumer has not taken: iteratees that read a source in turn, joins and drains stand on it.
// `parts.rs` has the workers that read one file side by side. What they make of a block, and how it
// is put together in order, is in `crates/pipeline/src/edges/parts.rs`.
//
// Invariant: a pipeline gives its result when its source is closed: threads that were ahead have
// run their destructors, and a child process has ended.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod adapt;
mod beside;
mod boxed;
mod bytes;
mod child;
mod drain;
mod graph;
mod items;
mod join;
mod named;
mod parallel;
mod parts;
mod reading;
mod role;

pub use adapt::{
    AsyncReading, AsyncWriting, FromStream, IntoRead, IntoStream, async_read, async_write, stream,
};
pub use beside::{Ahead, AheadOf, Seq, ahead, par, seq};
pub use boxed::{BoxedFlowSource, BoxedSource};
pub use bytes::{Creating, OpenFile, ReadStream, Writing, create, file, read, stdin, stdout, write};
pub use child::{CommandOutput, Through, ThroughCommand, command, through};
pub use drain::{DrainedSource, Draining};
pub use graph::{GraphEnds, ThroughGraph, ThroughGraphOf, through_graph};
pub use items::{FromFifo, FromGenerator, FromMVar, FromTaker, ToFifo, ToMVar, ToPutter};
pub use items::{from_fifo, from_mvar, from_taker, made, to_fifo, to_mvar, to_putter};
pub use join::{JoinedSources, OneOfTwo, join_sources};
pub use named::NamedSource;
pub use parallel::{MapPar, ParallelOf, map_par};
pub use parts::{InParts, PartsOf, in_parts};
pub use reading::Reading;
pub use role::{AfterSource, FlowProgram, FlowSource, FlowTarget, Pouring, Source, Target, WholeFile};
