//! The figures about message passing: `mpi-latency` and its like. This file starts the ranks, ours
//! and the peers', and makes cases of what they print; each figure is a file below.
//!
//! `main.rs` calls the figures. Our programs are in `child/mpi`, one text for all engines. The same
//! programs in C, Rust and Python are in `figures/peers`. A run measures all its numbers in one
//! process for each rank, because the start of a job takes longer than they do.
//!
//! A case compares one engine of ours with the peers, so that each engine has aims of its own.

pub(crate) mod cnc;
pub(crate) mod collectives;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod serialise;
pub(crate) mod trapezoid;
pub(crate) mod waiting;

use crate::contender::{LIMIT, inner};
use crate::effort::Effort;
use crate::measure::{Better, Contender, Metric, Reports, in_turn, rows, run};
use crate::peers::{C_MPICH, C_OPEN_MPI, Compiled, MPI4PY, RSMPI, program_of};
use crate::pinned::BOTH_CPUS;
use crate::table::Row;

/// What carries the messages of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobEngine {
    /// The library of Open MPI.
    OpenMpi,
    /// The same, and a rank that waits in the library keeps its CPU although there are more ranks
    /// than CPUs.
    OpenMpiSpinning,
    /// The library of MPICH.
    Mpich,
    /// Memory of one process, which has the ranks as threads on this number of workers. 0 is the
    /// scheduler with one OS thread.
    Threads(usize),
    /// Memory that processes of this machine share.
    Processes,
}

impl JobEngine {
    /// The words before a program that start it as this number of ranks.
    ///
    /// # Errors
    /// The package that is missing.
    fn launcher(self, ranks: u64) -> Result<Vec<String>, String> {
        let path = match self {
            JobEngine::OpenMpi | JobEngine::OpenMpiSpinning => program_of("openmpi-bin", "mpirun.openmpi")?,
            JobEngine::Mpich => program_of("mpich", "mpirun.mpich")?,
            JobEngine::Threads(_) | JobEngine::Processes => return Ok(vec![]),
        };
        let options = self.options(ranks).iter().map(|&word| word.to_owned());
        Ok([path].into_iter().chain(options).chain(["-n".to_owned(), ranks.to_string()]).collect())
    }

    /// The options of the launcher, with which this number of ranks is at its fastest on the two
    /// CPUs.
    fn options(self, ranks: u64) -> &'static [&'static str] {
        match self {
            JobEngine::OpenMpi if ranks > BOTH_CPUS.len() as u64 => &OPEN_MPI_YIELDS,
            JobEngine::OpenMpi | JobEngine::OpenMpiSpinning => &OPEN_MPI,
            _ => &[],
        }
    }

    /// The variables with which this number of peers' ranks is at its fastest on the two CPUs.
    fn variables(self, ranks: u64) -> Vec<(&'static str, &'static str)> {
        match self {
            JobEngine::Mpich if ranks > BOTH_CPUS.len() as u64 => vec![("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")],
            _ => vec![],
        }
    }

    /// Our name in the tables.
    fn ours(self) -> &'static str {
        match self {
            JobEngine::OpenMpi => "selvedge over Open MPI",
            JobEngine::OpenMpiSpinning => "selvedge over Open MPI that spins",
            JobEngine::Mpich => "selvedge over MPICH",
            JobEngine::Threads(0) => "selvedge threads, 1 CPU",
            JobEngine::Threads(_) => "selvedge threads, 2 CPUs",
            JobEngine::Processes => "selvedge processes",
        }
    }
}

/// The options of Open MPI's launcher. It refuses to run as root, and to start more ranks than
/// cores, unless it is told to. The ranks have the CPUs of the figure already. At 0 a rank that
/// waits keeps its CPU.
const OPEN_MPI: [&str; 7] =
    ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0"];
const OPEN_MPI_YIELDS: [&str; 7] = {
    let mut options = OPEN_MPI;
    options[6] = "1";
    options
};

const C_OVER_OPEN_MPI: &str = "C, Open MPI";
const C_OVER_MPICH: &str = "C, MPICH";
const BY_RSMPI: &str = "rsmpi";
const BY_MPI4PY: &str = "mpi4py";

