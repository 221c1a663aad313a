//! The figures about lazy values: `lazy-force`, `lazy-suite`, `lazy-conflicts`, `black-hole-wake`
//! and `spark`. `main.rs` calls them. Our programs and those of the standard library are in
//! `child/lazy.rs`; GHC's are in `figures/peers`.
//!
//! The names of the programs are made here and read in `child/lazy.rs`: `lazy-PROGRAM-ENGINE`. A
//! name that only one of the files knows is an error at run time.

use crate::contender::{LIMIT, NS, OURS, WALL_NS, inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::{GHC_LAZY, RUST_LAZY};
use crate::table::{Row, Table};

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure { name: "lazy-force", about: "the first force of a lazy value, and the next", measure: force },
    Figure { name: "lazy-suite", about: "lazy programs under each engine", measure: suite },
    Figure {
        name: "black-hole-wake",
        about: "the wake-up of a thread that waits for a lazy value, beside others",
        measure: wake,
    },
    Figure { name: "lazy-conflicts", about: "duplicated evaluations with two threads", measure: conflicts },
    Figure { name: "spark", about: "fib(30) with joins", measure: spark },
];

const FIRST_NS: Metric = Metric { key: "first_ns", unit: "ns", better: Better::Lower };
const AGAIN_NS: Metric = Metric { key: "again_ns", unit: "ns", better: Better::Lower };
const NEAR_NS: Metric = Metric { key: "near_ns", unit: "ns", better: Better::Lower };
const CACHED_NS: Metric = Metric { key: "cached_ns", unit: "ns", better: Better::Lower };
const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };
const DUPLICATES: Metric = Metric { key: "duplicates", unit: "a force", better: Better::Lower };
const AGAIN: Metric = Metric { key: "again", unit: "a thunk", better: Better::Lower };
const HOLES: Metric = Metric { key: "holes", unit: "a force", better: Better::Lower };
const LONGEST: Metric = Metric { key: "longest", unit: "thunks", better: Better::Lower };

/// The peer without an owner but one.
const LAZY_LOCK: &str = "Rust, std LazyLock<Box<dyn FnOnce>>";

fn ours(system: &str, program: &str, numbers: &[u64]) -> Contender {
    inner(system, &format!("lazy-{program}"), numbers)
}

/// `lazy-force`.
pub(crate) fn force(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(1_000_000);
    let sum = n * (n - 1) / 2;
    let run = |system, program| ours(system, program, &[n]).answers("sum", sum);
    let mut all = Vec::new();
    for (name, metric) in [
        ("first force", FIRST_NS),
        ("force again, in the first level of the cache", NEAR_NS),
        ("force again, in the cache", CACHED_NS),
        ("force again, beyond the cache", AGAIN_NS),
    ] {
        let contenders = [
            run(OURS, "force"),
            run(LAZY_LOCK, "force-lazy-lock"),
            run("Rust, std Arc<LazyLock<Box<dyn FnOnce>>>", "force-arc-lock"),
            run("Rust, std OnceLock", "force-once-lock"),
            outer_on(1, RUST_LAZY, "Rust, once_cell Lazy<Box<dyn FnOnce>>", "force", &[n])
                .answers("sum", sum),
        ];
        all.extend(case(name, &contenders, metric, effort, LIMIT)?);
    }
    for (name, metric) in [
        ("first force in a region", FIRST_NS),
        ("force again in a region, in the first level of the cache", NEAR_NS),
        ("force again in a region, in the cache", CACHED_NS),
        ("force again in a region, beyond the cache", AGAIN_NS),
    ] {
        let contenders =
            [run("selvedge, thunks of a region", "force-arena"), run(LAZY_LOCK, "force-lazy-lock")];
        all.extend(case(name, &contenders, metric, effort, LIMIT)?);
    }
    let title = "CPU time of the force of a lazy value, for the first time and again";
    let mut table = table("lazy-force", title, machine, all);
    table
        .notes
        .push("the values are made before the clock starts, in the order in which they are forced".into());
    table.notes.push(
        "beyond the cache: a million values. LazyLock lies in the vector itself, but can have no second \
         owner; a value of ours lies behind its handle, which is shared, as that of Arc<LazyLock>"
            .into(),
    );
    table.notes.push(
        "in the first level of the cache: 256 values; in the cache: 1024, which take 24 KiB as LazyLock, 32 KiB \
         in a region with the vector that has them, and 40 KiB as values of ours with their handles"
            .into(),
    );
    Ok(table)
}

/// The engines of the suite of which the mean cost is compared.
const UNSYNCHRONISED: &str = "selvedge, unsynchronised";
const LOCK_FREE: &str = "selvedge, lock-free";
const GREY: &str = "selvedge, grey holes";

