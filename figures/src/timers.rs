//! The figure `timers`: setting, cancelling and firing a million timers, and threads that sleep,
//! beside tokio and Go. `main.rs` calls `timers`. Our programs and tokio's are in
//! `child/timers.rs`.
//!
//! One run gives several metrics, so `cases` runs the contenders once and makes a case of each
//! metric.

use crate::contender::{GOROUTINES, LIMIT, OURS, TOKIO, inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, reports, rows, values};
use crate::peers::GO_CORES;
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "timers", about: "a million timers: set, cancel, fire", measure: timers }];

fn metric(key: &'static str) -> Metric {
    Metric { key, unit: "ns", better: Better::Lower }
}

/// Runs the contenders and makes a case of each of the named metrics.
fn cases(
    contenders: &[Contender],
    named: &[(&str, &'static str)],
    effort: Effort,
) -> Result<Vec<Row>, String> {
    let keys: Vec<&str> = named.iter().map(|(_, key)| *key).collect();
    let reports = reports(named[0].0, contenders, &keys, effort, LIMIT)?;
    let rows =
        named.iter().flat_map(|(name, key)| rows(name, contenders, metric(key), &values(&reports, key)));
    Ok(rows.collect())
}

/// `timers`.
pub(crate) fn timers(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    // A run that fires takes three seconds, most of which it sleeps.
    let effort = effort.rounds_at_most(3);
    let n = effort.count(1_000_000);
    // All are set before the first is due.
    let millis = if effort.is_small() { 500 } else { 1500 };
    let go = |program, numbers: &[u64]| outer_on(1, GO_CORES, "Go time.AfterFunc", program, numbers);
    let none = |contender: Contender| contender.answers("fired", 0);
    let fired = |contender: Contender| contender.answers("fired", n).answers("early", 0);
    let mut all = cases(
        &[
            none(inner(OURS, "timers-cancel", &[n])),
            none(inner(TOKIO, "tokio-timers-cancel", &[n])),
            none(go("timers-cancel", &[n])),
        ],
        &[("set, with up to 1 million pending", "set_ns"), ("cancel", "cancel_ns")],
        effort,
    )?;
    all.extend(cases(
        &[
            fired(inner(OURS, "timers-fire", &[n, millis])),
            fired(inner(TOKIO, "tokio-timers-fire", &[n, millis])),
            fired(go("timers-fire", &[n, millis])),
        ],
        &[("fire, within a second", "fire_ns")],
        effort,
    )?);
    all.extend(cases(
        &[
            fired(inner(OURS, "timers-threads", &[n, millis])),
            fired(inner(TOKIO, "tokio-timers-threads", &[n, millis])),
        ],
        &[("spawn a thread that sleeps", "set_ns"), ("wake it up, and let it end", "fire_ns")],
        effort,
    )?);
    let cancelled = |contender: Contender| contender.answers("cancelled", n).answers("fired", 0);
    all.extend(cases(
        &[
            cancelled(inner(OURS, "timers-cancel-threads", &[n])),
            cancelled(inner(TOKIO, "tokio-timers-cancel-threads", &[n])),
        ],
        &[("cancel a thread that sleeps", "cancel_ns")],
        effort,
    )?);
    let mut table = table(
        "timers",
        "CPU time per timer of a million, due within a second of one another in no order, on one OS thread",
        machine,
        all,
    );
    table.notes.push(format!(
        "{OURS} and {TOKIO} (current thread): sleep futures set by their first poll, cancelled by their drop, each with a waker of its own that counts; {GOROUTINES}: AfterFunc, with a function that counts"
    ));
    table.notes.push("every timer is allocated before the time is taken: {GOROUTINES}'s are made, stopped, and set again by Reset".replace("{GOROUTINES}", GOROUTINES));
    Ok(table)
}
