//! The figure `lwc`: the three programs of light-weight concurrency under every implementation of
//! `selvedge-lightweight`, beside GHC, Lwt, Go, Erlang, Java and tokio; and what became of the
//! paper's findings.
//!
//! `main.rs` calls `lwc`. The programs are in `child/lwc.rs`, those of other languages in
//! `figures/peers`. A case of time and a case of memory stand for two of the paper's figures.

use crate::contender::{FORK_IO, GOROUTINES, TOKIO, inner, outer};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, reports, rows, values};
use crate::peers::{ERLANG, GHC_LWC, GO_LWC, JAVA, LWT};
use crate::table::{Row, Table};
use selvedge_lightweight::apps::answers::{digest, hamming, primes, sorted};
use selvedge_lightweight::implementations::ALL;
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "lwc",
    about: "three programs over nine kinds of light threads, beside GHC, Lwt, Go, Erlang, Java, tokio",
    measure: lwc,
}];

const CPU_MS: Metric = Metric { key: "ns", unit: "ns CPU", better: Better::Lower };
const BYTES: Metric = Metric { key: "bytes", unit: "bytes a thread", better: Better::Lower };

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A program at one size.
struct Case {
    program: &'static str,
    /// Its size and rounds when times are measured, and when answers are checked.
    numbers: [&'static [u64]; 2],
    /// The implementations that do not take part, because they have no room or take minutes.
    without: &'static [&'static str],
    /// The peers that do not.
    without_peers: &'static [&'static str],
    rounds_most: usize,
}

/// What takes a minute at a larger size: two switches of OS threads for each number, or a search
/// through all handlers.
const SLOW: &[&str] = &["sys", "vm", "equeue", "equeue-after"];
/// The same, and what has a stack for each thread: 4.5 million stacks take 20 GB.
const SLOW_OR_LARGE: &[&str] =
    &["sys", "vm", "equeue", "equeue-after", "callcc", "dlcont", "selvedge-direct"];

const OCAML_LWT: &str = "OCaml Lwt";
const ERLANG_PROCESSES: &str = "Erlang processes";
const VIRTUAL_THREADS: &str = "Java virtual threads";

/// Go and Erlang need 14 GB and more for 4.5 million threads. Lwt and Java collect garbage for
/// minutes.
const TOO_LARGE: &[&str] = &[GOROUTINES, OCAML_LWT, ERLANG_PROCESSES, VIRTUAL_THREADS];

const fn case(program: &'static str, numbers: [&'static [u64]; 2]) -> Case {
    Case { program, numbers, without: &[], without_peers: &[], rounds_most: 3 }
}

const CASES: &[Case] = &[
    case("kpn", [&[1000, 100], &[100, 2]]),
    case("kpn", [&[3000, 30], &[200, 2]]),
    case("kpn", [&[10_000, 10], &[300, 2]]),
    case("sieve", [&[300], &[50]]),
    case("sieve", [&[1000], &[200]]),
    Case { without: SLOW, ..case("sieve", [&[6000], &[150]]) },
    Case { without: SLOW, ..case("sieve", [&[27_449], &[100]]) },
    case("sorter", [&[30], &[10]]),
    case("sorter", [&[100], &[20]]),
    Case { without: SLOW, ..case("sorter", [&[300], &[25]]) },
    Case { without: SLOW, rounds_most: 1, ..case("sorter", [&[1000], &[30]]) },
    Case {
        without: SLOW_OR_LARGE,
        without_peers: TOO_LARGE,
        rounds_most: 1,
        ..case("sorter", [&[3000], &[40]])
    },
    Case { without: &["sys", "vm"], ..case("built", [&[100], &[10]]) },
    Case { without: &["sys", "vm"], ..case("built", [&[300], &[15]]) },
    Case { without: &["sys", "vm"], ..case("built", [&[1000], &[20]]) },
];

