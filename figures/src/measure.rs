//! Interleaved rounds of pinned subprocesses, and the rows their medians make.
//!
//! Every measured program, ours and the peers' alike, runs as a process of its own on one given CPU
//! and prints `name value` lines. The rounds are interleaved (A B C A B C ..), so that a
//! disturbance of the machine meets all contenders alike, and a table shows the median of the
//! rounds.
//!
//! Every figure calls `case` with its contenders and a metric. A run with a wrong answer gives no
//! time: see `MeasureError`.

use crate::child::FAULT;
use crate::effort::{Effort, Purpose};
use crate::peers::BROKEN;
use crate::pinned;
use crate::table::Row;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The output of a run: one number per name.
pub(crate) type Report = BTreeMap<String, f64>;

/// A program to measure.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// The name in the table.
    pub(crate) system: String,
    /// Whether the program is ours. A program of ours that fails makes its figure fail.
    pub(crate) ours: bool,
    /// Program and arguments, or why it cannot run.
    pub(crate) command: Result<Vec<String>, String>,
    /// Environment variables it needs.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// The CPUs it may use.
    pub(crate) cpus: &'static [usize],
    /// The file that it reads. Each run begins with all of it in the page cache. A kernel may drop
    /// pages that were not used for some seconds, so another contender's long run would disturb.
    pub(crate) input: Option<String>,
    /// Whether a failure is a fact that the table shows: of a peer alone, which cannot do what the
    /// case asks.
    pub(crate) may_fail: bool,
    /// The answers that it must print for its times to count.
    pub(crate) answers: Vec<(&'static str, f64)>,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Less is better: times, bytes.
    Lower,
    /// More is better: requests per second.
    Higher,
}

/// A number that every run of a case reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Its name in the report.
    pub(crate) key: &'static str,
    /// Its unit in the table.
    pub(crate) unit: &'static str,
    /// Which way it is better.
    pub(crate) better: Better,
}

/// Why there is no number.
#[derive(Clone, Debug)]
pub(crate) enum MeasureError {
    /// The contender is not installed, or did not finish in time: a fact that the table shows.
    Absent(String),
    /// The contender is there, and failed.
    Failed(String),
    /// The answer was wrong: no time of this figure can be trusted.
    Wrong(String),
}

/// The reports of one contender's rounds, or the reason why there are none.
pub(crate) type Reports = Result<Vec<Report>, String>;

/// Runs the contenders `rounds` times in turn and returns the rows of one case. The first contender
/// is ours; the others' ratios are taken against it.
///
/// A peer that is missing or runs out of time is not tried again, and its row says why.
///
/// # Errors
///
/// A description of the first wrong answer, or of the first failure.
pub(crate) fn case(
    name: &str,
    contenders: &[Contender],
    metric: Metric,
    effort: Effort,
    limit: Duration,
) -> Result<Vec<Row>, String> {
    let reports = reports(name, contenders, &[metric.key], effort, limit)?;
    Ok(rows(name, contenders, metric, &values(&reports, metric.key)))
}

/// One number of every report.
pub(crate) fn values(reports: &[Reports], key: &str) -> Vec<Result<Vec<f64>, String>> {
    let pick = |reports: &Vec<Report>| reports.iter().map(|report| report[key]).collect();
    reports.iter().map(|reports| reports.as_ref().map(pick).map_err(Clone::clone)).collect()
}

/// Runs the contenders `effort.rounds` times in turn and returns what they report; every report has
/// all of `keys`.
///
/// A peer that is missing or runs out of time is not tried again.
///
/// # Errors
///
/// A description of the first wrong answer, or of the first failure, also that of a peer that is
/// there; of the first fault that was not noticed, when the programs run with faults.
pub(crate) fn reports(
    name: &str,
    contenders: &[Contender],
    keys: &[&str],
    effort: Effort,
    limit: Duration,
) -> Result<Vec<Reports>, String> {
    in_turn(name, contenders, effort, |contender| run(contender, keys, limit))
}

