//! The figure `disk-random`: random reads of a file by very many threads of ours, beside fio and a
//! program with pthreads. `main.rs` calls `random`; `child/disk.rs` shares `BLOCK`, `data_file` and
//! `block_number`.
//!
//! The file has the number of each block in that block, so each reader checks its reads. The file
//! is made once and kept in the target directory. A program of ours without io_uring says so, and
//! its row is then named by the pool.

use crate::contender::{OURS, inner};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, checked, in_turn, output, report, rows};
use crate::peers::{PTHREADS_DISK, program_path, target_directory};
use crate::pinned;
use crate::table::{Row, Table};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "disk-random",
    about: "random 4 KB reads past the page cache, 1 to 65536 threads; a million that wait",
    measure: random,
}];

/// The bytes of one read.
pub(crate) const BLOCK: usize = 4096;
/// Blocks of a file of 1 GB.
const BLOCKS: u64 = (1 << 30) / BLOCK as u64;
/// Blocks of a file from which only the answers are checked.
const BLOCKS_FEW: u64 = (1 << 24) / BLOCK as u64;

const RATE: Metric = Metric { key: "rate", unit: "reads/s", better: Better::Higher };
const CPU: Metric = Metric { key: "cpu_us", unit: "us CPU", better: Better::Lower };
const MEMORY: Metric = Metric { key: "bytes", unit: "MB", better: Better::Lower };

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long one run is measured.
const MILLISECONDS: u64 = 1200;
/// How long one run lasts of which only the answers are checked.
const MILLISECONDS_FEW: u64 = 50;
/// The most requests that fio's io_uring engine takes at once.
const FIO_DEPTH_MAX: u64 = 32_768;
/// The most buffers that the kernel registers for a ring.
const FIO_BUFFERS_MAX: u64 = 16_384;

/// The file of this number of blocks that is read, made once and kept: in the target directory,
/// which is on a disk.
pub(crate) fn data_file(blocks: u64) -> PathBuf {
    target_directory().join(format!("disk-random-{blocks}.data"))
}

/// The number a block is filled with; `None` if it is no such block.
pub(crate) fn block_number(block: &[u8]) -> Option<u64> {
    let (first, last) = (block.first_chunk::<8>()?, block.last_chunk::<8>()?);
    (block.len() == BLOCK && first == last).then(|| u64::from_le_bytes(*first))
}

/// Makes the file, unless it is there.
fn create_data_file(blocks: u64) -> io::Result<()> {
    let path = data_file(blocks);
    let whole = |file: &File| {
        let mut block = [0; BLOCK];
        [0, blocks / 2, blocks - 1].into_iter().all(|number| {
            file.read_exact_at(&mut block, number * BLOCK as u64).is_ok()
                && block_number(&block) == Some(number)
        })
    };
    if File::open(&path).is_ok_and(|file| whole(&file)) {
        return Ok(());
    }
    eprintln!("disk-random: filling {}", path.display());
    let mut file = File::create(&path)?;
    let mut chunk = Vec::with_capacity(1 << 20);
    for number in 0..blocks {
        chunk.extend(std::iter::repeat_n(number.to_le_bytes(), BLOCK / 8).flatten());
        if chunk.len() == 1 << 20 {
            file.write_all(&chunk)?;
            chunk.clear();
        }
    }
    file.sync_all()
}

/// The file that all readers of a figure read, and for how long.
#[derive(Clone, Copy, Debug)]
struct Task {
    blocks: u64,
    milliseconds: u64,
}

impl Task {
    fn new(effort: Effort) -> Task {
        if effort.is_small() {
            Task { blocks: BLOCKS_FEW, milliseconds: MILLISECONDS_FEW }
        } else {
            Task { blocks: BLOCKS, milliseconds: MILLISECONDS }
        }
    }

    fn ours(self, system: &str, program: &str, threads: u64) -> Contender {
        inner(system, program, &[self.blocks, threads, self.milliseconds])
    }

