//! What a server counts: [`Metrics`], for Prometheus and for the status page.
//!
//! Each worker has a [`WorkerMetrics`] that it alone writes, so counting is a load and a store.
//! `routed.rs` counts requests, `site.rs` connections, `connection/exchange.rs` what they wait for,
//! and `files.rs` what is cached. A page is made of the sums over all workers. A program
//! [adds](Metrics::also) what it knows itself. A server without routes counts nothing.

mod own;
mod prometheus;

pub use self::own::OwnMetric;
use self::prometheus::{LatencySnapshot, MetricsSnapshot};
use crate::block_cache::{BlockCache, BlockCounts};
use crate::lost_lines::LossesOfLogs;
use crate::routing::Routing;
use selvedge_core::Time;
use selvedge_site::listing::{STYLE, escaped, size};
use std::fmt::{self, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The upper bounds of the latency histogram, in microseconds.
const BOUNDS: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

/// The counters of all workers of a process.
pub struct Metrics {
    began: Time,
    workers: Mutex<Vec<Arc<WorkerMetrics>>>,
    /// The number of configurations taken over while the server ran, and of refused ones.
    reloads: [AtomicU64; 2],
    /// Of the access log, if there is one.
    lost: Arc<LossesOfLogs>,
    /// The cache of blocks, if there is one.
    blocks: OnceLock<BlockCache>,
    /// What the program tells besides.
    also: OnceLock<Box<Gather>>,
}

type Gather = dyn Fn() -> Vec<OwnMetric> + Send + Sync;

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    /// By the first digit of the status.
    requests: [AtomicU64; 6],
    bytes: AtomicU64,
    /// By bound; the last is for those beyond all bounds.
    latency: [AtomicU64; BOUNDS.len() + 1],
    latency_nanos: AtomicU64,
    connections: AtomicU64,
    accepted: AtomicU64,
    pub(crate) refused: Refusals,
    pub(crate) cached: CacheCounters,
    /// The connections that wait, by [`WaitKind`].
    waiting: [AtomicU64; WAITS.len()],
}

/// What the caches of files hold, and how often they could answer.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub(crate) hits: AtomicU64,
    /// Look-ups in a directory.
    pub(crate) misses: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Files that were compressed.
    pub(crate) compressed: AtomicU64,
    /// Replies from a file that had been compressed before.
    pub(crate) compressed_hits: AtomicU64,
}

/// What a connection waits for that does not wait for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitKind {
    Message,
    Handler,
    Transfer,
}

/// The kinds of [`WaitKind`] in their order, each with its label and in words.
const WAITS: [(&str, &str); 3] = [
    ("message", "the rest of a request"),
    ("handler", "a handler"),
    ("transfer", "the client or the disk, within a reply"),
];

/// The counters of a worker for its connections. They hold it by a count that one OS thread alone
/// changes.
pub(crate) struct WaitCounters(pub(crate) Arc<WorkerMetrics>);

/// A connection that counts as waiting until this is dropped.
pub(crate) struct WaitCount {
    counters: Rc<WaitCounters>,
    kind: WaitKind,
}

impl WaitCount {
    pub(crate) fn new(counters: &Rc<WaitCounters>, kind: WaitKind) -> WaitCount {
        add(&counters.0.waiting[kind as usize], 1);
        WaitCount { counters: counters.clone(), kind }
    }
}

impl Drop for WaitCount {
    fn drop(&mut self) {
        add(&self.counters.0.waiting[self.kind as usize], 1u64.wrapping_neg());
    }
}

/// Requests and connections that were refused by a rule.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) rate: AtomicU64,
    pub(crate) access: AtomicU64,
    pub(crate) password: AtomicU64,
    pub(crate) connections: AtomicU64,
}