/// Lets the contenders do `run` in turn, `effort.rounds` times, and returns their reports.
///
/// # Errors
///
/// As for [`reports`].
pub(crate) fn in_turn<T>(
    name: &str,
    contenders: &[Contender],
    effort: Effort,
    mut run: impl FnMut(&Contender) -> Result<T, MeasureError>,
) -> Result<Vec<Result<Vec<T>, String>>, String> {
    let faults = effort.purpose == Purpose::Faults;
    let prepared = |contender: &Contender| match &contender.command {
        Err(why) if why.starts_with(BROKEN) => Err(format!("{name}: {}: {why}", contender.system)),
        Err(why) => Ok((contender.clone(), Err(why.clone()))),
        Ok(_) if faults && !contender.ours => {
            Ok((contender.clone(), Err("not run for its faults".to_owned())))
        }
        Ok(_) if faults => Ok((contender.clone().with_fault(), Ok(Vec::new()))),
        Ok(_) => Ok((contender.clone(), Ok(Vec::new()))),
    };
    let prepared: Vec<_> = contenders.iter().map(prepared).collect::<Result<_, String>>()?;
    let (contenders, mut samples): (Vec<Contender>, Vec<_>) = prepared.into_iter().unzip();
    for _ in 0..effort.rounds {
        for (contender, sample) in contenders.iter().zip(&mut samples) {
            let Ok(values) = sample else { continue };
            eprintln!("{name}: {}", contender.system);
            match run(contender) {
                Ok(_) if faults => {
                    return Err(format!("{name}: {}: a fault was not noticed", contender.system));
                }
                Ok(value) => values.push(value),
                Err(MeasureError::Wrong(_)) if faults => *sample = Err(NOTICED.to_owned()),
                Err(MeasureError::Wrong(what)) => {
                    return Err(format!("{name}: {}: {what}", contender.system));
                }
                Err(MeasureError::Absent(why)) if contender.ours => {
                    return Err(format!("{name}: {}: {why}", contender.system));
                }
                Err(MeasureError::Failed(why)) if !contender.may_fail => {
                    return Err(format!("{name}: {}: {why}", contender.system));
                }
                Err(MeasureError::Absent(why) | MeasureError::Failed(why)) => *sample = Err(why),
            }
        }
    }
    Ok(samples)
}

/// The text of a row when its program was told to give a wrong answer, and gave one.
pub(crate) const NOTICED: &str = "its fault was noticed";

impl Contender {
    /// The same program, told to give a wrong answer.
    pub(crate) fn with_fault(mut self) -> Contender {
        self.environment.push((FAULT, "1"));
        self
    }
}

/// Makes the rows of one case and metric out of the contenders' samples, the first contender being
/// ours.
pub(crate) fn rows(
    name: &str,
    contenders: &[Contender],
    metric: Metric,
    samples: &[Result<Vec<f64>, String>],
) -> Vec<Row> {
    let medians: Vec<Result<f64, String>> = samples
        .iter()
        .map(|sample| sample.as_ref().map(|values| median(values)).map_err(Clone::clone))
        .collect();
    let ours = medians.first().and_then(|median| median.as_ref().ok().copied());
    let row = |(index, contender): (usize, &Contender)| {
        let value = medians[index].clone();
        let ratio = match (&value, ours) {
            (Ok(theirs), Some(ours)) if index > 0 => Some(match metric.better {
                Better::Lower => theirs / ours,
                Better::Higher => ours / theirs,
            }),
            _ => None,
        };
        let range = samples[index].as_ref().ok().filter(|values| values.len() > 1).map(|values| {
            values
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
        });
        Row {
            case: name.to_owned(),
            system: contender.system.clone(),
            value,
            range,
            unit: metric.unit,
            ratio,
            aim: None,
            missed: None,
            command: contender.command.as_ref().ok().map(|command| shown(command, &contender.environment)),
        }
    };
    contenders.iter().enumerate().map(row).collect()
}

/// The middle value; the mean of the two middle ones when their number is even.
///
/// # Panics
///
/// When there is no value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// A command as a reader would type it, without directories.
fn shown(command: &[String], environment: &[(&str, &str)]) -> String {
    let mut words: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.extend(command.iter().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()));
    words.join(" ")
}