/// `lazy-suite`.
pub(crate) fn suite(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (name, small, large, [of_small, of_large]) in [
        ("fibs", 1000, 1_000_000, [270_005_531, 440_160_765]),
        ("sieve", 20, 1000, [71, 7919]),
        ("knapsack", 10, 200, [560, 8494]),
        ("quicksort", 1000, 100_000, [5_658_812_082_931, 55_912_596_752_331_318]),
        ("tree", 6, 20, [64, 1 << 20]),
        ("queens", 6, 11, [4, 2680]),
        ("exp3", 5, 12, [243, 531_441]),
        ("tak", 2, 10, [3, 11]),
        ("wheel", 100, 20_000, [541, 224_737]),
        ("edit", 20, 1000, [14, 525]),
        ("digits", 20, 1000, [107_247_135, 19_882_998]),
    ] {
        let (size, answer) = if effort.is_small() { (small, of_small) } else { (large, of_large) };
        let run =
            |system, engine| ours(system, &format!("{name}-{engine}"), &[size]).answers("answer", answer);
        let contenders = [
            run(GREY, "grey"),
            run(UNSYNCHRONISED, "unsynchronised"),
            run(LOCK_FREE, "lockfree"),
            run("selvedge, claim at yield", "claim"),
            run("selvedge, grey holes that are claimed", "greyclaim"),
            run("selvedge, one exchange", "onecas"),
            run("selvedge, two exchanges", "twocas"),
            run("Rust, Arc<LazyLock<Box<dyn FnOnce>>>", "lazylock"),
            outer_on(1, GHC_LAZY, "GHC -O2 -N1", name, &[size]).answers("answer", answer),
        ];
        all.extend(case(name, &contenders, MS, effort, LIMIT)?);
    }
    let means = means(&all);
    let cost =
        [(LOCK_FREE, UNSYNCHRONISED), (GREY, LOCK_FREE)].map(|(engine, base)| cost(&all, engine, base));
    all.extend(cost.into_iter().flatten());
    let mut table =
        table("lazy-suite", "CPU time of lazy programs on one thread, under each engine", machine, all);
    table.notes.push(
        "after [HMP05 §6, Figures 4 to 6], in which two exchanges cost 54 %, and the lock-free entry 6 %"
            .into(),
    );
    table.notes.push(
        "GHC is told to keep the lists of queens, and the last argument of tak: it would fuse the lists away, \
         and evaluate the argument before the call"
            .into(),
    );
    table.notes.extend(means);
    Ok(table)
}

/// The geometric mean of each system's times, as a part of those of the unsynchronised engine.
fn means(rows: &[Row]) -> Option<String> {
    let mut means: Vec<(&str, f64, u32)> = Vec::new();
    for row in rows {
        let base = rows.iter().find(|base| base.case == row.case && base.system == UNSYNCHRONISED)?;
        let (Ok(value), Ok(base)) = (&row.value, &base.value) else { continue };
        let logarithm = (value / base).ln();
        match means.iter_mut().find(|(system, ..)| *system == row.system) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + logarithm, *count + 1),
            None => means.push((&row.system, logarithm, 1)),
        }
    }
    let means =
        means.iter().map(|(system, sum, count)| format!("{system} {:.3}", (sum / f64::from(*count)).exp()));
    Some(format!("geometric means against unsynchronised: {}", means.collect::<Vec<_>>().join("; ")))
}

/// By how many per cent the geometric mean of an engine's times is above that of another one.
fn cost(rows: &[Row], engine: &str, base: &str) -> Option<Row> {
    let of = |system: &str| -> Option<Vec<f64>> {
        rows.iter().filter(|row| row.system == system).map(|row| row.value.clone().ok()).collect()
    };
    let (times, base_times) = (of(engine)?, of(base)?);
    let logarithms: f64 = times.iter().zip(&base_times).map(|(time, base)| (time / base).ln()).sum();
    Some(Row {
        value: Ok(100.0 * ((logarithms / times.len() as f64).exp() - 1.0)),
        unit: "% above",
        ..Row::plain(&format!("geometric mean, above that of {base}"), engine)
    })
}

