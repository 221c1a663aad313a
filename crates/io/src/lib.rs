//! Event loops, and what threads see of them: sockets, files, time, signals.
pub mod wheel;