/// Runs a contender once, checks its answers and returns its report, in which all of `keys` are.
pub(crate) fn run(contender: &Contender, keys: &[&str], limit: Duration) -> Result<Report, MeasureError> {
    let command = contender.command.as_ref().map_err(|why| MeasureError::Absent(why.clone()))?;
    if let Some(path) = &contender.input {
        bring_into_memory(path).map_err(|error| MeasureError::Failed(format!("{path}: {error}")))?;
    }
    let mut process = pinned::command_on(contender.cpus, command);
    process.envs(contender.environment.iter().copied());
    checked(report(process, limit)?, &contender.answers, keys)
}

/// Reads a file, so that it is in the page cache.
fn bring_into_memory(path: &str) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    io::copy(&mut file, &mut io::sink())
}

/// A report that has the right answers and all of `keys`.
pub(crate) fn checked(
    report: Report,
    answers: &[(&str, f64)],
    keys: &[&str],
) -> Result<Report, MeasureError> {
    for (name, expected) in answers {
        match report.get(*name) {
            Some(value) if value == expected => {}
            Some(value) => return Err(MeasureError::Wrong(format!("{name} is {value}, not {expected}"))),
            None => return Err(MeasureError::Wrong(format!("it printed no {name}"))),
        }
    }
    match keys.iter().find(|key| !report.contains_key(**key)) {
        Some(key) => Err(MeasureError::Wrong(format!("it printed no {key}"))),
        None => Ok(report),
    }
}

/// Runs a process to its end and reads its output.
///
/// # Errors
///
/// [`MeasureError::Failed`] when it cannot be started or fails; [`MeasureError::Absent`] when it is
/// still running after `limit` (it is then killed).
pub(crate) fn report(process: Command, limit: Duration) -> Result<Report, MeasureError> {
    output(process, limit).map(|text| parse(&text))
}

/// Runs a process to its end and returns its output.
///
/// # Errors
///
/// As for [`report`].
pub(crate) fn output(mut process: Command, limit: Duration) -> Result<String, MeasureError> {
    let failed = |what: String| MeasureError::Failed(what);
    let mut child = process
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("did not start: {error}")))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(MeasureError::Absent(format!("not done in {} s", limit.as_secs())));
            }
            Err(error) => return Err(failed(format!("lost: {error}"))),
        }
    };
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text).map_err(|error| failed(format!("unreadable output: {error}")))?;
    }
    if !status.success() {
        return Err(failed(format!("failed: {status}")));
    }
    Ok(text)
}

