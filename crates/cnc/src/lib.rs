//! Concurrent Collections: a graph of steps that communicate by items and tags, with one result
//! under every scheduler.
//!
//! - An **item collection** is a table. Each key is put once, and never changes.
//! - A **tag collection** takes tags. Each tag runs every **step** that the collection
//!   *prescribes*.
//! - A **step** is a function of its tag. It gets items, puts items, and puts tags. A step that
//!   gets an item which is not there yet waits for it.
//! - The **environment** is the program around the graph. It puts the first items and tags, runs
//!   the graph, and looks at the items when no step can run any more.
//!
//! Because no item ever changes, a step sees the same items whenever it runs. So neither the
//! scheduler nor the number of workers changes the result, bit for bit. Errors are determined too:
//! an item that is put twice, an item that is never put, a count that is wrong.
//!
//! | for | there is |
//! |---|---|
//! | a graph | [`graph()`], [`Graph`], [`FinishedGraph`], [`View`] |
//! | collections | [`ItemCol`], [`Items`], [`TagCol`], [`StepCol`] |
//! | steps, and what they see | [`StepContext`], [`Needs`], [`AsyncStep`], [`Get`], [`Take`], [`StepResult`], [`Halted`] |
//! | puts while the graph runs | [`LiveEnvironment`], [`LivePuts`], [`LiveGet`] |
//! | keys and tags | [`ItemKey`], [`Grid`], [`RangeNumber`], [`BlockedRange2d`], [`BlockedRange3d`] |
//! | schedulers | [`schedulers`], [`Worker`], [`ReadyStep`], [`Outlet`] |
//! | what went wrong | [`GraphError`], [`StepFault`], [`FaultCause`], [`Stuck`], [`MissingItem`], [`StuckStep`] |
//! | what the graph did | [`Statistics`], [`StepStatistics`], [`ItemStatistics`], [`Recording`], [`StepRun`] |
//! | what the graph is | [`Picture`], [`PictureNode`], [`PictureArrow`], [`CollectionId`], [`ArrowKind`] |
//! | what the graph does now | [`Monitor`], [`StepProgress`], [`Stalled`], [`RunningStep`] |
//! | an end before the end | [`Canceller`] |
//!
//! Of steps there are four kinds:
//!
//! | kind | when an item is missing | take it for |
//! |---|---|---|
//! | [`prescribe`](Graph::prescribe) | runs again from its beginning; it gets before it puts | most steps |
//! | [`prescribe_depends`](Graph::prescribe_depends) | has not begun, because it declares its items | steps with expensive gets |
//! | [`prescribe_async`](Graph::prescribe_async) | goes on where it was | steps that get, compute, put, and get again |
//! | [`prescribe_range`](Graph::prescribe_range), [`_2d`](Graph::prescribe_range_2d), [`_3d`](Graph::prescribe_range_3d) | as `prescribe`, for a part of its range | loops over many numbers |
//!
//! What a step costs is in the guide, `docs/guide/cnc.md`. In short: a step that does nothing takes
//! some 155 instructions, one more put in an array 60 and one atomic exchange, one more get some
//! 35. A step that misses an item takes 350 more.
//!
//! # Examples
//! A Mandelbrot set, a step for each pixel:
//! ```
//! use selvedge::cnc::{self, Items, schedulers::Stealing};
//!
//! fn iterations(row: u32, column: u32) -> u32 {
//!     let (a, b) = (f64::from(column) / 20.0 - 2.0, f64::from(row) / 10.0 - 1.0);
//!     let (mut x, mut y, mut count) = (0.0, 0.0, 0);
//!     while x * x + y * y <= 4.0 && count < 100 {
//!         (x, y) = (x * x - y * y + a, 2.0 * x * y + b);
//!         count += 1;
//!     }
//!     count
//! }
//!
//! fn main() -> Result<(), cnc::GraphError> {
//!     let (rows, columns) = (21, 60);
//!     let inside = cnc::graph(|graph| {
//!         let pixels = graph.tags("pixels");
//!         let image = graph.items_in("image", Items::dense((rows, columns)));
//!         graph.prescribe(pixels, "mandel", move |(row, column), step| {
//!             step.put(image, (row, column), iterations(row, column))
//!         });
//!         graph.initialize(|env| {
//!             let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
//!             all.into_iter().try_for_each(|pixel| env.put_tag(pixels, pixel))
//!         })?;
//!         Ok(graph.run(&Stealing::new(2))?.finalize(|view| {
//!             view.iter(image).filter(|(_, count)| **count == 100).count()
//!         }))
//!     })?;
//!     assert_eq!(inside, 320);
//!     Ok(())
//! }
//! ```
//!
//! # Paper
//! [NCM11 §2]: the model. [NCM11 §5, Table 3]: in its terms, the nodes are stateless tasks in a
//! dynamic set, and the channels of tags have no order.

