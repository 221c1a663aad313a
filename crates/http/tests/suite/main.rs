//! Whole conversations with a site: without sockets, on a simulated network, and over sockets.

mod site;

mod blocks;
mod every_split;
mod handlers;
mod later_logs;
mod no_allocation;
mod probes;
mod simulated;
