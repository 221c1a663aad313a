//! The figures about threads: memory, switching, spawning, handing over, foreign wake-ups.
//!
//! All programs are single-threaded and never sleep, so the tables show the CPU time of the
//! process. On an idle machine it is the time of the wall clock. On a busy machine it is steadier.
//!
//! `main.rs` calls the figures. The programs are in `child/ours.rs` and `child/tokio_peer.rs`, and
//! those of other languages in `figures/peers`.

use crate::contender::{FORK_IO, GOROUTINES, LIMIT, NS, OURS, TOKIO, inner, outer, table, threads};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::{Machine, memory_kib};
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::{CPP, GHC, GO};
use crate::table::{Row, Table};
use std::time::Duration;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "threads-memory",
        about: "bytes per yield-loop thread; a billion at once",
        measure: memory,
    },
    Figure {
        name: "threads-switch",
        about: "time per yield, 1 to 100 million live threads",
        measure: switch,
    },
    Figure { name: "threads-spawn", about: "time to spawn a thread that finishes", measure: spawn },
    Figure { name: "mvar-ring", about: "time per hand-over in a ring of 2 and 1000 threads", measure: ring },
    Figure {
        name: "foreign-wake",
        about: "ping-pong through a waker-based primitive",
        measure: foreign_wake,
    },
];

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
    let few = effort.rounds_at_most(3);
    let once = effort.rounds_at_most(1);
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
        few,
        LIMIT,
    )?);
    // A case has the name of its full size with small numbers too, because its aim is found by it.
    let name = threads(10_000_000);
    let n = effort.count(10_000_000);
    let ten_million = case(
        &name,
        &[
            live(inner(OURS, "memory", &[n]), n),
            live(inner(TOKIO, "tokio-memory", &[n]), n),
            live(outer(CPP, COROUTINES, "memory", &[n]), n),
        ],
        BYTES,
        once,
        LIMIT,
    )?;
    let ours = ten_million.first().and_then(|row| row.value.clone().ok());
    rows.extend(ten_million);
    let paper = Row::paper(&name, "LZ07 §5.1: Haskell, 2007", 48.0, "bytes");
    rows.push(Row { ratio: ours.map(|ours| 48.0 / ours), ..paper });
    let n = effort.count(100_000_000);
    rows.extend(case(&threads(100_000_000), &[live(inner(OURS, "memory", &[n]), n)], BYTES, once, LIMIT)?);
    rows.extend(billion(once)?);
    let mut table = table(
        "threads-memory",
        "resident bytes per live thread that loops on yield (anonymous memory after every thread has run, less that before)",
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

/// A billion threads, or the memory that the machine lacks for them.
fn billion(effort: Effort) -> Result<Vec<Row>, String> {
    let n = effort.count(1_000_000_000);
    const GIB_NEEDED: u64 = 18;
    let gib = Metric { key: "gib", unit: "GiB", better: Better::Lower };
    let mut ours = inner(OURS, "alive", &[n]).answers("finished", n).answers("live", n);
    let available = memory_kib("MemAvailable").unwrap_or(0) >> 20;
    if available < GIB_NEEDED && !effort.is_small() {
        ours.command = Err(format!("needs {GIB_NEEDED} GiB free, {available} are"));
    }
    let mut rows = case(&threads(1_000_000_000), std::slice::from_ref(&ours), gib, effort, LIMIT_BILLION)?;
    rows.truncate(1);
    Ok(rows)
}

/// `threads-switch`.
pub(crate) fn switch(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut rows = Vec::new();
    // A run of ours takes a second, because the aims about it are some per cent.
    for (live, ours_total, peers_total) in
        [(1, 120_000_000, 10_000_000), (1000, 120_000_000, 10_000_000), (1_000_000, 120_000_000, 20_000_000)]
    {
        let (n, ours, peers) = (effort.count(live), effort.count(ours_total), effort.count(peers_total));
        let done = |contender: Contender, yields| contender.answers("yields", yields).answers("finished", n);
        let contenders = [
            done(inner(OURS, "switch", &[n, ours]), ours),
            done(inner("tokio, waking itself", "tokio-switch-self-wake", &[n, peers]), peers),
            done(inner("tokio, yield_now", "tokio-switch-yield-now", &[n, peers]), peers),
            done(outer(GO, GOROUTINES, "switch", &[n, peers]), peers),
            done(outer(GHC, FORK_IO, "switch", &[n, peers]), peers),
            done(outer(CPP, COROUTINES, "switch", &[n, ours]), ours),
        ];
        rows.extend(case(&threads(live), &contenders, NS, effort, LIMIT)?);
    }
    for live in [10_000_000, 100_000_000] {
        let (n, total) = (effort.count(live), effort.count(2 * live));
        let ours = inner(OURS, "switch", &[n, total]).answers("yields", total).answers("finished", n);
        rows.extend(case(&threads(live), &[ours], NS, effort.rounds_at_most(3), LIMIT)?);
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
    Some(Row { value: Ok(percent), unit: "%", ..Row::plain("drift, 1 thread to the slowest", OURS) })
}

/// `threads-spawn`.
pub(crate) fn spawn(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (ours, peers) = (effort.count(60_000_000), effort.count(4_000_000));
    let mut rows = case(
        "no handle",
        &[
            inner("selvedge fork", "spawn", &[ours]).answers("finished", ours),
            inner("selvedge, by the scheduler", "spawn-event", &[ours]).answers("finished", ours),
            inner(TOKIO, "tokio-spawn", &[peers]).answers("finished", peers),
            outer(GHC, FORK_IO, "spawn", &[peers]).answers("finished", peers),
            outer(GO, GOROUTINES, "spawn", &[peers]).answers("finished", peers),
            outer(CPP, COROUTINES, "spawn", &[ours]).answers("finished", ours),
        ],
        NS,
        effort,
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
        effort,
        LIMIT,
    )?);
    let mut table = table(
        "threads-spawn",
        "CPU time to spawn a thread, run it and free it, a thousand at a time",
        machine,
        rows,
    );
    table.notes.push("threads without a handle: fork here, a dropped JoinHandle in tokio".to_owned());
    Ok(table)
}

/// `mvar-ring`.
pub(crate) fn ring(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (ours, peers) = (effort.count(20_000_000), effort.count(4_000_000));
    let mut rows = Vec::new();
    for k in [2, 1000] {
        let token = |contender: Contender, hops: u64| contender.answers("token", hops);
        // On both sides an object that stays on one OS thread.
        rows.extend(case(
            &format!("ring of {}, on one OS thread for ever", threads(k)),
            &[
                token(inner("selvedge MVar", "ring", &[k, ours]), ours),
                token(inner("tokio, hand-made MVar", "tokio-ring-handmade", &[k, peers]), peers),
                token(outer(GHC, "GHC MVar", "ring", &[k, peers]), peers),
            ],
            NS,
            effort,
            LIMIT,
        )?);
        // On both sides an object that OS threads may share.
        rows.extend(case(
            &format!("ring of {}, which OS threads may share", threads(k)),
            &[
                token(inner("selvedge MVar, shared kind", "ring-shared", &[k, ours]), ours),
                token(
                    inner("tokio, hand-made shared MVar", "tokio-cores-ring-handmade", &[0, k, 1, peers]),
                    peers,
                ),
                token(inner("tokio mpsc(1)", "tokio-ring-mpsc", &[k, peers]), peers),
                token(outer(GO, "Go chan(1)", "ring", &[k, peers]), peers),
            ],
            NS,
            effort,
            LIMIT,
        )?);
    }
    let mut table =
        table("mvar-ring", "CPU time per hand-over of one number around a ring of threads", machine, rows);
    table.notes.push(
        "the hand-made MVars are Rc, or Arc and Mutex, and std Waker (figures/src/child/handmade.rs); a LocalSet runs the first"
            .to_owned(),
    );
    Ok(table)
}

/// `foreign-wake`.
pub(crate) fn foreign_wake(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let hops = effort.count(20_000_000);
    let rows = case(
        "ping-pong of 2 threads",
        &[
            inner(OURS, "ring-handmade", &[2, hops]).answers("token", hops),
            inner("tokio (LocalSet)", "tokio-ring-handmade", &[2, hops]).answers("token", hops),
        ],
        NS,
        effort,
        LIMIT,
    )?;
    Ok(table(
        "foreign-wake",
        "CPU time per hand-over through an MVar made of Rc and std Waker, which knows neither runtime",
        machine,
        rows,
    ))
}
