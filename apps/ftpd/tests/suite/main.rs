//! The server as clients see it: the real binary, real sockets, exact replies.

mod access;
mod commands;
mod faults;
mod guide;
mod harness;
mod over_tls;
mod process;
mod transfers;