/// Which figures of the paper the programs stand for.
const PAPER: [(&str, &str); 4] = [
    ("kpn", "[Del Figure 10]"),
    ("sieve", "[Del Figure 11], its memory [Del Figure 14] and [Del Figure 16]"),
    ("sorter", "[Del Figure 12], its memory [Del Figure 15] and [Del Figure 17]"),
    ("sorter only built", "[Del Figure 13], its memory [Del Figure 18]"),
];

impl Case {
    fn numbers(&self, effort: Effort) -> &'static [u64] {
        self.numbers[usize::from(effort.is_small())]
    }

    /// The same name for any effort, because aims are found by it. Cases that differ in their size
    /// alone are one plot.
    fn name(&self) -> String {
        let program = if self.program == "built" { "sorter only built" } else { self.program };
        format!("{} numbers, {program}", self.numbers[0][0])
    }

    fn contenders(&self, effort: Effort) -> Vec<Contender> {
        let numbers = self.numbers(effort);
        let size = numbers[0] as usize;
        let answer = digest(&match self.program {
            "kpn" => hamming(size),
            "sieve" => primes(numbers[0]),
            "sorter" => sorted(size),
            _ => vec![],
        });
        let ours = ALL
            .iter()
            .filter(|by| !self.without.contains(&by.name))
            .map(|by| inner(by.name, &format!("lwc-{}-{}", self.program, by.name), numbers));
        let absent = |system: &str, why: &str| Contender {
            system: system.to_owned(),
            ours: false,
            command: Err(why.to_owned()),
            ..inner(system, "", &[])
        };
        let peers = [
            outer(GHC_LWC, FORK_IO, self.program, numbers),
            outer(LWT, OCAML_LWT, self.program, numbers),
            outer(GO_LWC, GOROUTINES, self.program, numbers),
            inner(TOKIO, &format!("tokio-lwc-{}", self.program), numbers),
            outer(ERLANG, ERLANG_PROCESSES, self.program, numbers),
            outer(JAVA, VIRTUAL_THREADS, self.program, numbers),
            absent("OCaml effects", "missing (OCaml 5 is not in Debian 12)"),
        ];
        let peers = peers.into_iter().filter(|peer| !self.without_peers.contains(&peer.system.as_str()));
        ours.chain(peers).map(|contender| contender.answers("digest", answer)).collect()
    }
}

/// `lwc`.
pub(crate) fn lwc(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for case in CASES {
        let contenders = case.contenders(effort);
        let name = case.name();
        let effort = effort.rounds_at_most(case.rounds_most);
        let reports = reports(&name, &contenders, &[CPU_MS.key, BYTES.key], effort, LIMIT)?;
        all.extend(rows(&name, &contenders, CPU_MS, &values(&reports, CPU_MS.key)));
        // A kpn has 7 threads: its memory is that of the process.
        if case.program != "kpn" {
            let memory = format!("{name}, memory");
            all.extend(rows(&memory, &contenders, BYTES, &values(&reports, BYTES.key)));
        }
    }
    let mut notes: Vec<String> =
        PAPER.iter().map(|(program, figures)| format!("{program}: {figures}")).collect();
    notes.push(
        "memory: the largest resident memory of the process, less that before the program, by threads; of GHC with \
         its nursery of 64 MB"
            .to_owned(),
    );
    notes.extend(findings(&all));
    Ok(Table {
        name: "lwc",
        title: "three programs of light threads that do little but talk, on one CPU".to_owned(),
        machine,
        rows: all,
        notes,
    })
}

/// What the paper found, whether the rows say the same, and why. `None` if that was not measured.
type Finding = (&'static str, Option<bool>, &'static str);

/// Asks whether one system takes at least some times what another one takes, in a case.
type Takes<'a> = &'a dyn Fn(&str, &str, f64, &str) -> Option<bool>;

