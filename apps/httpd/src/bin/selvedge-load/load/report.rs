//! What a run has found: `Tally`, which the clients count in while they run (`client.rs`), and
//! `Report`, which `selvedge-load` prints, as text or as JSON.
//!
//! `figures` reads that JSON (`web/load.rs` there), so its names are an interface.

use super::histogram::Histogram;
use super::plan::Plan;
use super::reply::Completed;
use std::fmt::{self, Display};
use std::time::Duration;

/// What the clients count.
#[derive(Debug)]
pub(crate) struct Tally {
    requests: u64,
    body_bytes: u64,
    latency: Histogram,
    /// Connections opened after a client's first.
    pub(crate) reconnects: u64,
    errors: u64,
    /// The first error, of which the others are mostly repetitions.
    first_error: Option<String>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            requests: 0,
            body_bytes: 0,
            latency: Histogram::new(),
            reconnects: 0,
            errors: 0,
            first_error: None,
        }
    }
}

impl Tally {
    /// Counts replies that were completed so long after their requests were sent.
    #[inline]
    pub(crate) fn completed(&mut self, completed: Completed, latency: Duration) {
        self.requests += completed.replies;
        self.body_bytes += completed.body_bytes;
        for _ in 0..completed.replies {
            self.latency.record(latency.as_nanos() as u64);
        }
    }

    /// Counts an error.
    #[cold]
    pub(crate) fn failed(&mut self, error: &dyn Display) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Report {
    plan: Plan,
    tally: Tally,
    elapsed: Duration,
}

impl Report {
    pub(crate) fn new(plan: Plan, tally: Tally, elapsed: Duration) -> Report {
        Report { plan, tally, elapsed }
    }

    /// Whether there were replies, and none was wrong or missing.
    pub(crate) fn is_good(&self) -> bool {
        self.tally.requests > 0 && self.tally.errors == 0
    }

    /// The first thing that went wrong.
    pub(crate) fn first_error(&self) -> Option<&str> {
        self.tally.first_error.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.tally.requests
    }

    #[cfg(test)]
    pub(crate) fn body_bytes(&self) -> u64 {
        self.tally.body_bytes
    }

    #[cfg(test)]
    pub(crate) fn reconnects(&self) -> u64 {
        self.tally.reconnects
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    /// Latencies in microseconds, by name.
    fn latencies(&self) -> [(&'static str, f64); 6] {
        let latency = &self.tally.latency;
        let at = |share| latency.percentile(share) as f64 / 1e3;
        [
            ("mean", latency.mean() / 1e3),
            ("p50", at(0.5)),
            ("p90", at(0.9)),
            ("p99", at(0.99)),
            ("p999", at(0.999)),
            ("max", latency.max() as f64 / 1e3),
        ]
    }

    /// One JSON object on one line. Times are in seconds and microseconds, as the names say.
    pub(crate) fn json(&self) -> String {
        let Report { plan, tally, elapsed } = self;
        selvedge_json::text(|json| {
            json.object(|json| {
                json.string("url", &plan.url);
                json.number("connections", plan.connections);
                json.number("pipeline", plan.pipeline);
                json.number("seconds", format_args!("{:.6}", elapsed.as_secs_f64()));
                json.number("requests", tally.requests);
                json.number("requests_per_second", format_args!("{:.1}", self.per_second(tally.requests)));
                json.number("body_bytes", tally.body_bytes);
                json.number(
                    "body_bytes_per_second",
                    format_args!("{:.1}", self.per_second(tally.body_bytes)),
                );
                json.number("errors", tally.errors);
                json.number("reconnects", tally.reconnects);
                json.member("latency_us", |json| {
                    json.object(|json| {
                        for (name, micros) in self.latencies() {
                            json.number(name, format_args!("{micros:.1}"));
                        }
                    });
                });
            });
        })
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { plan, tally, elapsed } = self;
        writeln!(
            f,
            "{}: {} connections, {} in flight on each, {:.2} s",
            plan.url,
            plan.connections,
            plan.pipeline,
            elapsed.as_secs_f64()
        )?;
        writeln!(
            f,
            "  {:>12} requests     {:>12.0} per second",
            tally.requests,
            self.per_second(tally.requests)
        )?;
        let mib = f64::from(1 << 20);
        writeln!(
            f,
            "  {:>12.1} MiB bodies   {:>12.1} per second",
            tally.body_bytes as f64 / mib,
            self.per_second(tally.body_bytes) / mib
        )?;
        writeln!(f, "  {:>12} errors       {:>12} reconnects", tally.errors, tally.reconnects)?;
        f.write_str("  latency, us:")?;
        for (name, micros) in self.latencies() {
            write!(f, "  {name} {micros:.1}")?;
        }
        Ok(())
    }
}
