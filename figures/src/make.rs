//! The figures about `selvedge-make`.

use std::time::Duration;

use crate::child::make::RUNNERS;
use crate::contender::inner;
use crate::effort::Effort;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case, reports, rows, values};
use crate::peers::{built, program_path};
use crate::table::{Need, Row, Table};

const WALL: Metric = Metric { key: "wall_ms", unit: "ms", better: Better::Lower };
const CPU: Metric = Metric { key: "cpu_ms", unit: "ms CPU", better: Better::Lower };
const SPEED_UP: Metric = Metric { key: "speed_up", unit: "x", better: Better::Higher };

/// How long one run may take, with the making of its project.
const LIMIT: Duration = Duration::from_secs(180);

/// The build runners with one program, ours first. Those that are not installed say so.
fn all(program: &str, numbers: &[u64], answer: u64) -> Result<Vec<Contender>, String> {
    built("selvedge-make", RUNNERS[0])?;
    let contender = |(number, runner): (usize, &&str)| {
        let mut contender = inner(runner, program, &[&[number as u64], numbers].concat()).on(2);
        contender.ours = number == 0;
        if number > 0
            && let Err(missing) = program_path(runner)
        {
            contender.command = Err(missing);
        }
        contender.answers("commands", answer)
    };
    Ok(RUNNERS.iter().enumerate().map(contender).collect())
}

/// Sets the aim beside a peer.
fn beside(contenders: &mut [Contender], peer: &str, times: f64) {
    for contender in contenders {
        if contender.system == peer {
            *contender = contender.clone().times(times);
        }
    }
}

/// `make-overhead`.
pub(crate) fn overhead(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut table: Vec<Row> = Vec::new();
    let sizes: &[u64] = if effort.is_small() { &[500] } else { &[10_000, 100_000] };
    for n in sizes {
        let mut contenders = all("make-null", &[*n], 0)?;
        beside(&mut contenders, "samu", 1.0);
        beside(&mut contenders, "ninja", 1.0 / 0.9);
        table.extend(case(&format!("nothing to do, {n} edges"), &contenders, WALL, effort, LIMIT)?);
        let mut contenders = all("make-dry", &[*n], *n)?;
        beside(&mut contenders, "samu", 1.0);
        table.extend(case(&format!("-n, {n} edges"), &contenders, CPU, effort, LIMIT)?);
    }
    let n = if effort.is_small() { 50 } else { 10_000 };
    for (program, what) in [("make-commands", "/bin/true"), ("make-shell", "a word of the shell")] {
        let mut contenders = all(program, &[n], n)?;
        if program == "make-commands" {
            beside(&mut contenders, "ninja", 1.0 / 0.6);
        }
        let reports = reports(what, &contenders, &[CPU.key, WALL.key], effort.rounds_at_most(3), LIMIT)?;
        for metric in [CPU, WALL] {
            let name = format!("{n} commands, each {what}");
            table.extend(rows(&name, &contenders, metric, &values(&reports, metric.key)));
        }
    }
    let title =
        "build runners: nothing to do, commands that are shown only, commands that do nothing".to_owned();
    Ok(Table { name: "make-overhead", title, machine, rows: table, notes: vec![] })
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
        if modules == 2 {
            contenders[0].need = Some(Need::AtLeast(1.9));
        }
        table.extend(case(program, &contenders, SPEED_UP, effort.rounds_at_most(3), LIMIT)?);
        table.push(Row::paper(program, &format!("HMP05 {figure}, ghc --make"), paper, "x"));
        table.push(Row::paper(program, &format!("HMP05 {figure}, make -j2"), make, "x"));
    }
    let title =
        "two commands at a time against one, over the module graphs of the paper's programs".to_owned();
    Ok(Table { name: "make-speedup", title, machine, rows: table, notes: vec![] })
}
