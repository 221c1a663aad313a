//! The figures about several workers: speed-up, switching, a tree of threads, counters.
//!
//! The tables show the time of the wall clock, because several CPUs work at once. The programs of
//! ours and of tokio are one text (`figures/src/child/cores.rs`) under both runtimes.
//!
//! `main.rs` calls the figures.

use crate::child::cores::burst;
use crate::contender::{FORK_IO, GOROUTINES, LIMIT, OURS, TOKIO, WALL_NS, inner, outer_on, table, threads};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case, median, reports, rows, values};
use crate::peers::{C_CORES, GHC_CORES, GO_CORES};
use crate::table::{Row, Table};

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "mp-speedup",
        about: "1024 threads that compute, on one worker and on two",
        measure: speed_up,
    },
    Figure {
        name: "threads-switch-mc",
        about: "yields, spawn + join, rings with two workers",
        measure: switch,
    },
    Figure { name: "skynet", about: "a tree of a million threads", measure: skynet },
];

const SECONDS: Metric = Metric { key: "seconds", unit: "s", better: Better::Lower };
const SPEED_UP: Metric = Metric { key: "speed-up", unit: "x", better: Better::Higher };
const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };

const POSIX: &str = "C, POSIX threads";
const CEILING: &str = "the machine (independent C processes)";

/// `mp-speedup`.
pub(crate) fn speed_up(effort: Effort) -> Result<Table, String> {
    const THREADS: u64 = 1024;
    const BURSTS: u64 = 40;
    let steps = if effort.is_small() { 100 } else { 10_000 };
    let machine = Machine::now();
    let sum: u64 = (1..=THREADS).map(|seed| burst(seed, BURSTS * steps) & 0xffff_ffff).sum();
    let numbers = [THREADS, BURSTS, steps];
    let of_ours = |program, workers: usize| {
        let numbers = [workers as u64, THREADS, BURSTS, steps];
        let system = if program == "compute" { OURS } else { TOKIO };
        inner(system, program, &numbers).on(workers).answers("sum", sum)
    };
    let ceiling = |processes: usize| {
        let numbers = [processes as u64, THREADS, BURSTS, steps];
        outer_on(processes, C_CORES, CEILING, "ceiling", &numbers).answers("sum", sum * processes as u64)
    };
    let on = |cpus: usize| {
        [
            of_ours("compute", cpus),
            of_ours("tokio-compute", cpus),
            outer_on(cpus, GO_CORES, GOROUTINES, "compute", &numbers).answers("sum", sum),
            outer_on(cpus, GHC_CORES, FORK_IO, "compute", &numbers).answers("sum", sum),
            outer_on(cpus, C_CORES, POSIX, "compute", &numbers).answers("sum", sum),
            ceiling(cpus),
        ]
    };
    // All in one: a speed-up is that of neighbouring runs.
    let ones = on(1);
    let count = ones.len();
    let contenders: Vec<Contender> = ones.into_iter().zip(on(2)).flat_map(|(one, two)| [one, two]).collect();
    let reports = reports("mp-speedup", &contenders, &[SECONDS.key], effort, LIMIT)?;
    let seconds = values(&reports, SECONDS.key);
    let part = |cpus: usize| -> (Vec<Contender>, Vec<_>) {
        (0..count).map(|i| (contenders[2 * i + cpus - 1].clone(), seconds[2 * i + cpus - 1].clone())).unzip()
    };
    let (one, two) = (part(1), part(2));
    let mut all = rows("1 worker", &one.0, SECONDS, &one.1);
    all.extend(rows("2 workers", &two.0, SECONDS, &two.1));
    let speed_ups = speed_ups(&one.1, &two.1);
    let mut ups = rows("speed-up", &two.0, SPEED_UP, &speed_ups);
    for row in &mut ups {
        // Each system is compared with itself.
        row.ratio = None;
    }
    all.extend(ups);
    if let (Ok(ours), Ok(most)) = (&speed_ups[0], &speed_ups[count - 1]) {
        all.push(Row {
            value: Ok(100.0 * median(ours) / median(most)),
            unit: "%",
            ..Row::plain("speed-up", "selvedge of what the machine gives")
        });
    }
    all.push(Row::paper("speed-up", "LZ07 §5.1: 4 processors, 2007", 3.65, "x of 4"));
    let mut table = table(
        "mp-speedup",
        "1024 threads that compute for about 20 us and yield, 40 times each: time until all have ended, one worker against two",
        machine,
        all,
    );
    table.notes.push(
        "the machine's own row runs the whole work in one C process, then in two at once, one on each CPU, sharing nothing: more it does not give".into(),
    );
    table.notes.push("tokio: multi-thread runtime; GHC: -threaded, threads spread by forkOn".into());
    Ok(table)
}

