//! Graphs of steps over ranks (`mpi-cnc`): a Cholesky factor and a wavefront in tiles, and a loop
//! that counts primes, on 1, 2 and 4 ranks, beside the same graphs by `cnc` alone, plain loops, and
//! C that sends its tiles itself.
//!
//! Intel's Concurrent Collections for C++ (icnc) distribute graphs too. They are not built here: no
//! package has them, and they need TBB and Intel's MPI.

use super::{C_OVER_OPEN_MPI, JobEngine, JobRuns, ours, theirs};
use crate::child::cnc::cholesky::answer as factor_answer;
use crate::child::cnc::edges::answer as waves_answer;
use crate::child::cnc::{LOOP, STEALING};
use crate::cnc::ours as in_one_process;
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric};
use crate::peers::C_GRAPHS_OPEN_MPI;
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "mpi-cnc", about: "graphs of steps over ranks, beside one rank and C", measure: cnc }];

const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };

/// The engines that take part, and the words for them in the names of cases.
const ENGINES: [(&str, JobEngine); 3] = [
    ("over libmpi", JobEngine::OpenMpi),
    ("ranks are threads", JobEngine::Threads(2)),
    ("ranks are processes", JobEngine::Processes),
];

/// The numbers of ranks.
const RANKS: [u64; 3] = [1, 2, 4];

const SERIAL: &str = "serial loop";

/// A program that has a graph over ranks.
struct RankedProgram {
    name: &'static str,
    numbers: Vec<u64>,
    answer: u64,
    /// The same in one process: the plain loop, and the graph by `cnc` alone.
    in_one_process: Vec<Contender>,
}

impl RankedProgram {
    fn cholesky([tiles, block]: [u64; 2]) -> RankedProgram {
        let answer = factor_answer(tiles as u32, block as u32);
        RankedProgram::with_engines("cholesky", &[tiles, block], answer)
    }

    fn primes(below: u64, answer: u64) -> RankedProgram {
        RankedProgram::with_engines("primes", &[below], answer)
    }

    /// A program that has its engine and its workers as its first numbers.
    fn with_engines(name: &'static str, numbers: &[u64], answer: u64) -> RankedProgram {
        let by = |system: &str, engine: u64, workers: u64| {
            in_one_process(system, name, &[&[engine, workers], numbers].concat(), workers as usize)
        };
        let graph = |workers| by(&alone(workers), STEALING, workers);
        let in_one_process = vec![by(SERIAL, LOOP, 1), graph(1), graph(2)];
        RankedProgram { name, numbers: numbers.to_vec(), answer, in_one_process }
    }

    fn waves(sizes: [u64; 2]) -> RankedProgram {
        let answer = waves_answer(sizes[0] as u32, sizes[1] as u32);
        let graph = |workers: u64| {
            in_one_process(&alone(workers), "waves", &[&[workers], &sizes[..]].concat(), workers as usize)
        };
        let serial = in_one_process(SERIAL, "loop-waves", &sizes, 1);
        let in_one_process = vec![serial, graph(1), graph(2)];
        RankedProgram { name: "waves", numbers: sizes.to_vec(), answer, in_one_process }
    }

    /// The program and its numbers, as the cases name them.
    fn case(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        format!("{} {}", self.name, numbers.join(" x "))
    }

    fn contenders(&self) -> Vec<Contender> {
        let mut all = self.in_one_process.clone();
        for ranks in RANKS {
            let called = |contender: Contender, system: &str| contender.called(&on_ranks(system, ranks));
            all.extend(
                ENGINES
                    .iter()
                    .map(|&(_, engine)| called(ours(engine, self.name, ranks, &self.numbers), engine.ours())),
            );
            let (engine, peer) = (JobEngine::OpenMpi, C_GRAPHS_OPEN_MPI);
            let c = theirs(C_OVER_OPEN_MPI, engine, peer, self.name, ranks, &self.numbers);
            all.push(called(c, C_OVER_OPEN_MPI));
        }
        all.into_iter().map(|contender| contender.answers("answer", self.answer)).collect()
    }

    /// Measures the program.
    fn rows(&self, effort: Effort) -> Result<Vec<Row>, String> {
        let case = self.case();
        let runs = JobRuns::with_answers(
            &format!("mpi-cnc: {}", self.name),
            self.contenders(),
            |_| vec![MS.key],
            effort,
        )?;
        let mut all = Vec::new();
        for ranks in RANKS {
            let c = on_ranks(C_OVER_OPEN_MPI, ranks);
            let here = alone(ranks.min(2));
            for (kind, engine) in ENGINES {
                let ours = on_ranks(engine.ours(), ranks);
                let name = on_ranks(&case, ranks);
                all.extend(runs.case(&format!("{name}, {kind}"), MS, &[&ours, &c, &here, SERIAL]));
            }
        }
        let speed_up = format!("speed-up by the second rank, {case}");
        let systems = ENGINES.iter().map(|(_, engine)| engine.ours()).chain([C_OVER_OPEN_MPI]);
        all.extend(systems.map(|system| {
            let [one, two] = [1, 2].map(|ranks| on_ranks(system, ranks));
            runs.quotient(&speed_up, MS, &one, &two)
        }));
        all.push(runs.quotient(&speed_up, MS, &alone(1), &alone(2)));
        Ok(all)
    }
}

/// A name on this number of ranks.
fn on_ranks(name: &str, ranks: u64) -> String {
    format!("{name}, {ranks} rank{}", if ranks == 1 { "" } else { "s" })
}

/// The name of a graph in one process with this number of workers.
fn alone(workers: u64) -> String {
    format!("selvedge cnc, {workers} worker{}", if workers == 1 { "" } else { "s" })
}

/// `mpi-cnc`.
fn cnc(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let is_small = effort.is_small();
    let [factor, waves] = if is_small { [[4, 10]; 2] } else { [[40, 50], [40, 200]] };
    let (below, primes) = if is_small { (1000, 168) } else { (100_000, 9592) };
    let programs =
        [RankedProgram::cholesky(factor), RankedProgram::waves(waves), RankedProgram::primes(below, primes)];
    let mut all = Vec::new();
    for program in programs {
        all.extend(program.rows(effort)?);
    }
    let title = "graphs of steps over ranks on 2 CPUs, from their start to the end that all ranks have found: the factor \
         of a matrix, a wavefront over a square of cells, and a loop that counts primes";
    let mut table = table("mpi-cnc", title, machine, all);
    table.notes.extend([
        "the answers of all systems have the same bits".to_owned(),
        "C: gcc -O3 for any x86-64; the tiles of a column of the factor are broadcast while the rest is changed, and \
         the waves send their edges"
            .to_owned(),
        "selvedge cnc: the graph of one process, which shares its tiles".to_owned(),
        "Intel's CnC for C++ is not built: no package has it".to_owned(),
    ]);
    Ok(table)
}
