//! The figure `simulation`: how many steps a second simulated programs make. A seed determines
//! their order and their network. `main.rs` calls `simulation`, and the programs are in
//! `child/simulation.rs`.
//!
//! The figure has no peers, and a note of its table says why.

use crate::contender::{LIMIT, OURS, inner, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Metric, case};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "simulation",
    about: "steps a second of programs in an order that a seed determines",
    measure: simulation,
}];

const RATE: Metric = Metric { key: "rate", unit: "steps/s", better: Better::Higher };

/// `simulation`.
pub(crate) fn simulation(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let yields = effort.count(1_000_000) / 100;
    let program = inner(OURS, "simulated-yields", &[100, yields]).answers("yields", 100 * yields);
    let mut rows = case("100 threads that yield", &[program], RATE, effort, LIMIT)?;
    let messages = effort.count(1_000_000) / 1000;
    let program = inner(OURS, "simulated-echo", &[10, messages]).answers("bytes", 10 * messages);
    rows.extend(case(
        "10 clients of an echo server, over a simulated network",
        &[program],
        RATE,
        effort,
        LIMIT,
    )?);
    let mut table = table(
        "simulation",
        "steps a second of programs on one OS thread, where a seed determines their order and network",
        machine,
        rows,
    );
    table.notes.push(
        "without peers: tokio's paused clock chooses no order, and its feature `test-util` slows the clock of tokio's other rows"
            .into(),
    );
    Ok(table)
}
