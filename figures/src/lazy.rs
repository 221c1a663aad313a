//! The figures about lazy values. The programs: `figures/src/child/lazy.rs`.

use crate::contender::{LIMIT, NS, OURS, inner, table};
use crate::effort::Effort;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::table::Table;

const FIRST_NS: Metric = Metric { key: "first_ns", unit: "ns", better: Better::Lower };
const AGAIN_NS: Metric = Metric { key: "again_ns", unit: "ns", better: Better::Lower };
const DUPLICATES: Metric = Metric { key: "duplicates", unit: "a force", better: Better::Lower };

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
    for (name, metric, aim) in [("first force", FIRST_NS, 1.0 / 0.6), ("force again", AGAIN_NS, 1.0 / 1.1)] {
        let contenders = [
            run(OURS, "force"),
            run("Rust, std LazyLock<Box<dyn FnOnce>>", "force-lazy-lock").times(aim),
            run("Rust, std OnceLock", "force-once-lock"),
            run("selvedge, thunks of a region", "force-arena"),
        ];
        all.extend(case(name, &contenders, metric, effort, LIMIT)?);
    }
    Ok(table(
        "lazy-force",
        "CPU time of the force of a lazy value, for the first time and again",
        machine,
        all,
    ))
}

/// `lazy-suite`.
pub(crate) fn suite(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for (name, small, large, [of_small, of_large]) in [
        ("fibs", 1000, 1_000_000, [270_005_531, 440_160_765]),
        ("sieve", 20, 1000, [71, 7919]),
        ("tree", 6, 20, [64, 1 << 20]),
        ("queens", 6, 9, [4, 352]),
    ] {
        let (size, answer) = if effort.is_small() { (small, of_small) } else { (large, of_large) };
        let run =
            |system, engine| ours(system, &format!("{name}-{engine}"), &[size]).answers("answer", answer);
        let contenders = [
            run("selvedge, grey holes", "grey"),
            run("selvedge, unsynchronised", "unsynchronised").times(1.0 / 1.08),
            run("selvedge, lock-free", "lockfree"),
            run("selvedge, one exchange", "onecas"),
            run("selvedge, two exchanges", "twocas"),
        ];
        all.extend(case(name, &contenders, NS, effort, LIMIT)?);
    }
    let mut table = table(
        "lazy-suite",
        "CPU time of one evaluated thunk of a lazy program on one thread, under each engine",
        machine,
        all,
    );
    table.notes.push(
        "after [HMP05 §6, Figures 4 to 6], in which two exchanges cost 54 %, and the lock-free entry 6 %"
            .into(),
    );
    Ok(table)
}

/// `lazy-conflicts`.
pub(crate) fn conflicts(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(4_000_000);
    let walk = ours(OURS, "conflicts", &[n]).on(2).answers("sum", n * (n - 1) / 2);
    let rows = case("two threads walk one list", &[walk], DUPLICATES, effort, LIMIT)?;
    let mut table = table(
        "lazy-conflicts",
        "evaluations of thunks that were duplicates, with two threads",
        machine,
        rows,
    );
    table.notes.push("after [HMP05 §7.5]; the aim is 10^-5 of the forces".into());
    Ok(table)
}

/// `spark`.
pub(crate) fn spark(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (n, answer) = if effort.is_small() { (15, 610) } else { (30, 832_040) };
    let mut all = Vec::new();
    for cut_off in [0, 10, 20] {
        for workers in [1, 2] {
            let run =
                ours(OURS, "join", &[workers, n, cut_off]).on(workers as usize).answers("answer", answer);
            let name = format!("cut-off {cut_off}, {workers} CPU{}", if workers == 1 { "" } else { "s" });
            all.extend(case(&name, &[run], NS, effort, LIMIT)?);
        }
    }
    Ok(table(
        "spark",
        "CPU time of a call of fib(30), in which each call above the cut-off is a join",
        machine,
        all,
    ))
}
