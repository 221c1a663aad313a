//! Runs every program in every surrounding, and compares what it prints, how it ends and what it
//! uses with what its head says.
//!
//! The head of a program's source is its documentation and its test:
//!
//! | heading | what follows | without it |
//! |---|---|---|
//! | `# Prints` | a block of what it writes to standard output and standard error; `..` stands for anything within a line | nothing |
//! | `# Status` | the status that the process ends with | 0 |
//! | `# CPU time` | the most milliseconds of CPU time that it uses, of all its threads and of the kernel for it, in one of three runs | 1,000 |
//!
//! `PROGRAM_RUNS` says how often each program runs in each surrounding (once without it), and
//! `PROGRAMS` which programs, by parts of their names between commas. `cargo xtask programs RUNS
//! [NAMES]` sets both.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a program may run. It is far more than any program needs, because several programs
/// share the CPUs.
const WALL_MAX: Duration = Duration::from_secs(20);

/// How a program is started.
struct Surrounding {
    name: &'static str,
    /// `SELVEDGE_WORKERS`.
    workers: &'static str,
    /// How many CPUs the process may use.
    cpus: usize,
    /// `SELVEDGE_IO`, if it is not the default.
    io: Option<&'static str>,
}

const SURROUNDINGS: &[Surrounding] = &[
    Surrounding { name: "run, two CPUs", workers: "0", cpus: 2, io: None },
    Surrounding { name: "run, one CPU", workers: "0", cpus: 1, io: None },
    Surrounding { name: "run_local, two CPUs", workers: "local", cpus: 2, io: None },
    Surrounding { name: "run_local, one CPU", workers: "local", cpus: 1, io: None },
    Surrounding { name: "run, two CPUs, without io_uring", workers: "0", cpus: 2, io: Some("epoll") },
    Surrounding { name: "run, one CPU, without io_uring", workers: "0", cpus: 1, io: Some("epoll") },
    Surrounding {
        name: "run_local, two CPUs, without io_uring",
        workers: "local",
        cpus: 2,
        io: Some("epoll"),
    },
    Surrounding {
        name: "run_local, one CPU, without io_uring",
        workers: "local",
        cpus: 1,
        io: Some("epoll"),
    },
];

/// A program, and the rules in the head of its source.
struct Program {
    name: String,
    binary: PathBuf,
    prints: Vec<String>,
    status: i32,
    cpu_max: Duration,
}

impl Program {
    fn of(source: &Path, binaries: &Path) -> Program {
        let name = source.file_stem().unwrap().to_str().unwrap().to_string();
        let text = fs::read_to_string(source).unwrap();
        let head: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim_end).collect();
        assert!(!head.is_empty(), "{name} says nothing about itself");
        let below = |heading: &str| {
            let at = head.iter().position(|line| line.trim() == heading)?;
            Some(head[at + 1..].iter().map(|line| line.strip_prefix(' ').unwrap_or(line)))
        };
        let number = |heading: &str| {
            below(heading).map(|mut lines| {
                let words = lines.next().unwrap_or_default().split([' ', '.', ',']);
                let number = words.filter_map(|word| word.parse().ok()).next();
                number.unwrap_or_else(|| panic!("{name}: no number below {heading}"))
            })
        };
        let prints = below("# Prints").map(|lines| {
            let block = lines.skip_while(|line| !line.starts_with("```")).skip(1);
            block.take_while(|line| !line.starts_with("```")).map(str::to_string).collect()
        });
        Program {
            binary: binaries.join(&name),
            prints: prints.unwrap_or_default(),
            status: number("# Status").unwrap_or(0),
            cpu_max: Duration::from_millis(number("# CPU time").unwrap_or(1000) as u64),
            name,
        }
    }
}

/// How often a program may run before it has used too much CPU time. The kernel counts the time
/// that a virtual machine's host takes away as the program's, so that one run may show too much. A
/// program that spins uses too much in each run.
const ATTEMPTS: usize = 3;

/// The time and the CPU time of one run.
#[derive(Clone, Copy, Default)]
struct Used {
    wall: Duration,
    cpu: Duration,
}

/// Runs a program, and again if it has only used too much CPU time.
///
/// # Errors
/// The differences between a run and the head of its source.
fn run(program: &Program, surrounding: &Surrounding) -> Result<Used, String> {
    let mut used = Vec::new();
    for _ in 0..ATTEMPTS {
        let run = run_once(program, surrounding)?;
        if run.cpu <= program.cpu_max {
            return Ok(run);
        }
        used.push(run.cpu);
    }
    Err(format!("used {used:?} of CPU time, each time more than {:?}", program.cpu_max))
}

