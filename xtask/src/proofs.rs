//! The proofs: what each runs, and what its outcome depends on. `prove.rs` runs the proofs of
//! [`all`] that have not passed with the present inputs. `proofs.json` has the proofs that have
//! passed.
//!
//! A proof takes minutes and finds what the tests cannot: every interleaving of a model, undefined
//! behaviour, races, crashes, wrong answers of the figures' programs. It is as small as its build
//! allows, because a change of one crate should run few of them.

pub(crate) mod digest;
pub(crate) mod records;

use crate::command::{Invocation, minutes};
use crate::{fuzz, programs, soak};
use digest::Sources;

/// Something that holds for the tree, and takes minutes to show.
#[derive(Debug)]
pub(crate) struct Proof {
    /// Kind, and what it is about: `loom core`.
    pub(crate) name: String,
    pub(crate) sources: Sources,
    /// Whether a nightly compiler builds it.
    pub(crate) nightly: bool,
    pub(crate) turn: Turn,
    pub(crate) work: Work,
}

/// Where in a run a proof comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Alone and first, because the proof uses all CPUs or measures time.
    Alone,
    /// Beside another one, because the proof runs mostly on one CPU and bears a slow one.
    Beside,
    /// Alone and last: it needs what a proof of [`Beside`](Turn::Beside) has built.
    Last,
}

/// What a proof does.
#[derive(Debug)]
pub(crate) enum Work {
    /// These commands, in this order, until one fails.
    Commands(Vec<Invocation>),
    /// Packs every crate, and builds all of them from their packages.
    Packages,
}

impl Proof {
    fn of(name: impl Into<String>, sources: Sources, commands: Vec<Invocation>) -> Proof {
        Proof {
            name: name.into(),
            sources,
            nightly: false,
            turn: Turn::Beside,
            work: Work::Commands(commands),
        }
    }

    fn at(self, turn: Turn) -> Proof {
        Proof { turn, ..self }
    }

    fn by_nightly(self) -> Proof {
        Proof { nightly: true, ..self }
    }

    /// What the digest takes of the commands: they as a shell would take them.
    pub(crate) fn commands(&self) -> String {
        match &self.work {
            Work::Commands(commands) => {
                commands.iter().map(Invocation::display).collect::<Vec<_>>().join("\n")
            }
            Work::Packages => "packages".to_string(),
        }
    }
}

const NOTHING: Sources = Sources { tested: &[], built: &[], files: &[], comments: false };

/// Sources of a proof that runs tests of these packages.
const fn tested(tested: &'static [&'static str]) -> Sources {
    Sources { tested, ..NOTHING }
}

/// Every proof, in the order in which they are run within their turns: the longest first.
pub(crate) fn all() -> Vec<Proof> {
    let mut proofs = vec![
        Proof::of("programs", tested(&["selvedge-programs"]), vec![programs::invocation(programs::RUNS, "")])
            .at(Turn::Alone),
        Proof::of("stress", tested(&["selvedge"]), vec![soak::STRESS.invocation(STRESS_SECONDS)])
            .at(Turn::Alone),
        Proof {
            work: Work::Packages,
            ..Proof::of(
                "packages",
                Sources { built: PUBLISHED, files: &["xtask/src/packages.rs"], ..NOTHING },
                Vec::new(),
            )
            .at(Turn::Alone)
        },
    ];
    proofs.extend(miri());
    proofs.extend(fuzz_targets());
    proofs.extend(THREAD_SANITIZER.iter().map(thread_sanitizer));
    proofs.extend(LOOM.iter().map(loom));
    proofs.extend(optimized());
    proofs.push(address_sanitizer());
    proofs.push(shared_library());
    proofs.push(error_codes());
    proofs.extend(figures());
    proofs
}

/// The seconds of `cargo xtask stress` in CI.
const STRESS_SECONDS: u64 = 60;

