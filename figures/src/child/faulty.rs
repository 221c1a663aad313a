//! Whether a program must give a wrong answer: [`fault`]. `figures --faults` sets the variable
//! [`FAULT`] for a program, so that its figure's own check is checked.

use std::env;

/// The environment variable that tells a program of ours to give a wrong answer, so that a figure's
/// own check is checked.
pub(crate) const FAULT: &str = "FIGURES_FAULT";

/// 1 if this run must give a wrong answer, else 0.
pub(crate) fn fault() -> u64 {
    u64::from(env::var_os(FAULT).is_some())
}
