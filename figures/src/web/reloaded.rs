//! The figure about reloads: ten a second, under load, with WebSockets and downloads open. The
//! client (`child/reloading.rs`) counts what fails.

use super::server::{Log, Running, SetUp, start_as};
use super::site::{File, Site};
use crate::contender::inner;
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{MeasureError, NOTICED, report};
use crate::peers::is_missing;
use crate::pinned::{self, CLIENT_CPU, SERVER_CPU};
use crate::table::{Row, Table};
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-reload", about: "ten reloads a second under load", measure: reloaded }];

/// A file that a download takes long for.
const LARGE: File = File { path: "/large.bin", bytes: 64 << 20 };

/// What the client reports, and how the table names it.
const COUNTS: [(&str, &str, &str); 4] = [
    ("failed", "requests without an answer", "requests"),
    ("closed", "WebSockets and downloads that were closed", "connections"),
    ("requests", "requests with their answers", "requests"),
    ("reloads", "reloads", "reloads"),
];

/// `web-reload`.
pub(crate) fn reloaded(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let millis = if effort.is_small() { 1000 } else { effort.seconds * 15_000 };
    let site = Site::create(0)?;
    site.add(LARGE, 0)?;
    let peer = start_as("sockets", Log::Off, &site, &[CLIENT_CPU], |set_up| {
        inner("sockets", "web-app", &[u64::from(set_up.port)]).command
    })?;
    let upstream = peer.port();
    let ours: &dyn Fn(&SetUp) -> Result<Vec<String>, String> = &|set_up| {
        set_up.configured(&format!(
            "workers = 1\n[[route]]\npath = '/echo'\nproxy = '127.0.0.1:{upstream}'\n[[route]]\ndirectory = '{}'\n",
            set_up.root
        ))
    };
    let nginx: &dyn Fn(&SetUp) -> Result<Vec<String>, String> = &|set_up| {
        let http = format!(
            "  access_log off;\n  server {{ listen 127.0.0.1:{}; root {}; location /echo {{ \
             proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; \
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }} }}\n",
            set_up.port, set_up.root
        );
        set_up.nginx_with(1, &http)
    };
    let mut all = Vec::new();
    for (system, is_ours, configure) in [("selvedge-httpd", true, ours), ("nginx", false, nginx)] {
        eprintln!("web-reload: {system}");
        let started = match faults && !is_ours {
            true => Err("not run for its faults".to_owned()),
            false => start_as(system, Log::Off, &site, &[SERVER_CPU], configure),
        };
        match started {
            Err(why) if !is_ours && (faults || is_missing(&why)) => {
                let missing =
                    |(_, case, unit)| Row { value: Err(why.clone()), unit, ..Row::plain(case, system) };
                all.extend(COUNTS.map(missing));
            }
            Err(why) => return Err(format!("{system}: {why}")),
            Ok(server) => all.extend(counts(system, &server, upstream, millis, faults)?),
        }
    }
    all.sort_by_key(|row| COUNTS.iter().position(|(_, case, _)| *case == row.case));
    Ok(Table {
        name: "web-reload",
        title: format!(
            "ten reloads a second (SIGHUP) for {} s under load: 8 kept connections, new connections one after the other, 16 WebSockets through the server, 4 downloads of 64 MiB",
            millis / 1000
        ),
        machine,
        rows: all,
        notes: vec![
            "a request that is sent on a kept connection just when the server closes it has no answer; a client may send it again".to_owned(),
        ],
    })
}

/// What the client of a session counts at one server, as rows.
fn counts(
    system: &'static str,
    server: &Running,
    upstream: u16,
    millis: u64,
    faults: bool,
) -> Result<Vec<Row>, String> {
    // A fault is a peer to which no WebSocket can be opened.
    let behind = if faults { 9 } else { u64::from(upstream) };
    let numbers = [u64::from(server.port()), u64::from(server.id()), behind, millis];
    let client = inner("client", "web-session", &numbers);
    let words = client.command.map_err(|why| format!("the client: {why}"))?;
    let report = report(pinned::command(CLIENT_CPU, &words), Duration::from_millis(millis + 30_000));
    let report = match report {
        Err(MeasureError::Absent(why) | MeasureError::Failed(why) | MeasureError::Wrong(why)) if faults => {
            eprintln!("web-reload: noticed: {why}");
            let noticed =
                |(_, case, unit)| Row { value: Err(NOTICED.to_owned()), unit, ..Row::plain(case, system) };
            return Ok(COUNTS.map(noticed).to_vec());
        }
        Ok(_) if faults => return Err(format!("{system}: a fault was not noticed")),
        Err(MeasureError::Absent(why) | MeasureError::Failed(why) | MeasureError::Wrong(why)) => {
            return Err(format!("{system}: {why}"));
        }
        Ok(report) => report,
    };
    if report.get("reloads").is_none_or(|reloads| *reloads < millis as f64 / 200.0) {
        return Err(format!("{system}: there were too few reloads"));
    }
    let counted = COUNTS.into_iter().map(|(key, case, unit)| {
        let count = *report.get(key).ok_or_else(|| format!("the client said nothing of {key}"))?;
        let command = Some(server.command().join(" "));
        Ok(Row { value: Ok(count), unit, command, ..Row::plain(case, system) })
    });
    counted.collect()
}
