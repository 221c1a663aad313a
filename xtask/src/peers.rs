//! `cargo xtask peers`: the systems the figures are measured against.

use std::time::Duration;

use crate::command::{Invocation, Tally};
use crate::setup::{self, Need, Program};
use crate::workspace;

const fn peer(name: &'static str, package: &'static str, purpose: &'static str) -> Program {
    // A peer that cannot be had is reported as missing by the figures; it stops nothing.
    Program { name, package, purpose, need: Need::Optional }
}

const PEERS: &[Program] = &[
    peer("g++", "g++", "C with POSIX threads, C++20 coroutines"),
    peer("go", "golang-go", "goroutines and channels"),
    peer("ghc", "ghc", "Haskell threads and MVars"),
    peer("nginx", "nginx-light", "web server"),
    peer("h2o", "h2o", "web server"),
    peer("lighttpd", "lighttpd", "web server"),
];

/// Installs the peers' packages as root, then lets the figures build their programs.
pub(crate) fn run() -> Result<(), String> {
    setup::debian(PEERS)?;
    let words = ["cargo", "run", "--release", "--package", "figures", "--", "build-peers"];
    let invocation = Invocation::new(Duration::from_secs(30 * 60), &words);
    println!("peers: {}", invocation.display());
    invocation.run(&workspace::root(), &mut Tally::default())
}
