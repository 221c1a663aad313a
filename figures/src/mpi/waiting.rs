//! Many threads of a rank that wait for a message each (`mpi-waiting`).

use super::{C_OVER_OPEN_MPI, JobEngine, JobRuns, KINDS, NS, all_of_ours, theirs};
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::Metric;
use crate::peers::C_OPEN_MPI;
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "mpi-waiting",
    about: "10,000 threads of a rank that wait for a message each",
    measure: waiting,
}];

/// Of a system beside itself.
const GROWTH: &str = "times that of 1 thread";

const C_POSTED: &str = "C, a posted receive for each tag";

/// `mpi-waiting`.
pub(crate) fn waiting(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (threads, messages) = if effort.is_small() { (100, 10) } else { (10_000, 2000) };
    // A message takes it milliseconds.
    let few = if effort.is_small() { 10 } else { 200 };
    let mut contenders = all_of_ours("waiting", 2, &[threads, messages]);
    let c = |system: &str, program: &str, messages: u64| {
        theirs(system, JobEngine::OpenMpi, C_OPEN_MPI, program, 2, &[threads, messages])
    };
    contenders.push(c(C_POSTED, "waiting-posted", few));
    contenders.push(c(C_OVER_OPEN_MPI, "waiting-any", messages));
    let runs = JobRuns::of("mpi-waiting", contenders, |_| vec!["one", "many"], effort)?;
    let peers = [C_POSTED, C_OVER_OPEN_MPI];
    let mut all = runs.cases("1 thread that waits", Metric { key: "one", ..NS }, &peers);
    all.extend(runs.cases("10000 threads that wait", Metric { key: "many", ..NS }, &peers));
    all.extend(growth(&runs));
    let title = "time of a message to one of a rank's threads, each of which waits for its own tag, and of its answer";
    let mut table = table("mpi-waiting", title, machine, all);
    table.notes.push(format!(
        "{C_OVER_OPEN_MPI}: one receive that takes any tag; its one thread answers all messages, so it is the same for any number"
    ));
    Ok(table)
}

/// Each system of ours compared with itself: 10,000 threads against one.
fn growth(runs: &JobRuns) -> Vec<Row> {
    let systems: Vec<&str> =
        KINDS.iter().flat_map(|(_, engines)| *engines).map(|engine| engine.ours()).collect();
    let systems = [&systems[..], &[C_POSTED]].concat();
    let [one, many] = ["one", "many"].map(|key| runs.case("", Metric { key, ..NS }, &systems));
    let quotient = |(one, many): (Row, Row)| Row {
        value: one.value.and_then(|one| Ok(many.value? / one)),
        unit: GROWTH,
        command: many.command,
        ..Row::plain("10000 threads against 1", &many.system)
    };
    one.into_iter().zip(many).map(quotient).collect()
}
