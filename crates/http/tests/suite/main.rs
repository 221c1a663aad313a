//! Whole conversations with a site without sockets.

mod site;

mod blocks;
mod every_split;
mod handlers;
mod probes;