/// What is published stands below the facade and the adapters.
const PUBLISHED: &[&str] = &["selvedge", "selvedge-compat"];

/// The figures' program, and the web server that it starts. Each is built as its own commands build
/// it: one build of both would give their common crates the features of both, and compile each
/// program a second time.
const FIGURES_PROGRAMS: [&str; 2] = ["figures", "selvedge-httpd"];

// Loom: every interleaving of the models.

/// Packages with protocols that loom checks, in the test binary `loom`.
const LOOM: &[&[&str]] = &[
    &["selvedge-core"],
    &["selvedge-sync"],
    &["selvedge-sched"],
    &["selvedge-stm"],
    &["selvedge-lazy"],
    &["selvedge-cnc"],
    &["selvedge-mpi"],
];

/// In a target directory of its own, because the flag changes every crate.
fn loom(package: &&'static [&'static str]) -> Proof {
    let words = ["cargo", "test", "--profile", soak::CHECKED, "--locked", "--no-fail-fast"];
    let words = [&words[..], &["--package", package[0], "--test", "loom"]].concat();
    let invocation = Invocation::new(minutes(15), &words)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", "target/loom");
    Proof::of(format!("loom {}", short(package[0])), tested(package), vec![invocation])
}

/// The name of a crate without the project's.
fn short(package: &str) -> &str {
    package.strip_prefix("selvedge-").unwrap_or(package)
}

// Miri: undefined behaviour.

/// The clock is the machine's; and `core` says itself where it turns a number into a pointer.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// The part of a test's name that says that it switches stacks, which neither Miri nor the thread
/// sanitizer knows.
const IN_DIRECT_STYLE: &str = "in_direct_style";

/// Runs tests under Miri, with the words behind `cargo miri test`. Through `rustup run`, because
/// `cargo +nightly` works only where `cargo` is rustup's proxy.
fn miri_of(name: &str, packages: &'static [&'static str], commands: &[&[&str]]) -> Proof {
    let commands = commands.iter().map(|words| {
        let miri = ["rustup", "run", "nightly", "cargo", "miri", "test", "--no-fail-fast", "--locked"];
        let words = [&miri[..], &["--package", packages[0]], *words].concat();
        Invocation::new(minutes(30), &words).env("MIRIFLAGS", MIRI_FLAGS).env("CNC_SEEDS", "2")
    });
    Proof::of(format!("miri {name}"), tested(packages), commands.collect()).by_nightly()
}

/// The schedulers under which the programs of every scheduler run. Their sizes under Miri are their
/// own.
const SCHEDULERS: [&str; 6] =
    ["round_robin", "per_core", "priority", "work_stealing_1", "work_stealing_2", "work_stealing_4"];

/// The engines of transactions.
const ENGINES: [&str; 4] = ["versioned", "figure3", "norec", "global_lock"];

/// Those tests of `stm` in which memory is freed while others may read it.
const STM_MODULES: [&str; 3] = ["semantics", "os_threads", "structures"];

/// The protocols of `mpi` in memory that processes share. Under Miri a segment is memory of this
/// process alone, so the tests of `segment.rs` that look at its file are not here. And the vectors
/// that are read in one piece.
const MPI_PROTOCOLS: &[&str] = &[
    "--lib",
    "--",
    "processes::ring::",
    "processes::bell::",
    "processes::loan::",
    "processes::rings::",
    "processes::segment::tests::the_parts",
    "wire::number_vectors::tests::the_visitor",
    "wire::number_vectors::tests::only_vectors",
    "wire::number_vectors::tests::vectors_within",
];

/// The modules of `cnc`'s tests, in proofs of some minutes each. A test of this file holds the list
/// against the suite.
const CNC_PARTS: &[(&str, &[&str])] = &[
    ("errors", &["errors::", "same_errors::", "noticed_faults::", "large_counts::"]),
    (
        "runs",
        &[
            "async_calls::",
            "cancelling::",
            "cleaning::",
            "lending::",
            "living::",
            "monitoring::",
            "outliving::",
        ],
    ),
    ("results", &["composing::", "misses::", "on_put::", "recording::", "results::", "streaming::"]),
    ("keys", &["keys::", "ranges::", "resetting::"]),
    ("random", &["interpreted::", "random_graphs::"]),
];