    fn fio(self, threads: u64) -> Contender {
        let depth = threads.min(FIO_DEPTH_MAX);
        let command = program_path("fio").map(|path| {
            let runtime = format!("--runtime={}ms", self.milliseconds);
            let file = format!("--filename={}", data_file(self.blocks).display());
            let fixed = [
                "--name=disk-random",
                // A process of its own would leave the priority group that all contenders are
                // given.
                "--thread",
                "--output-format=json",
                "--ioengine=io_uring",
                // Its fastest way: the file and the buffers are registered, and no time is taken of
                // each read.
                "--registerfiles",
                "--gtod_reduce=1",
                "--direct=1",
                "--rw=randread",
                "--bs=4k",
                "--norandommap",
                "--time_based",
                "--ramp_time=200ms",
            ];
            let mut words = vec![path];
            words.extend(fixed.map(str::to_owned));
            words.extend([runtime, file, format!("--iodepth={depth}")]);
            if depth <= FIO_BUFFERS_MAX {
                words.push("--fixedbufs".to_owned());
            }
            words
        });
        let name = if depth < threads { format!("{FIO}, depth {depth}") } else { FIO.to_owned() };
        peer(&name, command)
    }

    fn pthreads(self, threads: u64) -> Contender {
        let command = PTHREADS_DISK.executable().map(|path| {
            let file = data_file(self.blocks).display().to_string();
            vec![path, file, threads.to_string(), self.milliseconds.to_string()]
        });
        // Not every machine can start this number of threads with stacks of their own.
        Contender { may_fail: threads >= 16_384, ..peer("C, POSIX threads", command) }
    }
}

const FIO: &str = "fio, io_uring";

fn peer(system: &str, command: Result<Vec<String>, String>) -> Contender {
    // As ours, except for the command.
    Contender { command, ours: false, ..inner(system, "", &[]) }
}

/// The report of one run: the rate, the CPU time of one read in microseconds, and the memory in MB,
/// if asked for.
struct Told {
    /// Whether a program of ours had no io_uring and read through the blocking pool.
    fell_back: bool,
    rate: f64,
    cpu: f64,
    megabytes: f64,
}

fn run(contender: &Contender) -> Result<Told, MeasureError> {
    let words = contender.command.as_ref().map_err(|why| MeasureError::Absent(why.clone()))?;
    let mut process = pinned::command_on(contender.cpus, words);
    process.envs(contender.environment.iter().copied());
    if contender.system.starts_with(FIO) {
        return fio_told(process);
    }
    let report = checked(report(process, LIMIT)?, &[("wrong", 0.0)], &[RATE.key, CPU.key])?;
    Ok(Told {
        fell_back: report.get("ring") == Some(&0.0) && !contender.system.contains(POOL),
        rate: report[RATE.key],
        cpu: report[CPU.key],
        megabytes: report.get(MEMORY.key).copied().unwrap_or(f64::NAN) / 1e6,
    })
}

const POOL: &str = "blocking pool";

fn fio_told(process: Command) -> Result<Told, MeasureError> {
    let text = output(process, LIMIT)?;
    // Warnings come before the object.
    let json = text.find('{').map_or("", |start| &text[start..]);
    let told: Value =
        serde_json::from_str(json).map_err(|error| MeasureError::Failed(format!("fio's report: {error}")))?;
    let job = &told["jobs"][0];
    let number = |value: &Value| {
        value.as_f64().ok_or_else(|| MeasureError::Failed("fio's report lacks a number".into()))
    };
    let rate = number(&job["read"]["iops"])?;
    // In percent of the run's time.
    let percent = number(&job["usr_cpu"])? + number(&job["sys_cpu"])?;
    Ok(Told { fell_back: false, rate, cpu: percent * 1e4 / rate, megabytes: f64::NAN })
}

