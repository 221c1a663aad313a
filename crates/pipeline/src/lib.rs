//! Pipelines for work: typed stages, at the speed of a loop over blocks.
//!
//! A pipeline is a value. Each stage plays a role, and `a >> b` compiles if `b` takes what `a`
//! yields. Nothing runs before the whole pipeline is run.
//!
//! ```
//! use selvedge::pipeline::*;
//!
//! let log = "GET /warp 200\nGET /weft 404\n\nGET /knot 404\n";
//! // Which lines hold 404? The paper's pipeline, with the line ends kept.
//! let grep = group_by(whole_line())
//!     >> if_then_else(any(substring(b"404")), id(), suppress())
//!     >> concatenate();
//! let found = (from_chunks([log]) >> grep.clone()).collect();
//! assert_eq!(found, b"GET /weft 404\nGET /knot 404\n");
//!
//! // The same stages, in front of a consumer.
//! let bytes = (from_chunks([log]) >> grep >> count()).run();
//! assert_eq!(bytes, 28);
//! ```
//!
//! A branch takes the sections that its splitter calls true or false, and the outputs are merged in
//! the order in which they appear. So a pipeline changes the sections that match and passes all
//! else on, byte by byte, in its place:
//!
//! ```
//! use selvedge::pipeline::*;
//!
//! let text = "a warp (a warp and (a warp)), a warp";
//! let inside = between(end_of(substring(b"(")), start_of(substring(b")")));
//! // Within brackets, each `warp` becomes a `weft`.
//! let weft = foreach(substring(b"warp"), substitute(b"weft"), id());
//! let changed = (from_chunks([text]) >> if_then_else(inside, weft, id())).collect();
//! assert_eq!(changed, b"a warp (a weft and (a weft)), a warp");
//! ```
//!
//! Stages never wait. The holder of a pipeline waits for its input and for its output, and steps it
//! in between: [`StepByStep`], [`Feeding`] and [`Pulling`].
//!
//! ```
//! use selvedge::pipeline::*;
//! use selvedge::{Fifo, spawn};
//! use std::sync::Arc;
//!
//! selvedge::run(async {
//!     let (input, output) = (Arc::new(Fifo::new()), Arc::new(Fifo::new()));
//!     let (source, sink) = (input.clone(), output.clone());
//!     let stage = spawn(async move {
//!         let mut upper = lift121(|c: &u8| c.to_ascii_uppercase()).step();
//!         for _ in 0..2 {
//!             let block: Vec<u8> = source.take().await;
//!             sink.put(upper.put_chunk(&block).to_vec());
//!         }
//!     });
//!     input.put(b"warp ".to_vec());
//!     input.put(b"weft".to_vec());
//!     stage.await.unwrap();
//!     assert_eq!([output.take().await, output.take().await].concat(), b"WARP WEFT");
//! })
//! .unwrap();
//! ```
//!
//! | for | there is |
//! |---|---|
//! | where items come from | [`from_iter`], [`from_chunks`], [`from_fn`], [`naturals`], [`naturals_from`], [`repeat`] |
//! | numbers as text | [`decimal`] |
//! | exact numbers, with a sign and a fraction | [`Number`], and [`Digits`] where they stand in a text |
//! | functions as stages | [`lift121`], [`lift_stateless`], [`lift_stateful`], [`filter`], [`take`], [`skip`], [`rewrite`] |
//! | stages with no function | [`id`], [`suppress`], [`concatenate`], [`prepend`], [`append`], [`trim_end`], [`substitute`] |
//! | a stage written as a coroutine | [`generator`], [`transducer`], [`iteratee`], [`splitter`], with their handle [`Io`] |
//! | where items go | [`collect`], [`fold`], [`count`], [`head`], [`each_chunk`] |
//! | sections of a stream | [`satisfies`], [`line`](line()), [`whole_line`], [`substring`], [`everything`] |
//! | logic of sections | `!a`, `a & b`, <code>a &#124; b</code>, [`and_then`](Splitter::and_then), [`or_else`](Splitter::or_else), [`between`] |
//! | sections by their place | [`first`], [`last`], [`even`], [`prefix`], [`suffix`], [`start_of`], [`end_of`] |
//! | what lies around sections | [`upto_first`], [`last_and_after`], [`between`] |
//! | sections in a row | [`followed_by`] |
//! | sections by what is in them | [`having`], [`having_only`] |
//! | sections as items | [`section_parts`] |
//! | branches | [`if_then_else`], [`select`], [`wherever`], [`unless`], [`foreach`] |
//! | loops | [`while_`], [`while_each`], [`nested_in`], and cycles by a buffer: [`cycle`] |
//! | lists | [`group_by`], [`any`], [`all`], [`concatenate`], [`select_numbered`] |
//! | one stream of two | [`join`], [`join_generators`], [`join_transduced`], [`join_with`] |
//! | parsers and encoders | [`csv`], [`json`], [`xml`], [`binary`], [`line`](line()) |
//! | one value from the front of a stream | [`read`], [`Pulling::read`], [`Feeding::put_some`] |
//! | compressed streams | `gzip`, `zstd`, with the features of these names |
//! | stages that may fail | [`try_lift121`], [`try_fold`], [`try_from_fn`], [`StageError`], [`named`](Transducer::named), [`located`](located()) |
//! | a generator as an iterator | [`Generator::into_iter`] |
//! | the end of a pipeline | [`finally`], [`drain`](Generator::drain) |
//! | a pipeline between things that wait | [`Transducer::step`], [`Iteratee::feed`], [`Generator::pull`] |
//! | stages that are put together while the program runs | [`Transducer::boxed`], [`Splitter::boxed`], [`DynStage`] |
//! | stages for parts of a stream, side by side | [`PartByPart`], [`ItemByItem`], [`Part`], [`PartJoiner`] |
//! | stages of your own | [`Transduce`], [`Split`], [`Generate`], [`Consume`], [`Merge`] |
//!
//! # Design
//! **Push.** The upstream stage calls the downstream one: [`Sink::put`] with one item, or
//! [`Sink::put_chunk`] with many. Each stage is a state machine with a type of its own, and the
//! calls are known when the program is compiled. So a chain of lifted functions becomes one loop.
//! A generator is asked for some items at a time, so that a join can take two of them in step.
//!
//! **Lent.** An item is passed by reference. A chunk is a slice of the block that was read, and a
//! splitter cuts it without a copy. [`Lists`] are a block with the ends of its lists not yet
//! searched for. A stage copies the items that it must keep: a list that reaches over the end of a
//! block, a section that is not decided, one side of a join.
//!
//! **Sections.** A splitter tells where a section ends ([`Sections::close`]). So an empty section
//! is not lost, and two neighbours of one verdict are two.
//!
//! **Recipes.** A stage that is cloned before it is fed is the recipe once more. [`foreach`],
//! [`having`] and [`any`] begin a stage anew for each section in this way.
//!
//! **The end.** The end of the input runs down the pipeline, and each stage puts out what it has
//! kept. A stage that takes no more breaks, and the break runs up: no stage upstream is called
//! again. The generator is dropped before the consumer gives its result.
//!
//! **Failures.** A stage that fails breaks, and nothing more reaches the next stage, not even an
//! end. The pipeline then has no result but the [`StageError`], which tells the stage, the item
//! and the place in the stream ([`Program::try_run`]).
//!
//! **Cuts.** No stage can be told how its input was cut into chunks: what it yields, and where it
//! fails, depend on the items alone. A compressed stream that is wrong is the one exception:
//! `gunzip` and `unzstd` tell the place of the mistake to 4 KiB, and how many bytes they yield
//! before the failure depends on the cuts.
//!
//! # Differences
//! 1. The paper resumes both sides of a pipe in each step, so that the producer runs one step
//!    ahead. Here a stage runs when an item comes. The results are the same, the order of effects
//!    is not. The crate `selvedge-coroutine` has the paper's order.
//! 2. A consumer that is finished stops what is upstream. The paper drains it, and so does
//!    [`Generator::drain`].
//! 3. Generators, transducers, splitters and joins have no results. The result of the pipeline is
//!    that of its consumer.
//! 4. A stage never waits for anything but its items.
//!
//! # The combinators of SCC
//! The package SCC, which the paper names, has other words for some of them, and some that are put
//! together here.
//!
//! | SCC | here |
//! |---|---|
//! | `sNot`, `&&`, <code>&#124;&#124;</code> | `!a`, `a & b`, <code>a &#124; b</code> |
//! | `>&`, <code>>&#124;</code> | [`and_then`](Splitter::and_then), [`or_else`](Splitter::or_else) |
//! | `a ... b` | [`between(a, b)`](between) |
//! | `ifs s a b` of splitters | <code>s.and_then(a) &#124; (!s).and_then(b)</code> |
//! | `splitterToMarker`, `parseRegions` | [`section_parts`] |
//! | `parserToSplitter` | [`splitter`], with a body that puts a [`SectionPart`] for each part |
//! | `groupMarks` | [`group_by`] |
//! | `findsTrueIn s`, `findsFalseIn s` | `select(s) >> head()`, `select(!s) >> head()` |
//! | `prepend`, `append` of a producer | [`join_with`] and [`join::concatenate`](join::concatenate()) |
//! | `consumeBy`, `teeConsumers` | a function that feeds an iteratee, or two: [`Iteratee::feed`] |
//!
//! ```
//! use selvedge::pipeline::*;
//!
//! let digits = || satisfies(|c: &u8| c.is_ascii_digit());
//! let letters = || satisfies(|c: &u8| c.is_ascii_alphabetic());
//! // `ifs`: the digits, and the last letters of all that is no digit.
//! let ifs = digits().and_then(first(everything())) | (!digits()).and_then(last(letters()));
//! assert_eq!((from_chunks(["12 ab 3 cd"]) >> select(ifs)).collect(), b"123cd");
//!
//! // `teeConsumers`: two consumers of one stream.
//! let (mut bytes, mut lines) = (count::<u8>().feed(), (group_by(line()) >> count()).feed());
//! (from_chunks(["warp\n", "we", "ft\n"]) >> each_chunk(|block: &[u8]| {
//!     let _ = bytes.put_chunk(block);
//!     lines.put_chunk(block)
//! }))
//! .run();
//! assert_eq!((bytes.end(), lines.end()), (10, 2));
//! ```
//!
//! # Pipes that do not fit
//! The compiler refuses the first pipe of each pair, and accepts the second one. The two differ
//! only by the mistake.
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // An iteratee of `[u8]` cannot stand downstream of a generator of `u64`: the message says
//! // "expected a transducer or an iteratee that takes `u64`".
//! let _ = naturals() >> count::<[u8]>();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = naturals() >> count::<u64>();
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // A generator takes no items.
//! let _ = naturals() >> naturals();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = naturals() >> id::<u64>();
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // A splitter is no transducer: `select(line())` is one.
//! let _ = from_chunks(["warp"]) >> line();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = from_chunks(["warp"]) >> select(line());
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // The stage yields numbers, and the next one takes bytes.
//! let lengths = group_by(line()) >> lift121(|line: &[u8]| line.len() as u64);
//! let _ = lengths >> group_by(line());
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let lengths = group_by(line()) >> lift121(|line: &[u8]| line.len() as u8);
//! let _ = lengths >> group_by(line());
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // A generator is no whole pipeline: it has no consumer.
//! naturals().run();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! (naturals() >> head()).run();
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // A transducer is no whole pipeline: it has no generator.
//! (take::<u64>(1) >> take(1)).run();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! (naturals() >> take(1) >> take(1) >> count()).run();
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // An iteratee is no whole pipeline: it has no generator.
//! count::<u64>().run();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! count::<u64>().feed().end();
//! ```
//! ```compile_fail,E0277
//! use selvedge::pipeline::*;
//! // An iteratee yields nothing.
//! let _ = count::<u64>() >> count::<u64>();
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = id::<u64>() >> count::<u64>();
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // Both branches yield the same type.
//! let _ = if_then_else(line(), id(), lift121(|c: &u8| u64::from(*c)));
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = if_then_else(line(), id(), lift121(|c: &u8| c + 1));
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // A splitter takes what its branches take.
//! let _ = if_then_else(satisfies(|n: &u64| *n > 1), id::<u8>(), id::<u8>());
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = if_then_else(satisfies(|n: &u8| *n > 1), id::<u8>(), id::<u8>());
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // A condition is made of splitters of the same items.
//! let _ = line() & satisfies(|n: &u64| *n > 1);
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = line() & satisfies(|n: &u8| *n > 1);
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // What follows is made of the same items.
//! let _ = followed_by(line(), satisfies(|n: &u64| *n > 1));
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = followed_by(line(), satisfies(|n: &u8| *n > 1));
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // A place is one of sections, and a transducer has none.
//! let _ = upto_first(select(line()));
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = upto_first(line());
//! ```
//! ```compile_fail,E0308
//! use selvedge::pipeline::*;
//! // A join takes two streams of the same items.
//! let _ = join_generators(naturals(), from_chunks(["warp"]), join::concatenate());
//! ```
//! ```
//! # use selvedge::pipeline::*;
//! let _ = join_generators(naturals(), naturals(), join::concatenate());
//! ```

