//! The figure `instructions`: user instructions of one operation. They depend neither on the
//! machine's speed nor on its other work. `main.rs` calls `instructions` for the table;
//! `published.rs` calls `count` and compares ours with `figures/instructions.json`.
//!
//! `operations` has the list. Our program is the first of each entry, because `Counting` may leave
//! the peers out.

use crate::callgrind;
use crate::child::stm::size_sum;
use crate::contender::{TOKIO, inner, outer};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, rows};
use crate::peers::{CPP, Compiled, built};
use crate::table::{Row, Table};
use crate::web::Counted;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "instructions",
    about: "user instructions of one operation, by callgrind",
    measure: instructions,
}];

const INSTRUCTIONS: Metric = Metric { key: "instructions", unit: "instructions", better: Better::Lower };

/// A program that makes a given number of operations.
struct Program {
    system: &'static str,
    contender: Box<dyn Fn(u64) -> Contender>,
}

impl Program {
    fn new(system: &'static str, contender: impl Fn(u64) -> Contender + 'static) -> Program {
        Program { system, contender: Box::new(contender) }
    }

    fn yields(system: &'static str, program: &'static str, peer: Option<Compiled>) -> Program {
        Program::new(system, move |yields| {
            program_of(peer, system, program, &[1000, yields])
                .answers("yields", yields)
                .answers("finished", 1000)
        })
    }

    fn ring(system: &'static str, program: &'static str) -> Program {
        Program::new(system, move |hops| inner(system, program, &[1000, hops]).answers("token", hops))
    }

    fn transaction(program: &'static str, reads: u64, writes: u64) -> Program {
        Program::new("selvedge", move |total| {
            inner("selvedge", program, &[reads, writes, total]).answers("sum", size_sum(reads, writes, total))
        })
    }

    /// A pipeline of the shell, which prints the sum of the numbers up to the given one.
    fn range_and_sum() -> Program {
        Program::new("selvedge-pipe", |last| {
            let command = built("selvedge-pipe", "selvedge-pipe").map(|path| {
                let script = format!("range 1 {last} | sum | bytes | prepend \"sum \"");
                [&path, "-j", "1", &script].map(str::to_owned).to_vec()
            });
            let contender = Contender { command, ..inner("selvedge-pipe", "", &[]) };
            contender.answers("sum", last * (last + 1) / 2)
        })
    }

    fn spawned(system: &'static str, program: &'static str, peer: Option<Compiled>) -> Program {
        Program::new(system, move |threads| {
            program_of(peer, system, program, &[threads]).answers("finished", threads)
        })
    }
}

fn program_of(peer: Option<Compiled>, system: &str, program: &str, numbers: &[u64]) -> Contender {
    match peer {
        Some(peer) => outer(peer, system, program, numbers),
        None => inner(system, program, numbers),
    }
}

/// An operation: how often the shorter and the longer run make it, and the programs that make it,
/// ours first.
struct Operation {
    name: &'static str,
    lengths: [u64; 2],
    programs: Vec<Program>,
}

/// The operations of threads, transactions and the shell.
fn operations() -> Vec<Operation> {
    let mut all = operations_of_threads();
    all.extend(operations_of_transactions());
    all.push(Operation {
        name: "number of range | sum in the shell",
        lengths: [20_000, 60_000],
        programs: vec![Program::range_and_sum()],
    });
    all
}

fn operation(name: &'static str, lengths: [u64; 2], programs: Vec<Program>) -> Operation {
    Operation { name, lengths, programs }
}

fn operations_of_threads() -> Vec<Operation> {
    const QUEUE: &str = "C++20 coroutine queue";
    const HAND_MADE_SHARED: &str = "tokio, hand-made shared MVar";
    vec![
        operation(
            "yield, 1000 threads",
            [200_000, 600_000],
            vec![
                Program::yields("selvedge", "switch", None),
                Program::yields(QUEUE, "switch", Some(CPP)),
                Program::yields("tokio, waking itself", "tokio-switch-self-wake", None),
                Program::yields("tokio, yield_now", "tokio-switch-yield-now", None),
            ],
        ),
        operation(
            "hop in a ring of 1000, on one OS thread for ever",
            [100_000, 300_000],
            vec![
                Program::ring("selvedge MVar", "ring"),
                Program::ring("tokio, hand-made MVar", "tokio-ring-handmade"),
            ],
        ),
        operation(
            "hop in a ring of 1000, which OS threads may share",
            [100_000, 300_000],
            vec![
                Program::ring("selvedge MVar, shared kind", "ring-shared"),
                Program::new(HAND_MADE_SHARED, |hops| {
                    inner(HAND_MADE_SHARED, "tokio-cores-ring-handmade", &[0, 1000, 1, hops])
                        .answers("token", hops)
                }),
                Program::ring("tokio mpsc(1)", "tokio-ring-mpsc"),
            ],
        ),
        operation(
            "fork and finish",
            [50_000, 150_000],
            vec![
                Program::spawned("selvedge fork", "spawn", None),
                Program::spawned(TOKIO, "tokio-spawn", None),
            ],
        ),
        operation(
            "spawn and finish, by the scheduler",
            [50_000, 150_000],
            vec![
                Program::spawned("selvedge", "spawn-event", None),
                Program::spawned(QUEUE, "spawn", Some(CPP)),
            ],
        ),
        operation(
            "spawn, finish and join",
            [50_000, 150_000],
            vec![
                Program::spawned("selvedge JoinHandle", "spawn-handle", None),
                Program::spawned("tokio JoinHandle", "tokio-spawn-handle", None),
            ],
        ),
    ]
}

