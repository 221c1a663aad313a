//! The figures about transactions: counters, sizes, disjoint variables, a bank, sets, and
//! transactions that wait. `main.rs` calls them. Our programs are in `child/stm`; those of GHC and
//! of the Rust crates are in `figures/peers`.
//!
//! A program of ours has the name `stm-PROGRAM`, with the kind of variables or the engine in it.
//! Both sides are compared on the same number of CPUs.

use crate::child::stm::sets::SetMix;
use crate::child::stm::{ACCOUNTS, BALANCE, size_sum};
use crate::contender::{LIMIT, NS, OURS, WALL_NS, inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, Reports, case, reports, rows, values};
use crate::peers::{C_BANK, C_CORES, GHC_CORES, GHC_STM, RUST_STM};
use crate::table::{Row, Table};

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "stm-counter",
        about: "a shared counter: transactions, mutex and atomic",
        measure: counter,
    },
    Figure { name: "stm-size", about: "transactions of 10 to 1000 reads", measure: size },
    Figure {
        name: "stm-disjoint",
        about: "counters that no two threads share, 1 and 2 threads",
        measure: disjoint,
    },
    Figure { name: "stm-bank", about: "transfers between 1024 accounts, and audits", measure: bank },
    Figure {
        name: "stm-retry",
        about: "transactions that wait: ping-pong, a herd, 100,000 parked",
        measure: retry,
    },
    Figure { name: "stm-sets", about: "list, tree and hash map over variables", measure: sets },
];

const RATE: Metric = Metric { key: "rate", unit: "million/s", better: Better::Higher };
const BYTES: Metric = Metric { key: "bytes", unit: "bytes", better: Better::Lower };
const WAKE_NS: Metric = Metric { key: "wake_ns", unit: "ns", better: Better::Lower };
const GROWTH: Metric = Metric { key: "growth", unit: "x", better: Better::Lower };

const GHC: &str = "GHC STM";
const BOXED: &str = "selvedge TVar";

/// The other engines: their names in the table, and in the names of programs of ours.
const ENGINES: [(&str, &str); 3] = [
    ("selvedge, engine Figure3", "figure3"),
    ("selvedge, engine NOrec", "norec"),
    ("selvedge, engine GlobalLock", "global-lock"),
];

/// The Rust crates: their names in the table, and in the names of their programs.
const CRATES: [(&str, &str); 3] =
    [("Rust crate stm", "stm"), ("Rust crate fast-stm", "fast-stm"), ("Rust crate async-stm", "async-stm")];

/// A program of ours with a kind of variables.
fn ours(system: &str, program: &str, numbers: &[u64], cpus: usize) -> Contender {
    inner(system, &format!("stm-{program}"), numbers).on(cpus)
}

/// A program of GHC.
fn ghc(program: &str, numbers: &[u64], cpus: usize) -> Contender {
    outer_on(cpus, GHC_STM, GHC, program, numbers)
}

/// A program of a Rust crate.
fn rust((system, prefix): (&str, &str), program: &str, numbers: &[u64], cpus: usize) -> Contender {
    outer_on(cpus, RUST_STM, system, &format!("{prefix}-{program}"), numbers)
}

/// The case about this number of threads.
fn on(what: &str, threads: usize) -> String {
    match threads {
        1 => format!("{what}, 1 thread on 1 CPU"),
        n => format!("{what}, {n} threads on {n} CPUs"),
    }
}

