//! The load generator's parts: the plan of a run, the clients, what the replies say, and the
//! report. The binary `selvedge-load` (`bin/selvedge-load.rs`) is the only user: it includes this
//! directory by path, so nothing here is part of `selvedge-httpd`.

mod client;
mod histogram;
mod plan;
mod reply;
mod report;
mod sleepless;

pub(crate) use client::run;
pub(crate) use plan::{HELP, NoPlan, Plan};