/// Adds to a counter that only one OS thread writes.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl WorkerMetrics {
    /// Counts a reply.
    pub(crate) fn count(&self, status: u16, bytes: u64, took: Duration) {
        add(&self.requests[usize::from(status / 100).min(5)], 1);
        add(&self.bytes, bytes);
        let nanos = took.as_nanos() as u64;
        let at = BOUNDS.iter().position(|&bound| nanos <= bound * 1000).unwrap_or(BOUNDS.len());
        add(&self.latency[at], 1);
        add(&self.latency_nanos, nanos);
    }

    pub(crate) fn opened(&self) {
        add(&self.accepted, 1);
        add(&self.connections, 1);
    }

    pub(crate) fn closed(&self) {
        add(&self.connections, 1u64.wrapping_neg());
    }
}

/// The sums over all workers.
#[derive(Default)]
struct CounterSums {
    requests: [u64; 6],
    bytes: u64,
    latency: [u64; BOUNDS.len() + 1],
    latency_nanos: u64,
    connections: u64,
    accepted: u64,
    refused: [u64; 4],
    /// Hits, misses, files, bytes, compressed, compressed before.
    cached: [u64; 6],
    waiting: [u64; WAITS.len()],
    workers: usize,
}

/// The reasons of [`Refusals`], in their order.
const REASONS: [&str; 4] = ["rate", "access", "password", "connections"];

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Arc<Metrics> {
        Arc::new(Metrics {
            began: Time::now(),
            workers: Mutex::default(),
            reloads: Default::default(),
            lost: Arc::default(),
            blocks: OnceLock::new(),
            also: OnceLock::new(),
        })
    }

    /// Tells what `gather` gives too, in all forms. Only the first call counts. `gather` must not
    /// block, because a worker calls it.
    pub fn also(&self, gather: impl Fn() -> Vec<OwnMetric> + Send + Sync + 'static) {
        let _ = self.also.set(Box::new(gather));
    }

    fn own(&self) -> Vec<OwnMetric> {
        self.also.get().map_or_else(Vec::new, |gather| gather())
    }

    /// Where the losses of logs are told.
    pub(crate) fn losses(&self) -> Arc<LossesOfLogs> {
        self.lost.clone()
    }

    /// Tells the counts of this cache too. All workers have the same one.
    pub(crate) fn tell_blocks(&self, blocks: &BlockCache) {
        self.blocks.get_or_init(|| blocks.clone());
    }

    pub(crate) fn worker(&self) -> Arc<WorkerMetrics> {
        let worker = Arc::new(WorkerMetrics::default());
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker.clone());
        worker
    }

    /// Counts a configuration that was taken over, or refused.
    pub fn reloaded(&self, is_taken: bool) {
        self.reloads[usize::from(!is_taken)].fetch_add(1, Relaxed);
    }

    fn sums(&self) -> CounterSums {
        let mut sums = CounterSums::default();
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.iter() {
            let add_all = |sums: &mut [u64], counters: &[AtomicU64]| {
                sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter.load(Relaxed));
            };
            add_all(&mut sums.requests, &worker.requests);
            add_all(&mut sums.latency, &worker.latency);
            sums.bytes += worker.bytes.load(Relaxed);
            sums.latency_nanos += worker.latency_nanos.load(Relaxed);
            sums.connections += worker.connections.load(Relaxed);
            sums.accepted += worker.accepted.load(Relaxed);
            let Refusals { rate, access, password, connections } = &worker.refused;
            let refused = [rate, access, password, connections].map(|counter| counter.load(Relaxed));
            sums.refused.iter_mut().zip(refused).for_each(|(sum, n)| *sum += n);
            let CacheCounters { hits, misses, files, bytes, compressed, compressed_hits } = &worker.cached;
            let cached = [hits, misses, files, bytes, compressed, compressed_hits];
            let cached = cached.map(|counter| counter.load(Relaxed));
            sums.cached.iter_mut().zip(cached).for_each(|(sum, n)| *sum += n);
            add_all(&mut sums.waiting, &worker.waiting);
        }
        sums.workers = workers.len();
        sums
    }

    /// The counters in the text format of Prometheus, version 0.0.4.
    pub fn prometheus(&self) -> String {
        let sums = self.sums();
        let (counters, latency, own) = (self.families(&sums), sums.latency(), self.own());
        prometheus::text(MetricsSnapshot { counters, latency, own })
    }

    /// All counters but the histogram.
    fn families(&self, sums: &CounterSums) -> Vec<OwnMetric> {
        let family = |name, samples, help| OwnMetric { name, samples, help };
        let uptime = Time::now().since(self.began).as_secs();
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(sums.requests.into_iter().skip(1));
        let refused = REASONS.into_iter().zip(sums.refused);
        let reloads = self.reloads.iter().map(|count| count.load(Relaxed));
        let reloads = ["taken", "refused"].into_iter().zip(reloads);
        let [hits, misses, files, bytes, compressed, compressed_hits] = sums.cached;
        let mut families = vec![
            family("uptime_seconds", one(uptime), "Seconds since the server began."),
            family(
                "requests_total",
                by("class", classes),
                "Requests that were answered, by class of status.",
            ),
            family("response_bytes_total", one(sums.bytes), "Bytes of content of all replies."),
            family("connections", one(sums.connections), "Open connections."),
            family("connections_total", one(sums.accepted), "Connections that were accepted."),
            family("connections_waiting", by("for", sums.waits()), "Open connections by what they wait for."),
            family("file_cache_hits_total", one(hits), "Replies from a file that was in a worker's cache."),
            family("file_cache_misses_total", one(misses), "Files that a worker looked up in a directory."),
            family("file_cache_files", one(files), "Files in the caches of all workers."),
            family("file_cache_bytes", one(bytes), "Bytes of memory of the files in the caches."),
            family("compressions_total", one(compressed), "Files that were compressed for a client."),
            family(
                "compressed_hits_total",
                one(compressed_hits),
                "Replies from a file that had been compressed before.",
            ),
            family("refused_total", by("reason", refused), "Requests and connections that a rule refused."),
            family("reloads_total", by("result", reloads), "Configurations read while the server ran."),
            family(
                "log_lines_lost_total",
                by("reason", self.lost.counts()),
                "Lines of the access log that are not in it.",
            ),
        ];
        if let Some(blocks) = self.blocks.get() {
            let BlockCounts { hits, misses, reads, evicted, bytes } = blocks.counts();
            families.extend([
                family(
                    "block_cache_hits_total",
                    one(hits),
                    "Blocks that were in memory when a reply asked for them.",
                ),
                family("block_cache_misses_total", one(misses), "Blocks that a reply had to wait for."),
                family("block_cache_reads_total", one(reads), "Blocks that were read from the disk."),
                family("block_cache_evicted_total", one(evicted), "Blocks that left for others."),
                family("block_cache_bytes", one(bytes), "Bytes of the blocks in memory."),
            ]);
        }
        families
    }

    /// What became of the cache of blocks, in words, if there is one.
    fn told_blocks(&self) -> Option<String> {
        let BlockCounts { hits, misses, reads, evicted, bytes } = self.blocks.get()?.counts();
        let bytes = size(bytes);
        Some(format!("{hits} hits, {misses} misses, {reads} read, {evicted} evicted, {bytes}B in memory"))
    }

    /// The state of the server as lines of text.
    pub fn text(&self) -> String {
        let sums = self.sums();
        let requests: u64 = sums.requests.iter().sum();
        let mut text = String::new();
        for (name, value) in [
            ("running for", span(Time::now().since(self.began).as_secs())),
            ("workers", sums.workers.to_string()),
            ("connections", format!("{} open, {} accepted", sums.connections, sums.accepted)),
            ("requests", requests.to_string()),
            ("content", format!("{}B", size(sums.bytes))),
            ("refused", sums.refused.iter().sum::<u64>().to_string()),
            ("lost lines", self.lost.counts().iter().map(|(_, lines)| lines).sum::<u64>().to_string()),
        ] {
            let _ = writeln!(text, "{name:<12} {value}");
        }
        if let Some(blocks) = self.told_blocks() {
            let _ = writeln!(text, "{:<12} {blocks}", "blocks");
        }
        let _ = writeln!(text, "{:<12} {}", "files", sums.told_cache());
        for (kind, count) in sums.waits() {
            let _ = writeln!(text, "{:<12} {count} for {kind}", "waiting");
        }
        self.own().iter().for_each(|metric| metric.put_lines(&mut text));
        text
    }

    /// The state of the server as a page, with the routes if there are some. It loads itself again
    /// every five seconds.
    pub fn page(&self, routing: Option<&Routing>) -> String {
        let sums = self.sums();
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta http-equiv=\"refresh\" content=\"5\">\n<title>Status</title>\n<style>{STYLE}\
             .bar{{display:block;height:.7rem;min-width:1px;background:var(--link);border-radius:2px}}\
             </style>\n<h1>Server status</h1>\n<table>\n"
        );
        let mut row = |name: &str, value: String| {
            let _ = writeln!(page, "<tr><td>{name}<td class=\"n\">{value}");
        };
        row("Running for", span(Time::now().since(self.began).as_secs()));
        row("Workers", sums.workers.to_string());
        row("Open connections", sums.connections.to_string());
        row("Connections since the start", sums.accepted.to_string());
        row("Requests", sums.requests.iter().sum::<u64>().to_string());
        row("Bytes of content", format!("{}B", size(sums.bytes)));
        row(
            "Configurations taken, refused",
            format!("{}, {}", self.reloads[0].load(Relaxed), self.reloads[1].load(Relaxed)),
        );
        row(
            "Lost lines of the access log",
            self.lost.counts().iter().map(|(_, lines)| lines).sum::<u64>().to_string(),
        );
        row("Files in the caches", sums.told_cache());
        if let Some(blocks) = self.told_blocks() {
            row("Blocks of files", blocks);
        }
        page.push_str("</table>\n<h2>Replies by status</h2>\n<table>\n");
        bars(&mut page, (1..6).map(|class| (format!("{class}xx"), sums.requests[class])));
        page.push_str("</table>\n<h2>Time to the head of the reply</h2>\n<table>\n");
        let names = BOUNDS.iter().map(|&bound| format!("up to {}", micros(bound)));
        let names = names.chain([format!("over {}", micros(BOUNDS[BOUNDS.len() - 1]))]);
        bars(&mut page, names.zip(sums.latency));
        page.push_str("</table>\n<h2>Connections that wait for</h2>\n<table>\n");
        let names = ["a request"].into_iter().chain(WAITS.iter().map(|(_, words)| *words));
        let counts = sums.waits().map(|(_, count)| count);
        bars(&mut page, names.map(str::to_owned).zip(counts));
        page.push_str("</table>\n<h2>Refused by a rule</h2>\n<table>\n");
        bars(&mut page, REASONS.iter().map(|reason| (*reason).to_owned()).zip(sums.refused));
        page.push_str("</table>\n");
        self.own().iter().for_each(|metric| metric.put_table(&mut page));
        if let Some(routing) = routing {
            put_routes(routing, &mut page);
        }
        page.push_str("</html>\n");
        page
    }
}

