//! The figure `lwc`: the three programs of light-weight concurrency under every implementation of
//! `selvedge-lightweight`, beside GHC, Lwt, Go and tokio; and what became of the paper's findings.
//!
//! `main.rs` calls `lwc`. The programs are in `child/lwc.rs`, those of other languages in
//! `figures/peers`. A case of time and a case of memory stand for two of the paper's figures.

use std::time::Duration;

use selvedge_lightweight::apps::answers::{digest, hamming, primes, sorted};
use selvedge_lightweight::implementations::ALL;

use crate::contender::{FORK_IO, GOROUTINES, OURS, TOKIO, inner, outer};
use crate::effort::Effort;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, reports, rows, values};
use crate::peers::{GHC_LWC, GO_LWC, LWT};
use crate::table::{Row, Table};

const CPU_MS: Metric = Metric { key: "ns", unit: "ns CPU", better: Better::Lower };
const BYTES: Metric = Metric { key: "bytes", unit: "bytes a thread", better: Better::Lower };

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A program with its sizes.
struct Case {
    /// The figures of the paper that have it.
    paper: &'static str,
    program: &'static str,
    /// Its numbers when times are measured, and when answers are checked.
    numbers: [&'static [u64]; 2],
    /// The implementations that do not take part, because they have no room or take minutes.
    without: &'static [&'static str],
    /// The peers that do not.
    without_peers: &'static [&'static str],
    rounds_most: usize,
}

/// What is a minute's work at a larger size: two switches of OS threads for each number, or a
/// search through all handlers.
const SLOW: &[&str] = &["sys", "vm", "equeue", "equeue-after"];
/// The same, and what has a stack for each thread: there is room for some 30,000.
const SLOW_OR_LARGE: &[&str] =
    &["sys", "vm", "equeue", "equeue-after", "callcc", "dlcont", "selvedge-direct"];

const OCAML_LWT: &str = "OCaml Lwt";

const CASES: &[Case] = &[
    Case {
        paper: "Figure 10",
        program: "kpn",
        numbers: [&[10_000, 10], &[200, 2]],
        without: &[],
        without_peers: &[],
        rounds_most: 3,
    },
    Case {
        paper: "Figures 11, 14 and 16",
        program: "sieve",
        numbers: [&[1000], &[200]],
        without: &[],
        without_peers: &[],
        rounds_most: 3,
    },
    Case {
        paper: "Figures 11, 14 and 16",
        program: "sieve",
        numbers: [&[27_449], &[100]],
        without: SLOW,
        without_peers: &[],
        rounds_most: 3,
    },
    Case {
        paper: "Figures 12, 15 and 17",
        program: "sorter",
        numbers: [&[100], &[20]],
        without: &[],
        without_peers: &[],
        rounds_most: 3,
    },
    Case {
        paper: "Figures 12, 15 and 17",
        program: "sorter",
        numbers: [&[1000], &[30]],
        without: SLOW_OR_LARGE,
        without_peers: &[],
        rounds_most: 1,
    },
    Case {
        paper: "Figures 12, 15 and 17",
        program: "sorter",
        numbers: [&[3000], &[40]],
        without: SLOW_OR_LARGE,
        // Go needs 14 GB for so many, and GHC and Lwt collect garbage for minutes.
        without_peers: &[GOROUTINES, OCAML_LWT],
        rounds_most: 1,
    },
    Case {
        paper: "Figures 13 and 18",
        program: "built",
        numbers: [&[1000], &[20]],
        without: &["sys", "vm"],
        without_peers: &[],
        rounds_most: 3,
    },
];

impl Case {
    fn numbers(&self, effort: Effort) -> &'static [u64] {
        self.numbers[usize::from(effort.is_small())]
    }

    /// The same name for any effort, because aims are found by it.
    fn name(&self) -> String {
        let size = self.numbers[0][0];
        match self.program {
            "kpn" => format!("kpn, {size} numbers"),
            "sieve" => format!("sieve to {size}"),
            "sorter" => format!("sorter of {size}"),
            _ => format!("sorter of {size}, only built"),
        }
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
        let ours = ALL.iter().filter(|by| !self.without.contains(&by.name)).map(|by| {
            let system =
                if by.name == OURS { OURS.to_owned() } else { format!("selvedge-lightweight {}", by.name) };
            inner(&system, &format!("lwc-{}-{}", self.program, by.name), numbers)
        });
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
            absent("OCaml effects", "missing (OCaml 5 is not in Debian 12)"),
            absent("Java virtual threads", "missing (JDK 21 is not in Debian 12)"),
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
        CASES.iter().map(|case| format!("{}: [Del {}]", case.name(), case.paper)).collect();
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

/// What the paper found, and whether the rows say the same.
fn findings(rows: &[Row]) -> Vec<String> {
    let value = |case: &str, by: &str| {
        let system = if by == OURS { OURS.to_owned() } else { format!("selvedge-lightweight {by}") };
        rows.iter().find(|row| row.case == case && row.system == system)?.value.clone().ok()
    };
    // Whether `by` takes at least `times` what `than` takes.
    let takes =
        |case: &str, by: &str, times: f64, than: &str| Some(value(case, by)? >= times * value(case, than)?);
    const KPN: &str = "kpn, 10000 numbers";
    const SIEVE: &str = "sieve to 1000";
    const LONG: &str = "sieve to 27449";
    const SORTER: &str = "sorter of 100";
    const BUILT: &str = "sorter of 1000, only built";
    let small = "sieve to 27449, memory";
    let findings = [
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
            takes(small, "promise", 1.0, "tramp"),
            "a closure is as large as what it holds",
        ),
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
    ];
    let line = |(finding, holds, reason): (&str, Option<bool>, &str)| match holds {
        Some(true) => format!("confirmed: {finding}; {reason}"),
        Some(false) => format!("refuted: {finding}; {reason}"),
        None => format!("not measured: {finding}"),
    };
    findings.into_iter().map(line).collect()
}
