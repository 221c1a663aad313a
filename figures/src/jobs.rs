//! The figure about a small request of a real server: a queue of jobs behind TCP, with transactions
//! and a log on disk.
//!
//! A job is three requests (`put`, `take`, `done`) and two records of the log. Before a server is
//! measured it is killed in the middle of its work and started again, and must have every job that
//! it has acknowledged. A killed process keeps what the system has in its page cache, so this shows
//! the order of log and reply, and not that the disk has the bytes.
//!
//! The server has both CPUs, and the client shares one of them. Instructions are those of one
//! worker, because callgrind lets one OS thread run at a time.
//!
//! `main.rs` calls the figure. Servers and client are in `child/jobs/`.

use crate::callgrind;
use crate::child::jobs::{interrupted, log_file, recovered};
use crate::contender::{inner, table};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, Report, Reports, in_turn, rows, run, values};
use crate::pinned::CLIENT_CPU;
use crate::serving::Serving;
use crate::table::Table;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "job-queue", about: "jobs over TCP: transactions, and a log on disk", measure: jobs }];

const METRICS: [(&str, Metric); 2] = [
    ("jobs", Metric { key: "rate", unit: "jobs/s", better: Better::Higher }),
    ("CPU of the server", Metric { key: "cpu", unit: "us CPU/job", better: Better::Lower }),
];
const INSTRUCTIONS: Metric = Metric { key: "instructions", unit: "instructions", better: Better::Lower };

/// Connections, each with one request in flight.
const CONNECTIONS: u64 = 64;
/// Jobs of the shorter run and of the longer one under callgrind.
const LENGTHS: [u64; 2] = [1000, 4000];

/// `job-queue`.
pub(crate) fn jobs(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (kept, sync) in [("log written", 0), ("log synced", 1)] {
        let entrants = |workers: u64| {
            let tokio = if workers == 0 { "tokio, current thread" } else { "tokio, multi-thread" };
            let server = |system, program| {
                inner(system, program, &[workers, u64::from(std::process::id()), sync])
                    .on(workers.max(1) as usize)
            };
            [server("selvedge", "jobs"), server(tokio, "tokio-jobs")]
        };
        let count = match (effort.purpose, sync) {
            (Purpose::Times, 0) => 100_000,
            (Purpose::Times, _) => 20_000,
            _ => 1000,
        };
        let name = format!("job-queue: {kept}");
        let both = entrants(2);
        let samples: Vec<Reports> = in_turn(&name, &both, effort, |entrant| measured(entrant, count))?;
        for (name, metric) in METRICS {
            all.extend(rows(&format!("{kept}: {name}"), &both, metric, &values(&samples, metric.key)));
        }
        if effort.purpose == Purpose::Times {
            let one = entrants(0);
            let name = format!("job-queue: instructions, {kept}");
            let counted = Effort { rounds: 1, ..effort };
            let samples = in_turn(&name, &one, counted, instructions)?;
            all.extend(rows(&format!("{kept}: instructions of a job"), &one, INSTRUCTIONS, &samples));
        }
    }
    let mut table = table(
        "job-queue",
        "a queue of jobs over TCP: three requests and two records of a log for each job, 64 connections with one request in flight",
        machine,
        all,
    );
    table.notes.push(
        "each server commits in groups; killed and started again, it has every job that it has acknowledged"
            .into(),
    );
    table.notes.push("tokio: the state under a std Mutex; spawn_blocking writes and syncs, and the task itself writes where nothing is synced".into());
    Ok(table)
}

/// The log of a run, which its end removes.
struct LogFile(PathBuf);

impl LogFile {
    fn new() -> Result<LogFile, MeasureError> {
        let log = LogFile(log_file(u64::from(std::process::id())));
        log.remove()?;
        Ok(log)
    }

    fn remove(&self) -> Result<(), MeasureError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(MeasureError::Failed(format!("{}: {error}", self.0.display())))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("{error:?}");
        }
    }
}

/// The instructions of a job.
fn instructions(entrant: &Contender) -> Result<f64, MeasureError> {
    let words = callgrind::words().map_err(MeasureError::Absent)?;
    let of = |jobs: u64| -> Result<u64, MeasureError> {
        let _log = LogFile::new()?;
        let server = Serving::start_under(&words, entrant)?;
        loaded(&server, jobs, callgrind::LIMIT)?;
        let said = server.stop_and_read().map_err(|error| MeasureError::Failed(error.to_string()))?;
        callgrind::collected(&said)
            .ok_or_else(|| MeasureError::Failed("callgrind counted nothing".to_owned()))
    };
    let [few, many] = LENGTHS.map(of);
    Ok((many? as f64 - few? as f64) / (LENGTHS[1] - LENGTHS[0]) as f64)
}

/// One run of the client against a server that is started for it, after the server has shown that
/// it keeps what it acknowledges.
fn measured(entrant: &Contender, jobs: u64) -> Result<Report, MeasureError> {
    {
        let _log = LogFile::new()?;
        keeps(entrant)?;
    }
    let _log = LogFile::new()?;
    loaded(&Serving::start(entrant)?, jobs, Duration::from_secs(60))
}

/// Kills a server in the middle of its work, and starts it again.
fn keeps(entrant: &Contender) -> Result<(), MeasureError> {
    let server = Serving::start(entrant)?;
    let port = server.port as u16;
    let known = interrupted(port, || drop(server)).map_err(|error| MeasureError::Wrong(error.to_string()))?;
    let again = Serving::start(entrant)?;
    recovered(again.port as u16, &known).map_err(MeasureError::Wrong)
}

fn loaded(server: &Serving, jobs: u64, limit: Duration) -> Result<Report, MeasureError> {
    let numbers = [server.port, server.id(), CONNECTIONS, jobs];
    let client = Contender { cpus: &[CLIENT_CPU], ..inner("client", "jobs-load", &numbers) };
    let client = client.answers("jobs", jobs).answers("wrong", 0).answers("taken", jobs);
    run(&client, &["rate", "cpu"], limit)
}
