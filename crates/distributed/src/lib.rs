//! Graphs and pipelines over ranks: what [`cnc`](selvedge_cnc) and [`flow`](selvedge_flow) run on
//! one machine, the ranks of [`mpi`](selvedge_mpi) run together.
//!
//! | for | there is |
//! |---|---|
//! | a graph of all ranks | [`graph()`], [`DistributedGraph`], [`FinishedRanks`], [`RankTraffic`] |
//! | collections | [`DistributedTags`], [`DistributedRanges`], [`DistributedItems`], [`ItemPlacement`] |
//! | steps, and what they see | [`DistributedStep`], [`DistributedNeeds`], [`DistributedAsyncStep`] |
//! | a stage of a pipeline on another rank | [`RankStages`], [`StagePool`], [`on_rank()`], [`OnRank`], [`RemoteItem`] |
//! | what went wrong | [`DistributedError`], [`StuckRanks`], [`MissingOnRank`], [`DistributedStepError`] |
//!
//! # Examples
//! See [`graph()`] and [`RankStages`].

// # For readers of the source
//
// Each rank has a graph of `cnc`. Read `graph.rs` (how the program defines it), `driver.rs` (the
// scheduler of a rank, which sends and receives between two steps), and `termination.rs` (how the
// ranks find that all of them are done, with the proof). `item_collection.rs` and
// `tag_collection.rs` say where a put goes, and `ranges.rs` cuts a range for that; `outbox.rs`
// collects the puts for other ranks, and `ports.rs` puts what was received. `outcome.rs` makes one
// error of what the ranks say.
//
// A pipeline over ranks has a stream with two ends (`stream.rs`): that of the stage in `serve.rs`,
// and that of the pipeline in `on_rank.rs`. `stages.rs` has the stages that ranks may open.
//
// Invariants:
// - A message of puts is counted when it is sent and when it is opened, and never elsewhere.
// - A step that may run again has sent nothing.
// - A fetch is sent once for each key and rank.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod async_step;
mod definitions;
mod driver;
mod error;
mod finished;
mod graph;
mod item_collection;
mod on_rank;
mod outbox;
mod outcome;
mod placement;
mod ports;
mod ranges;
mod remote_item;
mod serve;
mod stages;
mod step;
mod stream;
mod tag_collection;
mod telling;
mod termination;

pub use async_step::DistributedAsyncStep;
pub use driver::RankTraffic;
pub use error::{DistributedError, DistributedStepError, MissingOnRank, StuckRanks};
pub use finished::FinishedRanks;
pub use graph::{DistributedGraph, graph};
pub use item_collection::DistributedItems;
pub use on_rank::{OnRank, OnRankOf};
pub use placement::ItemPlacement;
pub use ranges::DistributedRanges;
pub use remote_item::RemoteItem;
pub use stages::{RankStages, RemoteStage, StagePool, on_rank};
pub use step::{DistributedNeeds, DistributedStep};
pub use tag_collection::DistributedTags;
