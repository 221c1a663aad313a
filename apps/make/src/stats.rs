//! `Stats`: how long the parts of a build took. `app.rs` and `load.rs` measure the parts, and
//! `app.rs` prints them for `-d stats`.

use crate::project::Project;
use crate::say::say;
use std::time::{Duration, Instant};

/// How long the parts of a build took, for `-d stats`.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    parts: Vec<(&'static str, Duration)>,
}

impl Stats {
    /// Does the work, and notes its time under the name of the part.
    pub(crate) fn time<T>(&mut self, part: &'static str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.parts.push((part, began.elapsed()));
        result
    }

    /// Writes a line for each part, and the size of the graph.
    pub(crate) fn print(&self, project: &Project) {
        say(format_args!("{:<24} {:>10}", "part", "ms"));
        for (part, took) in &self.parts {
            say(format_args!("{part:<24} {:>10.3}", took.as_secs_f64() * 1000.0));
        }
        say(format_args!("nodes {}, edges {}", project.graph.nodes(), project.graph.edges.len()));
    }
}
