//! The figure `cost-of-abstractions`: what join, select and a time-out cost under our runtime and
//! under tokio. `main.rs` calls `costs`. The programs are in `child/abstractions.rs`.
//!
//! Each program prints the sum of what its operations count for. So an operation that did not
//! happen makes a wrong answer, and no time is shown.

use crate::contender::{LIMIT, NS, OURS, TOKIO, inner, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::case;
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "cost-of-abstractions",
    about: "join, select, time-out, a foreign future",
    measure: costs,
}];

/// `cost-of-abstractions`.
pub(crate) fn costs(effort: Effort) -> Result<Table, String> {
    // The operation, its program, and the number that one operation counts for.
    const OPERATIONS: [(&str, &str, u64); 7] = [
        ("join of two that are ready", "join-ready", 2),
        ("join of two that are pending once", "join-later", 2),
        ("select of two, one ready", "select-ready", 1),
        ("select of two, the first pending once", "select-later", 1),
        ("time-out around what is ready", "timeout-ready", 1),
        ("time-out around what is pending once", "timeout-later", 1),
        ("futures::channel::oneshot, answered by another thread", "oneshot", 1),
    ];
    // A run takes a second where an operation takes 50 ns, because the aim is to be no slower.
    let total = effort.count(20_000_000);
    let machine = Machine::now();
    let mut rows = Vec::new();
    for (name, program, each) in OPERATIONS {
        let run = |system, program: &str| inner(system, program, &[total]).answers("sum", each * total);
        let tokio = format!("tokio-{program}");
        // None slower.
        let contenders = [run(OURS, program), run(TOKIO, &tokio)];
        rows.extend(case(name, &contenders, NS, effort, LIMIT)?);
    }
    let mut table = table(
        "cost-of-abstractions",
        "CPU time of one operation, on one OS thread: combinators of ours against tokio::join!, select! and time::timeout",
        machine,
        rows,
    );
    table.notes.push("tokio::select! is biased, that is, it polls in order as ours does".into());
    table.notes.push(
        "a future that is pending once yields: by yield_now here, and by waking itself in tokio, because that is tokio's cheapest way; current-thread runtime"
            .into(),
    );
    Ok(table)
}
