//! The figures about graphs of steps: `cnc-steps`, `cnc-miss`, `cnc-wavefront`, `cnc-items` and
//! `cnc-six`, the programs of [NCM11 §4]. `main.rs` calls them. Our programs and rayon's are in
//! `child/cnc.rs`; those of TBB, OpenMP and GHC are in `figures/peers`.
//!
//! The first number of a program of ours is its engine, by the constants of `child/cnc.rs`. A case
//! on two CPUs runs every contender on the same two.

use crate::child::cnc::cholesky::answer as factor_answer;
use crate::child::cnc::kernels;
use crate::child::cnc::steps::corner;
use crate::child::cnc::trace;
use crate::child::cnc::{ENGINES, LOOP, RAYON, STEALING};
use crate::contender::{LIMIT, OURS, WALL_NS, inner, outer_on, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case};
use crate::peers::{GHC_PAR, OPEN_MP, RUST_ITEMS, TBB, TBB_AND_OPEN_MP};
use crate::table::{Row, Table};

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure { name: "cnc-steps", about: "steps of a graph: empty, with a put, chains", measure: steps },
    Figure { name: "cnc-miss", about: "steps each of which misses an item", measure: miss },
    Figure { name: "cnc-wavefront", about: "a step for each cell of a table", measure: wavefront },
    Figure { name: "cnc-items", about: "puts and gets in each kind of storage", measure: items },
    Figure { name: "cnc-six", about: "the six programs of the paper", measure: six },
    Figure { name: "cnc-cholesky", about: "a factor of a matrix in tiles", measure: cholesky },
    Figure { name: "cnc-async", about: "steps with continuations", measure: asynchronous },
    Figure { name: "cnc-trace", about: "steps of a graph that is looked at", measure: trace },
    Figure { name: "cnc-schedulers", about: "the six programs under every scheduler", measure: schedulers },
];

const MS: Metric = Metric { key: "ms", unit: "ms", better: Better::Lower };
const RATE: Metric = Metric { key: "rate", unit: "million/s", better: Better::Higher };

const RAYON_NAME: &str = "rayon";
const MONAD_PAR: &str = "GHC monad-par";

/// A program of this binary.
pub(crate) fn ours(system: &str, program: &str, numbers: &[u64], cpus: usize) -> Contender {
    let contender = inner(system, &format!("cnc-{program}"), numbers).on(cpus);
    // Loops and rayon are peers, although this binary has them.
    Contender { ours: system.starts_with(OURS), ..contender }
}

fn on(what: &str, workers: usize) -> String {
    format!("{what}, {workers} worker{}", if workers == 1 { "" } else { "s" })
}

/// The time of two workers beside that of one, out of the first rows of two cases.
fn growth(what: &str, one: &[Row], two: &[Row]) -> Row {
    let speed_up = || Ok(one[0].value.clone()? / two[0].value.clone()?);
    Row { value: speed_up(), unit: "x", ..Row::plain(&format!("{what}, 2 workers beside 1"), &one[0].system) }
}

/// `cnc-steps`.
pub(crate) fn steps(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for workers in [1, 2] {
        all.extend(steps_on(workers, effort)?);
    }
    let mut table = table("cnc-steps", "time on the wall's clock of one step, or one task", machine, all);
    table.notes.push(
        "the peers' puts are stores: no check that each is the only one, and no step could wait for them"
            .into(),
    );
    table
        .notes
        .push("an OpenMP program with one thread runs a task where it is made, and makes no task".into());
    Ok(table)
}