/// `stm-counter`.
pub(crate) fn counter(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    let [few, many, most] = [4_000_000, 10_000_000, 40_000_000].map(|total| effort.count(total));
    for n in [1, 2] {
        let threads = n as u64;
        let counts = |contender: Contender, total| contender.answers("count", total);
        let numbers = |total| [threads, threads, total];
        let transactions =
            |system, program: &str, total| counts(ours(system, program, &numbers(total), n), total);
        let run = |system, program, total| counts(inner(system, program, &numbers(total)).on(n), total);
        let os = |system, program, total| counts(inner(system, program, &[threads, total]).on(n), total);
        let c =
            |system, program, total| counts(outer_on(n, C_CORES, system, program, &[threads, total]), total);
        let mut contenders = vec![
            transactions(OURS, "counter", many),
            c("C, POSIX threads and mutex", "counter-mutex", many),
            os("Rust OS threads, std::sync::Mutex", "counter-std-mutex", many),
            counts(ghc("counter", &[threads, few], n), few),
            transactions(BOXED, "counter-boxed", many),
            os("selvedge, OS threads", "stm-counter-os", many),
        ];
        contenders
            .extend(ENGINES.map(|(system, engine)| transactions(system, &format!("counter-{engine}"), many)));
        contenders.extend(CRATES.map(|of| counts(rust(of, "counter", &[threads, few], n), few)));
        all.extend(case(&on("transactions", n), &contenders, RATE, effort, LIMIT)?);
        let mvars = if n == 1 { few } else { few / 10 };
        all.extend(case(
            &on("mutex", n),
            &[
                run("selvedge threads, sync::Mutex", "counter-mutex", many),
                c("C, POSIX threads and mutex", "counter-mutex", many),
                os("selvedge sync::Mutex, OS threads", "counter-os-mutex", many),
                os("Rust OS threads, std::sync::Mutex", "counter-std-mutex", many),
                run("tokio tasks, tokio::sync::Mutex", "tokio-counter-mutex", few),
                counts(outer_on(n, GHC_CORES, "GHC forkIO, MVar", "counter-mvar", &[threads, mvars]), mvars),
            ],
            RATE,
            effort,
            LIMIT,
        )?);
        all.extend(case(
            &on("atomic", n),
            &[
                run("selvedge threads, AtomicU64", "counter-atomic", most),
                c("C, POSIX threads, __atomic", "counter-atomic", most),
            ],
            RATE,
            effort,
            LIMIT,
        )?);
    }
    let mut table = table(
        "stm-counter",
        "increments of one counter that all threads share: as transactions, under a mutex, as atomic additions",
        machine,
        all,
    );
    table.notes.push(
        "every increment is in conflict with every other: the worst case of [LZ07 §5.1, Figure 22], in which C led by far on one processor and by less than 2 on four"
            .into(),
    );
    table.notes.push(
        "the counter of the first row is a TWord; the crates stm and fast-stm run on OS threads, async-stm on tokio"
            .into(),
    );
    Ok(table)
}

/// `stm-size`.
pub(crate) fn size(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    let mut each = Vec::new();
    // The transactions of ours, of GHC and of the crates.
    for (name, reads, writes, totals) in [
        ("10 reads, 2 writes", 10, 2, [4_000_000, 2_000_000, 400_000]),
        ("100 reads", 100, 0, [2_000_000, 100_000, 40_000]),
        ("1000 reads", 1000, 0, [200_000, 1000, 4000]),
    ] {
        let [ours_total, ghc_total, crates_total] =
            totals.map(|total| if effort.is_small() { total / 1000 } else { total });
        let sums = |contender: Contender, total| contender.answers("sum", size_sum(reads, writes, total));
        let run =
            |system, program: &str, total| sums(ours(system, program, &[reads, writes, total], 1), total);
        let mut contenders = vec![
            run(BOXED, "size-boxed", ours_total),
            sums(ghc("size", &[reads, writes, ghc_total], 1), ghc_total),
            run("selvedge TWord", "size", ours_total),
        ];
        contenders.extend(ENGINES.map(|(system, engine)| run(system, &format!("size-{engine}"), ours_total)));
        contenders
            .extend(CRATES.map(|of| sums(rust(of, "size", &[reads, writes, crates_total], 1), crates_total)));
        let of_case = case(name, &contenders, NS, effort, LIMIT)?;
        each.push(of_case[0].value.clone().map(|ns| ns / reads as f64));
        all.extend(of_case);
    }
    if let [_, Ok(of_hundred), Ok(of_thousand)] = each[..] {
        all.push(Row {
            value: Ok(of_thousand / of_hundred),
            unit: "x",
            ..Row::plain("a read of 1000, beside one of 100", BOXED)
        });
    }
    let mut table = table(
        "stm-size",
        "CPU time of one transaction on one thread, which reads variables and writes the first two of them or none",
        machine,
        all,
    );
    table.notes.push(
        "GHC searches its log from its begin at each read. Ours does not, so ten times the reads are to take ten times the time; the aim leaves room because a thousand variables with their values are larger than a first-level cache"
            .into(),
    );
    Ok(table)
}