/// How many times as fast two workers are as one, run by run. The last program does all the work
/// twice on two.
fn speed_ups(
    one: &[Result<Vec<f64>, String>],
    two: &[Result<Vec<f64>, String>],
) -> Vec<Result<Vec<f64>, String>> {
    let work = |index: usize| if index + 1 == one.len() { 2.0 } else { 1.0 };
    let pairs = one.iter().zip(two).enumerate();
    let of = pairs.map(|(index, pair)| match pair {
        (Ok(one), Ok(two)) => Ok(one.iter().zip(two).map(|(one, two)| work(index) * one / two).collect()),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    });
    of.collect()
}

/// `threads-switch-mc`.
pub(crate) fn switch(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let all = [yields(effort)?, spawns(effort)?, rings(effort)?].concat();
    let mut table = table(
        "threads-switch-mc",
        "time on the wall's clock per yield, per thread spawned and joined, per hand-over of a ring",
        machine,
        all,
    );
    table.notes.push(
        "tokio: multi-thread runtime; the hand-made MVar is Arc, Mutex and std Waker (figures/src/child/handmade.rs)"
            .into(),
    );
    Ok(table)
}

/// Yields of a thousand threads, and of a million.
fn yields(effort: Effort) -> Result<Vec<Row>, String> {
    let mut all = Vec::new();
    for (live, ours, peers, go) in [(1000, 40_000, 10_000, 2_000), (1_000_000, 40, 8, 4)] {
        let n = effort.count(live);
        let [ours, peers, go] = [ours, peers, go].map(|per| if effort.is_small() { 4 } else { per });
        let done = |contender: Contender, per| contender.answers("yields", n * per).answers("finished", n);
        let tokio = |system, program, workers: usize| {
            done(inner(system, program, &[workers as u64, n, peers]), peers).on(workers)
        };
        let (self_wake, yield_now) = ("tokio-cores-switch-self-wake", "tokio-cores-switch-yield-now");
        all.extend(case(
            &format!("yield, {}, 2 workers", threads(live)),
            &[
                done(inner(OURS, "cores-switch", &[2, n, ours]), ours).on(2),
                tokio("tokio, waking itself", self_wake, 2),
                tokio("tokio, yield_now", yield_now, 2),
                done(outer_on(2, GO_CORES, GOROUTINES, "switch", &[n, go]), go),
            ],
            WALL_NS,
            effort,
            LIMIT,
        )?);
        let (total, one) = (n * ours, "cores-switch");
        all.extend(case(
            &format!("yield, {}, 1 worker", threads(live)),
            &[
                done(inner("selvedge threads that may move", one, &[1, n, ours]), ours),
                // In the loop of `threads-switch`.
                inner("selvedge threads that never move", "switch", &[n, total])
                    .answers("yields", total)
                    .answers("finished", n),
                // The same mobile threads under a scheduler with one CPU, so that they cannot move.
                done(inner("selvedge round-robin, threads that may move", one, &[0, n, ours]), ours),
                tokio("tokio, waking itself", self_wake, 1),
                tokio("tokio, yield_now", yield_now, 1),
            ],
            WALL_NS,
            effort,
            LIMIT,
        )?);
    }
    Ok(all)
}