fn miri() -> Vec<Proof> {
    let mut proofs = Vec::new();
    for scheduler in SCHEDULERS {
        let tests = format!("every_scheduler::{scheduler}::");
        let words = ["--test", "suite", "--", &tests, "--skip", IN_DIRECT_STYLE];
        proofs.push(miri_of(&format!("schedulers {scheduler}"), &["selvedge-sched"], &[&words]));
    }
    for engine in ENGINES {
        let tests = STM_MODULES.map(|module| format!("{module}::{engine}::"));
        let mut words = vec!["--test", "suite", "--", "--skip", "random_structures::"];
        words.extend(tests.iter().map(String::as_str));
        proofs.push(miri_of(&format!("stm {engine}"), &["selvedge-stm"], &[&words]));
    }
    for (part, modules) in CNC_PARTS {
        let words = [&["--test", "suite", "--"], *modules].concat();
        proofs.push(miri_of(&format!("cnc {part}"), &["selvedge-cnc"], &[&words]));
    }
    proofs.extend([
        miri_of("core", &["selvedge-core"], &[&["--lib", "--test", "[!l]*"]]),
        miri_of(
            "sched",
            &["selvedge-sched"],
            &[&["--lib"], &["--test", "suite", "--", "work_stealing::", "--skip", "every_scheduler::"]],
        ),
        // What needs no help of the kernel's: without tokio's tests.
        miri_of(
            "sync",
            &["selvedge-sync"],
            &[&[
                "--test",
                "suite",
                "--",
                "--skip",
                "under_tokio::",
                "--skip",
                "one_shot::",
                "--skip",
                "statics::",
            ]],
        ),
        miri_of("scope", &["selvedge-scope"], &[&["--lib", "--test", "suite"]]),
        // Those tests that make no system call: hyper over the simulated network.
        miri_of(
            "compat",
            &["selvedge-compat"],
            &[&["--features", "hyper-server", "--test", "suite", "--", "simulated::"]],
        ),
        // All implementations within one OS thread that have no stacks.
        miri_of(
            "lightweight",
            &["selvedge-lightweight"],
            &[&[
                "--test",
                "suite",
                "--",
                "awaited::",
                "indirect::",
                "networks::",
                "applications::",
                "--skip",
                IN_DIRECT_STYLE,
            ]],
        ),
        miri_of("mpi", &["selvedge-mpi"], &[MPI_PROTOCOLS]),
        // Those tests that stay on their stacks.
        miri_of("lazy", &["selvedge-lazy"], &[&["--test", "suite", "--", "--skip", IN_DIRECT_STYLE]]),
    ]);
    proofs
}

// Fuzzing: hostile input for every parser.

/// The targets of each package. A test of this file holds the list against the files.
const FUZZ: &[(&[&str], &[&str])] = &[
    (&["selvedge-http"], &["chunks", "paths", "requests"]),
    (&["selvedge-client"], &["answers"]),
    (&["selvedge-web"], &["forms"]),
    (&["selvedge-gateway"], &["fastcgi_records", "program_heads"]),
    (&["selvedge-pipeline"], &["csv", "gzip", "json", "pipelines", "records", "xml"]),
    (&["selvedge-site"], &["configuration", "mighty_routes", "proxy_protocol", "route_paths"]),
    (&["selvedge-stack"], &["frames"]),
    (&["selvedge-make"], &["build_logs", "depfiles", "manifests"]),
    (&["selvedge-pipe"], &["scripts"]),
    (&["selvedge-dns"], &["dns_denials", "dns_messages", "zone_files"]),
    (&["selvedge-ftpd"], &["ftp_commands"]),
];

