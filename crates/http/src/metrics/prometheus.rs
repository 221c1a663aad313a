//! The counters in the text format of Prometheus, as `prometheus-client` writes it: [`text`].
//!
//! The library counts nothing here. `metrics.rs` hands it the sums of the moment, as a
//! [`MetricsSnapshot`], whenever the text is asked for.

use super::OwnMetric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// All metrics at one moment.
#[derive(Debug)]
pub(super) struct MetricsSnapshot {
    /// Those in front of the histogram.
    pub(super) counters: Vec<OwnMetric>,
    pub(super) latency: LatencySnapshot,
    /// Those behind it.
    pub(super) own: Vec<OwnMetric>,
}

/// The histogram of the latency.
#[derive(Debug)]
pub(super) struct LatencySnapshot {
    /// Upper bounds in seconds, each with the number of requests between it and the one before.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) requests: u64,
    pub(super) seconds: f64,
}

/// The metrics as text. All names get `selvedge_` in front.
pub(super) fn text(metrics: MetricsSnapshot) -> String {
    let mut registry = Registry::with_prefix("selvedge");
    registry.register_collector(Box::new(metrics));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry).expect("a string takes all that is written to it");
    text
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.counters.iter().try_for_each(|metric| put(metric, &mut encoder))?;
        let LatencySnapshot { buckets, requests, seconds } = &self.latency;
        let help = "Time from the head of a request to the head of its reply.";
        encoder
            .encode_descriptor("request_duration_seconds", help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(*seconds, *requests, buckets, None)?;
        self.own.iter().try_for_each(|metric| put(metric, &mut encoder))
    }
}

/// Writes one metric. By the convention of Prometheus, its name says whether it is a counter.
fn put(metric: &OwnMetric, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let OwnMetric { name, help, samples } = metric;
    // The library puts the end of the name behind a counter itself.
    let (name, kind) = match name.strip_suffix("_total") {
        Some(name) => (name, MetricType::Counter),
        None => (*name, MetricType::Gauge),
    };
    let is_counter = matches!(kind, MetricType::Counter);
    let mut encoder = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in samples {
        let mut sample = encoder.encode_family(labels)?;
        match is_counter {
            true => sample.encode_counter::<NoLabelSet, _, f64>(value, None)?,
            false => sample.encode_gauge(value)?,
        }
    }
    Ok(())
}