const NS: Metric = Metric { key: "", unit: "ns", better: Better::Lower };
/// A speed-up, or a time of another system in units of ours.
const TIMES: &str = "x";

/// The engines of ours by the words for them in the names of cases. The first of each is compared
/// with the peers.
const KINDS: [(&str, &[JobEngine]); 3] = [
    ("over libmpi", &[JobEngine::OpenMpi, JobEngine::Mpich]),
    ("ranks are threads", &[JobEngine::Threads(2), JobEngine::Threads(0)]),
    ("ranks are processes", &[JobEngine::Processes]),
];

/// A program of ours as this number of ranks.
fn ours(engine: JobEngine, program: &str, ranks: u64, numbers: &[u64]) -> Contender {
    let (workers, name) = match engine {
        JobEngine::Threads(workers) => (workers, "threads"),
        JobEngine::Processes => (0, "processes"),
        _ => (0, "mpi"),
    };
    let numbers = [&[workers as u64, ranks], numbers].concat();
    let contender = inner(engine.ours(), &format!("mpi-{program}"), &numbers);
    let command = contender.command.and_then(|program| Ok([engine.launcher(ranks)?, program].concat()));
    let cpus = if engine == JobEngine::Threads(0) { &BOTH_CPUS[..1] } else { &BOTH_CPUS[..] };
    Contender { command, environment: vec![("SELVEDGE_MPI_ENGINE", name)], cpus, ..contender }
}

/// A program of ours on all engines, in the order of [`KINDS`].
fn all_of_ours(program: &str, ranks: u64, numbers: &[u64]) -> Vec<Contender> {
    let engines = KINDS.iter().flat_map(|(_, engines)| *engines);
    engines.map(|&engine| ours(engine, program, ranks, numbers)).collect()
}

/// A peer's program as this number of ranks.
fn theirs(
    system: &str,
    engine: JobEngine,
    peer: Compiled,
    program: &str,
    ranks: u64,
    numbers: &[u64],
) -> Contender {
    let command = peer.executable().and_then(|path| {
        let words = [path, program.to_owned()].into_iter().chain(numbers.iter().map(u64::to_string));
        Ok([engine.launcher(ranks)?, words.collect()].concat())
    });
    let environment = engine.variables(ranks);
    Contender { ours: false, command, environment, ..ours(engine, program, ranks, numbers) }.called(system)
}

/// The programs in C over both libraries.
fn both_of_c(program: &str, ranks: u64, numbers: &[u64]) -> [Contender; 2] {
    [
        theirs(C_OVER_OPEN_MPI, JobEngine::OpenMpi, C_OPEN_MPI, program, ranks, numbers),
        theirs(C_OVER_MPICH, JobEngine::Mpich, C_MPICH, program, ranks, numbers),
    ]
}

fn rsmpi(program: &str, ranks: u64, numbers: &[u64]) -> Contender {
    theirs(BY_RSMPI, JobEngine::OpenMpi, RSMPI, program, ranks, numbers)
}

fn mpi4py(program: &str, ranks: u64, numbers: &[u64]) -> Contender {
    theirs(BY_MPI4PY, JobEngine::OpenMpi, MPI4PY, program, ranks, numbers)
}

impl Contender {
    fn called(self, system: &str) -> Contender {
        Contender { system: system.to_owned(), ..self }
    }
}

/// The contenders of a figure and what their runs printed.
struct JobRuns {
    contenders: Vec<Contender>,
    reports: Vec<Reports>,
}

impl JobRuns {
    /// As [`with_answers`](JobRuns::with_answers), and no run counts a wrong answer.
    ///
    /// # Errors
    /// As for [`in_turn`].
    fn of(
        figure: &str,
        contenders: Vec<Contender>,
        keys: impl Fn(&Contender) -> Vec<&'static str>,
        effort: Effort,
    ) -> Result<JobRuns, String> {
        let contenders = contenders.into_iter().map(|contender| contender.answers("wrong", 0));
        JobRuns::with_answers(figure, contenders.collect(), keys, effort)
    }

