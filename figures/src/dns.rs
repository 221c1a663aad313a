//! The figure about DNS servers on one CPU: answers from the cache of a resolver, and answers of an
//! authority. A client with a CPU to itself keeps some queries in flight, and compares each answer
//! with the name's address.
//!
//! The resolvers ask one and the same server for what is not in their caches; a first pass over all
//! names fills them. `main.rs` calls the figure, and the client is `child/dns_load.rs`.

use crate::child::FAULT;
use crate::child::dns_load::{address, label};
use crate::contender::{inner, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, Report, in_turn, rows, run, values};
use crate::peers::{NAME_SERVERS, built, program_of};
use crate::pinned::{BOTH_CPUS, CLIENT_CPU, SERVER_CPU};
use crate::table::Table;
use crate::web::server::{Log, Running, SetUp, start_as};
use crate::web::site::Site;
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "dns", about: "DNS servers: answers from a cache, and of an authority", measure: dns }];

const METRICS: [(&str, Metric); 2] = [
    ("query rate", Metric { key: "rate", unit: "queries/s", better: Better::Higher }),
    ("CPU of the server", Metric { key: "cpu", unit: "us CPU/query", better: Better::Lower }),
];

/// The names of the zone.
const NAMES: u64 = 1000;

/// Queries in flight.
const WINDOW: u64 = 64;

/// A server, by what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Cache,
    Authority,
}

/// `dns`.
pub(crate) fn dns(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let site = Site::create(0)?;
    let mut all = Vec::new();
    for (case, role, systems) in [
        ("cache hits", Role::Cache, &["selvedge-dns", "unbound"][..]),
        ("authoritative answers", Role::Authority, &["selvedge-dns", "knot", "nsd"]),
    ] {
        let entrants: Vec<Contender> = systems.iter().map(|system| entrant(system)).collect();
        let mut round = 0;
        let samples = in_turn(&format!("dns: {case}"), &entrants, effort, |entrant| {
            round += 1;
            measured(entrant, role, &format!("{case} {round}"), &site, effort)
        })?;
        for (name, metric) in METRICS {
            all.extend(rows(&format!("{case}: {name}"), &entrants, metric, &values(&samples, metric.key)));
        }
    }
    let title = format!(
        "queries over UDP for {NAMES} names, {WINDOW} in flight; the server on CPU 0, the client on CPU 1"
    );
    let mut table = table("dns", &title, machine, all);
    table.notes = vec![
        "each answer is compared with the name's address".to_owned(),
        "unbound: num-threads 1, module-config iterator; knot: one UDP worker; nsd: server-count 1, no rate limit; \
         selvedge-dns: one OS thread, --no-validation"
            .to_owned(),
    ];
    Ok(table)
}

/// A server of the table. Its configuration is written for each run.
fn entrant(system: &str) -> Contender {
    let program = match system {
        "selvedge-dns" => built("selvedge-dns", "selvedge-dns"),
        _ => {
            let (package, program) =
                NAME_SERVERS.iter().find(|(package, _)| *package == system).expect("a peer");
            program_of(package, program)
        }
    };
    Contender {
        ours: system == "selvedge-dns",
        command: program.map(|program| vec![program]),
        cpus: &BOTH_CPUS[..1],
        ..inner(system, "dns", &[])
    }
}

/// One run against a server that is started for it.
fn measured(
    entrant: &Contender,
    role: Role,
    name: &str,
    site: &Site,
    effort: Effort,
) -> Result<Report, MeasureError> {
    let program = entrant.command.as_ref().map_err(|why| MeasureError::Absent(why.clone()))?[0].clone();
    let ours = built("selvedge-dns", "selvedge-dns").map_err(MeasureError::Failed)?;
    let is_wrong = entrant.environment.iter().any(|(name, _)| *name == FAULT);
    let zone = site.write("zone", &zone(is_wrong)).map_err(MeasureError::Failed)?;
    let started = |name: &str, cpu: usize, configure: &dyn Fn(&SetUp) -> Result<Vec<String>, String>| {
        start_as(name, Log::Off, site, &[cpu], configure).map_err(MeasureError::Failed)
    };
    // The server that resolvers ask shares the client's CPU, and has nothing to do in the end.
    let upstream = match role {
        Role::Authority => None,
        Role::Cache => Some(started(&format!("upstream {name}"), CLIENT_CPU, &|set_up| {
            Ok(authority(&ours, set_up, &zone))
        })?),
    };
    let upstream_port = upstream.as_ref().map_or(0, Running::port);
    let server = started(&format!("{} {name}", entrant.system), SERVER_CPU, &|set_up| {
        configured(&entrant.system, &program, set_up, role, &zone, upstream_port)
    })?;
    let client = |milliseconds: u64| {
        let numbers = [server.port().into(), NAMES, WINDOW, milliseconds];
        let client = Contender { cpus: &[CLIENT_CPU], ..inner("client", "dns-load", &numbers) };
        run(&client.answers("wrong", 0), &["rate", "answered"], Duration::from_secs(30))
    };
    client(0)?;
    let before = server.cpu_ns().map_err(MeasureError::Failed)?;
    let mut report = client(if effort.is_small() { 100 } else { effort.seconds * 1000 })?;
    let used = server.cpu_ns().map_err(MeasureError::Failed)? - before;
    report.insert("cpu".to_owned(), used as f64 / 1e3 / report["answered"]);
    Ok(report)
}