/// The rows of `cnc-steps` on this number of workers.
fn steps_on(workers: usize, effort: Effort) -> Result<Vec<Row>, String> {
    let n = effort.count(1_000_000);
    let sum = n * (n - 1) / 2;
    let depth = if effort.is_small() { 9 } else { 19 };
    let mut all = Vec::new();
    let w = workers as u64;
    let run = |program, size| ours(OURS, program, &[w, size], workers);
    let rayon = |program: &str, size| ours(RAYON_NAME, &format!("rayon-{program}"), &[w, size], workers);
    let tbb = |program, size| outer_on(workers, TBB, "TBB task_group", program, &[w, size]);
    let omp = |program, size| outer_on(workers, OPEN_MP, "OpenMP tasks", program, &[w, size]);
    let par = |program, size| outer_on(workers, GHC_PAR, MONAD_PAR, program, &[w, size]);
    let ended = |contender: Contender| contender.answers("steps", n);
    all.extend(case(
        &on("a step that does nothing", workers),
        &[
            ended(run("empty", n)),
            ended(tbb("empty", n)),
            ended(outer_on(workers, TBB, "TBB function_node", "function-node", &[w, n])),
            ended(rayon("empty", n)),
            ended(omp("empty", n)),
            ended(par("empty", n)),
        ],
        WALL_NS,
        effort,
        LIMIT,
    )?);
    let summed = |contender: Contender| contender.answers("sum", sum);
    let put = summed(run("put", n));
    all.extend(case(
        &on("a step with one put", workers),
        &[put, summed(tbb("put", n)), summed(rayon("put", n)), summed(omp("put", n)), summed(par("put", n))],
        WALL_NS,
        effort,
        LIMIT,
    )?);
    all.extend(case(
        &on("a chain of tags", workers),
        &[ended(run("chain", n)), ended(tbb("chain", n)), ended(rayon("chain", n))],
        WALL_NS,
        effort,
        LIMIT,
    )?);
    let nodes = |contender: Contender| contender.answers("steps", (2 << depth) - 1);
    all.extend(case(
        &on("a tree of tags", workers),
        &[
            nodes(run("tree", depth)),
            nodes(tbb("tree", depth)),
            nodes(rayon("tree", depth)),
            nodes(omp("tree", depth)),
            nodes(par("tree", depth)),
        ],
        WALL_NS,
        effort,
        LIMIT,
    )?);
    Ok(all)
}

/// `cnc-miss`.
pub(crate) fn miss(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(1_000_000);
    let mut all = Vec::new();
    for workers in [1, 2] {
        let w = workers as u64;
        let run = |system, program, kind| ours(system, program, &[kind, w, n], workers).answers("last", n);
        let replay = run(OURS, "miss", 0);
        // With two workers some items are there in time.
        let replay = if workers == 1 { replay.answers("misses", n) } else { replay };
        all.extend(case(
            &on("a step that misses its item once", workers),
            &[
                replay,
                run("selvedge, declared items", "miss", 1),
                run("selvedge, async steps", "miss", 2),
                run("selvedge, no step misses", "get", 0),
                outer_on(workers, GHC_PAR, MONAD_PAR, "miss", &[w, n]).answers("last", n),
            ],
            WALL_NS,
            effort,
            LIMIT,
        )?);
        let stuck = ours(OURS, "stuck", &[w, n], workers).answers("waiting", n);
        let what = format!("{n} steps that wait for ever, and the report of them");
        all.extend(case(&on(&what, workers), &[stuck], MS, effort, LIMIT)?);
    }
    let mut table = table(
        "cnc-miss",
        "time on the wall's clock of a step that gets an item and puts the next one",
        machine,
        all,
    );
    table.notes.push(
        "the tags are put in the worst order: each step waits until the one before it has run, and runs again"
            .into(),
    );
    Ok(table)
}

/// `cnc-wavefront`.
pub(crate) fn wavefront(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    // A task of OpenMP and of monad-par takes microseconds.
    let [side, few] = if effort.is_small() { [30, 30] } else { [1000, 300] };
    let of = |contender: Contender, side: u64| contender.answers("corner", u64::from(corner(side as u32)));
    let with = |workers: usize| {
        let w = workers as u64;
        let run = |system, kind| of(ours(system, "wavefront", &[kind, w, side], workers), side);
        let contenders = [
            run("selvedge, steps put tags", 1),
            of(outer_on(workers, TBB, "TBB continue_node", "wavefront", &[w, side]), side),
            of(outer_on(workers, OPEN_MP, "OpenMP depend", "wavefront", &[w, few]), few),
            of(ours("rayon, by diagonals", "rayon-wavefront", &[w, side], workers), side),
            of(outer_on(workers, GHC_PAR, MONAD_PAR, "wavefront", &[w, few]), few),
            run("selvedge, all tags put first", 0),
            run("selvedge, declared items, worst order", 2),
            of(ours("serial loop", "loop-wavefront", &[side], workers), side),
        ];
        case(&on("a cell", workers), &contenders, WALL_NS, effort, LIMIT)
    };
    let (one, two) = (with(1)?, with(2)?);
    let growth = growth("a cell", &one, &two);
    let rows = [one, two, vec![growth]].concat();
    let mut table = table(
        "cnc-wavefront",
        "time on the wall's clock of a cell: three gets, a few instructions, one put",
        machine,
        rows,
    );
    table.notes.push("the time of TBB has the making of its nodes and edges".into());
    Ok(table)
}

