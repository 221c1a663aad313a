//! The web server as its clients and its users have it, in one program, because linking is what
//! takes long.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod configured;
mod controlled;
mod faults;
mod files;
mod guide;
mod php;
mod probes;
mod process;
mod several;
mod stacked;
mod upgraded;