/// `stm-disjoint`.
pub(crate) fn disjoint(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let [few, many] = [4_000_000, 20_000_000].map(|total| effort.count(total));
    let with = |n: usize| {
        let threads = n as u64;
        let counts = |contender: Contender, total| contender.answers("count", total);
        let run = |system, program: &str, total| {
            counts(ours(system, program, &[threads, threads, total], n), total)
        };
        let mut contenders = vec![
            run(OURS, "disjoint", many),
            run(BOXED, "disjoint-boxed", many),
            counts(ghc("disjoint", &[threads, few], n), few),
        ];
        contenders.extend(ENGINES.map(|(system, engine)| run(system, &format!("disjoint-{engine}"), few)));
        contenders.extend(CRATES.map(|of| counts(rust(of, "disjoint", &[threads, few], n), few)));
        contenders
    };
    // A growth is that of neighbouring runs.
    let (ones, twos) = (with(1), with(2));
    let both: Vec<Contender> =
        ones.iter().cloned().zip(twos.iter().cloned()).flat_map(|(one, two)| [one, two]).collect();
    let samples = values(&reports("stm-disjoint", &both, &[NS.key], effort, LIMIT)?, NS.key);
    let (one, two): (Vec<_>, Vec<_>) =
        samples.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
    let mut all = rows("1 thread", &ones, NS, &one);
    all.extend(rows("2 threads", &twos, NS, &two));
    let growths: Vec<Result<Vec<f64>, String>> = one
        .into_iter()
        .zip(two)
        .map(|(one, two)| Ok(one?.iter().zip(two?).map(|(one, two)| two / one).collect()))
        .collect();
    let mut growing = rows("2 threads beside 1", &twos, GROWTH, &growths);
    for row in &mut growing {
        // Each system is compared with itself.
        row.ratio = None;
    }
    all.extend(growing);
    let mut table = table(
        "stm-disjoint",
        "CPU time of an increment as a transaction, where each thread has a counter of its own, and how it grows from one thread to two",
        machine,
        all,
    );
    table.notes.push(
        "the time of both threads is added, so 1.0 is a system in which threads that share no variable do not disturb each other"
            .into(),
    );
    Ok(table)
}

/// `stm-bank`.
pub(crate) fn bank(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (what, every, totals) in [
        ("transfers alone", 0, [8_000_000, 2_000_000, 2_000_000]),
        ("5 % audits", 20, [2_000_000, 100_000, 40_000]),
    ] {
        // The operations of ours and of the locks, of GHC, and of the crates.
        let [many, of_ghc, of_crates] =
            totals.map(|total| if effort.is_small() { (total / 1000).max(400) } else { total });
        for n in [1, 2] {
            let threads = n as u64;
            let right = |contender: Contender, total: u64| {
                let audits = (total / threads).checked_div(every).unwrap_or(0) * threads;
                contender.answers("wrong", 0).answers("audits", audits).answers("total", ACCOUNTS * BALANCE)
            };
            let run = |system, program: &str| {
                right(ours(system, program, &[threads, threads, every, many], n), many)
            };
            let locks = |system, program| right(ours(system, program, &[threads, every, many], n), many);
            let c = outer_on(n, C_BANK, "C, two ordered mutexes", "bank", &[threads, every, many]);
            let mut contenders = vec![
                run(OURS, "bank"),
                right(c, many),
                locks("Rust OS threads, two ordered std Mutexes", "bank-locks"),
                locks("Rust OS threads, one std Mutex", "bank-lock"),
                run(BOXED, "bank-boxed"),
                right(ghc("bank", &[threads, every, of_ghc], n), of_ghc),
            ];
            // Without Figure3, of which an attempt may see a wrong sum.
            for (system, engine) in &ENGINES[1..] {
                contenders.push(run(system, &format!("bank-{engine}")));
            }
            contenders
                .extend(CRATES.map(|of| right(rust(of, "bank", &[threads, every, of_crates], n), of_crates)));
            all.extend(case(&on(what, n), &contenders, WALL_NS, effort, LIMIT)?);
        }
    }
    let mut table = table(
        "stm-bank",
        "time on the wall's clock of an operation of a bank with 1024 accounts: a transfer between two, or an audit of all",
        machine,
        all,
    );
    table.notes.push(
        "no run counts in which an audit of ours saw a wrong sum, also in an attempt that did not commit, so the engine Figure3, which is not opaque, is not here; of the crates and of GHC only audits that committed are looked at, because theirs may see states that never existed"
            .into(),
    );
    table.notes.push(
        "an audit under locks takes all mutexes in the order of the accounts; with one mutex for all accounts there is nothing to take in parallel"
            .into(),
    );
    Ok(table)
}

/// One metric of several, as a case.
fn one_of(name: &str, contenders: &[Contender], metric: Metric, reports: &[Reports]) -> Vec<Row> {
    rows(name, contenders, metric, &values(reports, metric.key))
}