/// Threads that are spawned and joined.
fn spawns(effort: Effort) -> Result<Vec<Row>, String> {
    let (ours, peers) = (effort.count(20_000_000), effort.count(2_000_000));
    case(
        "spawn + join, 2 workers",
        &[
            inner(OURS, "cores-spawn", &[2, ours]).on(2).answers("finished", ours),
            inner(TOKIO, "tokio-cores-spawn", &[2, peers]).on(2).answers("finished", peers),
            outer_on(2, GO_CORES, GOROUTINES, "spawn-handle", &[peers]).answers("finished", peers),
        ],
        WALL_NS,
        effort,
        LIMIT,
    )
}

/// Rings with one token, and with a hundred.
fn rings(effort: Effort) -> Result<Vec<Row>, String> {
    let mut all = Vec::new();
    for tokens in [1, 100] {
        let ring = |system, program, hops| {
            inner(system, program, &[2, 1000, tokens, hops]).on(2).answers("token", hops)
        };
        let (ours, peers) = (effort.count(20_000_000), effort.count(2_000_000));
        let name = if tokens == 1 { "1 token".to_owned() } else { format!("{tokens} tokens") };
        let contenders = [
            ring("selvedge MVar", "cores-ring", ours),
            ring("tokio, hand-made MVar", "tokio-cores-ring-handmade", peers),
            ring("tokio mpsc(1)", "tokio-cores-ring-mpsc", peers),
            ring("selvedge hand-made MVar", "cores-ring-handmade", ours),
            outer_on(2, GO_CORES, "Go chan(1)", "ring", &[1000, tokens, peers]).answers("token", peers),
            outer_on(2, GHC_CORES, "GHC MVar", "ring", &[1000, tokens, peers]).answers("token", peers),
        ];
        let case = format!("ring of 1000, {name}, 2 workers");
        let samples = values(&reports(&case, &contenders, &[WALL_NS.key], effort, LIMIT)?, WALL_NS.key);
        all.extend(rows(&case, &contenders, WALL_NS, &samples));
        // Like for like, out of the same runs: one text of an MVar under both runtimes.
        let by_hand = [3, 1];
        let contenders = by_hand.map(|index| contenders[index].clone());
        let samples = by_hand.map(|index| samples[index].clone());
        all.extend(rows(&format!("hand-made {case}"), &contenders, WALL_NS, &samples));
    }
    Ok(all)
}

/// `skynet`.
pub(crate) fn skynet(effort: Effort) -> Result<Table, String> {
    let leaves = effort.count(1_000_000);
    let sum = leaves * (leaves - 1) / 2;
    let machine = Machine::now();
    let mut all = Vec::new();
    for workers in [1, 2] {
        let tree = |system, program, scheduler| {
            inner(system, program, &[scheduler, leaves]).on(workers).answers("sum", sum)
        };
        let n = workers as u64;
        let mut contenders = vec![
            tree(OURS, "skynet", n),
            tree(TOKIO, "tokio-skynet", n),
            outer_on(workers, GO_CORES, GOROUTINES, "skynet", &[leaves]).answers("sum", sum),
        ];
        if workers == 1 {
            contenders.push(tree("tokio, current thread", "tokio-skynet", 0));
        }
        let name = if workers == 1 { "1 worker" } else { "2 workers" };
        all.extend(case(name, &contenders, MS, effort, LIMIT)?);
    }
    let mut table = table(
        "skynet",
        "a tree of threads, each of which starts ten and adds up what they return, down to a million leaves",
        machine,
        all,
    );
    table
        .notes
        .push("ours and tokio join their children; Go's children send to a channel of their parent".into());
    table
        .notes
        .push("tokio: multi-thread runtime, and the current-thread runtime as a row of its own".into());
    Ok(table)
}