/// `cnc-items`.
pub(crate) fn items(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(4_000_000);
    let sum = n * (n - 1) / 2;
    let mut all = Vec::new();
    for workers in [1, 2] {
        let w = workers as u64;
        let run = |system, kind| ours(system, "items", &[kind, w, n], workers).answers("sum", sum);
        all.extend(case(
            &on("put and get", workers),
            &[
                run("selvedge, dense", 0),
                ours("Rust, array of OnceLock", "once-lock", &[w, n], workers).answers("sum", sum),
                run("selvedge, paged", 1),
                run("selvedge, hashed, keys of a word", 2),
                run("selvedge, hashed, other keys", 3),
            ],
            RATE,
            effort,
            LIMIT,
        )?);
        let dashmap = outer_on(workers, RUST_ITEMS, "dashmap, Fx", "dashmap", &[w, n]).answers("sum", sum);
        all.extend(case(
            &on("put and get, two numbers of 32 bits in a table", workers),
            &[run("selvedge, hashed, keys of a word", 2), dashmap],
            RATE,
            effort,
            LIMIT,
        )?);
    }
    Ok(table("cnc-items", "items that are put, and then got, by range steps", machine, all))
}

/// A program of the paper: its name in the table and in the names of programs, its numbers, and its
/// answer.
struct PaperProgram {
    case: String,
    name: &'static str,
    numbers: Vec<u64>,
    answer: u64,
}

impl PaperProgram {
    fn new(name: &'static str, numbers: &[u64], answer: u64) -> PaperProgram {
        let sizes: Vec<String> = numbers.iter().map(u64::to_string).collect();
        PaperProgram {
            case: format!("{name} {}", sizes.join(" x ")),
            name,
            numbers: numbers.to_vec(),
            answer,
        }
    }

    /// The program with an engine, by its number.
    fn by(&self, engine: u64, workers: usize) -> Contender {
        let numbers = [&[engine, workers as u64], &self.numbers[..]].concat();
        ours(ENGINES[engine as usize], self.name, &numbers, workers).answers("answer", self.answer)
    }

    /// The program with TBB or with OpenMP.
    fn in_cpp(&self, system: &str, engine: &str, workers: usize) -> Contender {
        let numbers = [&[workers as u64], &self.numbers[..]].concat();
        outer_on(workers, TBB_AND_OPEN_MP, system, &format!("{engine}-{}", self.name), &numbers)
            .answers("answer", self.answer)
    }
}

fn cholesky_program(tiles: u64, block: u64) -> PaperProgram {
    PaperProgram::new("cholesky", &[tiles, block], factor_answer(tiles as u32, block as u32))
}

/// The sizes of the six programs, with the answers that are known.
struct Sizes {
    mandel: [u64; 2],
    primes: (u64, u64),
    queens: (u64, u64),
    bodies: u64,
    options: u64,
    tiles: (u64, u64),
}

/// About those of the paper.
const PAPER: Sizes = Sizes {
    mandel: [300, 4000],
    primes: (100_000, 9592),
    queens: (14, 365_596),
    bodies: 5000,
    options: 3_000_000,
    tiles: (20, 50),
};
/// For the table with all schedulers: a round of its 204 runs took 9.5 s.
const SHORT: Sizes = Sizes {
    mandel: [300, 1000],
    primes: (40_000, 4203),
    queens: (13, 73_712),
    bodies: 2500,
    options: 1_000_000,
    tiles: (20, 50),
};
/// For a look at the answers.
const LEAST: Sizes = Sizes {
    mandel: [40, 100],
    primes: (1000, 168),
    queens: (8, 92),
    bodies: 100,
    options: 5000,
    tiles: (4, 10),
};

/// The six programs. Their answers are known numbers, or those of the loops here, which check
/// themselves.
fn six_programs(sizes: &Sizes) -> Vec<PaperProgram> {
    let &Sizes { mandel, primes: (primes, of_primes), queens: (queens, of_queens), .. } = sizes;
    let &Sizes { bodies, options, tiles: (tiles, block), .. } = sizes;
    let of_mandel = if mandel == PAPER.mandel {
        // The number that the paper's programs print.
        384_490_306
    } else {
        let [side, depth] = mandel.map(|n| n as u32);
        let pixels = (0..side * side).map(|pixel| kernels::mandel(pixel, side, depth));
        kernels::mandel_check(pixels, depth)
    };
    vec![
        PaperProgram::new("mandel", &mandel, of_mandel),
        PaperProgram::new("primes", &[primes], of_primes),
        PaperProgram::new("nbody", &[bodies], kernels::bodies_answer(bodies)),
        PaperProgram::new("blackscholes", &[options], kernels::prices_answer(options)),
        PaperProgram::new("queens", &[queens], of_queens),
        cholesky_program(tiles, block),
    ]
}

