//! The figures about the kernel's pipes and about MVars: pairs of threads that talk, beside threads
//! that wait. `main.rs` calls them, and the programs are in `child/pipes.rs`. The pipelines of
//! coroutines are another subject, in `streams.rs`.
//!
//! The figures are `fifo-idle`, over the number of idle threads, and `fifo-busy`, over the number
//! of pairs. The paper's are [LZ07 §5.1].

use crate::contender::{inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::C_FIFO;
use crate::table::{Row, Table};
use std::time::Duration;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "fifo-idle",
        about: "128 pairs over 4 KB pipes, beside up to a million idle threads",
        measure: idle,
    },
    Figure { name: "fifo-busy", about: "4 to 4096 pairs over 4 KB pipes", measure: busy },
];

const RATE: Metric = Metric { key: "rate", unit: "MB/s", better: Better::Higher };

/// Bytes that a pair exchanges in one conversation, one message each way.
const CONVERSATION: u64 = 2 * 32 * 1024;
const LIMIT: Duration = Duration::from_secs(120);

/// The contenders of one point: how many pairs and idle threads, how many conversations each pair
/// has.
struct Point {
    pairs: u64,
    idle: u64,
    conversations: u64,
}

impl Point {
    fn ours(&self, system: &str, program: &str, workers: u64) -> Contender {
        let numbers = [workers, self.pairs, self.idle, self.conversations];
        self.checked(inner(system, program, &numbers).on(workers.max(1) as usize))
    }

    fn posix(&self, cpus: usize) -> Contender {
        let system = if cpus == 1 { "C, POSIX threads, 1 CPU" } else { "C, POSIX threads, 2 CPUs" };
        let numbers = [self.pairs, self.idle, self.conversations];
        self.checked(outer_on(cpus, C_FIFO, system, "pipes", &numbers))
    }

    fn checked(&self, contender: Contender) -> Contender {
        contender
            .answers("bytes", self.pairs * CONVERSATION * self.conversations)
            .answers("wrong", 0)
            .answers("woken", 0)
    }
}

const ONE: &str = "selvedge 1 worker";
const TWO: &str = "selvedge 2 workers";
const TOKIO_ONE: &str = "tokio, current thread";
const TOKIO_TWO: &str = "tokio, 2 workers";

/// `fifo-idle`.
pub(crate) fn idle(effort: Effort) -> Result<Table, String> {
    const PAIRS: u64 = 128;
    let machine = Machine::now();
    // A run of ours on two CPUs takes a second, because the aims are some per cent.
    let conversations = if effort.is_small() { 2 } else { 256 * effort.seconds };
    let point = |idle| Point { pairs: PAIRS, idle, conversations };
    let mut all = Vec::new();
    let idle = if effort.is_small() { &[0, 100][..] } else { &[0, 100, 1000, 9000][..] };
    for &idle in idle {
        let point = point(idle);
        all.extend(case(
            &format!("{idle} idle on pipes, 1 CPU"),
            &[point.ours(ONE, "fifo", 0), point.posix(1), point.ours(TOKIO_ONE, "tokio-fifo", 0)],
            RATE,
            effort,
            LIMIT,
        )?);
        all.extend(case(
            &format!("{idle} idle on pipes, 2 CPUs"),
            &[point.ours(TWO, "fifo", 2), point.posix(2), point.ours(TOKIO_TWO, "tokio-fifo", 2)],
            RATE,
            effort,
            LIMIT,
        )?);
    }
    let million = point(effort.count(1_000_000));
    let waiting = [million.ours(ONE, "fifo-mvars", 0), million.ours(TWO, "fifo-mvars", 2)];
    all.extend(case("1 million idle on MVars", &waiting, RATE, effort, LIMIT)?);
    all.extend([ONE, TWO].into_iter().filter_map(|system| spread(&all, system)).collect::<Vec<_>>());
    all.push(Row::paper("throughput", "LZ07 §5.1, Figure 20: Haskell, 2007", 1.3, "x POSIX threads"));
    let mut table = table(
        "fifo-idle",
        "128 pairs of threads exchange messages of 32 KB through pipes of 4 KB, beside idle threads",
        machine,
        all,
    );
    table.notes.push(format!(
        "{} MB a run (the paper: 64 GB); every message's ends are compared, the last ones byte by byte",
        PAIRS * CONVERSATION * conversations / 1_000_000
    ));
    table.notes.push(
        "a process here may have 20 000 descriptors: 9 000 idle pipes and 256 at work are 18 512".into(),
    );
    Ok(table)
}

/// By how much the slowest of a system's medians is below its first, in percent.
fn spread(rows: &[Row], system: &str) -> Option<Row> {
    let rates: Vec<f64> = rows
        .iter()
        .filter(|row| row.system == system)
        .map(|row| row.value.clone().ok())
        .collect::<Option<_>>()?;
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Some(Row {
        value: Ok(100.0 * (1.0 - slowest / rates.first()?)),
        unit: "%",
        ..Row::plain("loss, no idle thread to the slowest", system)
    })
}

/// `fifo-busy`.
pub(crate) fn busy(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for pairs in [4, 16, 64, 256, 1024, 4096] {
        // As many bytes at every point, as long as each pair talks at least three times.
        let whole = (16_384 * effort.seconds / pairs).max(3);
        let conversations = if effort.is_small() { 1 } else { whole };
        let point = Point { pairs, idle: 0, conversations };
        all.extend(case(
            &format!("{pairs} pairs, 1 CPU"),
            &[point.ours(ONE, "fifo", 0), point.posix(1), point.ours(TOKIO_ONE, "tokio-fifo", 0)],
            RATE,
            effort,
            LIMIT,
        )?);
        all.extend(case(
            &format!("{pairs} pairs, 2 CPUs"),
            &[point.ours(TWO, "fifo", 2), point.posix(2), point.ours(TOKIO_TWO, "tokio-fifo", 2)],
            RATE,
            effort,
            LIMIT,
        )?);
    }
    let mut table = table(
        "fifo-busy",
        "pairs of threads exchange messages of 32 KB through pipes of 4 KB, and no thread is idle",
        machine,
        all,
    );
    table
        .notes
        .push("in the paper (Figure 21) POSIX threads are ahead below 32 threads, the library above".into());
    Ok(table)
}
