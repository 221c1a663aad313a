//! Pipelines over the bytes of a file, and the tools that do the same.
//!
//! Each program writes its output into a file, the peers too, because GNU grep stops at the first
//! match if nothing reads its output. The file is checked when the clock has stopped.
//!
//! `streams.rs` calls the programs for the figures in `figures/src/streams/bytes.rs`.

use super::super::clock::Times;
use super::super::fault;
use super::super::runtime::{Ours, Runtime, Waits};
use super::text::{INPUT, INSTEAD, RARE, Written};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use selvedge_flow as flow;
use selvedge_pipeline::*;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// Prints how many bytes of the input went by in a microsecond.
pub(super) fn print_rate(first: Times, input: &str) {
    let seconds = first.seconds_until(Times::now());
    let length = Path::new(input).metadata().expect("the input is there").len();
    println!("rate {:.3}", length as f64 / 1e6 / seconds);
}

/// What the program has written, with a mistake if it has to make one.
pub(super) fn print_output(output: &str) {
    let mut written = Written::of_file(output).expect("the output can be read");
    if fault() == 1 {
        written.add(b"?");
    }
    println!("bytes {}", written.bytes);
    println!("sum {}", written.sum());
}

/// Runs a pipeline of ours, and prints the rate at which it read, and what it wrote.
fn ours<F>(input: &str, output: &str, pipeline: F)
where
    F: Future<Output = Result<(), StageError>> + Send + 'static,
{
    ours_on(0, input, output, pipeline);
}

/// Runs a pipeline of ours on this number of workers. Prints the rate at which it read, the CPU
/// time of the process in it, and what it wrote.
fn ours_on<F>(workers: usize, input: &str, output: &str, pipeline: F)
where
    F: Future<Output = Result<(), StageError>> + Send + 'static,
{
    let first = Times::now();
    Ours::run(workers, Waits::World, pipeline).expect("no stage fails");
    let last = Times::now();
    print_rate(first, input);
    first.print_as("cpu_ms", last, 1_000_000);
    print_output(output);
}

/// The CPU time of the processes that this process has started and waited for.
fn milliseconds_of_children() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).expect("Linux counts the time of children");
    let milliseconds = |time: TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    milliseconds(used.user_time()) + milliseconds(used.system_time())
}

/// Runs a tool on the file `input`, with its output into a file. The path of the input is the last
/// word, unless a word has a place for it.
pub(super) fn tool(output: &str, input: &str, words: &[String]) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("no tool")?;
    let target = File::create(output).map_err(|error| format!("{output}: {error}"))?;
    let first = Times::now();
    let placed = arguments.iter().any(|word| word.contains(INPUT));
    let status = Command::new(program)
        .args(arguments.iter().map(|word| word.replace(INPUT, input)))
        .args((!placed).then_some(input))
        .env("LC_ALL", "C")
        .stdout(target)
        .status()
        .map_err(|error| format!("{program}: {error}"))?;
    print_rate(first, input);
    println!("cpu_ms {:.3}", milliseconds_of_children());
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    print_output(output);
    // A tool that counts has printed its count alone.
    if let Ok(count) = std::fs::read_to_string(output).unwrap_or_default().trim().parse::<f64>() {
        println!("count {count}");
    }
    Ok(())
}

/// The paper's `grep`.
pub(super) fn grep(input: &str, output: &str) {
    let found = flow::file(input)
        >> group_by(whole_line())
        >> if_then_else(any(substring(RARE.as_bytes())), id(), suppress())
        >> concatenate();
    ours(input, output, (found >> flow::create(output)).run());
}

/// The same `grep`, with its stages in this number of threads, each on a part of the file.
pub(super) fn grep_in_parts(threads: u32, input: &str, output: &str) {
    let stages = group_by(whole_line())
        >> if_then_else(any(substring(RARE.as_bytes())), id(), suppress())
        >> concatenate();
    let found = flow::file(input) >> flow::in_parts(threads, stages);
    ours_on(threads as usize, input, output, (found >> flow::create(output)).run());
}

/// The same `grep -n` as [`grep_select`], with its stages in this number of threads, each on a part
/// of the file.
pub(super) fn grep_numbered_in_parts(threads: u32, input: &str, output: &str) {
    let stages =
        group_by(whole_line()) >> select_numbered(any(substring(RARE.as_bytes())), number) >> concatenate();
    let found = flow::file(input) >> flow::in_parts(threads, stages);
    ours_on(threads as usize, input, output, (found >> flow::create(output)).run());
}

/// The paper's `grep -n`, as it is written: the numbers are zipped with the lines, and the numbered
/// lines are searched.
pub(super) fn grep_numbered(input: &str, output: &str) {
    let found = flow::file(input)
        >> group_by(whole_line())
        >> join_with(naturals_from(1) >> decimal() >> append(b":"), join::zip_lists())
        >> if_then_else(any(substring(RARE.as_bytes())), id(), suppress())
        >> concatenate();
    ours(input, output, (found >> flow::create(output)).run());
}

/// Writes the number of a line before the line.
fn number(n: u64, line: &mut Vec<u8>) {
    line.extend_from_slice(format!("{n}:").as_bytes());
}