// # For readers of the source
//
// Read `stage.rs` (the protocol), `edges/chain.rs` (`a >> b`, and how an end and a break travel),
// `item/lists.rs` (lists in a block, with ends not yet found), `sections/branch.rs` (why outputs
// come in order without a queue), `splitters/record.rs` (two splitters that decide at different
// times). `role.rs` has the types that users combine, and `error.rs` says why and where a pipeline
// stopped.
//
// | folder | what is in it |
// |---|---|
// | `item` | what flows: values, lists, exact numbers, places |
// | `edges` | how stages meet: as one stage, before a holder, behind a pointer, in parts |
// | `sources` | generators |
// | `stages` | transducers and iteratees that know of no sections |
// | `bodies` | stages that are written as coroutines |
// | `splitters` | which sections are true |
// | `sections` | what is done with sections: branches, loops, lists of them |
// | `join` | one stream of two: `join.rs` says what a join does, and `join/driven.rs` runs it |
// | `formats` | parsers and encoders, and iteratees that want less than a chunk |
//
// A parser is a transducer or a splitter. `fuzz.rs` has the properties that hold at every cut of
// its input.
//
// Ways to save a copy: a stage that makes an item out of others writes it where the next stage
// keeps it (`Sink::put_made`). A body that makes a chunk gives its memory to a body after it
// (`Sink::put_store`). Items that a stage puts one by one wait for a chunk, but no longer than the
// call of that stage (`Transduce::put` and `flush`). Lines that are zipped with numbers go on as
// two chunks (`ZippedLists` in `lists.rs`) until a stage asks for the lists, so a search sees the
// block.
//
// Invariants:
// - `pipeline` has no unsafe code, does no I/O and has no scheduler.
// - A stage never waits. The holder of the pipeline waits, between two chunks.
// - Nothing follows a failure: no item and no end reaches the stage after a failed one.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod bodies;
mod edges;
mod error;
mod formats;
#[doc(hidden)]
pub mod fuzz;
mod item;
pub mod join;
mod role;
mod sections;
mod sources;
mod splitters;
mod stage;
mod stages;