    /// JobRuns the contenders in turn. Each prints the numbers that `keys` names for it.
    ///
    /// # Errors
    /// As for [`in_turn`].
    fn with_answers(
        figure: &str,
        contenders: Vec<Contender>,
        keys: impl Fn(&Contender) -> Vec<&'static str>,
        effort: Effort,
    ) -> Result<JobRuns, String> {
        let reports =
            in_turn(figure, &contenders, effort, |contender| run(contender, &keys(contender), LIMIT))?;
        Ok(JobRuns { contenders, reports })
    }

    /// The rows of a case: one number of the runs of these systems, the first of which is ours.
    ///
    /// # Panics
    /// When a system is no contender.
    fn case(&self, name: &str, metric: Metric, systems: &[&str]) -> Vec<Row> {
        let one = |system: &&str| {
            let at = self.contenders.iter().position(|contender| contender.system == *system);
            let at = at.expect("each system of a case has run");
            let sample = self.reports[at].as_ref().map_err(Clone::clone);
            let sample = sample.map(|reports| reports.iter().map(|report| report[metric.key]).collect());
            (self.contenders[at].clone(), sample)
        };
        let (contenders, samples): (Vec<Contender>, Vec<Result<Vec<f64>, String>>) =
            systems.iter().map(one).unzip();
        rows(name, &contenders, metric, &samples)
    }

    /// How many times faster one system is than another.
    fn quotient(&self, case: &str, metric: Metric, slow: &str, fast: &str) -> Row {
        let [slow, fast] = [slow, fast].map(|system| self.case(case, metric, &[system]).remove(0));
        Row {
            value: slow.value.and_then(|slow| Ok(slow / fast.value?)),
            unit: TIMES,
            ..Row::plain(case, &fast.system)
        }
    }

    /// A case for each engine of ours, beside these peers.
    fn cases(&self, name: &str, metric: Metric, peers: &[&str]) -> Vec<Row> {
        let case = |(kind, engines): &(&str, &[JobEngine])| {
            let ours = engines.iter().map(|engine| engine.ours());
            let systems: Vec<&str> = ours.chain(peers.iter().copied()).collect();
            self.case(&format!("{name}, {kind}"), metric, &systems)
        };
        KINDS.iter().flat_map(case).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_yields_where_there_are_more_ranks_than_cpus() {
        let last = |engine: JobEngine, ranks| engine.options(ranks).last().copied();
        assert_eq!([2, 3, 8].map(|ranks| last(JobEngine::OpenMpi, ranks)), [Some("0"), Some("1"), Some("1")]);
        assert_eq!([2, 8].map(|ranks| last(JobEngine::OpenMpiSpinning, ranks)), [Some("0"); 2]);
    }

    #[test]
    fn each_kind_has_a_case_of_its_own_beside_all_peers() {
        let named = |system: &str| inner(system, "", &[]);
        let report = |ns: f64| Ok(vec![[("ns".to_owned(), ns)].into()]);
        let engines: Vec<JobEngine> = KINDS.iter().flat_map(|(_, engines)| *engines).copied().collect();
        let mut contenders: Vec<Contender> = engines.iter().map(|engine| named(engine.ours())).collect();
        let mut reports: Vec<Reports> = (1..).zip(&engines).map(|(n, _)| report(f64::from(n))).collect();
        contenders.push(named(BY_RSMPI));
        reports.push(report(12.0));
        let rows = JobRuns { contenders, reports }.cases("a call", Metric { key: "ns", ..NS }, &[BY_RSMPI]);
        assert_eq!(rows.len(), engines.len() + KINDS.len());
        // The ratio is that to the first engine of the kind.
        let of_peer = rows.iter().filter(|row| row.system == BY_RSMPI);
        let ratios: Vec<_> = of_peer.map(|row| (row.case.as_str(), row.ratio)).collect();
        assert_eq!(
            ratios,
            [
                ("a call, over libmpi", Some(12.0)),
                ("a call, ranks are threads", Some(4.0)),
                ("a call, ranks are processes", Some(2.4)),
            ]
        );
    }
}