// # For readers of the source
//
// A graph lives in a call of `graph`. Its handles are references with the lifetime of the call,
// which is another one for each graph.
//
// The files stand on floors, and a file names files of its own floor or below:
//
//     face     graph  graph/  compose                 what the program calls
//     running  schedulers/  lend  live                which ready step runs where, and when
//     kinds    kinds/                                 replayed, declared, range, forked, async
//     kernel   step/  items  item_store  tags  step_col
//              ready_step + core + step               a knot, see the head of `ready_step.rs`
//              catalogue  tally  fault_log  worker_memory  pending      the parts of `Core`
//              any_items  tag_word  hints  held_steps  cancel  bell
//     memory   slot/  storage/  arena  places  waiters  frames  in_use
//     data     key  error  faults  record  picture  outline  progress  monitor  stuck  statistics
//              random
//
// Read `slot.rs` first (the state word of an item: put, get, wait, take, with the argument that no
// wake-up is lost). Then read `storage.rs` (where items lie: dense, in pages, or by their words or
// hashes in `storage/table.rs`; `storage/streamed.rs` keeps nothing of an item that has gone),
// `ready_step.rs` (an instance that can run), `step.rs` (what a step sees; below `step/` its gets,
// its puts, and how a step that has missed an item waits and runs again), `kinds.rs` (the kinds of
// steps behind one trait), and `core.rs` (what workers share, in five parts) with `arena.rs` (what
// a graph owns). `places.rs`, `waiters.rs` and `frames.rs` are slabs of memory that a worker uses
// again.
//
// A worker looks at one word before a step (`cancel.rs`), and `step/attend.rs` acts when the word
// is set. `step/settle.rs` acts when no step is ready: it frees the claims of cancelled steps and
// lets late steps look again. `in_use.rs` has the steps that wait for the users of an item.
// `compose.rs` has reductions and joins, made of steps and collections alone. `faults.rs` has the
// order of the faults in a report, with the argument that it does not depend on the schedule.
//
// `monitor.rs`, `picture.rs`, `record.rs` and `statistics.rs` are plain data: `core/observe.rs`
// makes them, `graph/observe.rs` hands them to the program, and `selvedge-see` draws them.
//
// Below `schedulers/`, `circle.rs` has the argument that workers end together and not before
// (termination detection). `live.rs` has the handles of an environment that puts while the graph
// runs, and `bell.rs` the argument that the run does not end before they are closed, that no put is
// between two runs, and that a put wakes a worker that sleeps. Threads of ours take only `'static`
// values, so `lend.rs` lends them the parts of a run.
//
// Invariants:
// - The schedulers of `cnc` have no unsafe code, and use nothing that a program's own scheduler
//   could not use.
// - An item never moves, and is dropped only when no step can reach it, however wrong its count is.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

// Tests of the suite that `seeded.rs` runs name the crate as the suite does.
#[cfg(all(test, not(loom)))]
extern crate self as selvedge_cnc;

mod any_items;
mod arena;
mod bell;
mod cancel;
mod catalogue;
mod compose;
mod core;
mod error;
mod fault_log;
mod faults;
mod first_panic;
mod frames;
mod graph;
mod held_steps;
mod hints;
mod in_use;
mod item_store;
mod items;
mod key;
mod kinds;
mod lend;
mod live;
#[cfg(loom)]
pub mod models;
mod monitor;
mod outline;
mod pending;
mod picture;
mod places;
mod primitives;
mod progress;
mod random;
mod ready_step;
mod record;
pub mod schedulers;
#[cfg(all(test, not(loom)))]
mod seeded;
mod slot;
mod statistics;
mod step;
mod step_col;
mod storage;
mod stuck;
mod tag_word;
mod tags;
mod tally;
mod waiters;
mod worker_memory;

pub use cancel::Canceller;
pub use error::{FaultCause, GraphError, Halted, StepFault, StepResult};
pub use graph::{FinishedGraph, Graph, View, graph};
pub use items::{ItemCol, Items};
pub use key::{AxisLengths, Grid, ItemKey};
pub use kinds::async_step::{AsyncStep, Get, Take};
pub use kinds::declared::Needs;
pub use kinds::range::{BlockedRange2d, BlockedRange3d, RangeNumber};
pub use lend::{LentJob, LentStep, LentWorker};
pub use live::{LiveEnvironment, LiveGet, LivePuts};
pub use monitor::{Monitor, RunningStep, Stalled};
pub use picture::{ArrowKind, CollectionId, Picture, PictureArrow, PictureNode};
pub use progress::StepProgress;
pub use ready_step::ReadyStep;
pub use record::{Recording, StepRun};
pub use statistics::{ItemStatistics, Statistics, StepStatistics};
pub use step::{Outlet, StepContext, Worker};
pub use step_col::StepCol;
pub use stuck::{MissingItem, Stuck, StuckStep};
pub use tags::TagCol;
