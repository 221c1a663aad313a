//! Event loops, and what threads see of them: sockets, files, time, signals.
pub mod pool;
pub mod wheel;
pub use pool::blocking;