/// Appends a table of the routes.
fn put_routes(routing: &Routing, page: &mut String) {
    page.push_str("<h2>Routes</h2>\n<table>\n<thead><tr><th>Host<th>Path<th>Action\n<tbody>\n");
    for (host, route) in routing.table.routes() {
        let names = if host.names.is_empty() { "any".to_owned() } else { host.names.join(" ") };
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}",
            escaped(&names),
            escaped(&route.pattern.to_string()),
            escaped(&route.action.to_string())
        );
    }
    page.push_str("</table>\n");
}

/// Values, each with its labels.
type Samples = Vec<(Vec<(&'static str, String)>, u64)>;

/// A value without labels.
fn one(value: u64) -> Samples {
    vec![(Vec::new(), value)]
}

/// Values with one label each.
fn by(label: &'static str, values: impl IntoIterator<Item = (&'static str, u64)>) -> Samples {
    values.into_iter().map(|(name, value)| (vec![(label, name.to_owned())], value)).collect()
}

impl CounterSums {
    /// The histogram.
    fn latency(&self) -> LatencySnapshot {
        LatencySnapshot {
            buckets: BOUNDS.iter().map(|&bound| bound as f64 / 1e6).zip(self.latency).collect(),
            requests: self.latency.iter().sum(),
            seconds: self.latency_nanos as f64 / 1e9,
        }
    }

    /// The connections by what they wait for. Numbers that are read while they change may not fit.
    fn waits(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let others: u64 = self.waiting.iter().sum();
        let kinds = WAITS.iter().map(|(kind, _)| *kind).zip(self.waiting);
        [("request", self.connections.saturating_sub(others))].into_iter().chain(kinds)
    }

    /// What became of the caches of files, in words.
    fn told_cache(&self) -> String {
        let [hits, misses, files, bytes, ..] = self.cached;
        format!("{files} of {}B, {hits} hits, {misses} misses", size(bytes))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("began", &self.began)
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// Rows with a bar each, in proportion to the largest.
fn bars(page: &mut String, rows: impl Iterator<Item = (String, u64)>) {
    let rows: Vec<(String, u64)> = rows.collect();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (name, count) in rows {
        let _ = write!(page, "<tr><td>{name}<td style=\"width:50%\">");
        if count > 0 {
            let width = (count as f64 / most as f64 * 100.0).round();
            let _ = write!(page, "<span class=\"bar\" style=\"width:{width}%\"></span>");
        }
        let _ = writeln!(page, "<td class=\"n\">{count}");
    }
}

fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} \u{b5}s"),
        1_000..1_000_000 => format!("{} ms", micros as f64 / 1e3),
        _ => format!("{} s", micros / 1_000_000),
    }
}

fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {} s", seconds % 60),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_workers() {
        let metrics = Metrics::new();
        let (a, b) = (metrics.worker(), metrics.worker());
        a.opened();
        a.opened();
        a.closed();
        b.opened();
        a.count(200, 100, Duration::from_micros(20));
        b.count(404, 1, Duration::from_secs(100));
        metrics.reloaded(false);
        let b = Rc::new(WaitCounters(b));
        let waits = WaitCount::new(&b, WaitKind::Handler);
        drop(WaitCount::new(&b, WaitKind::Transfer));
        let text = metrics.prometheus();
        for line in [
            "selvedge_requests_total{class=\"2xx\"} 1",
            "selvedge_requests_total{class=\"4xx\"} 1",
            "selvedge_response_bytes_total 101",
            "selvedge_request_duration_seconds_bucket{le=\"1e-05\"} 0",
            "selvedge_request_duration_seconds_bucket{le=\"2.5e-05\"} 1",
            "selvedge_request_duration_seconds_bucket{le=\"10\"} 1",
            "selvedge_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "selvedge_request_duration_seconds_count 2",
            "selvedge_connections 2",
            "selvedge_connections_total 3",
            "selvedge_reloads_total{result=\"refused\"} 1",
            "selvedge_log_lines_lost_total{reason=\"failed\"} 0",
            "selvedge_connections_waiting{for=\"request\"} 1",
            "selvedge_connections_waiting{for=\"handler\"} 1",
            "selvedge_connections_waiting{for=\"transfer\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        drop(waits);
        assert!(metrics.prometheus().contains("selvedge_connections_waiting{for=\"handler\"} 0\n"));
    }
}