/// `grep -n` by the stage that numbers the lines that it finds.
pub(super) fn grep_select(input: &str, output: &str) {
    let found = flow::file(input)
        >> group_by(whole_line())
        >> select_numbered(any(substring(RARE.as_bytes())), number)
        >> concatenate();
    ours(input, output, (found >> flow::create(output)).run());
}

/// `grep`, or `grep -n`, by a chain of the standard library's iterators.
pub(super) fn grep_iterator(input: &str, output: &str, numbered: bool) {
    let first = Times::now();
    let file = BufReader::with_capacity(128 << 10, File::open(input).expect("the input is there"));
    let target = File::create(output).expect("the output can be written");
    let lines = (1u64..).zip(file.lines().map(|line| line.expect("the input can be read")));
    let found = lines.filter(|(_, line)| line.contains(RARE));
    let found = found.map(|(n, line)| if numbered { format!("{n}:{line}\n") } else { line + "\n" });
    let mut target = BufWriter::new(target);
    found.for_each(|line| target.write_all(line.as_bytes()).expect("the output can be written"));
    target.flush().expect("the output can be written");
    print_rate(first, input);
    print_output(output);
}

/// `INSTEAD` in the place of each `needle`.
pub(super) fn rewrite(needle: &str, input: &str, output: &str) {
    let changed =
        flow::file(input) >> foreach(substring(needle.as_bytes()), substitute(INSTEAD.as_bytes()), id());
    ours(input, output, (changed >> flow::create(output)).run());
}

/// Calls a closure with each line.
pub(super) fn lines(input: &str) {
    let begin = |count: &mut u64, line: &[u8]| *count += u64::from(line.first() == Some(&b'e'));
    let counted = flow::file(input) >> group_by(line()) >> fold(0, begin);
    let first = Times::now();
    let count = Ours::run(0, Waits::World, counted.run()).expect("no stage fails");
    print_rate(first, input);
    println!("count {}", count + fault());
}

/// The loop that a user would write without a library.
pub(super) fn lines_read_until(input: &str) {
    let first = Times::now();
    let mut file = BufReader::with_capacity(128 << 10, File::open(input).expect("the input is there"));
    let (mut line, mut count) = (Vec::new(), 0u64);
    while file.read_until(b'\n', &mut line).expect("the input can be read") > 0 {
        count += u64::from(line.first() == Some(&b'e'));
        line.clear();
    }
    print_rate(first, input);
    println!("count {count}");
}

/// Counts the elements that have an attribute `ply`.
pub(super) fn xml(input: &str) {
    let plied = filter(|token: &[u8]| xml::Token::of(token).attribute("ply").is_some());
    let counted = flow::file(input) >> xml::tokens() >> plied >> count();
    let first = Times::now();
    let count = Ours::run(0, Waits::World, counted.run()).expect("the document is well formed");
    print_rate(first, input);
    println!("count {}", count + fault());
}

/// Sorts the numbers of a file: runs of one length are merged, and the result goes round.
pub(super) fn sort(input: &str, output: &str) {
    /// The run of 2^i chunks is at index i.
    type Runs = Vec<Option<(u32, Vec<u32>)>>;

    fn merged(a: &[u32], b: &[u32]) -> Vec<u32> {
        let (a, b) = (from_chunks([a.to_vec()]), from_chunks([b.to_vec()]));
        join_generators(a, b, join::merge(u32::cmp)).collect()
    }

    let gather = |run: &mut Vec<u32>, line: &[u8]| {
        run.push(line.iter().fold(0, |number, digit| 10 * number + u32::from(digit - b'0')));
        let full = run.len() == 4096;
        full.then(|| sorted(std::mem::take(run)))
    };
    let rest = |run: &mut Vec<u32>| (!run.is_empty()).then(|| sorted(std::mem::take(run)));
    let step = |runs: &mut Runs, (rank, run): &(u32, Vec<u32>)| {
        let place = *rank as usize;
        runs.resize(runs.len().max(place + 1), None);
        match runs[place].take() {
            Some((_, other)) => Some((rank + 1, merged(&other, run))),
            None => {
                runs[place] = Some((*rank, run.clone()));
                None
            }
        }
    };
    let end = |runs: &mut Runs| {
        let runs = std::mem::take(runs).into_iter().flatten();
        runs.reduce(|(_, short), (rank, long)| (rank, merged(&long, &short)))
    };
    let sorted = flow::file(input)
        >> group_by(line())
        >> lift_stateful(gather, rest, Vec::new())
        >> cycle(1, everything(), lift_stateful(step, end, Runs::new()))
        >> lift_stateless(|(_, run): &(u32, Vec<u32>)| run.clone())
        >> lift121(|number: &u32| u64::from(*number))
        >> decimal()
        >> append(b"\n")
        >> concatenate();
    ours(input, output, (sorted >> flow::create(output)).run());
}

/// A run of rank 0.
fn sorted(mut numbers: Vec<u32>) -> (u32, Vec<u32>) {
    numbers.sort_unstable();
    (0, numbers)
}
