//! The figures about the web server.
//!
//! Every server has one worker on one CPU; the load generator has the other CPU to itself and polls
//! without ever sleeping, so that no server pays for waking it. All servers of a figure are up at
//! the same time and take turns round by round. A run counts only if every reply had the right
//! status and length, and the access log, where it is on, only if it has a line for every request.
//!
//! `main.rs` calls the figures. `web/server.rs` starts the servers, `web/load.rs` loads them, and
//! `web/site.rs` has the files. The figures about files alone are in this file; the others have one
//! each: applications (`application.rs`), two CPUs (`multicore.rs`), CGI and FastCGI
//! (`programs.rs`), proxies (`proxied.rs`), reloads (`reloaded.rs`), files on the disk (`cold.rs`),
//! idle connections (`idle.rs`), designs of the log (`designs.rs`), TCP of the server's own
//! (`stacked.rs`).

pub(crate) mod application;
pub(crate) mod cold;
pub(crate) mod designs;
pub(crate) mod idle;
mod instructions;
mod load;
pub(crate) mod multicore;
pub(crate) mod programs;
pub(crate) mod proxied;
pub(crate) mod reloaded;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod stacked;

use self::load::Load;
use self::server::{Kind, Log, Running};
use self::site::Site;
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, NOTICED, median, rows};
use crate::peers::is_missing;
use crate::pinned::SERVER_CPU;
use crate::table::{Row, Table};

pub(crate) use self::instructions::Counted;
pub(crate) use self::site::SMALL;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure { name: "web-small", about: "a 612-byte file over 64 connections, log on", measure: small },
    Figure { name: "web-16k", about: "a 16 KiB file over 64 connections, log on", measure: sixteen_k },
    Figure { name: "web-pipelined", about: "the 612-byte file, 16 requests at a time", measure: pipelined },
    Figure { name: "web-log", about: "CPU per request, access log on against off", measure: log },
];

const RATE: Metric = Metric { key: "rate", unit: "requests/s", better: Better::Higher };
const CPU: Metric = Metric { key: "cpu", unit: "us CPU/request", better: Better::Lower };

/// A server of a figure.
#[derive(Clone, Copy, Debug)]
struct Entrant {
    kind: Kind,
    log: Log,
}

impl Entrant {
    fn new(kind: Kind, log: Log) -> Entrant {
        Entrant { kind, log }
    }
}

/// Request rate and CPU time per request of one entrant, a pair per round; or why there is none.
type Samples = Result<Vec<(f64, f64)>, String>;

/// `web-small`.
pub(crate) fn small(effort: Effort) -> Result<Table, String> {
    let entrants = [
        Entrant::new(Kind::Selvedge, Log::On),
        Entrant::new(Kind::NginxTuned, Log::On),
        Entrant::new(Kind::NginxSmallFiles, Log::On),
        Entrant::new(Kind::Lighttpd, Log::On),
        Entrant::new(Kind::H2o, Log::On),
        Entrant::new(Kind::Mighttpd, Log::On),
        Entrant::new(Kind::Limit, Log::Off),
    ];
    compare("web-small", "612-byte file", site::SMALL, 1, &entrants, effort)
}

/// `web-16k`.
pub(crate) fn sixteen_k(effort: Effort) -> Result<Table, String> {
    let entrants = [
        Entrant::new(Kind::Selvedge, Log::On),
        Entrant::new(Kind::NginxTuned, Log::On),
        Entrant::new(Kind::NginxSmallFiles, Log::On),
        Entrant::new(Kind::Lighttpd, Log::On),
        Entrant::new(Kind::H2o, Log::On),
        Entrant::new(Kind::Mighttpd, Log::On),
    ];
    compare("web-16k", "16 KiB file", site::SIXTEEN_K, 1, &entrants, effort)
}

/// `web-pipelined`.
pub(crate) fn pipelined(effort: Effort) -> Result<Table, String> {
    let entrants = [
        Entrant::new(Kind::Selvedge, Log::On),
        Entrant::new(Kind::NginxTuned, Log::On),
        Entrant::new(Kind::NginxSmallFiles, Log::On),
        Entrant::new(Kind::Lighttpd, Log::On),
        Entrant::new(Kind::H2o, Log::On),
    ];
    compare(
        "web-pipelined",
        "612-byte file, 16 requests in flight per connection",
        site::SMALL,
        16,
        &entrants,
        effort,
    )
}

