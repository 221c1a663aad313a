//! What the crate promises, on every engine.
//!
//! | File | |
//! |---|---|
//! | `programs/mod.rs` | graphs over ranks, each with its answer by a plain loop |
//! | `every_engine.rs` | runs all of them with one, two and four ranks |
//! | `own_os_threads.rs` | runs all of them with each rank on an OS thread of its own |
//! | `traffic.rs` | how many messages a graph takes |
//! | `simulated.rs` | all of them in simulated worlds, with messages that take time; some in a thousand |
//! | `faults.rs` | graphs that do not end well, and what is told of them |
//! | `pipelines.rs` | stages on other ranks |

mod every_engine;
mod faults;
mod own_os_threads;
mod pipelines;
mod programs;
mod simulated;
mod traffic;
