//! The pipeline figures over the bytes of a file: `pipe-grep`, `pipe-shell`, `pipe-lines`,
//! `pipe-rewrite`, `pipe-xml` and `pipe-sort`, beside the tools that do the same. `main.rs` calls
//! them.
//!
//! Each contender reads the input from the page cache and writes a file, and the figure compares
//! that file with the right one (`writes`). So a tool with another result is no peer. `reading`
//! puts the input into the page cache before each run of each contender. Without that the contender
//! after a slow peer reads a part of the input from the disk.

use super::{ours, peer, theirs};
use crate::child::streams::text::{
    FREQUENT, Facts, Home, INPUT, INSTEAD, RARE, Written, write_document, write_lines, write_numbers,
};
use crate::contender::{LIMIT, OURS, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric, case, reports, rows, values};
use crate::peers::{GHC_CONDUIT, RUST_STREAMS, built, program_of};
use crate::table::{Row, Table};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// The figures of this file.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "pipe-grep",
        about: "the paper's grep and grep -n over 500 MB, beside GNU grep, ripgrep, conduit",
        measure: grep,
    },
    Figure {
        name: "pipe-shell",
        about: "the command selvedge-pipe over 500 MB, beside ripgrep, GNU grep and mawk",
        measure: shell,
    },
    Figure { name: "pipe-lines", about: "a closure for each line of 500 MB", measure: lines },
    Figure {
        name: "pipe-rewrite",
        about: "each occurrence replaced in 500 MB, beside GNU sed",
        measure: rewrite,
    },
    Figure {
        name: "pipe-xml",
        about: "elements with an attribute in 200 MB, beside quick-xml and xmllint",
        measure: xml,
    },
    Figure {
        name: "pipe-sort",
        about: "a merge sort with a cycle, beside a network of threads and sort -n",
        measure: sort,
    },
];

/// CPU time of a whole run.
const CPU: Metric = Metric { key: "cpu_ms", unit: "ms", better: Better::Lower };

const RATE: Metric = Metric { key: "rate", unit: "MB/s", better: Better::Higher };

/// An expression that matches the lines with [`RARE`] and no others, and has no text for a search.
const CLASS: &str = "[A-F]I[A-N]D [M]E";

/// How many numbers the network of comparators sorts: it has a thread for each pair of them.
const SORTER: u64 = 1000;

/// The contenders, each of which reads the file `input`.
fn reading<const N: usize>(input: &str, contenders: [Contender; N]) -> [Contender; N] {
    contenders.map(|one| one.reads(input))
}

/// A program with the output that is right.
fn writes(contender: Contender, right: Written) -> Contender {
    contender.answers("bytes", right.bytes).answers("sum", right.sum())
}

/// A tool of the system that reads the file `input`, with its output into the file `output`.
fn tool(system: &str, package: &str, output: &str, input: &str, words: &[&str]) -> Contender {
    let mut all = vec![output, input];
    all.extend_from_slice(words);
    let contender = theirs(system, "tool", &all);
    match program_of(package, words[0]) {
        Ok(_) => contender,
        Err(missing) => Contender { command: Err(missing), ..contender },
    }
}

/// A file in the home, and what its recipe says of it.
fn made<T>(
    home: &Home,
    name: &str,
    size: u64,
    write: fn(&Path, u64) -> std::io::Result<T>,
) -> Result<(String, T), String> {
    let path = home.path(name);
    let facts = write(Path::new(&path), size).and_then(|facts| drop_pages(&path).map(|()| facts));
    Ok((path.clone(), facts.map_err(|error| format!("{path}: {error}"))?))
}