/// Measures the entrants with one kind of request and makes the table of rates and CPU times.
fn compare(
    name: &'static str,
    what: &str,
    file: site::File,
    depth: usize,
    entrants: &[Entrant],
    effort: Effort,
) -> Result<Table, String> {
    let machine = Machine::now();
    let (contenders, samples) = measure(name, file, depth, entrants, effort)?;
    let mut table_rows = rate_and_cpu("", &contenders, &samples);
    if file == site::SMALL && depth == 1 {
        let place = |server: &str| format!("Mighty, Performance tuning: {server}, 2011, no log");
        let papers = [("Mighttpd 2", 21_601.0), ("nginx", 22_713.0)]
            .map(|(server, rate)| Row::paper("request rate", &place(server), rate, RATE.unit));
        let rates = table_rows.len() / 2;
        table_rows.splice(rates..rates, papers);
    }
    let title = format!(
        "{what}, {} keep-alive connections, one worker on CPU 0, busy-polling client on CPU 1, combined log on",
        load::CONNECTIONS
    );
    let mut notes = server::notes();
    if entrants.iter().any(|entrant| entrant.kind == Kind::Mighttpd) {
        notes.push("Mighttpd: Debian's, in the foreground, so its log goes to its standard output stream, which is a file".to_owned());
    }
    if entrants.iter().any(|entrant| entrant.kind == Kind::Limit) {
        notes.push("limit: epoll, recv and send of a constant reply, no parsing, no file, no log".to_owned());
    }
    Ok(Table { name, title, machine, rows: table_rows, notes })
}

