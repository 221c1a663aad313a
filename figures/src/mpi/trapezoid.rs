//! The area under a curve by ranks (`mpi-trapezoid`), on one rank and on two.

use super::{
    BY_RSMPI, C_OVER_MPICH, C_OVER_OPEN_MPI, JobEngine, JobRuns, TIMES, both_of_c, ours, rsmpi, theirs,
};
use crate::child::mpi::micro_area;
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric};
use crate::peers::{C_OPEN_MPI, C_OPEN_MPI_FAST};
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "mpi-trapezoid",
    about: "the area under a curve by ranks, beside C",
    measure: trapezoid,
}];

const SECONDS: Metric = Metric { key: "seconds", unit: "s", better: Better::Lower };

/// Compiled so that the compiler may call a sine of several numbers at once.
const C_FAST: &str = "C, Open MPI, -Ofast";
const LANES: &str = "selvedge processes, in lanes";
const ALONE: &str = "selvedge processes, 1 rank";
const C_ALONE: &str = "C, Open MPI, 1 rank";

/// The engines that take part, and the words for them in the names of cases.
const ENGINES: [(&str, JobEngine); 3] = [
    ("over libmpi", JobEngine::OpenMpi),
    ("ranks are threads", JobEngine::Threads(2)),
    ("ranks are processes", JobEngine::Processes),
];

/// `mpi-trapezoid`.
pub(crate) fn trapezoid(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let count = effort.count(200_000_000);
    let mut contenders: Vec<Contender> =
        ENGINES.iter().map(|(_, engine)| ours(*engine, "trapezoid", 2, &[count])).collect();
    contenders.extend(both_of_c("trapezoid", 2, &[count]));
    contenders.push(rsmpi("trapezoid", 2, &[count]));
    contenders.push(ours(JobEngine::Processes, "trapezoid", 1, &[count]).called(ALONE));
    contenders.push(theirs(C_ALONE, JobEngine::OpenMpi, C_OPEN_MPI, "trapezoid", 1, &[count]));
    contenders.push(ours(JobEngine::Processes, "trapezoid-lanes", 2, &[count]).called(LANES));
    contenders.push(theirs(C_FAST, JobEngine::OpenMpi, C_OPEN_MPI_FAST, "trapezoid", 2, &[count]));
    let right = |contender: Contender| contender.answers("micro_area", micro_area(count));
    let contenders = contenders.into_iter().map(right).collect();
    let runs = JobRuns::with_answers("mpi-trapezoid", contenders, |_| vec![SECONDS.key], effort)?;

    let mut all = runs.case("1 rank", SECONDS, &[ALONE, C_ALONE]);
    for (kind, engine) in ENGINES {
        let systems = [engine.ours(), C_OVER_OPEN_MPI, C_OVER_MPICH, BY_RSMPI];
        all.extend(runs.case(&format!("2 ranks, {kind}"), SECONDS, &systems));
    }
    all.extend(runs.case("2 ranks, several sines at once", SECONDS, &[LANES, C_FAST]));
    const SPEED_UP: &str = "speed-up by the second rank";
    all.push(runs.quotient(SPEED_UP, SECONDS, ALONE, JobEngine::Processes.ours()));
    all.push(runs.quotient(SPEED_UP, SECONDS, C_ALONE, C_OVER_OPEN_MPI));
    all.push(Row::paper(SPEED_UP, "HMPI Figure 2", 2.03, TIMES));
    let against_c = "several sines at once on 2 ranks, against C on 1 rank";
    all.push(runs.quotient(against_c, SECONDS, C_ALONE, LANES));
    let title = "the area under the sine from 0 to 999 pi by 200 million trapezoids [HMPI Figure 2]: the paper's loop, \
         with the sine of the C library at each point; and the same points several at once";
    let mut table = table("mpi-trapezoid", title, machine, all);
    table.notes.push(
        "several sines at once: a polynomial in registers of four numbers; C: gcc -Ofast -march=native, which calls the \
         vector sine of the C library"
            .to_owned(),
    );
    Ok(table)
}
