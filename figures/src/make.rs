//! The figures about `selvedge-make`, beside ninja, samurai and GNU make. `main.rs` calls them.
//! `child/make.rs` and `child/projects.rs` make the projects and run the build runners.
//!
//! A case measures the wall's clock and the CPU time in the same runs. `make-speedup` also shows
//! the numbers of [HMP05, Figures 7 to 9].

use crate::child::make::{MAKE, RUNNERS, SAMU};
use crate::child::projects::{PROJECTS, commands as project_commands};
use crate::contender::inner;
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, reports, rows, values};
use crate::peers::{SAMURAI, built, program_path};
use crate::table::{Row, Table};
use std::time::Duration;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "make-speedup",
        about: "module graphs built by two commands at a time against one",
        measure: speed_up,
    },
    Figure {
        name: "make-overhead",
        about: "build runners: 10,000 edges, nothing to do and -n",
        measure: overhead,
    },
    Figure {
        name: "make-overhead-large",
        about: "build runners: 100,000 edges, nothing to do and -n",
        measure: overhead_large,
    },
    Figure { name: "make-commands", about: "build runners: commands that do nothing", measure: commands },
    Figure {
        name: "make-projects",
        about: "build runners: real projects from nothing, and nothing to do",
        measure: projects,
    },
];

const WALL: Metric = Metric { key: "wall_ms", unit: "ms", better: Better::Lower };
const CPU: Metric = Metric { key: "cpu_ms", unit: "ms CPU", better: Better::Lower };
const NULL: Metric = Metric { key: "null_ms", unit: "ms", better: Better::Lower };
const SPEED_UP: Metric = Metric { key: "speed_up", unit: "x", better: Better::Higher };

/// How long one run may take, with the making of its project.
const LIMIT: Duration = Duration::from_secs(180);

/// The build runners with one program, ours first. A build runner that is not installed says so.
fn all(program: &str, numbers: &[u64], answer: u64) -> Result<Vec<Contender>, String> {
    built("selvedge-make", RUNNERS[0])?;
    let contender = |(number, runner): (usize, &&str)| {
        let number = number as u64;
        let mut contender = inner(runner, program, &[&[number], numbers].concat()).on(2);
        contender.ours = number == 0;
        let path = match number {
            0 => Ok(String::new()),
            SAMU => SAMURAI.executable(),
            _ => program_path(runner),
        };
        if let Err(missing) = path {
            contender.command = Err(missing);
        }
        contender.answers("commands", answer)
    };
    Ok(RUNNERS.iter().enumerate().map(contender).collect())
}

/// Measures wall and CPU in the same runs.
fn both(
    name: &str,
    contenders: &[Contender],
    metrics: [Metric; 2],
    effort: Effort,
) -> Result<Vec<Row>, String> {
    let reports = reports(name, contenders, &metrics.map(|metric| metric.key), effort, LIMIT)?;
    let [first, second] = metrics;
    let mut table = rows(name, contenders, first, &values(&reports, first.key));
    table.extend(rows(name, contenders, second, &values(&reports, second.key)));
    Ok(table)
}

/// Builds of this many edges: with nothing to do, and with commands that are only shown.
fn graph(n: u64, effort: Effort) -> Result<Vec<Row>, String> {
    let null = all("make-null", &[n], 0)?;
    let mut rows = both(&format!("nothing to do, {n} edges"), &null, [WALL, CPU], effort)?;
    let dry = all("make-dry", &[n], n)?;
    rows.extend(both(&format!("-n, {n} edges"), &dry, [CPU, WALL], effort)?);
    Ok(rows)
}

/// `make-overhead`.
pub(crate) fn overhead(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let rows = graph(if effort.is_small() { 500 } else { 10_000 }, effort)?;
    let title = "build runners: 10,000 edges with nothing to do, and commands that are shown only".to_owned();
    Ok(Table { name: "make-overhead", title, machine, rows, notes: notes() })
}

/// `make-overhead-large`.
pub(crate) fn overhead_large(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let rows = graph(if effort.is_small() { 2_000 } else { 100_000 }, effort)?;
    let title =
        "build runners: 100,000 edges with nothing to do, and commands that are shown only".to_owned();
    Ok(Table { name: "make-overhead-large", title, machine, rows, notes: notes() })
}

