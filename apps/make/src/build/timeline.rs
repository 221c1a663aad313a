//! `--timeline`: the times of all commands, as a trace that Chrome and Perfetto show.
//!
//! `Runner::run` calls `begin` and `end`, and `Runner::outcome` calls `write`. The format is the
//! Trace Event Format, with one complete event (`"ph":"X"`) for each command. The lane of a command
//! is its `tid`: two commands that run at the same time have different lanes.

use selvedge_json::put_string;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// One command.
#[derive(Clone, Debug)]
struct Lap {
    name: Vec<u8>,
    lane: usize,
    start: Duration,
    end: Duration,
}

/// The commands that have ended, and the lanes of the running commands.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    spans: Vec<Lap>,
    taken: Vec<bool>,
}

impl Timeline {
    /// A command begins. Returns its lane: the first one in which no command runs.
    pub(super) fn begin(&mut self) -> usize {
        let lane = self.taken.iter().position(|taken| !taken).unwrap_or(self.taken.len());
        self.taken.resize(self.taken.len().max(lane + 1), false);
        self.taken[lane] = true;
        lane
    }

    /// The command in this lane has ended.
    pub(super) fn end(&mut self, lane: usize, name: Vec<u8>, start: Duration, end: Duration) {
        self.taken[lane] = false;
        self.spans.push(Lap { name, lane, start, end });
    }

    /// Writes the trace.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = "{\"traceEvents\":[\n".to_string();
        for (index, span) in self.spans.iter().enumerate() {
            // Chrome reads no file with bytes that are no UTF-8.
            let mut name = String::new();
            put_string(&String::from_utf8_lossy(&span.name), &mut name);
            let (start, length) = (span.start.as_micros(), (span.end - span.start).as_micros());
            let comma = if index + 1 < self.spans.len() { "," } else { "" };
            let lane = span.lane;
            writeln!(
                text,
                "{{\"name\":{name},\"cat\":\"command\",\"ph\":\"X\",\"ts\":{start},\"dur\":{length},\"pid\":0,\"tid\":{lane}}}{comma}"
            )
            .expect("a string takes all");
        }
        text.push_str("]}\n");
        std::fs::write(path, text)
    }
}
