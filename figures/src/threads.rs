//! The figures about threads: memory, switching, spawning, handing over, foreign wake-ups.
//!
//! All programs are single-threaded and never sleep, so their time is the CPU time of the process: what the wall
//! clock shows on an idle machine, and steadier on one that is not.

use std::time::Duration;

use crate::Effort;
use crate::contender::{FORK_IO, GOROUTINES, LIMIT, NS, OURS, TOKIO, inner, outer, table, threads};
use crate::machine::{Machine, memory_kib};
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::{CPP, GHC, GO};
use crate::table::{Need, Row, Table};

const BYTES: Metric = Metric { key: "bytes", unit: "bytes", better: Better::Lower };

/// How long the run of a billion threads may take.
const LIMIT_BILLION: Duration = Duration::from_secs(300);

const COROUTINES: &str = "C++20 coroutine queue";

/// `threads-memory`.
pub(crate) fn memory(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let live = |contender: Contender, n: u64| contender.answers("live", n);
    let mut rows = Vec::new();
    // Memory hardly varies: more than three rounds would only take time.
    let rounds = effort.rounds.min(3);
    let n = 100_000;
    rows.extend(case(
        &threads(n),
        &[
            live(inner(OURS, "memory", &[n]), n),
            live(inner(TOKIO, "tokio-memory", &[n]), n),
            live(outer(CPP, COROUTINES, "memory", &[n]), n),
            live(outer(GO, GOROUTINES, "memory", &[n]), n),
            live(outer(GHC, FORK_IO, "memory", &[n]), n),
        ],
        BYTES,
        rounds,
        LIMIT,
    )?);
    let n = 10_000_000;
    let ten_million = case(
        &threads(n),
        &[
            live(inner(OURS, "memory", &[n]), n).at_most(16.0),
            live(inner(TOKIO, "tokio-memory", &[n]), n),
            live(outer(CPP, COROUTINES, "memory", &[n]), n),
        ],
        BYTES,
        1,
        LIMIT,
    )?;
    let ours = ten_million.first().and_then(|row| row.value.clone().ok());
    rows.extend(ten_million);
    let paper = Row::paper(&threads(n), "LZ07 §5.1: Haskell, 2007", 48.0, "bytes");
    rows.push(Row { ratio: ours.map(|ours| 48.0 / ours), ..paper });
    let n = 100_000_000;
    rows.extend(case(&threads(n), &[live(inner(OURS, "memory", &[n]), n).at_most(16.0)], BYTES, 1, LIMIT)?);
    rows.extend(billion()?);
    let mut table = table(
        "threads-memory",
        "resident bytes per live thread that loops on yield (RSS after every thread has run, less RSS before)",
        machine,
        rows,
    );
    table.notes.push(
        "the billion threads are all alive at once, each yields once, runs on and finishes; every run is a process of its own"
            .to_owned(),
    );
    table.notes.push(
        "Go and GHC are measured at 100 000 threads: their bytes each hardly depend on the number".to_owned(),
    );
    Ok(table)
}

/// A billion threads, or what the machine lacks for them.
fn billion() -> Result<Vec<Row>, String> {
    const N: u64 = 1_000_000_000;
    const GIB_NEEDED: u64 = 18;
    let gib = Metric { key: "gib", unit: "GiB", better: Better::Lower };
    // 18 GB, as a number of GiB.
    let limit = 18e9 / f64::from(1 << 30);
    let mut ours = inner(OURS, "alive", &[N]).answers("finished", N).answers("live", N).at_most(limit);
    let available = memory_kib("MemAvailable").unwrap_or(0) >> 20;
    if available < GIB_NEEDED {
        ours.command = Err(format!("needs {GIB_NEEDED} GiB free, {available} are"));
    }
    let mut rows = case(&threads(N), std::slice::from_ref(&ours), gib, 1, LIMIT_BILLION)?;
    rows.truncate(1);
    Ok(rows)
}

/// `threads-switch`.
pub(crate) fn switch(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut rows = Vec::new();
    for (n, ours_total, peers_total) in
        [(1, 20_000_000, 2_000_000), (1000, 20_000_000, 2_000_000), (1_000_000, 20_000_000, 4_000_000)]
    {
        let done = |contender: Contender| contender.answers("finished", n);
        let mut contenders = vec![
            inner(OURS, "switch", &[n, ours_total]).answers("live", n),
            done(inner("tokio, waking itself", "tokio-switch-self-wake", &[n, peers_total])),
            done(inner("tokio, yield_now", "tokio-switch-yield-now", &[n, peers_total])),
            done(outer(GO, GOROUTINES, "switch", &[n, peers_total])),
            done(outer(GHC, FORK_IO, "switch", &[n, peers_total])),
            outer(CPP, COROUTINES, "switch", &[n, ours_total]).answers("live", n),
        ];
        if n > 1 {
            for (contender, times) in contenders.iter_mut().skip(1).zip([12.0, 12.0, 40.0, 10.0]) {
                contender.need = Some(Need::Times(times));
            }
        }
        if n == 1_000_000 {
            contenders[5].need = Some(Need::Times(1.0));
        }
        rows.extend(case(&threads(n), &contenders, NS, effort.rounds, LIMIT)?);
    }
    for n in [10_000_000, 100_000_000] {
        let ours = inner(OURS, "switch", &[n, 2 * n]).answers("live", n);
        rows.extend(case(&threads(n), &[ours], NS, effort.rounds.min(3), LIMIT)?);
    }
    rows.extend(drift(&rows));
    let mut table = table(
        "threads-switch",
        "CPU time per yield in a round-robin of live threads, one OS thread on one CPU",
        machine,
        rows,
    );
    table.notes.push(
        "tokio: current-thread runtime without drivers; a task that wakes itself is its fastest yield, yield_now defers to the end of the tick"
            .to_owned(),
    );
    table.notes.push("GHC: non-threaded runtime, -O2, -A64m; Go: GOMAXPROCS=1".to_owned());
    Ok(table)
}

