//! The figure about designs of an access log: the five that the paper compares, as small loggers in
//! one and the same server, beside the shipped log and no log. The server has two workers on both
//! CPUs, so the workers' logs meet; the load generator is on the same CPUs and sleeps while no
//! reply comes.

use super::load::Load;
use super::server::{Log, start_as};
use super::site::{File, SMALL, Site};
use super::{Candidate, Samples, compete, rate_and_cpu};
use crate::contender::inner;
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, rows};
use crate::pinned::BOTH_CPUS;
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "log-designs", about: "five designs of an access log, and ours", measure: designs }];

/// The requests in flight of each connection: with them a line is a good part of a request.
const DEPTH: usize = 16;

const COST: Metric = Metric { key: "cost", unit: "ns CPU/line", better: Better::Lower };

/// The systems and the names of their designs. The first is ours, the second has no log.
const DESIGNS: [(&str, &str); 7] = [
    ("selvedge: a buffer for each worker, one writer", "shipped"),
    ("no log", "none"),
    ("1: a locked handle", "handle"),
    ("2: non-blocking appends of a buffer", "append"),
    ("3: ftruncate and mmap", "mapped"),
    ("4: a channel to a writer", "channel"),
    ("5: a log process with shared memory", "process"),
];

/// `log-designs`.
pub(crate) fn designs(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let site = Site::create(0)?;
    let file = File { bytes: SMALL.bytes + usize::from(faults), ..SMALL };
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let load = Load::new(file, DEPTH, seconds)?.beside_the_server();
    let candidate = |(system, design): (&str, &str)| {
        let log = if design == "none" { Log::Off } else { Log::On };
        Candidate::start(system, true, &BOTH_CPUS, effort, || {
            start_as(design, log, &site, &BOTH_CPUS, |set_up| {
                let mut words = inner(system, "log-design", &[]).command?;
                words.extend([design.to_owned(), set_up.port.to_string(), set_up.shown("access.log")]);
                Ok(words)
            })
        })
    };
    let candidates = DESIGNS.into_iter().map(candidate).collect();
    // Each log is checked at the end: a line for each request.
    let (contenders, samples) = compete("log-designs", file, &load, candidates, effort)?;
    let mut all = rate_and_cpu("", &contenders, &samples);
    let without = &samples[1];
    let with_log = |index: &usize| *index != 1;
    let costs: Vec<Result<Vec<f64>, String>> =
        (0..samples.len()).filter(with_log).map(|index| cost(&samples[index], without)).collect();
    let logged: Vec<Contender> =
        contenders.into_iter().enumerate().filter(|(index, _)| with_log(index)).map(|(_, one)| one).collect();
    // A difference of two times may be near zero, and a ratio of it says nothing.
    let costs = rows("what the log costs", &logged, COST, &costs);
    all.extend(costs.into_iter().map(|row| Row { ratio: None, ..row }));
    Ok(Table {
        name: "log-designs",
        title: format!(
            "a page of 612 bytes, 64 connections with {DEPTH} requests in flight, two workers and the client on both CPUs; what the log costs is the median of rounds"
        ),
        machine,
        rows: all,
        notes: vec![
            "one server with a handler in all rows; the five designs write a line that is known before, the shipped log that of the request".to_owned(),
            "designs 3 and 5 end with SIGBUS on a full disk, 4 and 5 bound nothing that waits, 1 and 2 wait for the disk".to_owned(),
        ],
    })
}

/// What a log costs a request, in each round, beside the server without one in the same round.
fn cost(with: &Samples, without: &Samples) -> Result<Vec<f64>, String> {
    match (with, without) {
        (Ok(with), Ok(without)) => {
            Ok(with.iter().zip(without).map(|(with, without)| (with.1 - without.1) * 1e3).collect())
        }
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    }
}