/// `disk-random`.
pub(crate) fn random(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let task = Task::new(effort);
    let file = data_file(task.blocks);
    create_data_file(task.blocks).map_err(|error| format!("{}: {error}", file.display()))?;
    // More rounds would make one run longer than two minutes.
    let effort = effort.rounds_at_most(3);
    let mut all = Vec::new();
    let mut flat = Vec::new();
    for threads in [1_u64, 16, 128, 1024, 16_384, 65_536] {
        let mut readers = vec![task.ours(OURS, "disk", threads), task.fio(threads), task.pthreads(threads)];
        if threads == 1024 {
            readers.push(task.ours(&format!("selvedge, {POOL}"), "disk-pool", threads));
        }
        let samples = measure(threads, &mut readers, effort)?;
        let name = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let rates = rows(&name, &readers, RATE, &part(&samples, |told| told.rate));
        flat.extend(rates[0].value.clone().ok().filter(|_| threads >= 128));
        all.extend(rates);
        let cpu = part(&samples, |told| told.cpu);
        all.extend(rows(&format!("{name}, CPU per read"), &readers, CPU, &cpu));
    }
    all.push(Row {
        value: spread(&flat).ok_or_else(|| "no rate was measured".to_owned()),
        unit: "% between the rates",
        ..Row::plain("128 to 65536 threads", OURS)
    });
    // In pairs, because the disk itself is not the same from minute to minute.
    let mut pair = [task.ours(OURS, "disk", 65_536), task.ours("selvedge, 1024 threads", "disk", 1024)];
    let samples = measure(65_536, &mut pair, effort)?;
    all.extend(rows("65536 threads against 1024", &pair, RATE, &part(&samples, |told| told.rate)));
    let many = effort.count(1_000_000);
    let mut million = [task.ours(OURS, "disk", many)];
    let samples = measure(many, &mut million, effort.rounds_at_most(1))?;
    let megabytes = part(&samples, |told| told.megabytes);
    all.extend(rows("a million threads that wait", &million, MEMORY, &megabytes));
    Ok(Table {
        name: "disk-random",
        title: "random reads of 4 KB from a file of 1 GB, past the page cache (O_DIRECT); every process on one CPU".to_owned(),
        machine,
        rows: all,
        notes: vec![
            "CPU: user and system time of the process, with the kernel's threads that work for it".to_owned(),
            "every block holds its number, which ours and C check; fio checks nothing".to_owned(),
            "fio: so many requests of one job at once, registered file and, up to a depth of 16384, buffers, no time taken of each; C: pread, stacks of 32 KB".to_owned(),
            "the rates at 128 to 65536 threads are to be at most 5 % apart: the aim as it was set; the pair of 65536 and 1024 threads is measured in turn".to_owned(),
            "LZ07 §5.1, Figure 19: better than NPTL from 100 threads on, steady to 64K (on a disk that turns)".to_owned(),
        ],
    })
}

/// The reports of the readers' rounds, or the reason why there are none.
type ReaderSamples = Vec<Result<Vec<Told>, String>>;

/// Runs the readers in turn. One of ours that fell back to the blocking pool is called so from then
/// on.
fn measure(threads: u64, readers: &mut [Contender], effort: Effort) -> Result<ReaderSamples, String> {
    let samples = in_turn(&format!("{threads} threads"), readers, effort, run)?;
    for (reader, sample) in readers.iter_mut().zip(&samples) {
        if sample.as_ref().is_ok_and(|told| told.iter().any(|told| told.fell_back)) {
            reader.system += &format!(", {POOL} (no io_uring here)");
        }
    }
    Ok(samples)
}

/// One number of each run.
fn part(samples: &ReaderSamples, pick: fn(&Told) -> f64) -> Vec<Result<Vec<f64>, String>> {
    let all = |told: &Vec<Told>| told.iter().map(pick).collect();
    samples.iter().map(|sample| sample.as_ref().map(all).map_err(Clone::clone)).collect()
}

/// How much less the least is than the most, in percent.
fn spread(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().reduce(f64::max)?;
    let least = values.iter().copied().reduce(f64::min)?;
    Some((1.0 - least / most) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_first_and_last_word() {
        let mut block = [0; BLOCK];
        block[0] = 7;
        assert_eq!(block_number(&block), None);
        block[BLOCK - 8] = 7;
        assert_eq!(block_number(&block), Some(7));
        assert_eq!(block_number(&block[..512]), None);
    }

    #[test]
    fn the_spread_of_rates() {
        let percent = spread(&[100.0, 95.0, 98.0]).unwrap();
        assert!((percent - 5.0).abs() < 1e-9, "{percent}");
        assert_eq!(spread(&[]), None);
    }
}
