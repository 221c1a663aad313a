//! The figures about connections: a server that sends back every message, and one of hyper's that
//! answers each request with one line.
//!
//! With one worker the server has CPU 0 and the client, which polls without sleeping, CPU 1. With
//! two workers the server has both and the client must share one of them; it sleeps while nothing
//! comes. A run counts only if every message had the right answer, and every connection was
//! answered.
//!
//! `main.rs` calls the figures. The servers are in `child/echo.rs` and `child/hello.rs`, and the
//! client is in `child/load.rs`.

use crate::contender::{inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{
    Better, Contender, MeasureError, Metric, Report, Reports, in_turn, report, rows, values,
};
use crate::peers::{C_ECHO, GO_CORES};
use crate::pinned::{self, CLIENT_CPU};
use crate::serving::Serving;
use crate::table::Table;
use std::time::Duration;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure { name: "server-echo", about: "TCP echo, 1 to 9000 connections", measure: echo },
    Figure { name: "server-http", about: "hello world of hyper, on ours and on tokio", measure: http },
];

const METRICS: [(&str, Metric); 4] = [
    ("messages", Metric { key: "rate", unit: "messages/s", better: Better::Higher }),
    ("CPU of the server", Metric { key: "cpu", unit: "us CPU/message", better: Better::Lower }),
    ("median latency", Metric { key: "p50", unit: "us", better: Better::Lower }),
    ("99th percentile", Metric { key: "p99", unit: "us", better: Better::Lower }),
];

const CONNECTIONS: [u64; 4] = [1, 64, 1000, 9000];

/// `server-echo`.
pub(crate) fn echo(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    // Half the time of a run against a web server, and no more than three rounds: there are 36 runs
    // in each.
    let effort = effort.rounds_at_most(3);
    let millis = if effort.is_small() { 50 } else { effort.seconds * 400 };
    let server = |system, program, workers: usize, kind: u64| inner(system, program, &[kind]).on(workers);
    let mut all = Vec::new();
    for workers in [1, 2] {
        let n = workers as u64;
        let tokio = if workers == 1 { "tokio, current thread" } else { "tokio, multi-thread" };
        let mut entrants = vec![
            server("selvedge work stealing", "echo", workers, n),
            server(tokio, "tokio-echo", workers, if workers == 1 { 0 } else { n }),
            outer_on(workers, GO_CORES, "Go", "echo", &[]),
            server("selvedge per core", "echo-per-core", workers, n),
        ];
        if workers == 1 {
            entrants.push(outer_on(1, C_ECHO, "limit", "limit", &[]));
        }
        let points = if effort.is_small() { &CONNECTIONS[..2] } else { &CONNECTIONS[..] };
        for &connections in points {
            let load = [connections, millis, u64::from(workers == 1)];
            let name = format!("server-echo: {connections} connections");
            let samples: Vec<Reports> =
                in_turn(&name, &entrants, effort, |entrant| run(entrant, "echo-load", load))?;
            for (name, metric) in METRICS {
                let word = |n, one| if n == 1 { one } else { "s" };
                let case = format!(
                    "{connections} connection{}, {workers} worker{}: {name}",
                    word(connections, ""),
                    word(n, "")
                );
                all.extend(rows(&case, &entrants, metric, &values(&samples, metric.key)));
            }
        }
    }
    let mut table = table(
        "server-echo",
        "TCP echo of 64-byte messages over loopback, one in flight per connection, the client in a process of its own",
        machine,
        all,
    );
    table.notes.push(
        "1 worker: server on CPU 0, client polling on CPU 1; 2 workers: the server has both, the client sleeps while nothing comes"
            .into(),
    );
    table
        .notes
        .push("limit: C, one epoll set, a recv and a send for each message, no threads, nothing kept".into());
    Ok(table)
}

/// `server-http`.
pub(crate) fn http(effort: Effort) -> Result<Table, String> {
    const WORKERS: usize = 2;
    let machine = Machine::now();
    let millis = if effort.is_small() { 50 } else { effort.seconds * 400 };
    let server = |system, program| inner(system, program, &[WORKERS as u64]).on(WORKERS);
    let entrants = [server("selvedge", "hello"), server("tokio, multi-thread", "tokio-hello")];
    let mut all = Vec::new();
    for connections in [64, 1000] {
        let name = format!("server-http: {connections} connections");
        let load = [connections, millis, 0];
        let samples: Vec<Reports> =
            in_turn(&name, &entrants, effort, |entrant| run(entrant, "hello-load", load))?;
        for (name, metric) in METRICS {
            let (name, metric) = match name {
                "messages" => ("requests", Metric { unit: "requests/s", ..metric }),
                "CPU of the server" => (name, Metric { unit: "us CPU/request", ..metric }),
                _ => (name, metric),
            };
            let case = format!("{connections} connections: {name}");
            all.extend(rows(&case, &entrants, metric, &values(&samples, metric.key)));
        }
    }
    let mut table = table(
        "server-http",
        "hello world of hyper over keep-alive connections, one request in flight in each, two workers",
        machine,
        all,
    );
    table.notes.push(
        "selvedge: hyper by `selvedge-compat` on work stealing; tokio: hyper by `hyper-util`; the server has both CPUs, the client sleeps while nothing comes"
            .into(),
    );
    Ok(table)
}

/// One run of the client `load` against a server that is started for it.
fn run(
    entrant: &Contender,
    load: &str,
    [connections, millis, busy]: [u64; 3],
) -> Result<Report, MeasureError> {
    let server = Serving::start(entrant)?;
    let numbers = [server.port, server.id(), connections, millis, busy];
    let client = inner("client", load, &numbers).command.map_err(MeasureError::Failed)?;
    let limit = Duration::from_millis(millis) + Duration::from_secs(40);
    let report = report(pinned::command(CLIENT_CPU, &client), limit)?;
    match report.get("unanswered") {
        Some(0.0) => {}
        other => return Err(MeasureError::Wrong(format!("connections without an answer: {other:?}"))),
    }
    match report.get("wrong") {
        Some(0.0) => {}
        other => return Err(MeasureError::Wrong(format!("messages with a wrong answer: {other:?}"))),
    }
    match METRICS.iter().find(|(_, metric)| !report.contains_key(metric.key)) {
        Some((name, _)) => Err(MeasureError::Wrong(format!("the client said nothing about {name}"))),
        None => Ok(report),
    }
}
