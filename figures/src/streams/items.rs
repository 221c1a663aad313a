//! The pipeline figures over numbers: `pipe-stages`, `pipe-hop`, `pipe-branch`, `pipe-ahead` and
//! `pipe-memory`. `main.rs` calls them. The programs are in `child/streams/items.rs`, and they
//! share the loops that give the right sums.

use super::{ours, peer, theirs};
use crate::child::streams::items::{branched, five, halves};
use crate::contender::{LIMIT, NS, OURS, WALL_NS, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::{GHC_CONDUIT, RUST_STREAMS};
use crate::table::Table;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "pipe-stages",
        about: "five lifted stages over 100 million numbers, five coroutines over 10 million",
        measure: stages,
    },
    Figure { name: "pipe-hop", about: "one chunk over one edge", measure: hop },
    Figure {
        name: "pipe-branch",
        about: "two branches that merge in order, against a plain hop",
        measure: branch,
    },
    Figure { name: "pipe-ahead", about: "two halves of the work on two CPUs", measure: ahead },
    Figure { name: "pipe-memory", about: "10,000 idle pipelines of four stages", measure: memory },
];

const BYTES: Metric = Metric { key: "bytes", unit: "bytes", better: Better::Lower };

/// `pipe-stages`.
pub(crate) fn stages(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(100_000_000);
    // Coroutines take a hundred times as long, so fewer numbers are enough.
    let few = effort.count(10_000_000);
    let all = |contenders: Vec<Contender>, n| -> Vec<Contender> {
        contenders.into_iter().map(|one| one.answers("sum", five(n))).collect()
    };
    let words = n.to_string();
    let mut lifted = vec![
        ours(OURS, "stages", &[&words]),
        theirs("Rust, fused Iterator", "stages-iterator", &[&words]),
        theirs("Rust, futures Stream", "stages-futures", &[&words]),
    ];
    lifted = all(lifted, n);
    let words = few.to_string();
    lifted.extend(all(vec![peer(GHC_CONDUIT, "conduit", &["stages", &words])], few));
    let mut rows = case("five lifted stages", &lifted, NS, effort, LIMIT)?;
    let bodies = vec![
        ours(OURS, "bodies", &[&words]),
        peer(RUST_STREAMS, "Rust, genawaiter", &["genawaiter", &words]),
        peer(RUST_STREAMS, "Rust, async-stream", &["async-stream", &words]),
    ];
    rows.extend(case("five coroutines", &all(bodies, few), NS, effort, LIMIT)?);
    let title = "CPU time of a number in five stages";
    let mut table = table("pipe-stages", title, machine, rows);
    table.notes.push("the five coroutines and conduit run 10 million numbers, the others 100 million".into());
    Ok(table)
}

/// `pipe-hop`.
pub(crate) fn hop(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(20_000_000);
    let words = n.to_string();
    let contenders =
        [ours(OURS, "hop", &[&words, "1"]), ours("selvedge, without the edge", "hop", &[&words, "0"])];
    let contenders = contenders.map(|one| one.answers("sum", n));
    let rows = case("a chunk over one boxed edge", &contenders, NS, effort, LIMIT)?;
    Ok(table("pipe-hop", "CPU time of a chunk of 1 KiB over an edge of a pipeline", machine, rows))
}

/// `pipe-branch`.
pub(crate) fn branch(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(200_000_000);
    let (words, [sum, plain]) = (n.to_string(), branched(n));
    let contenders = [
        ours(OURS, "branch", &[&words]).answers("sum", sum),
        ours("selvedge, a plain hop", "plain", &[&words]).answers("sum", plain),
    ];
    let rows = case("if_then_else by item", &contenders, NS, effort, LIMIT)?;
    Ok(table(
        "pipe-branch",
        "CPU time of a number that goes into one of two branches, which are merged in order",
        machine,
        rows,
    ))
}

/// `pipe-ahead`.
pub(crate) fn ahead(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(10_000_000);
    let (words, sum) = (n.to_string(), halves(n));
    let contenders = [
        ours("selvedge, two halves side by side", "ahead", &["2", &words]).on(2),
        ours("selvedge, one after the other", "ahead", &["0", &words]),
    ];
    let contenders = contenders.map(|one| one.answers("sum", sum));
    let rows = case("two equal halves", &contenders, WALL_NS, effort, LIMIT)?;
    Ok(table("pipe-ahead", "time of a number in two stages that compute equally long", machine, rows))
}

/// `pipe-memory`.
pub(crate) fn memory(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(10_000);
    let words = n.to_string();
    let contenders = [
        ours("selvedge, a thread for each", "memory-threads", &[&words]),
        ours("selvedge, stepped by their holder", "memory", &[&words]),
    ];
    let contenders = contenders.map(|one| one.answers("live", n));
    let rows = case("10,000 idle pipelines", &contenders, BYTES, effort, LIMIT)?;
    Ok(table("pipe-memory", "memory of an idle pipeline of four stages", machine, rows))
}
