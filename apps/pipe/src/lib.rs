//! `selvedge-pipe`: a streaming shell of typed stages, over the pipelines of `selvedge-pipeline`
//! and `selvedge-flow`.
//!
//! The binary in `main.rs` parses the command line, and calls [`run::prepare`] and [`run::run`].
//! The other modules are public because the tests and the fuzz target `scripts` call them one by
//! one.
//!
//! | module | what is in it |
//! |---|---|
//! | [`language`] | the language: tokens, tree, parser, printer, errors with a caret |
//! | [`kinds`] | the check: what each stage takes and yields, so that a script that does not fit is refused before it runs |
//! | [`condition`], [`mod@test`], [`regex`] | conditions of the tree as splitters |
//! | [`stage`], [`stages`] | stages of the tree as transducers, which never wait |
//! | [`stream`], [`origin`], [`source`], [`join`], [`target`], [`run`] | files, processes and joins, which wait, and the run of a script |
//! | [`mod@sort`] | the order of `sort`, and what does not fit into memory |
//! | `by_line`, [`parts`] | the stages that work line by line, and run on parts of a file side by side |
//! | [`explain`], [`progress`] | the plan of `--explain`, and the bar of `--progress` |
//! | [`interactive`] | the prompt |
//! | [`options`] | the command line |
//!
//! A script passes through the modules in this order: [`language::parse()`] makes a tree of its
//! text, [`kinds::check`] refuses a tree that does not fit, [`stream::stream`] makes a pipeline of
//! each part, and [`stream::Stream::pour`] runs it. All modules after the check rely on it, and
//! panic on a tree that has not passed.

// # For readers of the source
//
// Read `stream.rs` first. `sections.rs` runs the branches that wait: a pipeline for each section.
// `parts.rs` says which stages run on parts of a large file side by side (`in_parts` of `flow`),
// and `run.rs` starts the multi-core scheduler for these pipelines alone. The stages over the text
// of lines (`stages/text.rs`) keep no line. There is no unsafe code.
//
// Invariants:
// - A script that does not fit is refused before a file is opened or a process started.
// - A stage is called once for each chunk. Between the stages of a branch too, nothing is called
//   for each item.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod by_line;
pub mod condition;
pub mod explain;
#[doc(hidden)]
pub mod fuzz;
pub mod interactive;
pub mod join;
pub mod kinds;
pub mod language;
pub mod options;
pub mod origin;
pub mod parts;
pub mod progress;
pub mod regex;
pub mod run;
pub mod sections;
pub mod sort;
pub mod source;
pub mod stage;
pub mod stages;
pub mod stream;
pub mod target;
pub mod test;
