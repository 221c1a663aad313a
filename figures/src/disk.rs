//! The figure about the disk: random reads by very many threads.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Effort;
use crate::contender::{OURS, inner};
use crate::machine::Machine;
use crate::measure::{Better, Contender, Failure, Metric, output, report, rows};
use crate::peers::{PTHREADS_DISK, program_path, target_directory};
use crate::pinned;
use crate::table::{Need, Table};

/// What one read reads.
pub(crate) const BLOCK: usize = 4096;
/// A file of 1 GB.
pub(crate) const BLOCKS: u64 = (1 << 30) / BLOCK as u64;

const RATE: Metric = Metric { key: "rate", unit: "reads/s", better: Better::Higher };
const CPU: Metric = Metric { key: "cpu_us", unit: "us CPU", better: Better::Lower };
const MEMORY: Metric = Metric { key: "bytes", unit: "MB", better: Better::Lower };

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long one run is measured.
const MILLISECONDS: u64 = 800;
/// The most requests that fio's io_uring engine takes at once.
const FIO_DEPTH_MAX: u64 = 32_768;

/// The file that is read, made once and kept: in the target directory, which is on a disk.
pub(crate) fn data_file() -> PathBuf {
    target_directory().join("disk-random.data")
}

/// The number a block is filled with; `None` if it is no such block.
pub(crate) fn block_number(block: &[u8]) -> Option<u64> {
    let (first, last) = (block.first_chunk::<8>()?, block.last_chunk::<8>()?);
    (block.len() == BLOCK && first == last).then(|| u64::from_le_bytes(*first))
}

