//! The figures about `selvedge-make`: `make-overhead` and `make-speedup`, beside ninja and GNU
//! make. `main.rs` calls them. `child/make.rs` makes the projects and runs the build runners.
//!
//! A case measures the wall's clock and the CPU time in the same runs. The second figure also shows
//! the numbers of [HMP05, Figures 7 to 9].

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

/// The contenders with aims beside peers.
fn beside(contenders: &[Contender], aims: &[(&str, f64)]) -> Vec<Contender> {
    let with_aim = |contender: &Contender| {
        let aim = aims.iter().find(|(peer, _)| contender.system == *peer);
        aim.map_or_else(|| contender.clone(), |(_, times)| contender.clone().times(*times))
    };
    contenders.iter().map(with_aim).collect()
}

/// Measures wall and CPU in the same runs. The aims are those of the first metric.
fn both(
    name: &str,
    contenders: &[Contender],
    metrics: [Metric; 2],
    aims: &[(&str, f64)],
    effort: Effort,
) -> Result<Vec<Row>, String> {
    let reports = reports(name, contenders, &metrics.map(|metric| metric.key), effort, LIMIT)?;
    let [first, second] = metrics;
    let mut table = rows(name, &beside(contenders, aims), first, &values(&reports, first.key));
    table.extend(rows(name, contenders, second, &values(&reports, second.key)));
    Ok(table)
}

/// `make-overhead`.
pub(crate) fn overhead(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut table: Vec<Row> = Vec::new();
    let sizes: &[u64] = if effort.is_small() { &[500] } else { &[10_000, 100_000] };
    for n in sizes {
        let null = all("make-null", &[*n], 0)?;
        let aims = [("samu", 1.0), ("ninja", 1.0 / 0.9)];
        table.extend(both(&format!("nothing to do, {n} edges"), &null, [WALL, CPU], &aims, effort)?);
        let dry = all("make-dry", &[*n], *n)?;
        table.extend(both(&format!("-n, {n} edges"), &dry, [CPU, WALL], &[("samu", 1.0)], effort)?);
    }
    // A command of the shell costs every build runner a shell, and tells less: fewer of them.
    let (external, shell) = if effort.is_small() { (50, 50) } else { (10_000, 2_000) };
    let few = effort.rounds_at_most(3);
    let commands = all("make-commands", &[external], external)?;
    let name = format!("{external} commands, each /bin/true");
    table.extend(both(&name, &commands, [CPU, WALL], &[("ninja", 1.0 / 0.6)], few)?);
    let commands = all("make-shell", &[shell], shell)?;
    let name = format!("{shell} commands, each a word of the shell");
    table.extend(both(&name, &commands, [CPU, WALL], &[], few)?);
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
        let mut session = inner("one session, shared interfaces", "make-session", &[modules, percent]).on(2);
        session.ours = true;
        contenders.push(session.answers("commands", modules));
        if modules == 2 {
            for contender in contenders.iter_mut().filter(|contender| contender.ours) {
                contender.need = Some(Need::AtLeast(1.9));
            }
        }
        table.extend(case(program, &contenders, SPEED_UP, effort.rounds_at_most(3), LIMIT)?);
        table.push(Row::paper(program, &format!("HMP05 {figure}, ghc --make"), paper, "x"));
        table.push(Row::paper(program, &format!("HMP05 {figure}, make -j2"), make, "x"));
    }
    let title =
        "two modules at a time against one, over the module graphs of the paper's programs".to_owned();
    Ok(Table { name: "make-speedup", title, machine, rows: table, notes: vec![] })
}
