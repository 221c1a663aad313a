//! The metrics as a foreign reader of them has them: the parser of Prometheus's client for Python,
//! which Debian packages.

use crate::common::site;
use crate::configured::configured;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The interpreter for which Debian installs the parser.
const PYTHON: &str = "/usr/bin/python3";
const PARSER: &str = "/usr/lib/python3/dist-packages/prometheus_client/parser.py";

/// A line for each sample: the kind of its family, its name, its labels in order, its value. The
/// parser raises an error for a text that has no meaning.
const SCRIPT: &str = "import sys\n\
    from prometheus_client.parser import text_string_to_metric_families as parse\n\
    for family in parse(sys.stdin.read()):\n\
    \x20   assert family.documentation, family.name\n\
    \x20   for sample in family.samples:\n\
    \x20       labels = ','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))\n\
    \x20       print(family.type, sample.name, labels or '-', sample.value, sep='\\t')\n";

#[test]
fn a_foreign_parser_reads_the_metrics() {
    if !Path::new(PARSER).exists() {
        eprintln!("not tried: Prometheus's parser (python3-prometheus-client) is not installed");
        return;
    }
    let site = site();
    // Places of servers are labels, and one of these has to be escaped.
    let server = configured(
        site.path(),
        "cache.direct = 1_000_000\n\
         [[route]]\npath = '/metrics'\npage = 'metrics'\n\
         [[route]]\npath = '/app/'\nproxy = ['127.0.0.1:1', 'unix:/no\"n\\e']\n\
         [[route]]\npath = '/bin/'\ncgi = '.'\n[[route]]\ndirectory = '.'\n",
    );
    for path in ["/ten.txt", "/ten.txt", "/missing"] {
        server.get(path);
    }
    let metrics = server.get("/metrics");
    assert_eq!(metrics.field("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let mut parser = Command::new(PYTHON)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    parser.stdin.take().unwrap().write_all(&metrics.body).unwrap();
    let output = parser.wait_with_output().unwrap();
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(output.status.success(), "{text}");
    let output = String::from_utf8(output.stdout).unwrap();
    let samples: BTreeMap<(&str, &str), (&str, f64)> = output
        .lines()
        .map(|line| {
            let [kind, name, labels, value] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            ((name, labels), (kind, value.parse().unwrap()))
        })
        .collect();
    // The parser has seen all of it.
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(samples.len(), lines, "{output}\n{text}");
    for (name, labels, kind, value) in [
        ("selvedge_requests_total", "class=2xx", "counter", 2.0),
        ("selvedge_requests_total", "class=4xx", "counter", 1.0),
        ("selvedge_connections", "-", "gauge", 1.0),
        ("selvedge_request_duration_seconds_count", "-", "histogram", 3.0),
        ("selvedge_request_duration_seconds_bucket", "le=+Inf", "histogram", 3.0),
        ("selvedge_upstream_up", "route=/app,server=unix:/no\"n\\e", "gauge", 1.0),
        ("selvedge_programs", "route=/bin,state=running", "gauge", 0.0),
    ] {
        assert_eq!(samples.get(&(name, labels)), Some(&(kind, value)), "{name} {labels}\n{output}");
    }
    assert!(samples.contains_key(&("selvedge_block_cache_bytes", "-")), "{output}");
    let buckets = samples.iter().filter(|((name, _), _)| name.ends_with("_bucket"));
    assert!(buckets.clone().all(|(_, (_, count))| *count <= 3.0) && buckets.count() > 10);
}
