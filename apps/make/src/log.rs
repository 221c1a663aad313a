//! The records of earlier builds: which command made a file (`.ninja_log`), and which headers a
//! compiler read (`.ninja_deps`).
//!
//! `app.rs` loads and opens both, a `Project` owns them, and `build/records.rs` appends to them
//! after each command. The formats are ninja's, so a user may build a tree with ninja and with this
//! program in turn.

pub mod build_log;
pub mod deps_log;
pub mod hash;