pub use bodies::body::{Body, Io, NextItem, PeekItem, PutItem, transducer};
pub use bodies::roles::{
    GeneratorBody, IterateeBody, SectionPart, SplitterBody, generator, iteratee, splitter,
};
pub use edges::boxed::{
    BoxedSplit, BoxedSplitter, BoxedTransduce, BoxedTransducer, DynStage, HasKind, ItemKind, MisfitError,
};
pub use edges::chain::{AfterConsumer, AfterGenerator, AfterTransducer, Chain};
pub use edges::held::{Feeding, Pulling, StepByStep};
pub use edges::iterate::IntoIter;
pub use edges::parts::{ItemByItem, Part, PartByPart, PartJoiner, PlaceKnown, SplitByItem};
pub use error::StageError;
#[cfg(feature = "gzip")]
pub use formats::gzip;
#[cfg(feature = "zstd")]
pub use formats::zstd;
pub use formats::{binary, csv, json, read, xml};
pub use item::exact::{Digits, Number};
pub use item::lists::{Cut, ListStore, Lists};
pub use item::place::StreamPlace;
pub use item::{Chunk, Flow, Item, Store};
pub use join::{JoinGenerators, JoinTransduced, JoinWith, join_generators, join_transduced, join_with};
pub use role::{Drain, Generator, Iteratee, Join, Keep, Program, Splitter, Transducer, WholePipeline};
pub use sections::branch::{IfThenElse, if_then_else, select, unless, wherever};
pub use sections::foreach::{Foreach, foreach, substitute};
pub use sections::group::{GroupBy, group_by};
pub use sections::located::{Located, located};
pub use sections::recur::{Nested, While, nested_in, while_, while_each};
pub use sections::section_parts::{ToSectionParts, section_parts};
pub use sources::generate::{
    FromChunks, FromFn, FromIter, from_chunks, from_fn, from_iter, naturals, naturals_from, repeat,
};
pub use sources::try_from_fn::{TryFromFn, try_from_fn};
pub use splitters::any::{Within, all, any};
pub use splitters::choose::{
    Choose, LastOf, UptoFirst, end_of, even, first, last, last_and_after, prefix, start_of, suffix,
    upto_first,
};
pub use splitters::flow::Flowing;
pub use splitters::followed::{FollowedBy, followed_by};
pub use splitters::having::{Having, having, having_only};
pub use splitters::logic::{Negated, Zipped, between};
pub use splitters::split::{LineSplit, Satisfies, everything, line, satisfies, substring, whole_line};
pub use stage::{Consume, Generate, JoinStep, Merge, Sections, Sink, Split, Transduce, Upcoming};
pub use stages::consume::{EachChunk, Fold, collect, count, each_chunk, fold, head};
pub use stages::cycle::{Cycle, cycle};
pub use stages::decimal::decimal;
pub use stages::fallible::{TryFold, TryLift121, try_fold, try_lift121};
pub use stages::finally::{Finally, finally};
pub use stages::lift::{
    Filter, Lift121, LiftStateful, LiftStateless, Rewrite, filter, lift_stateful, lift_stateless, lift121,
    rewrite,
};
pub use stages::named::NamedStage;
pub use stages::plain::{
    Suppress, Unchanged, append, concatenate, id, prepend, skip, suppress, take, trim_end,
};
pub use stages::select_numbered::{SelectNumbered, select_numbered};