/// Runs a program once.
///
/// # Errors
/// The differences between what it printed, or how it ended, and the head of its source.
fn run_once(program: &Program, surrounding: &Surrounding) -> Result<Used, String> {
    let directory = tempfile::tempdir().unwrap();
    let mut output = tempfile::tempfile().unwrap();
    let mut command = Command::new(&program.binary);
    command
        .env("SELVEDGE_WORKERS", surrounding.workers)
        .env("TMPDIR", directory.path())
        .env_remove("SELVEDGE_IO")
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .process_group(0);
    if let Some(io) = surrounding.io {
        command.env("SELVEDGE_IO", io);
    }
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let pid = Pid::from_child(&child);
    let ended = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let limit = Timespec { tv_sec: WALL_MAX.as_secs() as i64, tv_nsec: 0 };
    let has_ended = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&limit)).unwrap() == 1;
    let used = Used { wall: begun.elapsed(), cpu: cpu_time(child.id()) };
    if !has_ended {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait().unwrap();
    let mut printed = Vec::new();
    output.rewind().unwrap();
    output.read_to_end(&mut printed).unwrap();
    let printed = String::from_utf8_lossy(&printed);
    if !has_ended {
        return Err(format!(
            "still ran after {WALL_MAX:?}, with {:?} of CPU time; it printed:\n{printed}",
            used.cpu
        ));
    }
    if status.code() != Some(program.status) {
        return Err(format!("ended with {status}, not {}; it printed:\n{printed}", program.status));
    }
    let lines: Vec<&str> = printed.lines().collect();
    let same = |(expected, line): (&String, &&str)| is_like(expected, line);
    if lines.len() != program.prints.len() || !program.prints.iter().zip(&lines).all(same) {
        return Err(format!("was to print:\n{}\nbut printed:\n{printed}", program.prints.join("\n")));
    }
    Ok(used)
}

/// Whether a line is what was expected: `..` stands for anything.
fn is_like(expected: &str, line: &str) -> bool {
    let mut parts = expected.split("..");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        rest = match (rest.find(part), parts.peek()) {
            (_, None) => return rest.ends_with(part),
            (Some(at), _) => &rest[at + part.len()..],
            (None, _) => return false,
        };
    }
    rest.is_empty()
}

/// The CPU time of a process that has ended, or of one that runs: user and system, of all its
/// threads.
fn cpu_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, which may contain anything, ends with the last bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// The CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let all = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect()
}

fn programs() -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let binaries = Path::new(env!("CARGO_BIN_EXE_idle")).parent().unwrap();
    let wanted = std::env::var("PROGRAMS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|part| !part.is_empty()).collect();
    let mut sources: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.sort();
    let programs = sources.iter().map(|source| Program::of(source, binaries));
    programs.filter(|p| wanted.is_empty() || wanted.iter().any(|part| p.name.contains(part))).collect()
}

#[test]
fn every_program_does_what_its_head_says() {
    let runs: usize = std::env::var("PROGRAM_RUNS").map_or(1, |runs| runs.parse().unwrap());
    let (programs, cpus, begun) = (programs(), cpus(), Instant::now());
    assert!(!programs.is_empty(), "there is no such program");
    // One round after the other, so that a fault of any program shows early.
    let cases = programs.len() * SURROUNDINGS.len();
    let next = AtomicUsize::new(0);
    let failures: Mutex<BTreeMap<(usize, usize), String>> = Mutex::default();
    let most: Mutex<BTreeMap<usize, Used>> = Mutex::default();
    std::thread::scope(|scope| {
        // Most programs wait more than they compute.
        for _ in 0..2 * cpus.len() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= cases * runs {
                        break;
                    }
                    let (program, surrounding) =
                        (number % programs.len(), number / programs.len() % SURROUNDINGS.len());
                    if failures.lock().unwrap().contains_key(&(program, surrounding)) {
                        continue; // a program that hangs once would use up the time of all runs
                    }
                    let (what, place) = (&programs[program], &SURROUNDINGS[surrounding]);
                    // The process inherits the CPUs of this OS thread.
                    let mut allowed = CpuSet::new();
                    (0..place.cpus).for_each(|at| allowed.set(cpus[(number + at) % cpus.len()]));
                    sched_setaffinity(None, &allowed).unwrap();
                    match run(what, place) {
                        Ok(used) => {
                            let mut most = most.lock().unwrap();
                            let most = most.entry(program).or_default();
                            *most = Used { wall: most.wall.max(used.wall), cpu: most.cpu.max(used.cpu) };
                        }
                        Err(error) => {
                            let text = format!(
                                "{} ({}), round {}: {error}",
                                what.name,
                                place.name,
                                number / cases + 1
                            );
                            println!("{text}");
                            failures.lock().unwrap().insert((program, surrounding), text);
                        }
                    }
                }
            });
        }
    });
    let mut report =
        String::from("the most that a run took, in milliseconds:      time  CPU time  of at most\n");
    for (program, used) in most.into_inner().unwrap() {
        let Program { name, cpu_max, .. } = &programs[program];
        let (wall, cpu, cpu_max) = (used.wall.as_millis(), used.cpu.as_millis(), cpu_max.as_millis());
        let _ = writeln!(report, "{name:<42} {wall:>9} {cpu:>9} {cpu_max:>11}");
    }
    print!("{report}");
    println!("{} runs took {:.1} s", cases * runs, begun.elapsed().as_secs_f64());
    let failures = failures.into_inner().unwrap();
    let texts: Vec<&str> = failures.values().filter_map(|text| text.lines().next()).collect();
    assert!(failures.is_empty(), "{} of {cases} cases failed:\n{}", failures.len(), texts.join("\n"));
}

#[test]
fn two_dots_stand_for_anything() {
    assert!(is_like("a .. c", "a b c") && is_like("..", "") && is_like("..c", "bc") && is_like("a", "a"));
    assert!(!is_like("a .. c", "a b d") && !is_like("a", "ab") && !is_like("a..b..c", "acb"));
}