/// `lazy-conflicts`.
pub(crate) fn conflicts(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(4_000_000);
    let walk = |system, engine: &str| {
        ours(system, &format!("walk-{engine}"), &[n]).on(2).answers("sum", n * (n - 1) / 2)
    };
    let walks = [
        walk(OURS, "grey"),
        walk("selvedge, lock-free", "lockfree"),
        walk("selvedge, claim at yield", "claim"),
        walk("selvedge, grey holes that are claimed", "greyclaim"),
    ];
    let mut rows = case("two threads walk one list", &walks, DUPLICATES, effort, LIMIT)?;
    rows.extend(case("entries there of thunks under evaluation", &walks, HOLES, effort, LIMIT)?);
    let depth = if effort.is_small() { 6 } else { 20 };
    let both = |system, engine: &str| {
        ours(system, &format!("both-{engine}"), &[depth]).on(2).answers("sum", 1 << depth)
    };
    let trees = [both("selvedge, claim at yield", "claim"), both("selvedge, lock-free", "lockfree")];
    rows.extend(case("two threads enter one tree", &trees, AGAIN, effort, LIMIT)?);
    let longest = [both("selvedge, claim at yield", "claim")];
    rows.extend(case("the longest duplicate there", &longest, LONGEST, effort, LIMIT)?);
    let mut table = table(
        "lazy-conflicts",
        "evaluations of thunks that were duplicates, with two threads",
        machine,
        rows,
    );
    table.notes.push("after [HMP05 §7.5]".into());
    table.notes.push(
        "two threads enter one tree: the evaluations beyond one for each thunk of a tree, as a part of those; \
         the tree of each thread is its own, so that the thunks of a duplicate are no duplicates themselves"
            .into(),
    );
    table.notes.push("entries of thunks under evaluation: the threads that waited for a hole".into());
    table
        .notes
        .push("claim at yield [HMP05 §4.1]: no duplicate has more entries of thunks than a quantum".into());
    Ok(table)
}

/// `black-hole-wake`.
pub(crate) fn wake(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let rounds = if effort.is_small() { 20 } else { 2000 };
    let mut all = Vec::new();
    for others in [0, 100, 10_000].map(|others| if effort.is_small() { others / 10 } else { others }) {
        let run = |system, program: &str, others| {
            ours(system, program, &[others, rounds]).answers("sum", rounds * (rounds - 1) / 2)
        };
        let contenders = [
            run(OURS, "wake-owner", others),
            run("selvedge, alone", "wake-owner", 0),
            run("the paper's global list", "wake-list", others),
        ];
        all.extend(case(&format!("beside {others} that wait"), &contenders, WALL_NS, effort, LIMIT)?);
    }
    let rounds = if effort.is_small() { 5 } else { 300 };
    for others in [0, 100].map(|others| if effort.is_small() { others / 10 } else { others }) {
        let run = |system, program: &str, others| {
            ours(system, program, &[others, rounds]).on(2).answers("sum", rounds * (rounds - 1) / 2)
        };
        let contenders = [
            run("selvedge, thunks of a region", "wake-hole", others),
            run("selvedge, thunks of a region, alone", "wake-hole", 0),
            run("Rust, std LazyLock", "wake-lock", others),
        ];
        let name = format!("an OS thread, beside {others} that wait");
        all.extend(case(&name, &contenders, WALL_NS, effort, LIMIT)?);
    }
    let mut table = table(
        "black-hole-wake",
        "time from the update of a value until the thread that waits for it goes on",
        machine,
        all,
    );
    table.notes.push(
        "after [HMP05 §4.2], in which a waiting thread is in a list that is gone through when a CPU idles"
            .into(),
    );
    table.notes.push("an OS thread: it has looked for 1 ms, and is asleep at the update".into());
    Ok(table)
}

/// `spark`.
pub(crate) fn spark(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (n, answer) = if effort.is_small() { (15, 610) } else { (30, 832_040) };
    let mut all = Vec::new();
    // The kernel adds what an OS thread on another CPU has run to the CPU time of the process at
    // the ticks of its clock, up to 4 ms apart. So the rounds take 100 ms and more.
    for (cut_off, rounds) in [(0, 12), (10, 80), (20, 100)] {
        for workers in [1, 2] {
            let cpus = workers as usize;
            let rounds = effort.count(rounds);
            let numbers = [workers, n, cut_off, rounds];
            let answer = rounds * answer;
            let ghc = |system, program| {
                outer_on(cpus, GHC_LAZY, system, program, &numbers[1..]).answers("answer", answer)
            };
            let contenders = [
                ours(OURS, "join", &numbers).on(cpus).answers("answer", answer),
                outer_on(cpus, RUST_LAZY, "Rust, rayon::join", "join", &numbers).answers("answer", answer),
                ghc("GHC par", "par"),
                ghc("GHC monad-par", "monad-par"),
            ];
            let name = format!("cut-off {cut_off}, {workers} CPU{}", if workers == 1 { "" } else { "s" });
            all.extend(case(&name, &contenders, NS, effort, LIMIT)?);
            if workers == 2 {
                all.extend(case(&format!("{name}, wall clock"), &contenders, WALL_NS, effort, LIMIT)?);
            }
        }
    }
    let title = "time of a call of fib(30), in which each call above the cut-off is a join";
    let mut table = table("spark", title, machine, all);
    table.notes.push(
        "each program has done the same 8 times before the clock starts, and then does it 12, 80 or 100 times"
            .into(),
    );
    Ok(table)
}