/// `make-commands`.
pub(crate) fn commands(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut table: Vec<Row> = Vec::new();
    // A command of the shell costs every build runner a shell, and tells less: fewer of them.
    let (external, shell) = if effort.is_small() { (50, 50) } else { (10_000, 1_000) };
    // A round takes half a minute.
    let few = effort.rounds_at_most(2);
    let without_samurai = |contenders: Vec<Contender>| -> Vec<Contender> {
        contenders.into_iter().filter(|contender| contender.system != RUNNERS[SAMU as usize]).collect()
    };
    let contenders = without_samurai(all("make-commands", &[external], external)?);
    let name = format!("{external} commands, each /bin/true");
    table.extend(both(&name, &contenders, [CPU, WALL], few)?);
    let contenders = without_samurai(all("make-shell", &[shell], shell)?);
    let name = format!("{shell} commands, each a word of the shell");
    table.extend(both(&name, &contenders, [CPU, WALL], few)?);
    let title = "build runners: commands that do nothing, two at a time".to_owned();
    let polls = "samurai has no row: the port in muon looks at its child processes without a pause, which samurai \
                 itself does not";
    Ok(Table { name: "make-commands", title, machine, rows: table, notes: vec![polls.into(), NO_N2.into()] })
}

/// `make-projects`.
pub(crate) fn projects(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut table: Vec<Row> = Vec::new();
    let count = if effort.is_small() { 1 } else { PROJECTS.len() };
    for (number, (project, meson)) in PROJECTS[..count].iter().enumerate() {
        let number = number as u64;
        let count = project_commands(number);
        let mut contenders = all("make-project", &[number], *count.as_ref().unwrap_or(&0))?;
        for contender in &mut contenders {
            if let Err(missing) = &count {
                contender.command = Err(missing.clone());
            }
            match contender.system == RUNNERS[MAKE as usize] {
                true if meson.is_some() => contender.command = Err("Meson writes no Makefile".to_owned()),
                // The Makefiles of CMake have other commands.
                true => contender.answers.clear(),
                false => contender.answers.push(("again", 0.0)),
            }
        }
        let keys = [WALL.key, CPU.key, NULL.key];
        let reports = reports(project, &contenders, &keys, effort.rounds_at_most(3), LIMIT)?;
        let all = format!("{project}, all");
        table.extend(rows(&all, &contenders, WALL, &values(&reports, WALL.key)));
        table.extend(rows(&all, &contenders, CPU, &values(&reports, CPU.key)));
        let null = format!("{project}, nothing to do");
        table.extend(rows(&null, &contenders, NULL, &values(&reports, NULL.key)));
    }
    let title = "real projects of CMake and Meson, built from nothing and once more, two commands at a time"
        .to_owned();
    let mut notes = notes();
    notes
        .push("that port looks at its child processes without a pause, which samurai itself does not".into());
    Ok(Table { name: "make-projects", title, machine, rows: table, notes })
}

/// Why there is no row of n2.
const NO_N2: &str = "n2 has no row: neither Debian nor crates.io has it (a crate of that name is another program), \
                     and its repository is the only source";

/// The facts about the peers.
fn notes() -> Vec<String> {
    vec!["samurai is the port of it in muon, built from Debian's source of muon".into(), NO_N2.into()]
}

/// `make-speedup`.
pub(crate) fn speed_up(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut table: Vec<Row> = Vec::new();
    let programs = [
        (2, "2 modules", "Figure 7", 1.32, 1.52),
        (15, "15 modules", "Figure 8", 1.2, 1.24),
        (31, "31 modules", "Figure 9", 1.13, 0.82),
    ];
    for (modules, program, figure, paper, make) in programs {
        let percent = if effort.is_small() { 1 } else { 100 };
        let mut contenders = all("make-modules", &[modules, percent], modules)?;
        let mut session = inner("one session, shared interfaces", "make-session", &[modules, percent]).on(2);
        session.ours = true;
        contenders.push(session.answers("commands", modules));
        let keys = [SPEED_UP.key, WALL.key];
        let mut reports = reports(program, &contenders, &keys, effort.rounds_at_most(3), LIMIT)?;
        table.extend(rows(program, &contenders, SPEED_UP, &values(&reports, SPEED_UP.key)));
        table.push(Row::paper(program, &format!("HMP05 {figure}, ghc --make"), paper, "x"));
        table.push(Row::paper(program, &format!("HMP05 {figure}, make -j2"), make, "x"));
        // The session reads each interface once, a compiler of its own reads all that it needs: the
        // session comes first here, and is not slower.
        contenders.rotate_right(1);
        reports.rotate_right(1);
        table.extend(rows(
            &format!("{program}, two at a time"),
            &contenders,
            WALL,
            &values(&reports, WALL.key),
        ));
    }
    let title =
        "two modules at a time against one, over the module graphs of the paper's programs".to_owned();
    Ok(Table { name: "make-speedup", title, machine, rows: table, notes: vec![] })
}