fn operations_of_transactions() -> Vec<Operation> {
    vec![
        operation(
            "transaction that counts, of words",
            [20_000, 60_000],
            vec![Program::new("selvedge", |total| {
                inner("selvedge", "stm-counter", &[0, 1, total]).answers("count", total)
            })],
        ),
        operation(
            "transaction of 10 reads and 2 writes, of words",
            [5_000, 15_000],
            vec![Program::transaction("stm-size", 10, 2)],
        ),
        operation(
            "transaction of 10 reads and 2 writes, of nodes",
            [5_000, 15_000],
            vec![Program::transaction("stm-size-boxed", 10, 2)],
        ),
        operation(
            "transaction of 100 reads, of words",
            [1_000, 3_000],
            vec![Program::transaction("stm-size", 100, 0)],
        ),
    ]
}

/// Which programs' instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Ours alone.
    Ours,
    /// Ours and the peers'.
    All,
}

/// `instructions`.
pub(crate) fn instructions(_effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let rows = count(Counting::All)?;
    let mut table = crate::contender::table(
        "instructions",
        "user instructions of one operation, counted by callgrind: the difference between two runs, one longer than the other",
        machine,
        rows,
    );
    table.notes.push(format!("compiled by {}", crate::published::toolchain()));
    table.notes.push(
        "web: the 612-byte file over 64 keep-alive connections that are all in use, one worker; what the kernel does is not counted"
            .into(),
    );
    table.notes.push("Go and GHC are not counted".into());
    Ok(table)
}

/// Counts, and makes the rows.
///
/// # Errors
///
/// A wrong answer, or a program of ours that cannot be counted.
pub(crate) fn count(counting: Counting) -> Result<Vec<Row>, String> {
    let mut all = Vec::new();
    for Operation { name, lengths, mut programs } in operations() {
        if counting == Counting::Ours {
            programs.truncate(1);
        }
        let mut contenders = Vec::new();
        let mut samples = Vec::new();
        for Program { system, contender } in programs {
            eprintln!("instructions: {name}: {system}");
            let shown = contender(lengths[1]);
            samples.push(sample(name, shown.ours, system, callgrind::each(&contender, lengths))?);
            contenders.push(shown);
        }
        all.extend(rows(name, &contenders, INSTRUCTIONS, &samples));
    }
    all.extend(web(counting)?);
    Ok(all)
}

/// The programs that are counted, or the reason why there is nothing to show of a peer.
fn sample(
    operation: &str,
    ours: bool,
    system: &str,
    counted: Result<f64, MeasureError>,
) -> Result<Result<Vec<f64>, String>, String> {
    match counted {
        Ok(each) => Ok(Ok(vec![each])),
        Err(MeasureError::Absent(why)) if !ours => Ok(Err(why)),
        Err(MeasureError::Absent(why) | MeasureError::Failed(why) | MeasureError::Wrong(why)) => {
            Err(format!("{operation}: {system}: {why}"))
        }
    }
}

/// The rows about the web server.
fn web(counting: Counting) -> Result<Vec<Row>, String> {
    const LINE: &str = "a line of the access log";
    let mut all = Vec::new();
    // The same servers in both, so that the difference is that of one server.
    let mut without: Vec<Result<f64, String>> = Vec::new();
    for log in [false, true] {
        let name = if log { "keep-alive request, log on" } else { "keep-alive request, log off" };
        let mut servers = vec![Counted::ours(log)];
        if counting == Counting::All {
            servers.extend(Counted::nginx(log));
        }
        let mut contenders = Vec::new();
        let mut samples = Vec::new();
        for (index, server) in servers.into_iter().enumerate() {
            let system = server.name();
            eprintln!("instructions: {name}: {system}");
            samples.push(sample(name, index == 0, &system, server.each())?);
            contenders.push(Contender { system, ..inner("", "", &[]) });
        }
        let mut of_log = rows(name, &contenders, INSTRUCTIONS, &samples);
        for row in &mut of_log {
            row.command = None;
        }
        let values: Vec<_> = of_log.iter().map(|row| row.value.clone()).collect();
        all.extend(of_log);
        for (index, (on, off)) in values.iter().zip(&without).enumerate() {
            all.push(Row {
                value: on.clone().and_then(|on| off.clone().map(|off| on - off)),
                unit: INSTRUCTIONS.unit,
                ..Row::plain(LINE, &contenders[index].system)
            });
        }
        without = values;
    }
    Ok(all)
}
