//! The tests of files, of what other servers get wrong, and of routes, once more: with files that
//! are read past the page cache.
#![expect(clippy::duplicate_mod, reason = "the same tests run with either cache")]
#![allow(dead_code, reason = "the helpers in these files are used in one of the two")]

use crate::common::Server;
use std::path::Path;

#[path = "configured.rs"]
mod configured;
#[path = "files.rs"]
mod files;
#[path = "probes.rs"]
mod probes;

const DIRECT: &str = "4194304";

fn serve(directory: &Path, options: &[&str]) -> Server {
    crate::common::serve(directory, &[&["--cache-direct", DIRECT], options].concat())
}