/// Drops a file from the page cache, so that the next reader brings it in. The pages of a file that
/// was written in small parts are small. All programs take longer to read them, each by another
/// factor: GNU grep 1.4 times as long, ripgrep 2 times.
fn drop_pages(path: &str) -> std::io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// `pipe-grep`.
pub(crate) fn grep(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-grep")?;
    let (text, facts) = made(&home, "text", effort.count(500_000_000), write_lines)?;
    let output = home.path("output");
    let paths = [&text[..], &output];
    // A run of conduit takes fifty times as long as one of the others.
    let quick = effort.rounds_times(3);
    let cases = |name: &str, contenders: Vec<Contender>, right, effort| {
        let contenders: Vec<Contender> =
            contenders.into_iter().map(|one| writes(one.reads(&text), right)).collect();
        case(name, &contenders, RATE, effort, LIMIT)
    };
    let conduit = |program| peer(GHC_CONDUIT, "conduit", &[program, &text, &output, RARE]);
    let plain = vec![
        ours(OURS, "grep", &paths),
        tool("GNU grep", "grep", &output, &text, &["grep", RARE]),
        tool("ripgrep", "ripgrep", &output, &text, &["rg", "-N", RARE]),
        tool("ripgrep --no-mmap", "ripgrep", &output, &text, &["rg", "-N", "--no-mmap", RARE]),
        theirs("Rust, BufRead::lines and filter", "grep-iterator", &paths),
    ];
    let mut rows = cases("grep", plain, facts.found[0], quick)?;
    rows.extend(in_parts("grep", "grep-parts", &["-N"], &paths, facts.found[0], quick)?);
    let numbered = vec![
        ours(OURS, "grep-n", &paths),
        ours("selvedge, select_numbered", "grep-select", &paths),
        tool("GNU grep -n", "grep", &output, &text, &["grep", "-n", RARE]),
        tool("ripgrep -n", "ripgrep", &output, &text, &["rg", "-n", RARE]),
        tool("ripgrep -n --no-mmap", "ripgrep", &output, &text, &["rg", "-n", "--no-mmap", RARE]),
        theirs("Rust, BufRead::lines, zip and filter", "grep-n-iterator", &paths),
    ];
    rows.extend(cases("grep -n", numbered, facts.found[1], quick)?);
    rows.extend(in_parts("grep -n", "grep-n-parts", &["-n"], &paths, facts.found[1], quick)?);
    for (name, program, right) in [("grep, coroutines", "grep", 0), ("grep -n, coroutines", "grep-n", 1)] {
        let contenders = vec![ours(OURS, program, &paths), conduit(program)];
        rows.extend(cases(name, contenders, facts.found[right], effort)?);
    }
    let mut table = table("pipe-grep", "the paper's two pipelines over 500 MB of lines", machine, rows);
    table.notes.push("each program reads the file from the page cache, and writes a file".into());
    table.notes.push(
        "in_parts(n) runs the same stages in n threads, each on a part of the file; ripgrep maps the file"
            .into(),
    );
    table
        .notes
        .push("grep -n is written as in the paper: naturals and lines are zipped, then searched".into());
    table.notes.push("select_numbered numbers only the lines that it finds, and so does in_parts(n)".into());
    let length = effort.count(500_000_000) / facts.lines;
    table.notes.push(format!("a line has {length} bytes: at 1000 MB/s it takes {length} ns"));
    Ok(table)
}

/// A pipeline with its stages in two threads, beside ripgrep: the rate, and the CPU time of it.
/// Each contender may use two CPUs. ripgrep uses one for one file.
fn in_parts(
    name: &str,
    program: &str,
    words: &[&str],
    paths: &[&str; 2],
    right: Written,
    effort: Effort,
) -> Result<Vec<Row>, String> {
    let [text, output] = *paths;
    let rg = |system: &str, more: &[&str]| {
        tool(system, "ripgrep", output, text, &[&["rg"], words, more, &[RARE]].concat())
    };
    let contenders = [
        ours("selvedge, in_parts(2)", program, &["2", text, output]),
        ours("selvedge, in_parts(1)", program, &["1", text, output]),
        rg("ripgrep", &[]),
        rg("ripgrep --no-mmap", &["--no-mmap"]),
    ];
    let contenders = contenders.map(|one| writes(one.reads(text).on(2), right));
    let reports = reports(name, &contenders, &[RATE.key, CPU.key], effort, LIMIT)?;
    let of = |case: String, metric: Metric, contenders: &[Contender]| {
        rows(&case, contenders, metric, &values(&reports, metric.key))
    };
    let cpu = of(format!("{name} on 2 CPUs: CPU time"), CPU, &contenders);
    let mut all = of(format!("{name} on 2 CPUs"), RATE, &contenders);
    all.extend(cpu);
    Ok(all)
}

