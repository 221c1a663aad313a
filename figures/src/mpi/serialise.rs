//! Values as bytes: ours beside other formats (`mpi-serialise`). A job is one rank.

use super::{BY_MPI4PY, JobRuns, NS};
use crate::contender::{OURS, inner, outer, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::Metric;
use crate::peers::{MPI4PY, RUST_FORMATS};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "mpi-serialise", about: "values as bytes, beside other formats", measure: serialise }];

/// The crates: their names in the table, and in the names of their programs.
const FORMATS: [(&str, &str); 3] =
    [("Rust crate postcard", "postcard"), ("Rust crate bitcode", "bitcode"), ("Rust crate rkyv", "rkyv")];

/// `mpi-serialise`.
pub(crate) fn serialise(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut contenders = vec![inner(OURS, "mpi-serialise", &[0])];
    contenders.extend(FORMATS.map(|(system, program)| outer(RUST_FORMATS, system, program, &[])));
    contenders.push(outer(MPI4PY, BY_MPI4PY, "pickle", &[]));
    let keys = ["small", "numbers", "floats", "rows"];
    let runs = JobRuns::of("mpi-serialise", contenders, |_| keys.to_vec(), effort)?;
    let systems: Vec<&str> =
        [OURS].into_iter().chain(FORMATS.map(|(system, _)| system)).chain([BY_MPI4PY]).collect();
    let mut all = Vec::new();
    for (name, key) in [
        ("a flag, a number, a short text, three numbers", "small"),
        ("50,001 whole numbers", "numbers"),
        ("1 MiB of floating-point numbers", "floats"),
        ("5,000 rows of four fields", "rows"),
    ] {
        all.extend(runs.case(name, Metric { key, ..NS }, &systems));
    }
    let title = "time to make bytes of a value and a value of the bytes, on one CPU";
    let mut table = table("mpi-serialise", title, machine, all);
    table.notes.extend([
        "ours: a rank sends the value to itself, as bytes and moved, and the difference counts".to_owned(),
        "mpi4py: the pickle of Python that it uses; its floating-point numbers are an array.array".to_owned(),
    ]);
    Ok(table)
}