/// `cnc-six`.
pub(crate) fn six(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let mut all = Vec::new();
    for program in six_programs(if effort.is_small() { &LEAST } else { &PAPER }) {
        let one = [program.by(STEALING, 1), program.by(LOOP, 1)];
        let two = [program.by(STEALING, 2), program.by(RAYON, 2)];
        all.extend(case(&on(&program.case, 1), &one, MS, effort, LIMIT)?);
        all.extend(case(&on(&program.case, 2), &two, MS, effort, LIMIT)?);
    }
    let mut table = table(
        "cnc-six",
        "the six programs of [NCM11 §4]: time on the wall's clock, with the same kernels",
        machine,
        all,
    );
    table.notes.push(
        "answers: mandel prints the paper's number; the forces on the bodies cancel each other; prices agree with an integral; products of the factor's rows are the matrix"
            .into(),
    );
    Ok(table)
}

/// `cnc-cholesky`.
pub(crate) fn cholesky(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let (tiles, block) = if effort.is_small() { (4, 10) } else { (40, 50) };
    let program = cholesky_program(tiles, block);
    let mut all = Vec::new();
    for workers in [1, 2] {
        let omp = outer_on(workers, OPEN_MP, "OpenMP depend", "cholesky", &[workers as u64, tiles, block]);
        let contenders = [
            program.by(STEALING, workers),
            program.by(RAYON, workers),
            program.in_cpp("TBB", "tbb", workers),
            omp.answers("wrong", 0),
            program.by(LOOP, workers),
        ];
        all.extend(case(&on(&program.case, workers), &contenders, MS, effort, LIMIT)?);
    }
    let mut table = table(
        "cnc-cholesky",
        "the factor of a matrix in tiles: a graph, tasks with dependences, loops with barriers",
        machine,
        all,
    );
    table.notes.push(
        "OpenMP is compiled for this machine's instructions, the others for any x86-64; its kernels are the same loops"
            .into(),
    );
    Ok(table)
}

/// `cnc-async`.
pub(crate) fn asynchronous(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(1_000_000);
    let mut all = Vec::new();
    for (what, program) in [("no step misses", "get"), ("each step misses once", "miss")] {
        let run = |system, kind| ours(system, program, &[kind, 1, n], 1).answers("last", n);
        let contenders = [run("selvedge, async steps", 2), run("selvedge, steps that run again", 0)];
        all.extend(case(what, &contenders, WALL_NS, effort, LIMIT)?);
    }
    Ok(table(
        "cnc-async",
        "time on the wall's clock of a step with a get and a put, on one worker: continuations beside replays",
        machine,
        all,
    ))
}

/// `cnc-trace`.
pub(crate) fn trace(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let n = effort.count(100_000);
    let last = (0..n).fold(1, |item, _| trace::work(item)) % 1_000_000_007;
    let run = |system, kind| ours(system, "trace", &[kind, 1, n], 1).answers("last", last);
    let recorded = run("selvedge, recorded", 1);
    let neither = run("selvedge, neither", 0);
    let all = case(
        "a step of a microsecond",
        &[recorded, neither, run("selvedge, monitored", 2)],
        WALL_NS,
        effort,
        LIMIT,
    )?;
    Ok(table("cnc-trace", "time on the wall's clock of a step in a graph that is looked at", machine, all))
}

/// `cnc-schedulers`.
pub(crate) fn schedulers(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let effort = effort.rounds_at_most(3);
    let mut all = Vec::new();
    for program in six_programs(if effort.is_small() { &LEAST } else { &SHORT }) {
        for workers in [1, 2] {
            let graphs = (STEALING..ENGINES.len() as u64).map(|engine| program.by(engine, workers));
            let peers = [
                program.by(RAYON, workers),
                program.in_cpp("TBB", "tbb", workers),
                program.in_cpp("OpenMP tasks", "omp", workers),
                program.by(LOOP, workers),
            ];
            let contenders: Vec<Contender> = graphs.chain(peers).collect();
            all.extend(case(&on(&program.case, workers), &contenders, MS, effort, LIMIT)?);
        }
    }
    let mut table = table(
        "cnc-schedulers",
        "the six programs of [NCM11 §4] under every scheduler, beside the plain loop: time on the wall's clock",
        machine,
        all,
    );
    table.notes.push(
        "async steps and declared items run under the stealing scheduler; all other rows have steps that may run again, and range steps for loops"
            .into(),
    );
    table.notes.push(
        "TBB and OpenMP run the same kernels, compiled for any x86-64 as the others, and print the same bits; on rayon's pool it is our graph that runs, and the row of rayon is a parallel loop"
            .into(),
    );
    Ok(table)
}
