//! The load generator's parts: the plan of a run, the clients, what the replies say, and the
//! report. `main.rs` beside it calls [`run`]. Nothing here is part of `selvedge-httpd`.

mod client;
mod histogram;
mod plan;
mod reply;
mod report;
mod sleepless;

pub(crate) use client::run;
pub(crate) use plan::{HELP, NoPlan, Plan};