/// What the paper found, and whether the rows say the same.
fn findings(rows: &[Row]) -> Vec<String> {
    let value = |case: &str, by: &str| {
        rows.iter().find(|row| row.case == case && row.system == by)?.value.clone().ok()
    };
    let takes =
        |case: &str, by: &str, times: f64, than: &str| Some(value(case, by)? >= times * value(case, than)?);
    let line = |(finding, holds, reason): Finding| match holds {
        Some(true) => format!("confirmed: {finding}; {reason}"),
        Some(false) => format!("refuted: {finding}; {reason}"),
        None => format!("not measured: {finding}"),
    };
    let all = about_kpn(&takes).into_iter().chain(about_sieve(&takes)).chain(about_sorter(&takes));
    all.map(line).collect()
}

fn about_kpn(takes: Takes<'_>) -> [Finding; 2] {
    const KPN: &str = "10000 numbers, kpn";
    [
        (
            "kpn: callcc is the slowest [Del Figure 10]",
            takes(KPN, "callcc", 1.0, "sys"),
            "a continuation is a stack that is switched to, and no copy of it; system calls cost more",
        ),
        (
            "kpn: tramp is slightly the best of the eight [Del Figure 10]",
            ["cont", "promise", "equeue", "callcc", "dlcont", "vm", "sys"]
                .iter()
                .map(|by| takes(KPN, by, 1.0, "tramp"))
                .reduce(|all, one| Some(all? && one?))
                .flatten(),
            "it does the least: one closure for each wait",
        ),
    ]
}

fn about_sieve(takes: Takes<'_>) -> [Finding; 7] {
    const SIEVE: &str = "1000 numbers, sieve";
    const LONG: &str = "27449 numbers, sieve";
    const MEMORY: &str = "27449 numbers, sieve, memory";
    [
        (
            "sieve: tramp is the fastest, cont just above [Del Figure 11]",
            Some(
                takes(LONG, "cont", 1.0, "tramp") == Some(true)
                    && takes(LONG, "cont", 1.5, "tramp") == Some(false),
            ),
            "cont allocates a closure for the operation and one for bind besides, and here an allocation is a call of \
             malloc, not an increment",
        ),
        (
            "sieve: promise takes twice the time of tramp [Del Figure 11]",
            takes(LONG, "promise", 2.0, "tramp"),
            "a promise for each operation and each bind",
        ),
        (
            "sieve: callcc and dlcont take twice the time of promise [Del Figure 11]",
            takes(LONG, "dlcont", 2.0, "promise"),
            "the paper copied stacks; a switch of stacks costs about what promise allocates",
        ),
        (
            "sieve: equeue does not scale with the threads [Del Figure 11]",
            takes(SIEVE, "equeue", 3.0, "equeue-directed"),
            "each event is offered to all handlers",
        ),
        (
            "sieve: offering events to later handlers first mends that [Del §6]",
            takes(SIEVE, "equeue", 1.5, "equeue-after"),
            "about half of the handlers are asked; directed delivery asks one",
        ),
        (
            "sieve: equeue is worse than sys [Del Figure 11]",
            takes(SIEVE, "equeue", 1.0, "sys"),
            "a handler that rejects costs some nanoseconds, a system call some hundred",
        ),
        (
            "sieve: tramp and cont need the least memory [Del Figure 14]",
            takes(MEMORY, "promise", 1.0, "tramp"),
            "a closure is as large as what it holds",
        ),
    ]
}

fn about_sorter(takes: Takes<'_>) -> [Finding; 2] {
    const SORTER: &str = "100 numbers, sorter";
    const BUILT: &str = "1000 numbers, sorter only built";
    [
        (
            "sorter: sys and vm are far behind [Del Figure 12]",
            takes(SORTER, "vm", 10.0, "tramp"),
            "each switch goes through the kernel",
        ),
        (
            "sorter, only built: dlcont and callcc are good, because nothing is captured [Del Figure 13]",
            takes(BUILT, "dlcont", 3.0, "tramp").map(|slow| !slow),
            "a thread that has not begun is a closure, without a stack",
        ),
    ]
}
