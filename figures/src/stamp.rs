//! The figure about the STAMP programs, over our transactions and over GHC's.

use crate::child::stamp::genome::{self, Sequence};
use crate::child::stamp::intruder::{self, Traffic};
use crate::child::stamp::kmeans::{self, Cloud};
use crate::child::stamp::labyrinth::{self, Maze};
use crate::child::stamp::vacation::{self, Mix};
use crate::contender::{LIMIT, OURS, inner, outer_on, table};
use crate::effort::Effort;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::GHC_STAMP;
use crate::table::Table;

const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };

/// GHC's transactions over the same structures as ours.
const GHC_STM: &str = "GHC STM";

/// How many times faster than GHC each program is to be.
const AIM: f64 = 3.0;

/// A program of STAMP, with its numbers and its answers.
struct Program {
    /// Its name, and its configuration.
    case: &'static str,
    name: &'static str,
    numbers: Vec<u64>,
    answers: Vec<(&'static str, u64)>,
    /// The answers of one thread alone, because two threads may do their work in several orders.
    of_one: Vec<(&'static str, u64)>,
}

impl Program {
    /// Ours and GHC's with so many threads on as many CPUs. The threads are the first number.
    fn pair(&self, threads: usize) -> [Contender; 2] {
        let numbers = [&[threads as u64], &self.numbers[..]].concat();
        let of_one = self.of_one.iter().filter(|_| threads == 1);
        let answers: Vec<_> = self.answers.iter().chain(of_one).collect();
        [
            inner(OURS, self.name, &numbers).on(threads),
            outer_on(threads, GHC_STAMP, GHC_STM, self.name, &numbers).times(AIM),
        ]
        .map(|one| answers.iter().fold(one, |one, &&(name, value)| one.answers(name, value)))
    }
}

fn vacation(case: &'static str, mix: &Mix) -> Program {
    let &Mix { queries, range, users, rows, actions } = mix;
    Program {
        case,
        name: "vacation",
        numbers: vec![queries, range, users, rows, actions],
        answers: vec![("actions", actions), ("violations", 0)],
        of_one: vec![("checksum", vacation::expected(mix))],
    }
}

fn kmeans(case: &'static str, cloud: &Cloud) -> Program {
    let (checksum, rounds) = kmeans::expected(cloud);
    Program {
        case,
        name: "kmeans",
        numbers: vec![cloud.clusters, cloud.points],
        answers: vec![("rounds", rounds), ("checksum", checksum)],
        of_one: vec![],
    }
}

fn intruder(traffic: &Traffic) -> Program {
    let &Traffic { attacks, longest, flows } = traffic;
    Program {
        case: "intruder",
        name: "intruder",
        numbers: vec![attacks, longest, flows],
        answers: vec![("flows", flows), ("attacks", intruder::expected(traffic)), ("left", 0)],
        of_one: vec![],
    }
}

fn genome(sequence: &Sequence) -> Program {
    let &Sequence { gene, segment, segments } = sequence;
    Program {
        case: "genome",
        name: "genome",
        numbers: vec![gene, segment, segments],
        answers: vec![("length", gene), ("checksum", genome::expected(sequence))],
        of_one: vec![],
    }
}

fn labyrinth(maze: &Maze) -> Program {
    let &Maze { side, layers, pairs } = maze;
    Program {
        case: "labyrinth",
        name: "labyrinth",
        numbers: vec![side, layers, pairs],
        answers: vec![("violations", 0)],
        of_one: vec![("checksum", labyrinth::expected(maze))],
    }
}

/// `stamp`.
pub(crate) fn stamp(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    // A part is enough for a check.
    let of = |count: u64| if effort.is_small() { count / 64 } else { count };
    let low = Mix { queries: 2, range: 90, users: 98, rows: of(16_384), actions: of(524_288) };
    let high = Mix { queries: 4, range: 60, users: 90, ..low };
    let cloud = |clusters| Cloud { clusters, points: of(65_536) };
    let programs = [
        vacation("vacation, low contention", &low),
        vacation("vacation, high contention", &high),
        intruder(&Traffic { attacks: 10, longest: 16, flows: of(32_768) }),
        genome(&Sequence { gene: of(16_384), segment: 24, segments: of(1_048_576) }),
        kmeans("kmeans, low contention", &cloud(40)),
        kmeans("kmeans, high contention", &cloud(15)),
        labyrinth(&Maze {
            side: if effort.is_small() { 16 } else { 64 },
            layers: 3,
            pairs: if effort.is_small() { 16 } else { 128 },
        }),
    ];
    let mut rows = Vec::new();
    for program in &programs {
        for threads in [1, 2] {
            let name =
                format!("{}, {threads} {}", program.case, if threads == 1 { "thread" } else { "threads" });
            rows.extend(case(&name, &program.pair(threads), MS, effort, LIMIT)?);
        }
    }
    let mut table = table(
        "stamp",
        "the STAMP programs (IISWC 2008), written from their description: time of the transactional part",
        machine,
        rows,
    );
    table.notes.push(
        "GHC's programs have the same algorithms, the same structures and the same random numbers; -threaded, threads spread by forkOn"
            .into(),
    );
    Ok(table)
}
