//! The web server as its clients and its users have it, in one program, because linking is what
//! takes long.

#[path = "../common/mod.rs"]
mod common;

mod blocks;
mod browser;
mod configured;
mod controlled;
mod direct;
mod faults;
mod files;
mod guide;
mod mighttpd;
mod peers;
mod php;
mod probes;
mod process;
mod prometheus;
mod readdressed;
mod real_sites;
mod several;
mod stacked;
mod upgraded;

use common::serve;

/// The bytes of the cache of blocks of the servers in these tests, as `--cache-direct` takes them.
const DIRECT: &str = "0";