fn fuzz_targets() -> impl Iterator<Item = Proof> {
    FUZZ.iter().map(|(packages, targets)| {
        let sources = Sources {
            built: packages,
            files: &["fuzz/Cargo.toml", "fuzz/Cargo.lock", "fuzz/fuzz_targets/"],
            ..NOTHING
        };
        let name = format!("fuzz {}", short(packages[0]));
        Proof::of(name, sources, fuzz::invocations(fuzz::CI_SECONDS, targets))
    })
}

// Sanitizers.

const KNOWN_RACES: &str = "xtask/thread-sanitizer.txt";

/// Packages with tests of several OS threads, which the sanitizer watches for data races, and the
/// words that choose the tests.
const THREAD_SANITIZER: &[(&[&str], &[&str])] = &[
    (&["selvedge-cnc"], &["--test", "suite", "--", "--skip", ON_ONE_THREAD]),
    (&["selvedge-sched"], &["--test", "suite", "--", "every_scheduler::", "work_stealing::"]),
    (&["selvedge-sync"], &["--test", "suite", "--", "random_programs::", "os_threads::"]),
    (&["selvedge-core"], &["--test", "suite", "--", "foreign_joiners::", "mobile::", "several_cpus::"]),
    (&["selvedge-stm"], &["--test", "suite", "--test", "shaken", "--", "random_programs::", "os_threads::"]),
    (&["selvedge"], &["--test", "stress", "--"]),
];

/// A test of `cnc` with a million steps. The thread sanitizer would take a minute, and the test has
/// one OS thread.
const ON_ONE_THREAD: &str = "a_million_stuck_steps";

/// Data races, in a standard library that is instrumented too. A report that is left out says why
/// in the file of [`KNOWN_RACES`].
fn thread_sanitizer((packages, tests): &(&'static [&'static str], &'static [&'static str])) -> Proof {
    let words = ["rustup", "run", "nightly", "cargo", "test", "--no-fail-fast", "--locked", "-Zbuild-std"];
    let target = ["--target", PLATFORM, "--package", packages[0]];
    let words = [&words[..], &target, tests, &["--include-ignored", "--skip", IN_DIRECT_STYLE]].concat();
    let invocation = Invocation::new(minutes(20), &words)
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("TSAN_OPTIONS", &format!("suppressions=../../{KNOWN_RACES}"))
        .env("STRESS_SECONDS", "10")
        .env("STRESS_WITHOUT_STACKS", "1")
        .env("CNC_SEEDS", "2")
        .env("CARGO_TARGET_DIR", "target/thread-sanitizer");
    let sources = Sources { files: &[KNOWN_RACES], ..tested(packages) };
    Proof::of(format!("races {}", short(packages[0])), sources, vec![invocation]).by_nightly()
}

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Stacks that threads are switched between, and unwound.
fn address_sanitizer() -> Proof {
    let words = ["rustup", "run", "nightly", "cargo", "test", "--locked", "--target", PLATFORM];
    let words = [&words[..], &["--package", "selvedge-direct", "--tests"]].concat();
    let invocation = Invocation::new(minutes(8), &words)
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", "target/address-sanitizer");
    Proof::of("addresses direct", tested(&["selvedge-direct"]), vec![invocation]).by_nightly()
}

// Optimized builds.

