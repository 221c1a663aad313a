//! The figure about idle connections: the memory of a server with thousands of kept connections,
//! each of which has had one answer.

use super::server::{Log, Running, SetUp, start_as};
use super::site::{SMALL, Site};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, NOTICED, rows};
use crate::peers::is_missing;
use crate::pinned::BOTH_CPUS;
use crate::table::Table;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-idle", about: "memory of 15,000 idle connections", measure: idle }];

const BYTES: Metric = Metric { key: "bytes", unit: "bytes/connection", better: Better::Lower };

/// The connections.
const CONNECTIONS: usize = 15_000;

/// Writes the configuration of a server, and returns the command that starts it.
type Configure = fn(&SetUp) -> Result<Vec<String>, String>;

/// The servers, and whether each is ours.
const ENTRANTS: [(&str, bool, Configure); 3] = [
    ("selvedge-httpd", true, selvedge),
    ("nginx tuned", false, nginx_tuned),
    ("h2o", false, |set_up| set_up.h2o_with(1)),
];

fn selvedge(set_up: &SetUp) -> Result<Vec<String>, String> {
    set_up.configured(&format!("workers = 1\n[[route]]\ndirectory = '{}'\n", set_up.root))
}

fn nginx_tuned(set_up: &SetUp) -> Result<Vec<String>, String> {
    let http = format!(
        "  sendfile on; tcp_nopush on; access_log off;\n  open_file_cache max=1000 inactive=60s;\n\
         \x20 server {{ listen 127.0.0.1:{}; root {}; }}\n",
        set_up.port, set_up.root
    );
    set_up.nginx_with(1, &http)
}

/// `web-idle`.
pub(crate) fn idle(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let connections = if effort.is_small() { 100 } else { CONNECTIONS };
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|errno| format!("more descriptors: {errno}"))?;
    let site = Site::create(u64::from(faults))?;
    let mut samples: Vec<Result<Vec<f64>, String>> = vec![Ok(Vec::new()); ENTRANTS.len()];
    let mut contenders = Vec::new();
    for (index, (system, ours, configure)) in ENTRANTS.iter().enumerate() {
        let mut command = Err(String::new());
        for round in 1..=effort.rounds {
            if faults && !ours {
                samples[index] = Err("not run for its faults".to_owned());
                break;
            }
            eprintln!("web-idle: round {round}: {system}");
            // Each round has a server of its own, because memory that was used once may be kept.
            let started = start_as(&format!("{system} {round}"), Log::Off, &site, &BOTH_CPUS[..1], configure);
            let server = match started {
                Err(why) if !ours && is_missing(&why) => {
                    (samples[index], command) = (Err(why.clone()), Err(why));
                    break;
                }
                started => started.map_err(|why| format!("{system}: {why}"))?,
            };
            command = Ok(server.command().to_vec());
            match each(&server, connections) {
                Ok(_) if faults => return Err(format!("{system}: a fault was not noticed")),
                Err(_) if faults => samples[index] = Err(NOTICED.to_owned()),
                Ok(bytes) => samples[index].as_mut().expect("it is not missing").push(bytes),
                Err(why) => return Err(format!("{system}: {why}")),
            }
        }
        contenders.push(Contender {
            system: (*system).to_owned(),
            ours: *ours,
            command,
            environment: vec![],
            cpus: &BOTH_CPUS[..1],
            input: None,
            may_fail: false,
            answers: vec![],
        });
    }
    Ok(Table {
        name: "web-idle",
        title: format!("resident memory of a server for each of {connections} idle keep-alive connections"),
        machine,
        rows: rows("an idle connection", &contenders, BYTES, &samples),
        notes: vec![
            "each connection has had one reply of 612 bytes; the kernel's memory is not counted".to_owned(),
        ],
    })
}

/// The resident bytes of each of some connections.
fn each(server: &Running, connections: usize) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("a connection: {error}");
    let open = || -> Result<TcpStream, String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
        let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", SMALL.path);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut reply = [0; 4096];
        let mut len = 0;
        loop {
            match stream.read(&mut reply[len..]).map_err(failed)? {
                0 => return Err("a connection was closed".to_owned()),
                read => len += read,
            }
            let head = reply[..len].windows(4).position(|window| window == b"\r\n\r\n");
            match head.map(|head| len - head - 4) {
                Some(content) if content == SMALL.bytes => return Ok(stream),
                Some(content) if content > SMALL.bytes => return Err("a wrong reply".to_owned()),
                _ => {}
            }
        }
    };
    // What the first connections cost once is not counted.
    let first: Vec<TcpStream> = (0..64).map(|_| open()).collect::<Result<_, _>>()?;
    let before = server.resident_bytes()?;
    let all: Vec<TcpStream> = (0..connections).map(|_| open()).collect::<Result<_, _>>()?;
    let after = server.resident_bytes()?;
    drop((first, all));
    Ok(after.saturating_sub(before) as f64 / connections as f64)
}