/// Reads `name value` lines; others are ignored.
pub(crate) fn parse(text: &str) -> Report {
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_its_input_is_no_run() {
        let contender = contender(&["true"], vec![]).reads("/no/such/file");
        match run(&contender, &[], Duration::from_secs(1)) {
            Err(MeasureError::Failed(why)) => assert!(why.starts_with("/no/such/file"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    fn contender(command: &[&str], answers: Vec<(&'static str, f64)>) -> Contender {
        Contender {
            system: command[0].to_owned(),
            ours: false,
            command: Ok(command.iter().map(|&word| word.to_owned()).collect()),
            environment: vec![],
            cpus: &[pinned::SERVER_CPU],
            input: None,
            may_fail: false,
            answers,
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn ratios_say_how_many_times_better_ours_is() {
        let contenders = [contender(&["ours"], vec![]), contender(&["theirs"], vec![])];
        let samples = [Ok(vec![5.0]), Ok(vec![60.0])];
        let lower = Metric { key: "ns", unit: "ns", better: Better::Lower };
        assert_eq!(rows("c", &contenders, lower, &samples)[1].ratio, Some(12.0));
        let higher = Metric { key: "rate", unit: "/s", better: Better::Higher };
        assert_eq!(rows("c", &contenders, higher, &samples)[1].ratio, Some(5.0 / 60.0));
    }

    #[test]
    fn a_wrong_or_missing_answer_counts_for_nothing() {
        let check = |text, answers: &[(&str, f64)], keys: &[&str]| match checked(parse(text), answers, keys) {
            Ok(report) => Ok(report["ns"]),
            Err(MeasureError::Wrong(what)) => Err(what),
            Err(MeasureError::Absent(why) | MeasureError::Failed(why)) => panic!("{why}"),
        };
        let right = "ns 4.5\nsum 6\n";
        assert_eq!(check(right, &[("sum", 6.0)], &["ns"]), Ok(4.5));
        assert_eq!(check(right, &[("sum", 7.0)], &["ns"]), Err("sum is 6, not 7".to_owned()));
        assert_eq!(check(right, &[("bytes", 7.0)], &["ns"]), Err("it printed no bytes".to_owned()));
        assert_eq!(check(right, &[("sum", 6.0)], &["ns", "rate"]), Err("it printed no rate".to_owned()));
    }

    /// Runs one program with one purpose and returns its error, or the text of its row.
    fn outcome(
        contender: Contender,
        purpose: Purpose,
        told: Result<(), MeasureError>,
    ) -> Result<String, String> {
        let effort = Effort { rounds: 1, seconds: 1, purpose };
        let samples = in_turn("f", &[contender], effort, |_| told.clone())?;
        Ok(samples.into_iter().next().and_then(Result::err).unwrap_or_else(|| "measured".to_owned()))
    }

    #[test]
    fn a_program_that_fails_makes_its_figure_fail() {
        let died = || Err(MeasureError::Failed("failed: signal: 6".to_owned()));
        let peer = || contender(&["theirs"], vec![]);
        let ours = Contender { ours: true, ..contender(&["ours"], vec![]) };
        assert_eq!(outcome(ours, Purpose::Times, died()), Err("f: ours: failed: signal: 6".to_owned()));
        assert_eq!(outcome(peer(), Purpose::Times, died()), Err("f: theirs: failed: signal: 6".to_owned()));
        let unable = Contender { may_fail: true, ..peer() };
        assert_eq!(outcome(unable, Purpose::Times, died()), Ok("failed: signal: 6".to_owned()));
        let broken = Contender { command: Err(format!("{BROKEN}: 1")), ..peer() };
        assert_eq!(outcome(broken, Purpose::Times, Ok(())), Err(format!("f: theirs: {BROKEN}: 1")));
    }

    #[test]
    fn a_peer_that_is_missing_or_too_slow_is_shown() {
        let late = Err(MeasureError::Absent("not done in 60 s".to_owned()));
        let peer = || contender(&["theirs"], vec![]);
        assert_eq!(outcome(peer(), Purpose::Times, late), Ok("not done in 60 s".to_owned()));
        let missing = Contender { command: Err("missing".to_owned()), ..peer() };
        assert_eq!(outcome(missing, Purpose::Times, Ok(())), Ok("missing".to_owned()));
    }

    #[test]
    fn a_fault_that_is_not_noticed_makes_its_figure_fail() {
        let wrong = || Err(MeasureError::Wrong("sum is 6, not 7".to_owned()));
        let ours = || Contender { ours: true, ..contender(&["ours"], vec![]) };
        assert_eq!(outcome(ours(), Purpose::Faults, wrong()), Ok(NOTICED.to_owned()));
        assert_eq!(
            outcome(ours(), Purpose::Faults, Ok(())),
            Err("f: ours: a fault was not noticed".to_owned())
        );
        assert_eq!(outcome(ours(), Purpose::Answers, wrong()), Err("f: ours: sum is 6, not 7".to_owned()));
        assert_eq!(outcome(ours(), Purpose::Answers, Ok(())), Ok("measured".to_owned()));
    }

    #[test]
    fn only_name_value_lines_are_read() {
        let report = parse("ns 4.5\nhello world\nfinished 10\n\n");
        assert_eq!(report.get("ns"), Some(&4.5));
        assert_eq!(report.get("finished"), Some(&10.0));
        assert_eq!(report.len(), 2);
    }

    #[test]
    fn a_run_that_does_not_end_is_killed_and_said_so() {
        let mut sleep = Command::new("sleep");
        sleep.arg("20");
        match report(sleep, Duration::from_millis(50)) {
            Err(MeasureError::Absent(why)) => assert!(why.starts_with("not done"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