/// Every primitive under 10,000 seeds and in every order of its threads, programs on a network in
/// many orders of its arrivals; stacks that threads are switched between; graphs under 1,000 seeds
/// of the scheduler that takes steps in any order, for each number of workers; threads and
/// processes of many forms.
fn optimized() -> [Proof; 6] {
    let of = |package: &'static [&'static str], words: &[&str], seeds: &str| {
        let cargo = ["cargo", "test", "--profile", soak::CHECKED, "--locked", "--package", package[0]];
        let words = [&cargo[..], words].concat();
        let invocation = Invocation::new(minutes(20), &words).env("CNC_SEEDS", seeds);
        Proof::of(format!("optimized {}", short(package[0])), tested(package), vec![invocation])
    };
    [
        // `cargo xtask soak` takes this number of seeds for all tests of graphs.
        of(&["selvedge-cnc"], &["--test", "suite", "--", "results::", "composing::"], "1000"),
        of(&["selvedge-sim"], &["--test", "suite", "--", "orders::"], ""),
        of(&["selvedge-direct"], &["--test", "suite"], ""),
        of(&["selvedge-core"], &["--test", "suite", "--", "threads::"], ""),
        of(&["selvedge-scope"], &["--test", "suite", "--", "threads::"], ""),
        of(&["selvedge-io"], &["--test", "suite", "--", "processes::"], ""),
    ]
}

/// Threads that an executable creates in a shared library with the whole of Selvedge. The package
/// lies outside the workspace, because the flag holds for all crates.
fn shared_library() -> Proof {
    let words = ["cargo", "test", "--locked", "--manifest-path", "programs/shared/Cargo.toml"];
    let invocation = Invocation::new(minutes(8), &words)
        .env("RUSTFLAGS", "-C prefer-dynamic")
        .env("CARGO_TARGET_DIR", "target/shared-library");
    let sources = Sources { built: &["selvedge"], files: &["programs/shared/"], ..NOTHING };
    Proof::of("shared library", sources, vec![invocation])
}

// What must not compile.

/// The packages with documented programs that the compiler must refuse. A test of this file
/// holds the list against the tree.
const REFUSED: &[&str] = &[
    "selvedge-cnc",
    "selvedge-core",
    "selvedge-coroutine",
    "selvedge-direct",
    "selvedge-flow",
    "selvedge-lazy",
    "selvedge-mpi",
    "selvedge-pipeline",
    "selvedge-scope",
    "selvedge-stm",
    "selvedge-sync",
    "selvedge-web",
];

/// Each refused program is refused with the error code that its documentation names. The stable
/// compiler takes any error, so a spelling mistake would pass.
fn error_codes() -> Proof {
    let cargo = ["rustup", "run", "nightly", "cargo", "test", "--doc", "--no-fail-fast", "--locked"];
    let packages = REFUSED.iter().flat_map(|package| ["--package", package]);
    let words: Vec<&str> = cargo.into_iter().chain(packages).collect();
    let invocation = Invocation::new(minutes(10), &words).env("CARGO_TARGET_DIR", "target/error-codes");
    let sources = Sources { built: REFUSED, comments: true, ..NOTHING };
    Proof::of("error codes", sources, vec![invocation]).by_nightly()
}

// Figures: the answers of every program of every figure, with small numbers; and whether a figure
// overlooks a wrong answer of ours.