/// `stm-retry`.
pub(crate) fn retry(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let [stm, fast_stm, async_stm] = CRATES;
    // A round of all systems takes some seconds.
    let [few, many] = [40_000, 400_000].map(|total| if effort.is_small() { 200 } else { total });
    let token = |contender: Contender, total: u64| contender.answers("token", 2 * total);
    let mut all = case(
        "round trip between two threads, TMVar",
        &[
            token(ours(OURS, "ping-pong", &[0, many], 1), many),
            token(ghc("ping-pong", &[many], 1), many),
            token(rust(async_stm, "ping-pong", &[few], 1), few),
            token(rust(stm, "ping-pong", &[few], 1), few),
            token(rust(fast_stm, "ping-pong", &[few], 1), few),
        ],
        NS,
        effort,
        LIMIT,
    )?;
    let (waiters, writes) = (1000, if effort.is_small() { 5 } else { 500 });
    let finished = |contender: Contender| contender.answers("finished", waiters);
    all.extend(case(
        "a write for which 1000 threads wait",
        &[
            // Only the last write wakes them.
            finished(ours("selvedge wait_for", "herd", &[waiters, writes], 1)).answers("polls", waiters),
            finished(ghc("herd", &[waiters, writes], 1)),
            finished(rust(async_stm, "herd", &[waiters, writes / 5], 1)),
            finished(ours("selvedge retry", "herd-retry", &[waiters, writes], 1))
                .answers("polls", waiters * writes),
        ],
        NS,
        effort,
        LIMIT,
    )?);
    let parked = if effort.is_small() { 1000 } else { 100_000 };
    let live = |contender: Contender| contender.answers("live", parked).answers("finished", parked);
    let contenders = [
        live(ours(OURS, "parked", &[parked], 1)),
        live(ghc("parked", &[parked], 1)),
        live(rust(async_stm, "parked", &[parked], 1)),
    ];
    let measured = reports("stm-retry", &contenders, &[BYTES.key, WAKE_NS.key], effort, LIMIT)?;
    all.extend(one_of("one of 100,000 threads that wait", &contenders, BYTES, &measured));
    all.extend(one_of("wake one of 100,000, and let it end", &contenders, WAKE_NS, &measured));
    let mut table = table(
        "stm-retry",
        "CPU time and memory of transactions that wait, on one OS thread: round trips, a write for which 1000 threads wait in vain, 100,000 threads parked",
        machine,
        all,
    );
    table.notes.push(
        "the crates stm and fast-stm wait on OS threads, which share the CPU; the others wait as threads of a scheduler"
            .into(),
    );
    Ok(table)
}

/// `stm-sets`.
pub(crate) fn sets(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    let mut lost = Vec::new();
    for (structure, range, totals) in [
        ("list", 512, [400_000, 40_000, 2_000_000]),
        ("tree", 16_384, [2_000_000, 1_000_000, 2_000_000]),
        ("map", 16_384, [2_000_000, 2_000_000, 4_000_000]),
    ] {
        // The operations of ours, of GHC, and of locks.
        let [of_ours, of_ghc, of_locks] = totals.map(|total| if effort.is_small() { 2000 } else { total });
        for updates in [10, 50] {
            for threads in [1, 2] {
                let right = |contender: Contender, mix: SetMix| {
                    let answers = mix.answers();
                    contender
                        .answers("found", answers.found)
                        .answers("changed", answers.changed)
                        .answers("sum", answers.sum)
                };
                let mix = |total| SetMix { threads, range, updates, total };
                let numbers = |total| [threads, range, updates, total];
                let cpus = threads as usize;
                let run = |system, program: &str, total| {
                    right(ours(system, &format!("set-{program}"), &numbers(total), cpus), mix(total))
                };
                let of_ghc = right(ghc(structure, &numbers(of_ghc), cpus), mix(of_ghc));
                let (lock, collection) = match structure {
                    "list" => ("list-lock", "Rust OS threads, one RwLock<Vec>, sorted"),
                    "tree" => ("tree-lock", "Rust OS threads, one RwLock<BTreeSet>"),
                    _ => ("map-lock", "Rust OS threads, one RwLock<HashSet>"),
                };
                let mut contenders =
                    vec![run(OURS, structure, of_ours), of_ghc, run(collection, lock, of_locks)];
                if structure == "map" {
                    let dashmap = ("Rust crate dashmap", "dashmap");
                    contenders.push(right(rust(dashmap, "set", &numbers(of_locks), cpus), mix(of_locks)));
                }
                let share = updates / 2;
                let name = on(&format!("{structure}, {}/{share}/{share}", 100 - updates), cpus);
                let of_case = case(&name, &contenders, WALL_NS, effort, LIMIT)?;
                lost.extend(of_case.iter().skip(1).filter_map(|row| {
                    let ratio = row.ratio.filter(|ratio| *ratio < 1.0)?;
                    Some(format!("{name}: {} is {:.2} times faster than ours", row.system, 1.0 / ratio))
                }));
                all.extend(of_case);
            }
        }
    }
    let mut table = table(
        "stm-sets",
        "time on the wall's clock of an operation on a set, each a transaction: keys looked up, put in and taken out, in per cent of the operations",
        machine,
        all,
    );
    table.notes.push(
        "the list has 256 keys and the others 8192; each thread has its own share of the keys, and all shares are in one structure"
            .into(),
    );
    table.notes.push(
        "the map of ours is a TSet, which grows; that of GHC is an array of as many buckets as fit the keys, and hashes a key to itself"
            .into(),
    );
    table.notes.extend(lost);
    Ok(table)
}