/// Makes the file, unless it is there.
fn create_data_file() -> io::Result<()> {
    let path = data_file();
    let whole = |file: &File| {
        let mut block = [0; BLOCK];
        [0, BLOCKS / 2, BLOCKS - 1].into_iter().all(|number| {
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
    for number in 0..BLOCKS {
        chunk.extend(std::iter::repeat_n(number.to_le_bytes(), BLOCK / 8).flatten());
        if chunk.len() == 1 << 20 {
            file.write_all(&chunk)?;
            chunk.clear();
        }
    }
    file.sync_all()
}

/// One of those who read.
struct Reader {
    contender: Contender,
    fio: bool,
}

fn ours(system: &str, program: &str, threads: u64) -> Reader {
    Reader { contender: inner(system, program, &[threads, MILLISECONDS]), fio: false }
}

fn fio(threads: u64) -> Reader {
    let depth = threads.min(FIO_DEPTH_MAX);
    let command = program_path("fio").map(|path| {
        let runtime = format!("--runtime={MILLISECONDS}ms");
        let (file, depth) = (format!("--filename={}", data_file().display()), format!("--iodepth={depth}"));
        let fixed = [
            "--name=disk-random",
            // A process of its own would leave the priority group that all contenders are given.
            "--thread",
            "--output-format=json",
            "--ioengine=io_uring",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            "--norandommap",
            "--time_based",
            "--ramp_time=200ms",
        ];
        let mut words = vec![path];
        words.extend(fixed.map(str::to_owned));
        words.extend([runtime, file, depth]);
        words
    });
    let system =
        if depth < threads { format!("fio, io_uring, depth {depth}") } else { "fio, io_uring".to_owned() };
    reader(&system, command, true)
}

fn pthreads(threads: u64) -> Reader {
    let command = PTHREADS_DISK.executable().map(|path| {
        vec![path, data_file().display().to_string(), threads.to_string(), MILLISECONDS.to_string()]
    });
    reader("C, POSIX threads", command, false)
}

fn reader(system: &str, command: Result<Vec<String>, String>, fio: bool) -> Reader {
    // As ours, but for the command.
    Reader { contender: Contender { command, ..inner(system, "", &[]) }, fio }
}

/// What one run told: the rate, the CPU time of one read in microseconds, and the memory in MB, if asked for.
struct Told {
    rate: f64,
    cpu: f64,
    megabytes: f64,
}

impl Reader {
    fn times(mut self, times: f64) -> Reader {
        self.contender.need = Some(Need::Times(times));
        self
    }

    fn run(&self) -> Result<Told, Failure> {
        let words = self.contender.command.as_ref().map_err(|why| Failure::Absent(why.clone()))?;
        let process = pinned::command_on(self.contender.cpus, words);
        if self.fio {
            return fio_told(process);
        }
        let report = report(process, LIMIT)?;
        let value = |key: &str| {
            report.get(key).copied().ok_or_else(|| Failure::Wrong(format!("it printed no {key}")))
        };
        if value("wrong")? != 0.0 {
            return Err(Failure::Wrong(format!("{} reads brought another block", value("wrong")?)));
        }
        let megabytes = report.get(MEMORY.key).copied().unwrap_or(f64::NAN) / 1e6;
        Ok(Told { rate: value(RATE.key)?, cpu: value(CPU.key)?, megabytes })
    }
}

fn fio_told(process: Command) -> Result<Told, Failure> {
    let text = output(process, LIMIT)?;
    // Warnings come before the object.
    let json = text.find('{').map_or("", |start| &text[start..]);
    let told: Value =
        serde_json::from_str(json).map_err(|error| Failure::Absent(format!("fio's report: {error}")))?;
    let job = &told["jobs"][0];
    let number =
        |value: &Value| value.as_f64().ok_or_else(|| Failure::Absent("fio's report lacks a number".into()));
    let rate = number(&job["read"]["iops"])?;
    // In percent of the run's time.
    let percent = number(&job["usr_cpu"])? + number(&job["sys_cpu"])?;
    Ok(Told { rate, cpu: percent * 1e4 / rate, megabytes: f64::NAN })
}

/// `disk-random`.
pub(crate) fn random(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    create_data_file().map_err(|error| format!("{}: {error}", data_file().display()))?;
    let mut table_rows = Vec::new();
    for threads in [1_u64, 16, 128, 1024, 16_384, 65_536] {
        let mut readers = vec![ours(OURS, "disk", threads), fio(threads).times(0.98), pthreads(threads)];
        if threads == 1024 {
            readers.push(ours("selvedge, blocking pool", "disk-pool", threads));
        }
        let samples = measure(threads, &readers, effort.rounds.min(ROUNDS_MAX))?;
        let part = |pick: fn(&Told) -> f64| -> Vec<Result<Vec<f64>, String>> {
            samples
                .iter()
                .map(|sample| {
                    sample.as_ref().map(|told| told.iter().map(pick).collect()).map_err(Clone::clone)
                })
                .collect()
        };
        let mut contenders: Vec<Contender> = readers.iter().map(|reader| reader.contender.clone()).collect();
        let name = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        table_rows.extend(rows(&name, &contenders, RATE, &part(|told| told.rate)));
        for contender in &mut contenders {
            let pthreads = contender.system.starts_with('C');
            contender.need = (pthreads && threads == 1024).then_some(Need::Times(3.0));
        }
        table_rows.extend(rows(&format!("{name}, CPU per read"), &contenders, CPU, &part(|told| told.cpu)));
    }
    // In pairs, because the disk itself is not the same from minute to minute.
    let pair = [ours(OURS, "disk", 65_536), ours("selvedge, 1024 threads", "disk", 1024).times(0.95)];
    let samples = measure(65_536, &pair, effort.rounds.min(ROUNDS_MAX))?;
    let rates: Vec<Result<Vec<f64>, String>> = samples
        .iter()
        .map(|sample| {
            sample.as_ref().map(|told| told.iter().map(|told| told.rate).collect()).map_err(Clone::clone)
        })
        .collect();
    let contenders: Vec<Contender> = pair.iter().map(|reader| reader.contender.clone()).collect();
    table_rows.extend(rows("65536 threads against 1024", &contenders, RATE, &rates));
    let million = ours(OURS, "disk", 1_000_000);
    let samples = measure(1_000_000, std::slice::from_ref(&million), 1)?;
    let megabytes = samples.iter().map(|sample| {
        sample.as_ref().map(|told| told.iter().map(|told| told.megabytes).collect()).map_err(Clone::clone)
    });
    let needing = Contender { need: Some(Need::AtMost(256.0)), ..million.contender };
    table_rows.extend(rows(
        "a million threads that wait",
        &[needing],
        MEMORY,
        &megabytes.collect::<Vec<_>>(),
    ));
    Ok(Table {
        name: "disk-random",
        title: "random reads of 4 KB from a file of 1 GB, past the page cache (O_DIRECT); every process on one CPU".to_owned(),
        machine,
        rows: table_rows,
        notes: vec![
            "CPU: user and system time of the process, with the kernel's threads that work for it".to_owned(),
            "every block holds its number, which ours and C check; fio checks nothing".to_owned(),
            "fio: so many requests of one job at once; C: pread, stacks of 32 KB".to_owned(),
            "LZ07 §5.1, Figure 19: better than NPTL from 100 threads on, steady to 64K (on a disk that turns)".to_owned(),
        ],
    })
}

/// More rounds would make one run longer than two minutes.
const ROUNDS_MAX: usize = 3;

/// Runs the readers in turn.
fn measure(
    threads: u64,
    readers: &[Reader],
    rounds: usize,
) -> Result<Vec<Result<Vec<Told>, String>>, String> {
    let mut samples: Vec<Result<Vec<Told>, String>> = readers
        .iter()
        .map(|reader| reader.contender.command.as_ref().map(|_| Vec::new()).map_err(Clone::clone))
        .collect();
    for _ in 0..rounds {
        for (reader, sample) in readers.iter().zip(&mut samples) {
            let Ok(told) = sample else { continue };
            eprintln!("{threads} threads: {}", reader.contender.system);
            match reader.run() {
                Ok(value) => told.push(value),
                Err(Failure::Absent(why)) => *sample = Err(why),
                Err(Failure::Wrong(what)) => return Err(format!("{}: {what}", reader.contender.system)),
            }
        }
    }
    Ok(samples)
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
}
