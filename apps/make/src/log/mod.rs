//! What earlier builds have left: which command made a file (`.ninja_log`), and which headers a
//! compiler read (`.ninja_deps`). The files are ninja's, so a tree may be built by ninja and by us
//! in turn.

pub mod build_log;
pub mod deps_log;
pub mod hash;