/// The figures of a system: its name, the packages that they stand on, and their names. A test of
/// this file holds the list against the figures' program.
const FIGURES: &[(&str, &[&str], &[&str])] = &[
    (
        "threads",
        &[
            "selvedge-compat",
            "selvedge-core",
            "selvedge-io",
            "selvedge-sched",
            "selvedge-scope",
            "selvedge-sim",
            "selvedge-stm",
            "selvedge-sync",
        ],
        &[
            "threads-memory",
            "threads-switch",
            "threads-spawn",
            "mvar-ring",
            "foreign-wake",
            "mp-speedup",
            "threads-switch-mc",
            "fifo-idle",
            "fifo-busy",
            "timers",
            "simulation",
            "server-echo",
            "server-http",
            "job-queue",
            "blocking-call",
            "runner-start",
            "skynet",
            "cost-of-abstractions",
            "disk-random",
        ],
    ),
    (
        "stm",
        &["selvedge-io", "selvedge-sched", "selvedge-scope", "selvedge-stm"],
        &["stm-counter", "stm-size", "stm-disjoint", "stm-bank", "stm-retry", "stm-sets", "stamp"],
    ),
    (
        "lazy",
        &["selvedge-io", "selvedge-lazy", "selvedge-sched", "selvedge-scope"],
        &["lazy-force", "lazy-suite", "black-hole-wake", "lazy-conflicts", "spark"],
    ),
    (
        "cnc",
        &["selvedge-cnc", "selvedge-io", "selvedge-sched", "selvedge-scope"],
        &[
            "cnc-steps",
            "cnc-miss",
            "cnc-wavefront",
            "cnc-items",
            "cnc-six",
            "cnc-cholesky",
            "cnc-async",
            "cnc-trace",
            "cnc-schedulers",
        ],
    ),
    (
        "pipe",
        &["selvedge-flow", "selvedge-io", "selvedge-pipe", "selvedge-sched", "selvedge-scope"],
        &[
            "pipe-grep",
            "pipe-shell",
            "pipe-lines",
            "pipe-rewrite",
            "pipe-xml",
            "pipe-sort",
            "pipe-stages",
            "pipe-hop",
            "pipe-branch",
            "pipe-ahead",
            "pipe-memory",
        ],
    ),
    (
        "make",
        &["selvedge-make"],
        &["make-speedup", "make-overhead", "make-overhead-large", "make-commands", "make-projects"],
    ),
    ("lightweight", &["selvedge-lightweight"], &["lwc"]),
    (
        "mpi",
        &["selvedge-io", "selvedge-mpi", "selvedge-sched"],
        &[
            "mpi-latency",
            "mpi-bandwidth",
            "mpi-collectives",
            "mpi-waiting",
            "mpi-idle",
            "mpi-trapezoid",
            "mpi-serialise",
        ],
    ),
    ("graphs over ranks", &["selvedge-distributed", "selvedge-io", "selvedge-sched"], &["mpi-cnc"]),
    ("names and files", &["selvedge-dns", "selvedge-ftpd"], &["dns", "ftp"]),
    ("web", &["selvedge-httpd"], &["web-small", "web-16k", "web-pipelined", "web-log", "log-designs"]),
    (
        "web servers",
        &["selvedge-httpd", "selvedge-web"],
        &["web-app", "web-multicore", "web-proxy", "web-cgi", "web-reload", "web-disk", "web-idle"],
    ),
    ("stack", &["selvedge-httpd", "selvedge-stack"], &["stack-web", "stack-loss"]),
];

/// The figure that has a command of its own: no operation takes more instructions than were
/// published last.
const INSTRUCTIONS: &str = "instructions";