/// `pipe-shell`.
pub(crate) fn shell(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-shell")?;
    let (text, facts) = made(&home, "text", effort.count(500_000_000), write_lines)?;
    let output = home.path("output");
    let pipe = built("selvedge-pipe", "selvedge-pipe")?;
    let of_shell = |system: &str, threads: &str, stages: &str| {
        let script = format!("file {INPUT} | {stages}");
        ours(system, "tool", &[&output, &text, &pipe, "-j", threads, &script])
    };
    let mut rows = Vec::new();
    for ShellCase { name, right, stages, peers } in shell_cases(&facts, &output, &text) {
        let of_shell = [of_shell(OURS, "0", &stages), of_shell("selvedge-pipe -j 1", "1", &stages)];
        let contenders: Vec<Contender> =
            of_shell.into_iter().chain(peers).map(|one| writes(one.reads(&text).on(2), right)).collect();
        rows.extend(case(name, &contenders, RATE, effort.rounds_times(3), LIMIT)?);
    }
    let mut table =
        table("pipe-shell", "the whole command selvedge-pipe over 500 MB of lines", machine, rows);
    table.notes.push("from the start of the process to its end; each command may use two CPUs".into());
    table
        .notes
        .push(format!("the text is {RARE:?}, the expression {CLASS:?}; about one line in 10,000 has it"));
    Ok(table)
}

/// A case of `pipe-shell`.
struct ShellCase {
    name: &'static str,
    /// What each contender is to write.
    right: Written,
    /// The stages of our shell, behind the file.
    stages: String,
    peers: Vec<Contender>,
}

/// The cases of `pipe-shell`, over a text with these facts.
fn shell_cases(facts: &Facts, output: &str, text: &str) -> Vec<ShellCase> {
    let theirs = |system: &str, package: &str, words: &[&str]| tool(system, package, output, text, words);
    let mut count = Written::default();
    count.add(format!("{}\n", facts.rare).as_bytes());
    let [having, matching] =
        [format!("lines | having substring {RARE:?}"), format!("lines | having regex '{CLASS}'")];
    let awk = format!("/{RARE}/ {{ n++ }} END {{ print n }}");
    vec![
        ShellCase {
            name: "count the lines with a text",
            right: count,
            stages: format!("{having} | count"),
            peers: vec![
                theirs("ripgrep -c", "ripgrep", &["rg", "-c", RARE]),
                theirs("GNU grep -c", "grep", &["grep", "-c", RARE]),
                theirs("mawk", "mawk", &["mawk", &awk]),
            ],
        },
        ShellCase {
            name: "the lines with a text",
            right: facts.found[0],
            stages: having.clone(),
            peers: vec![
                theirs("ripgrep -N", "ripgrep", &["rg", "-N", RARE]),
                theirs("GNU grep", "grep", &["grep", RARE]),
            ],
        },
        ShellCase {
            name: "the same with their numbers",
            right: facts.found[1],
            stages: format!("{having} numbered"),
            peers: vec![
                theirs("ripgrep -n", "ripgrep", &["rg", "-n", RARE]),
                theirs("GNU grep -n", "grep", &["grep", "-n", RARE]),
            ],
        },
        ShellCase {
            name: "count the lines that match",
            right: count,
            stages: format!("{matching} | count"),
            peers: vec![
                theirs("ripgrep -c", "ripgrep", &["rg", "-c", CLASS]),
                theirs("GNU grep -cE", "grep", &["grep", "-cE", CLASS]),
            ],
        },
    ]
}

