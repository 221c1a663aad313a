//! `selvedge-make`: a build runner that reads ninja's `build.ninja` and its logs, and runs each
//! command in a thread of its own, as the paper's `make` does.
//!
//! The binary in `main.rs` parses the command line and calls [`run`]. The other modules are public
//! because the tests in `tests/suite` and the fuzz targets call them one by one.
//!
//! | module | what is in it |
//! |---|---|
//! | [`manifest`], [`graph`], [`evaluate`], [`canonical`], [`interner`] | the language, and the graph that it describes |
//! | [`depfile`], [`dyndep`] | the files in which compilers name headers, and in which commands name inputs of edges |
//! | `version` | the versions that manifests, dyndep files and other programs name |
//! | [`log`], [`disk`] | the records of earlier builds, and the times of the files |
//! | [`project`] | which edges must run, and why |
//! | [`build`], [`shell`] | how these edges run |
//! | [`options`], [`run`], [`say`] | the command line, the program, and its lines for the user |
//! | `load`, `targets`, `settings`, `stats` | what a call reads, what it builds, how, and how long the parts took |
//! | [`MakeError`], [`ToolError`] | why a call ends without a build; each module below has its own error |
//!
//! A build passes through the modules in this order: [`manifest::parse`] makes a [`graph::Graph`];
//! [`run`] joins the graph and the logs to a [`project::Project`]; the project marks the files that
//! are dirty; [`build::build`] runs their edges, and appends to the logs after each command.

// # For readers of the source
//
// Read the head of `build/runner.rs` first. A manifest goes from bytes to a graph without any input
// or output. Paths and edges lie in vectors, so that 100,000 edges are read quickly. `project`
// finds the dirty files, with one look at many files (`disk.rs`) and the logs. Then
// `build/runner.rs` starts a thread for each edge that is not up to date. There is no unsafe code.
//
// Invariants:
// - An edge that is up to date has no thread, and a build without a dirty edge starts no scheduler.
// - At any moment, the log's record of an output that a command is making does not fit that output.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod app;
pub mod build;
pub mod canonical;
pub mod depfile;
pub mod disk;
pub mod dyndep;
mod error;
pub mod evaluate;
pub mod graph;
pub mod interner;
mod load;
pub mod log;
pub mod manifest;
pub mod options;
pub mod project;
pub mod say;
mod settings;
pub mod shell;
mod spelling;
mod stats;
mod targets;
mod tools;
mod version;

pub use app::run;
pub use error::MakeError;
pub use tools::ToolError;