fn figures() -> Vec<Proof> {
    let run = |words: &[&str]| {
        let cargo = ["cargo", "run", "--quiet", "--release", "--package", "figures", "--locked", "--"];
        Invocation::new(minutes(15), &[&cargo, words].concat())
    };
    let built = || -> Vec<Invocation> {
        let build = ["cargo", "build", "--release", "--locked", "--package"];
        let build = |program| Invocation::new(minutes(20), &[&build[..], &[program]].concat());
        FIGURES_PROGRAMS.map(build).into()
    };
    let everything = Sources { built: &FIGURES_PROGRAMS, ..NOTHING };
    // The compiler is on one CPU for most of it, because it optimizes each crate as a whole.
    let mut proofs = vec![Proof::of("figures build", everything, built())];
    proofs.extend(FIGURES.iter().map(|(system, packages, names)| {
        let sources = Sources {
            built: packages,
            files: &["figures/Cargo.toml", "figures/peers/", "figures/src/"],
            ..NOTHING
        };
        let of = |purpose| run(&[&[purpose], *names].concat());
        let commands = [built(), vec![of("--check"), of("--faults")]].concat();
        Proof::of(format!("figures {system}"), sources, commands).at(Turn::Last)
    }));
    let count = [built(), vec![run(&["check-instructions"])]].concat();
    let counted = Sources { built: &["figures", "selvedge-httpd", "selvedge-pipe"], ..NOTHING };
    proofs.push(Proof::of(INSTRUCTIONS, counted, count).at(Turn::Last));
    proofs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proofs::digest::Inputs;
    use crate::workspace::Workspace;
    use std::collections::BTreeSet;

    /// The modules of `cnc`'s suite that have no tests.
    const WITHOUT_TESTS: [&str; 2] = ["on_rayon", "schedulers"];

    fn read(path: &str) -> String {
        std::fs::read_to_string(crate::workspace::root().join(path)).unwrap()
    }

    #[test]
    fn each_proof_has_a_name_of_its_own_and_sources_that_exist() {
        let workspace = Workspace::load().unwrap();
        let inputs = Inputs::read(&workspace).unwrap();
        let proofs = all();
        let digests = proofs.iter().map(|proof| inputs.digest(&proof.sources, &proof.commands()).unwrap());
        assert_eq!(digests.collect::<BTreeSet<_>>().len(), proofs.len());
        let names: BTreeSet<_> = proofs.iter().map(|proof| &proof.name).collect();
        assert_eq!(names.len(), proofs.len());
    }

    #[test]
    fn each_fuzz_target_belongs_to_one_proof() {
        let listed: Vec<&str> = FUZZ.iter().flat_map(|(_, targets)| *targets).copied().collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, fuzz::targets(&crate::workspace::root()).unwrap());
    }

    #[test]
    fn each_figure_belongs_to_one_proof() {
        let mut there = Vec::new();
        for path in crate::tidy::paths(&crate::workspace::root()).unwrap() {
            if !(path.starts_with("figures/src/") && path.ends_with(".rs")) {
                continue;
            }
            let text = read(&path);
            let Some((_, table)) = text.split_once("const FIGURES: &[Figure] =") else { continue };
            let (table, _) = table.split_once("];").unwrap();
            let names =
                table.split("name: \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
            there.extend(names);
        }
        let listed = FIGURES.iter().flat_map(|(_, _, names)| *names).chain(&[INSTRUCTIONS]);
        let mut listed: Vec<&str> = listed.copied().collect();
        listed.sort_unstable();
        there.sort_unstable();
        assert_eq!(listed, there);
    }

    #[test]
    fn each_package_with_refused_programs_is_listed() {
        let workspace = Workspace::load().unwrap();
        let paths = crate::tidy::paths(&workspace.root).unwrap();
        let refuses = |path: &&String| path.ends_with(".rs") && read(path).contains("```compile_fail,E");
        let there: BTreeSet<&str> = paths
            .iter()
            .filter(refuses)
            .filter_map(|path| {
                let inside = |dir: &str| path.strip_prefix(dir).is_some_and(|rest| rest.starts_with("/src/"));
                Some(workspace.packages.iter().find(|package| inside(&package.dir))?.name.as_str())
            })
            .filter(|name| *name != "xtask")
            .collect();
        assert_eq!(REFUSED.iter().copied().collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn miri_sees_each_module_of_cnc() {
        let main = read("crates/cnc/tests/suite/main.rs");
        let there: BTreeSet<&str> =
            main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
        let parts = CNC_PARTS.iter().flat_map(|(_, modules)| *modules);
        let listed: BTreeSet<&str> =
            parts.filter_map(|word| word.strip_suffix("::")).chain(WITHOUT_TESTS).collect();
        assert_eq!(listed, there);
    }

    #[test]
    fn what_is_published_is_packed() {
        let workspace = Workspace::load().unwrap();
        let digest = |packages| {
            let inputs = Inputs::read(&workspace).unwrap();
            inputs.packages(&Sources { built: packages, ..NOTHING }).unwrap()
        };
        let below: BTreeSet<String> = digest(PUBLISHED).into_iter().collect();
        for package in workspace.packages.iter().filter(|package| package.published) {
            assert!(below.contains(&package.name), "{} is published and no input", package.name);
        }
    }
}