/// `web-log`.
pub(crate) fn log(effort: Effort) -> Result<Table, String> {
    const KINDS: [(Kind, &[Log]); 4] = [
        (Kind::Selvedge, &[Log::Off, Log::On]),
        (Kind::NginxTuned, &[Log::Off, Log::On, Log::Unbuffered]),
        (Kind::Lighttpd, &[Log::Off, Log::On]),
        (Kind::H2o, &[Log::Off, Log::On]),
    ];
    let machine = Machine::now();
    let entrants: Vec<Entrant> =
        KINDS.iter().flat_map(|(kind, logs)| logs.iter().map(|log| Entrant::new(*kind, *log))).collect();
    let (contenders, samples) = measure("web-log", site::SMALL, 1, &entrants, effort)?;
    let cpu: Vec<Result<Vec<f64>, String>> = samples
        .iter()
        .map(|sample| sample.clone().map(|pairs| pairs.iter().map(|pair| pair.1).collect()))
        .collect();
    let mut table_rows = rows("CPU per request", &contenders, CPU, &cpu);
    for row in &mut table_rows {
        // The figure compares each server with itself.
        row.ratio = None;
    }
    // Each server's own cost: its run with the log against its run without in the same round.
    for (index, entrant) in entrants.iter().enumerate().filter(|(_, entrant)| entrant.log != Log::Off) {
        let without = entrants.iter().position(|other| other.kind == entrant.kind && other.log == Log::Off);
        let without = without.expect("every server is also measured with its log off");
        let percents: Result<Vec<f64>, String> = match (&cpu[without], &cpu[index]) {
            (Ok(off), Ok(on)) => Ok(off.iter().zip(on).map(|(off, on)| (on / off - 1.0) * 100.0).collect()),
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        table_rows.push(Row {
            value: percents.map(|percents| median(&percents)),
            unit: "% CPU",
            ..Row::plain("what the log costs", &contenders[index].system)
        });
    }
    let place = |server: &str| format!("Mighty, Logging: {server}, 3 workers, 2011");
    for (server, percent) in [("nginx", 18.0), ("Mighttpd 2", 49.0)] {
        table_rows.push(Row::paper("what the log costs", &place(server), percent, "% of the rate"));
    }
    Ok(Table {
        name: "web-log",
        title: "CPU per request for the 612-byte file, access log off and on; what it costs is the median of rounds"
            .to_owned(),
        machine,
        rows: table_rows,
        notes: server::notes(),
    })
}

/// Starts every entrant, loads them in turn, stops them and checks their logs.
fn measure(
    name: &str,
    file: site::File,
    depth: usize,
    entrants: &[Entrant],
    effort: Effort,
) -> Result<(Vec<Contender>, Vec<Samples>), String> {
    let faults = effort.purpose == Purpose::Faults;
    let site = Site::create(u64::from(faults))?;
    let load = Load::new(file, depth, if effort.is_small() { 1 } else { effort.seconds })?;
    let candidate = |entrant: &Entrant| {
        let system = server::name(entrant.kind, entrant.log);
        let ours = entrant.kind == Kind::Selvedge;
        Candidate::start(&system, ours, &[SERVER_CPU], effort, || {
            let mut server = server::start(entrant.kind, entrant.log, &site)?;
            // The limit has no file.
            if entrant.kind != Kind::Limit {
                server.check(file, &site)?;
            }
            Ok(server)
        })
    };
    let candidates = entrants.iter().map(candidate).collect();
    compete(name, file, &load, candidates, effort)
}

/// A server that takes part in a figure, or why it does not.
struct Candidate {
    system: String,
    ours: bool,
    cpus: &'static [usize],
    server: Result<Running, String>,
}

impl Candidate {
    /// A server that `start` starts, with its name in the table. For the faults only ours are run.
    fn start(
        system: &str,
        ours: bool,
        cpus: &'static [usize],
        effort: Effort,
        start: impl FnOnce() -> Result<Running, String>,
    ) -> Candidate {
        let server = match effort.purpose == Purpose::Faults && !ours {
            true => Err("not run for its faults".to_owned()),
            false => start(),
        };
        Candidate { system: system.to_owned(), ours, cpus, server }
    }
}

/// Loads the servers in turn, stops them and checks their logs.
fn compete(
    name: &str,
    file: site::File,
    load: &Load,
    mut candidates: Vec<Candidate>,
    effort: Effort,
) -> Result<(Vec<Contender>, Vec<Samples>), String> {
    let faults = effort.purpose == Purpose::Faults;
    for candidate in &candidates {
        // A peer may be missing, or is not run for its faults. A peer that is there has to start.
        match &candidate.server {
            Err(why) if !candidate.ours && (faults || is_missing(why)) => {}
            Err(why) => return Err(format!("{}: {why}", candidate.system)),
            Ok(_) => {}
        }
    }
    let none = |candidate: &Candidate| candidate.server.as_ref().map(|_| Vec::new()).map_err(Clone::clone);
    let mut samples: Vec<Samples> = candidates.iter().map(none).collect();
    for round in 1..=effort.rounds {
        for (candidate, pairs) in candidates.iter_mut().zip(&mut samples) {
            let (Ok(server), Ok(so_far)) = (&mut candidate.server, &mut *pairs) else { continue };
            eprintln!("{name}: round {round}: {}", server.name());
            match load.run(server) {
                Ok(_) if faults => return Err(format!("{}: a fault was not noticed", server.name())),
                Err(_) if faults => *pairs = Err(NOTICED.to_owned()),
                Ok(pair) => so_far.push(pair),
                Err(why) => return Err(format!("{}: {why}", server.name())),
            }
        }
    }
    let mut contenders = Vec::new();
    for (candidate, sample) in candidates.into_iter().zip(&samples) {
        let Candidate { system, ours, cpus, server } = candidate;
        let command = match server {
            Ok(server) => {
                let command = server.command().to_vec();
                if let Err(why) = server.stop(file)
                    && sample.is_ok()
                {
                    return Err(format!("{system}: {why}"));
                }
                Ok(command)
            }
            Err(why) => Err(why),
        };
        contenders.push(Contender {
            system,
            ours,
            command,
            environment: vec![],
            cpus,
            input: None,
            may_fail: false,
            answers: vec![],
        });
    }
    Ok((contenders, samples))
}

/// The rows of two metrics: the rate, and the CPU time of a request.
fn rate_and_cpu(case: &str, contenders: &[Contender], samples: &[Samples]) -> Vec<Row> {
    let part = |pick: fn(&(f64, f64)) -> f64| -> Vec<Result<Vec<f64>, String>> {
        samples.iter().map(|sample| sample.clone().map(|pairs| pairs.iter().map(pick).collect())).collect()
    };
    let mut all = rows(&format!("{case}request rate"), contenders, RATE, &part(|pair| pair.0));
    all.extend(rows(&format!("{case}CPU of the server"), contenders, CPU, &part(|pair| pair.1)));
    all
}