/// `pipe-lines`.
pub(crate) fn lines(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-lines")?;
    let (text, facts) = made(&home, "text", effort.count(500_000_000), write_lines)?;
    let contenders =
        [ours(OURS, "lines", &[&text]), theirs("Rust, BufRead::read_until", "lines-read-until", &[&text])];
    let contenders = reading(&text, contenders).map(|one| one.answers("count", facts.begin));
    let rows = case("a closure for each line", &contenders, RATE, effort, LIMIT)?;
    Ok(table("pipe-lines", "a closure that sees each line of 500 MB", machine, rows))
}

/// `pipe-rewrite`.
pub(crate) fn rewrite(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-rewrite")?;
    let (text, facts) = made(&home, "text", effort.count(500_000_000), write_lines)?;
    let output = home.path("output");
    let mut rows = Vec::new();
    for (name, needle, right) in
        [("in few lines", RARE, facts.changed[0]), ("in each eighth line", FREQUENT, facts.changed[1])]
    {
        let command = format!("s/{needle}/{INSTEAD}/g");
        let replace = ["rg", "-N", "--passthru", "--replace", INSTEAD, needle];
        let contenders = [
            ours(OURS, "rewrite", &[needle, &text, &output]),
            tool("GNU sed", "sed", &output, &text, &["sed", &command]),
            tool("ripgrep --replace", "ripgrep", &output, &text, &replace),
        ];
        rows.extend(case(
            name,
            &reading(&text, contenders).map(|one| writes(one, right)),
            RATE,
            effort,
            LIMIT,
        )?);
    }
    Ok(table("pipe-rewrite", "each occurrence of a word replaced in 500 MB", machine, rows))
}

/// `pipe-xml`.
pub(crate) fn xml(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-xml")?;
    let (document, count) = made(&home, "document", effort.count(200_000_000), write_document)?;
    let output = home.path("output");
    let lint = |system, words: &[&str]| tool(system, "libxml2-utils", &output, &document, words);
    // `//*` takes every node into one set, of which xmllint refuses ten million. A number of a
    // million is printed with six digits, and a text with all.
    let path = ["xmllint", "--huge", "--xpath", "string(count(/descendant::*[@ply]))"];
    let contenders = [
        ours(OURS, "xml", &[&document]).answers("count", count),
        peer(RUST_STREAMS, "Rust, quick-xml", &["quick-xml", &document]).answers("count", count),
        lint("xmllint --stream, which only parses", &["xmllint", "--stream", "--noout"]),
        lint("xmllint --xpath", &path).answers("count", count),
    ];
    let contenders = reading(&document, contenders);
    let rows = case("elements with an attribute", &contenders, RATE, effort, LIMIT)?;
    Ok(table("pipe-xml", "elements with an attribute, counted in 200 MB", machine, rows))
}

/// `pipe-sort`.
pub(crate) fn sort(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let home = Home::new("pipe-sort")?;
    let (numbers, right) = made(&home, "numbers", effort.count(5_000_000), write_numbers)?;
    let output = home.path("output");
    let contenders = [
        ours(OURS, "sort", &[&numbers, &output]),
        tool("GNU sort -n", "coreutils", &output, &numbers, &["sort", "-n", "--parallel=1"]),
    ];
    let contenders = reading(&numbers, contenders).map(|one| writes(one, right));
    let mut rows = case("5 million numbers, one in a line", &contenders, RATE, effort, LIMIT)?;
    let (few, right) = made(&home, "few", if effort.is_small() { 100 } else { SORTER }, write_numbers)?;
    let contenders = [
        ours(OURS, "sort", &[&few, &output]),
        ours("selvedge, the sorter of threads and MVars", "sorter", &[&few, &output]),
        tool("GNU sort -n", "coreutils", &output, &few, &["sort", "-n", "--parallel=1"]),
    ];
    let contenders = reading(&few, contenders).map(|one| writes(one, right));
    rows.extend(case("1000 numbers, one in a line", &contenders, RATE, effort, LIMIT)?);
    let mut table = table("pipe-sort", "a merge sort by pipelines, with a cycle", machine, rows);
    table.notes.push("the sorter of [Del §3.3] has a thread for each of its 499,500 comparators".into());
    Ok(table)
}
