//! A rank that waits: the CPU that it takes meanwhile, and how soon it gets a message that comes
//! after a pause (`mpi-idle`).

use super::{BY_MPI4PY, C_OVER_MPICH, C_OVER_OPEN_MPI, JobRuns, all_of_ours, both_of_c, mpi4py};
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Metric};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "mpi-idle", about: "a rank that waits: its CPU, and how soon it wakes", measure: idle }];

const CPU: Metric = Metric { key: "cpu", unit: "% of a CPU", better: Better::Lower };
const MEDIAN: Metric = Metric { key: "median_us", unit: "us", better: Better::Lower };
const WORST: Metric = Metric { key: "worst_us", unit: "us", better: Better::Lower };

/// The time before each message, in microseconds.
const INTERVAL: u64 = 5000;

/// `mpi-idle`.
pub(crate) fn idle(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (messages, rest) = if effort.is_small() { (10, 50) } else { (60, 500) };
    let mut all = Vec::new();
    let mut contenders = all_of_ours("idle", 2, &[messages, INTERVAL, rest, 0]);
    contenders.extend(both_of_c("idle", 2, &[messages, INTERVAL, rest, 0]));
    contenders.push(mpi4py("idle", 2, &[messages, INTERVAL, rest]));
    let keys = [CPU.key, MEDIAN.key, WORST.key];
    let runs = JobRuns::of("mpi-idle", contenders, |_| keys.to_vec(), effort)?;
    let peers = [C_OVER_OPEN_MPI, C_OVER_MPICH, BY_MPI4PY];
    all.extend(runs.cases("half a second without a message", CPU, &peers));
    all.extend(runs.cases("a message each 5 ms: median", MEDIAN, &peers));
    all.extend(runs.cases("a message each 5 ms: 99th percentile", WORST, &peers));

    // As many as the CPUs, so that a rank has none of its own.
    let busy = 2;
    let numbers = [messages, INTERVAL, 1, busy];
    let mut contenders = all_of_ours("idle", 2, &numbers);
    contenders.extend(both_of_c("idle", 2, &numbers));
    let runs = JobRuns::of("mpi-idle: busy", contenders, |_| vec![MEDIAN.key], effort)?;
    let peers = [C_OVER_OPEN_MPI, C_OVER_MPICH];
    all.extend(runs.cases("a message each 5 ms, both CPUs busy: median", MEDIAN, &peers));
    let title =
        "a rank that waits for messages: the CPU that its process takes, and the time until it has one";
    let mut table = table("mpi-idle", title, machine, all);
    table
        .notes
        .push("both CPUs busy: the sender's process has two more OS threads, which compute".to_owned());
    table.notes.push("where ranks are threads, the CPU is that of both".to_owned());
    Ok(table)
}