/// How much slower the slowest of our medians is than that of one thread, in percent.
fn drift(rows: &[Row]) -> Option<Row> {
    let ours: Vec<f64> = rows
        .iter()
        .filter(|row| row.system == OURS)
        .map(|row| row.value.clone().ok())
        .collect::<Option<_>>()?;
    let slowest = ours.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let percent = (slowest / ours.first()? - 1.0) * 100.0;
    Some(Row {
        case: "drift, 1 thread to the slowest".to_owned(),
        system: OURS.to_owned(),
        value: Ok(percent),
        range: None,
        unit: "%",
        ratio: None,
        need: Some(Need::AtMost(15.0)),
        command: None,
    })
}

/// `threads-spawn`.
pub(crate) fn spawn(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (ours, peers) = (10_000_000, 1_000_000);
    let mut rows = case(
        "no handle",
        &[
            inner("selvedge fork", "spawn", &[ours]).answers("finished", ours),
            inner("selvedge, by the scheduler", "spawn-event", &[ours]).answers("finished", ours),
            inner(TOKIO, "tokio-spawn", &[peers]).answers("finished", peers).times(30.0),
            outer(GHC, FORK_IO, "spawn", &[peers]).answers("finished", peers).times(15.0),
            outer(GO, GOROUTINES, "spawn", &[peers]).answers("finished", peers).times(30.0),
            outer(CPP, COROUTINES, "spawn", &[ours]).answers("finished", ours),
        ],
        NS,
        effort.rounds,
        LIMIT,
    )?;
    rows.extend(case(
        "with a handle, joined",
        &[
            inner("selvedge JoinHandle", "spawn-handle", &[ours]).answers("finished", ours),
            inner("tokio JoinHandle", "tokio-spawn-handle", &[peers]).answers("finished", peers),
            outer(GHC, "GHC forkIO + MVar", "spawn-handle", &[peers]).answers("finished", peers),
            outer(GO, "Go WaitGroup", "spawn-handle", &[peers]).answers("finished", peers),
        ],
        NS,
        effort.rounds,
        LIMIT,
    )?);
    let mut table = table(
        "threads-spawn",
        "CPU time to spawn a thread, run it and free it, a thousand at a time",
        machine,
        rows,
    );
    table.notes.push(
        "the requirement is on threads without a handle: fork here, a dropped JoinHandle in tokio".to_owned(),
    );
    Ok(table)
}

/// `mvar-ring`.
pub(crate) fn ring(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (ours, peers) = (10_000_000, 1_000_000);
    let mut rows = Vec::new();
    for k in [2, 1000] {
        rows.extend(case(
            &format!("ring of {}", threads(k)),
            &[
                inner("selvedge MVar", "ring", &[k, ours]).answers("token", ours),
                inner("selvedge MVar, shared kind", "ring-shared", &[k, ours]).answers("token", ours),
                inner("tokio, hand-made MVar", "tokio-ring-handmade", &[k, peers])
                    .answers("token", peers)
                    .times(4.0),
                inner("tokio mpsc(1)", "tokio-ring-mpsc", &[k, peers]).answers("token", peers).times(10.0),
                outer(GHC, "GHC MVar", "ring", &[k, peers]).answers("token", peers).times(2.5),
                outer(GO, "Go chan(1)", "ring", &[k, peers]).answers("token", peers),
            ],
            NS,
            effort.rounds,
            LIMIT,
        )?);
    }
    let mut table =
        table("mvar-ring", "CPU time per hand-over of one number around a ring of threads", machine, rows);
    table.notes.push(
        "the hand-made MVar is Rc and std Waker (figures/src/child/handmade.rs), in a LocalSet".to_owned(),
    );
    Ok(table)
}

/// `foreign-wake`.
pub(crate) fn foreign_wake(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let hops = 2_000_000;
    let rows = case(
        "ping-pong of 2 threads",
        &[
            inner(OURS, "ring-handmade", &[2, hops]).answers("token", hops),
            inner("tokio (LocalSet)", "tokio-ring-handmade", &[2, hops]).answers("token", hops).times(1.0),
        ],
        NS,
        effort.rounds,
        LIMIT,
    )?;
    Ok(table(
        "foreign-wake",
        "CPU time per hand-over through an MVar made of Rc and std Waker, which knows neither runtime",
        machine,
        rows,
    ))
}
