//! The figure `stamp`: the STAMP programs over our transactions and over GHC's, on one CPU and on
//! two. `main.rs` calls `stamp`. Our programs are in `child/stamp`, and GHC's are in
//! `figures/peers`.
//!
//! The answers of one thread are known for each configuration: see `StampProgram`. Two threads may
//! do their work in several orders, so a case of two threads checks less.

use crate::child::stamp::genome::{self, Sequence};
use crate::child::stamp::intruder::{self, Traffic};
use crate::child::stamp::kmeans::{self, Cloud};
use crate::child::stamp::labyrinth::{self, Maze};
use crate::child::stamp::vacation::{self, TravelMix};
use crate::contender::{LIMIT, OURS, inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::GHC_STAMP;
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "stamp",
    about: "the STAMP programs over transactions of ours and of GHC",
    measure: stamp,
}];

const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };

const GHC_STM: &str = "GHC STM";

/// In programs about maps: a tree of variables, the same one in both languages.
const TREE: (&str, &str) = ("selvedge, tree of TVars", "GHC STM, tree of TVars");

/// In programs about maps: each map in one variable.
const INT_MAP: &str = "GHC STM, IntMap in a TVar";

/// A program of STAMP, with its numbers and its answers.
struct StampProgram {
    /// Its name, and its configuration.
    case: &'static str,
    name: &'static str,
    /// Whether it is about maps, of which there are several kinds.
    has_maps: bool,
    numbers: Vec<u64>,
    answers: Vec<(&'static str, u64)>,
    /// The answers of one thread alone, because two threads may do their work in several orders.
    of_one: Vec<(&'static str, u64)>,
}

impl StampProgram {
    /// Ours and GHC's with this number of threads on as many CPUs. The threads are the first
    /// number.
    fn contenders(&self, threads: usize) -> Vec<Contender> {
        let numbers = [&[threads as u64], &self.numbers[..]].concat();
        let ours = |system, name: &str| inner(system, name, &numbers).on(threads);
        let ghc = |system, name: &str| outer_on(threads, GHC_STAMP, system, name, &numbers);
        let (tree, int_map) = (format!("{}-tree", self.name), format!("{}-intmap", self.name));
        let contenders = match self.has_maps {
            true => {
                vec![ours(OURS, self.name), ghc(TREE.1, &tree), ghc(INT_MAP, &int_map), ours(TREE.0, &tree)]
            }
            false => vec![ours(OURS, self.name), ghc(GHC_STM, self.name)],
        };
        let of_one = self.of_one.iter().filter(|_| threads == 1);
        let answers: Vec<_> = self.answers.iter().chain(of_one).collect();
        let answered =
            |one| answers.iter().fold(one, |one: Contender, &&(name, value)| one.answers(name, value));
        contenders.into_iter().map(answered).collect()
    }
}

fn vacation(case: &'static str, mix: &TravelMix) -> StampProgram {
    let &TravelMix { queries, range, users, rows, actions } = mix;
    StampProgram {
        case,
        name: "vacation",
        has_maps: true,
        numbers: vec![queries, range, users, rows, actions],
        answers: vec![("actions", actions), ("violations", 0)],
        of_one: vec![("checksum", vacation::expected(mix))],
    }
}

fn kmeans(case: &'static str, cloud: &Cloud) -> StampProgram {
    let (checksum, rounds) = kmeans::expected(cloud);
    StampProgram {
        case,
        name: "kmeans",
        has_maps: false,
        numbers: vec![cloud.clusters, cloud.points],
        answers: vec![("rounds", rounds), ("checksum", checksum)],
        of_one: vec![],
    }
}

fn intruder(traffic: &Traffic) -> StampProgram {
    let &Traffic { attacks, longest, flows } = traffic;
    StampProgram {
        case: "intruder",
        name: "intruder",
        has_maps: true,
        numbers: vec![attacks, longest, flows],
        answers: vec![("flows", flows), ("attacks", intruder::expected(traffic)), ("left", 0)],
        of_one: vec![],
    }
}

fn genome(sequence: &Sequence) -> StampProgram {
    let &Sequence { gene, segment, segments } = sequence;
    StampProgram {
        case: "genome",
        name: "genome",
        has_maps: false,
        numbers: vec![gene, segment, segments],
        answers: vec![("length", gene), ("checksum", genome::expected(sequence))],
        of_one: vec![],
    }
}

fn labyrinth(maze: &Maze) -> StampProgram {
    let &Maze { side, layers, pairs } = maze;
    StampProgram {
        case: "labyrinth",
        name: "labyrinth",
        has_maps: false,
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
    let low = TravelMix { queries: 2, range: 90, users: 98, rows: of(16_384), actions: of(524_288) };
    let high = TravelMix { queries: 4, range: 60, users: 90, ..low };
    let cloud = |clusters| Cloud { clusters, points: of(16_384) };
    let maze = match effort.is_small() {
        true => Maze { side: 16, layers: 3, pairs: 16 },
        false => Maze { side: 128, layers: 5, pairs: 256 },
    };
    let programs = [
        vacation("vacation, low contention", &low),
        vacation("vacation, high contention", &high),
        intruder(&Traffic { attacks: 10, longest: 16, flows: of(32_768) }),
        genome(&Sequence { gene: of(16_384), segment: 24, segments: of(1_048_576) }),
        kmeans("kmeans, low contention", &cloud(40)),
        kmeans("kmeans, high contention", &cloud(15)),
        labyrinth(&maze),
    ];
    let mut rows = Vec::new();
    for program in &programs {
        for threads in [1, 2] {
            let name =
                format!("{}, {threads} {}", program.case, if threads == 1 { "thread" } else { "threads" });
            rows.extend(case(&name, &program.contenders(threads), MS, effort, LIMIT)?);
        }
    }
    let mut table = table(
        "stamp",
        "the STAMP programs (IISWC 2008), written from their description: time of the transactional part",
        machine,
        rows,
    );
    table.notes.push(
        "GHC's programs have the same algorithms, the same random numbers and the same answers; -threaded, threads spread by forkOn"
            .into(),
    );
    table.notes.push(
        "vacation and intruder: ours has its maps in TMaps; GHC's packages have no such map, so its maps are trees of TVars, or IntMaps in one TVar each"
            .into(),
    );
    Ok(table)
}
