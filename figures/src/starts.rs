//! The figures about short stays on other OS threads: a blocking call (`blocking-call`), and a
//! runner that starts, does little, and ends (`runner-start`), beside tokio.
//!
//! The tables show the time of the wall clock, because OS threads wait for one another here. One
//! text runs under both runtimes: `child/starts.rs`. `main.rs` calls the figures.

use crate::contender::{LIMIT, OURS, TOKIO, inner, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Metric, case};
use crate::table::Table;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "blocking-call",
        about: "a call on an OS thread of the blocking pool",
        measure: blocking_call,
    },
    Figure {
        name: "runner-start",
        about: "a runner that starts, does little, and ends",
        measure: runner_start,
    },
];

const CALL: Metric = Metric { key: "us", unit: "us a call", better: Better::Lower };
const RUN: Metric = Metric { key: "us", unit: "us a run", better: Better::Lower };

/// `blocking-call`.
pub(crate) fn blocking_call(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (name, threads, calls) in
        [("one call after another", 1, 20_000), ("8 threads, one call after another each", 8, 5_000)]
    {
        let calls = effort.count(calls);
        let sum = threads * calls * (calls - 1) / 2;
        let program =
            |system, program| inner(system, program, &[2, threads, calls]).on(2).answers("sum", sum);
        let contenders = [program(OURS, "blocking-call"), program(TOKIO, "tokio-blocking-call")];
        all.extend(case(name, &contenders, CALL, effort, LIMIT)?);
    }
    let mut table = table(
        "blocking-call",
        "time on the wall's clock of a call that does nothing, on an OS thread of the blocking pool, 2 workers",
        machine,
        all,
    );
    table.notes.push("tokio: spawn_blocking, multi-thread runtime".into());
    Ok(table)
}

/// `runner-start`.
pub(crate) fn runner_start(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (name, runs, calls) in [
        ("the first run of a process", 1, 0),
        ("one run after another", 2_000, 0),
        ("one run after another, 50 blocking calls in each", 400, 50),
    ] {
        let runs = if runs == 1 { 1 } else { effort.count(runs) };
        let program =
            |system, program| inner(system, program, &[2, runs, calls]).on(2).answers("calls", runs * calls);
        let contenders = [program(OURS, "runner-start"), program(TOKIO, "tokio-runner-start")];
        all.extend(case(name, &contenders, RUN, effort, LIMIT)?);
    }
    let mut table = table(
        "runner-start",
        "time on the wall's clock of a program that starts 2 workers with event loops, runs main, and ends the workers",
        machine,
        all,
    );
    table.notes.push(
        "tokio: a multi-thread runtime with all drivers is built, blocks on main, and is dropped".into(),
    );
    Ok(table)
}
