//! Calls that all ranks make together (`mpi-collectives`), on as many ranks as CPUs and on more.

use super::{
    BY_MPI4PY, BY_RSMPI, C_OVER_MPICH, C_OVER_OPEN_MPI, JobEngine, JobRuns, NS, all_of_ours, both_of_c,
    mpi4py, rsmpi, theirs,
};
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::Metric;
use crate::peers::{C_MPICH, C_OPEN_MPI};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "mpi-collectives",
    about: "calls of all ranks: 2 ranks, and 8 ranks on 2 CPUs",
    measure: collectives,
}];

/// More ranks than the two CPUs.
const MANY: u64 = 8;
const C_SPINNING: &str = "C, Open MPI that spins";

/// `mpi-collectives`.
pub(crate) fn collectives(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    let calls = if effort.is_small() { 8 } else { 240 };
    let mut contenders = all_of_ours("collectives", 2, &[calls]);
    contenders.extend(both_of_c("collectives", 2, &[calls]));
    contenders.extend([rsmpi("collectives", 2, &[calls]), mpi4py("collectives", 2, &[calls])]);
    let keys = ["barrier", "allreduce", "bcast", "alltoall"];
    let runs = JobRuns::of("mpi-collectives", contenders, |_| keys.to_vec(), effort)?;
    let peers = [C_OVER_OPEN_MPI, C_OVER_MPICH, BY_RSMPI, BY_MPI4PY];
    for (name, key) in [
        ("barrier of 2 ranks", "barrier"),
        ("allreduce of 8 bytes, 2 ranks", "allreduce"),
        ("bcast of 64 KiB, 2 ranks", "bcast"),
        ("alltoall of 4 KiB to each, 2 ranks", "alltoall"),
    ] {
        all.extend(runs.cases(name, Metric { key, ..NS }, &peers));
    }

    // A call of ranks that spin takes milliseconds.
    let [calls, few] = if effort.is_small() { [2, 2] } else { [40, 5] };
    let spinning = JobEngine::OpenMpiSpinning;
    let mut contenders = all_of_ours("crowded", MANY, &[calls]);
    contenders.extend([
        theirs(C_OVER_OPEN_MPI, JobEngine::OpenMpi, C_OPEN_MPI, "crowded", MANY, &[calls]),
        theirs(C_SPINNING, spinning, C_OPEN_MPI, "crowded", MANY, &[few]),
        theirs(C_OVER_MPICH, JobEngine::Mpich, C_MPICH, "crowded", MANY, &[few]),
    ]);
    let keys = ["barrier", "allreduce"];
    let runs =
        JobRuns::of("mpi-collectives: 8 ranks", contenders, |_| keys.to_vec(), effort.rounds_at_most(3))?;
    let peers = [C_OVER_OPEN_MPI, C_SPINNING, C_OVER_MPICH];
    for (name, key) in [("barrier of 8 ranks", "barrier"), ("allreduce of 8 bytes, 8 ranks", "allreduce")] {
        all.extend(runs.cases(name, Metric { key, ..NS }, &peers));
    }
    let title =
        "time of a call that all ranks make together, on the wall's clock: 2 ranks and 8 ranks on 2 CPUs";
    let mut table = table("mpi-collectives", title, machine, all);
    table.notes.extend([
        "each time is the median of nine blocks of a run".to_owned(),
        "8 ranks: those of the peers give up the CPU while they wait (mpi_yield_when_idle, MPIR_CVAR_POLLS_BEFORE_YIELD), \
         except where they spin"
            .to_owned(),
    ]);
    Ok(table)
}