/// The zone of all names. With a fault, the addresses are wrong.
fn zone(is_wrong: bool) -> String {
    let head = "$ORIGIN example.org.\n$TTL 3600\n@ IN SOA ns host 1 7200 3600 1209600 300\n@ IN NS ns\nns IN A 127.0.0.1\n";
    let line = |number: u64| format!("{} IN A {}\n", label(number), address(number + u64::from(is_wrong)));
    head.to_owned() + &(0..NAMES).map(line).collect::<String>()
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

/// Ours as an authority of the zone.
fn authority(program: &str, set_up: &SetUp, zone: &str) -> Vec<String> {
    let (listen, zone) = (format!("127.0.0.1:{}", set_up.port), format!("example.org={zone}"));
    words(&["env", "SELVEDGE_WORKERS=local", program, "--listen", &listen, "--zone", &zone])
}

/// The command of a server, with its configuration written.
fn configured(
    system: &str,
    program: &str,
    set_up: &SetUp,
    role: Role,
    zone: &str,
    upstream: u16,
) -> Result<Vec<String>, String> {
    let port = set_up.port;
    match (system, role) {
        ("selvedge-dns", Role::Authority) => Ok(authority(program, set_up, zone)),
        ("selvedge-dns", Role::Cache) => {
            let (listen, upstream) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{upstream}"));
            let options = ["--listen", &listen, "--forward", &upstream, "--no-validation"];
            Ok(words(&[&["env", "SELVEDGE_WORKERS=local", program][..], &options].concat()))
        }
        ("unbound", _) => {
            let text = format!(
                "server:\n  interface: 127.0.0.1\n  port: {port}\n  do-daemonize: no\n  chroot: \"\"\n  username: \"\"\n\
                 \x20 pidfile: \"\"\n  directory: \"{directory}\"\n  use-syslog: no\n  logfile: \"\"\n  verbosity: 0\n\
                 \x20 num-threads: 1\n  module-config: \"iterator\"\n  do-not-query-localhost: no\n\
                 \x20 access-control: 127.0.0.0/8 allow\n  msg-cache-size: 64m\n  rrset-cache-size: 64m\n\
                 \x20 so-reuseport: no\n  minimal-responses: yes\n\
                 remote-control:\n  control-enable: no\n\
                 forward-zone:\n  name: \".\"\n  forward-addr: 127.0.0.1@{upstream}\n",
                directory = set_up.shown(""),
            );
            let configuration = set_up.write("unbound.conf", &text)?;
            Ok(words(&[program, "-d", "-c", &configuration]))
        }
        ("knot", _) => {
            let directory = set_up.shown("");
            let text = format!(
                "server:\n  listen: 127.0.0.1@{port}\n  rundir: \"{directory}\"\n  udp-workers: 1\n  tcp-workers: 1\n\
                 \x20 background-workers: 1\nlog:\n  - target: stderr\n    any: error\n\
                 database:\n  storage: \"{directory}\"\n\
                 zone:\n  - domain: example.org\n    file: \"{zone}\"\n    storage: \"{directory}\"\n    zonefile-sync: -1\n"
            );
            let configuration = set_up.write("knot.conf", &text)?;
            Ok(words(&[program, "-c", &configuration]))
        }
        _ => {
            let file = |name: &str| set_up.shown(name);
            let text = format!(
                "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n\
                 \x20 zonesdir: \"{directory}\"\n  pidfile: \"{pid}\"\n  xfrdfile: \"{xfrd}\"\n  zonelistfile: \"{list}\"\n\
                 \x20 xfrdir: \"{directory}\"\n  database: \"\"\n  logfile: \"{log}\"\n  rrl-ratelimit: 0\n  verbosity: 0\n\
                 remote-control:\n  control-enable: no\nzone:\n  name: example.org\n  zonefile: \"{zone}\"\n",
                directory = file(""),
                pid = file("nsd.pid"),
                xfrd = file("xfrd.state"),
                list = file("zone.list"),
                log = file("nsd.log"),
            );
            let configuration = set_up.write("nsd.conf", &text)?;
            Ok(words(&[program, "-d", "-c", &configuration]))
        }
    }
}
