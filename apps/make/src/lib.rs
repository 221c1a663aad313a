//! `selvedge-make`: builds what a `build.ninja` describes.
//!
//! | module | what it has |
//! |---|---|
//! | [`manifest`], [`graph`], [`evaluate`], [`canonical`], [`interner`] | the language, and the graph that it describes |
//! | [`depfile`], [`dyndep`] | what compilers say of headers, and what commands say of edges |
//! | [`log`], [`disk`] | what earlier builds have left, and what is there |
//! | [`project`] | which edges must run, and why |
//! | [`build`], [`shell`] | running them |
//! | [`options`], [`run`], [`say`] | the program |

#![forbid(unsafe_code)]

mod app;
pub mod build;
pub mod canonical;
pub mod depfile;
pub mod disk;
pub mod dyndep;
pub mod evaluate;
pub mod graph;
pub mod interner;
mod json;
pub mod log;
pub mod manifest;
pub mod options;
pub mod project;
pub mod say;
pub mod shell;
mod tools;

pub use app::run;
