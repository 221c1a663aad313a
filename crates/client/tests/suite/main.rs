//! The client in simulated worlds, against servers that a test writes byte by byte.

mod any_bytes;
mod bodies;
mod faults;
mod pool;
mod redirects;
mod server;
