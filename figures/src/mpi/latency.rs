//! Two ranks: messages to and fro (`mpi-latency`), and as many bytes a second as go one way
//! (`mpi-bandwidth`).

use super::{
    BY_MPI4PY, BY_RSMPI, C_OVER_MPICH, C_OVER_OPEN_MPI, JobRuns, NS, all_of_ours, both_of_c, mpi4py, rsmpi,
};
use crate::contender::table;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric};
use crate::table::Table;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "mpi-latency",
        about: "messages to and fro between two ranks, beside C, rsmpi, mpi4py",
        measure: latency,
    },
    Figure { name: "mpi-bandwidth", about: "bytes a second from one rank to another", measure: bandwidth },
];

const RATE: Metric = Metric { key: "", unit: "GB/s", better: Better::Higher };
const MS: Metric = Metric { key: "vector", unit: "ns", better: Better::Lower };

const ALL: [&str; 4] = [C_OVER_OPEN_MPI, C_OVER_MPICH, BY_RSMPI, BY_MPI4PY];
/// rsmpi has no values, only elements.
const WITH_VALUES: [&str; 3] = [C_OVER_OPEN_MPI, C_OVER_MPICH, BY_MPI4PY];

/// A program between two ranks under all systems.
fn runs(
    program: &'static str,
    number: u64,
    keys: &[&'static str],
    effort: Effort,
) -> Result<JobRuns, String> {
    let mut contenders = all_of_ours(program, 2, &[number]);
    contenders.extend(both_of_c(program, 2, &[number]));
    contenders.extend([rsmpi(program, 2, &[number]), mpi4py(program, 2, &[number])]);
    let of = |contender: &Contender| {
        let has = |key: &&&str| contender.system != BY_RSMPI || key.starts_with("bytes_");
        keys.iter().filter(has).copied().collect()
    };
    JobRuns::of(&format!("mpi-{program}"), contenders, of, effort)
}

/// `mpi-latency`.
pub(crate) fn latency(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let rounds = if effort.is_small() { 5 } else { 300 };
    let sizes = [("1 byte", "bytes_1"), ("1024 bytes", "bytes_1024"), ("65536 bytes", "bytes_65536")];
    let keys = ["bytes_1", "bytes_1024", "bytes_65536", "small", "parked"];
    let runs = runs("latency", rounds, &keys, effort)?;
    let mut all = Vec::new();
    for (size, key) in sizes {
        all.extend(runs.cases(&format!("{size}, Fast"), Metric { key, ..NS }, &ALL));
    }
    let parked = Metric { key: "parked", ..NS };
    all.extend(runs.cases("1 byte, beside a thread that waits", parked, &[C_OVER_OPEN_MPI, C_OVER_MPICH]));
    let small = Metric { key: "small", ..NS };
    all.extend(runs.cases("small value, Simple", small, &WITH_VALUES));
    let title = "time of a message from one rank to another, on the wall's clock: half a round trip";
    let mut table = table("mpi-latency", title, machine, all);
    table.notes.extend([
        "each time is the median of nine blocks of a run; the buffers of sends and receives are not the same".to_owned(),
        "Fast: elements of plain data; mpi4py: its calls in capitals".to_owned(),
        "Simple: a flag, a number, a short text and three numbers as one value; C: as many bytes, without a text; mpi4py: a \
         tuple, which it pickles"
            .to_owned(),
        "beside a thread that waits: the receiving thread of each rank is one of two, and the other one waits for another \
         tag all the time; in C a rank waits for one message"
            .to_owned(),
    ]);
    Ok(table)
}

/// `mpi-bandwidth`.
pub(crate) fn bandwidth(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let bytes = if effort.is_small() { 1 << 20 } else { 128 << 20 };
    let sizes = [
        ("4096 bytes", "bytes_4096"),
        ("65536 bytes", "bytes_65536"),
        ("1048576 bytes", "bytes_1048576"),
        ("4194304 bytes", "bytes_4194304"),
    ];
    let keys = ["bytes_4096", "bytes_65536", "bytes_1048576", "bytes_4194304", "vector"];
    let runs = runs("bandwidth", bytes, &keys, effort)?;
    let mut all = Vec::new();
    for (size, key) in sizes {
        all.extend(runs.cases(&format!("{size}, Fast"), Metric { key, ..RATE }, &ALL));
    }
    all.extend(runs.cases("vector of 4 MiB, Simple", MS, &WITH_VALUES));
    let title =
        "bytes a second from one rank to another in windows of messages; and a long vector to and fro";
    let mut table = table("mpi-bandwidth", title, machine, all);
    table.notes.extend([
        "a window has 64 messages of 4 KiB, 32 of 64 KiB, 8 of 1 MiB or 4 of 4 MiB, and the receiver answers it".to_owned(),
        "a time is that of 128 MiB, between memory that was written before".to_owned(),
        "C and rsmpi send a window by MPI_Isend and wait for all; ours awaits each send".to_owned(),
        "Simple: the time of a vector of numbers as a value, half a round trip; C: between two arrays; mpi4py: an \
         array.array, which it pickles"
            .to_owned(),
    ]);
    Ok(table)
}
