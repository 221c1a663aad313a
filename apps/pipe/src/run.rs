//! Runs a script: each pipeline in turn, and the outcome from which `main.rs` makes the exit
//! status.
//!
//! `main.rs` and the prompt in `interactive/terminal.rs` call [`prepare`] and then [`run`].
//! `stream.rs` puts each pipeline together, and `target.rs` has its last part, which writes.
//!
//! A stage that fails names itself with `stage::failure_name`: the place of its first word in the
//! script. `script_error` turns the place back into a span, so that the user sees the caret below
//! it.

use crate::kinds::{check, waiting_within};
use crate::language::error::{ScriptError, Span};
use crate::language::parse;
use crate::language::tree::{Pipeline, Stage, StageKind, limit_sorts};
use crate::parts::{PartStages, now_in_parts};
use crate::progress::Progress;
use crate::source::failed;
use crate::stage::{Taker, failure_name, leaves_lines, stream_name};
use crate::stream::stream;
use crate::target::Target;
use selvedge_core::round_robin_over;
use selvedge_io::EventLoop;
use selvedge_io::fs::metadata;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::stdio;
use selvedge_pipeline::StageError;
use selvedge_sched::work_stealing;
use selvedge_scope::race;
use std::io;

/// How a script is run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whether the bar is shown.
    pub progress: bool,
    /// How many OS threads a pipeline may have that reads a large file in parts. With 1 no pipeline
    /// does.
    pub threads: usize,
    /// How many bytes such a file has at least: [`LEAST`](crate::parts::LEAST), but in tests.
    pub least: u64,
    /// How many bytes of memory the items of a `sort` may need. With `None` the stage chooses.
    pub sort_memory: Option<usize>,
}

impl Settings {
    /// How many OS threads a script needs.
    fn threads_for(self, script: &[Pipeline]) -> usize {
        let in_parts = script.iter().any(|pipeline| self.parts(pipeline).is_some());
        if in_parts { self.threads } else { 1 }
    }

    /// The script with what the settings say of its stages.
    fn applied(self, mut script: Vec<Pipeline>) -> Vec<Pipeline> {
        if let Some(bytes) = self.sort_memory {
            script.iter_mut().for_each(|pipeline| limit_sorts(pipeline, bytes));
        }
        script
    }

    /// The stages of a pipeline that run in parts.
    fn parts(self, pipeline: &[Stage]) -> Option<PartStages<'_>> {
        (self.threads > 1).then(|| now_in_parts(pipeline, self.least)).flatten()
    }
}

/// What a run has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Something came out.
    Found,
    /// Nothing came out, or a count of 0.
    Nothing,
    /// The reader of the output has gone before the end, as `head` does.
    ReaderGone,
}

/// Reads and checks a script.
///
/// # Errors
/// What does not fit, and where.
pub fn prepare(text: &str) -> Result<Vec<Pipeline>, ScriptError> {
    let script = parse(text)?;
    check(&script)?;
    Ok(script)
}

/// Runs a script that is checked. The outcome is that of the last pipeline.
///
/// It runs on this OS thread. If a pipeline of it reads a large file in parts, then further OS
/// threads run beside this one.
///
/// # Errors
/// The failure of a stage, with its place. The pipelines after it are not run.
pub fn run(script: Vec<Pipeline>, settings: Settings) -> Result<Outcome, ScriptError> {
    let script = settings.applied(script);
    let threads = settings.threads_for(&script);
    with_events(threads, run_all(script, settings))
}

/// As [`run`], but the signal of Ctrl-C ends the script: `None` then. Its processes are killed.
///
/// # Errors
/// As for [`run`], and if the signal cannot be awaited.
pub fn run_interruptible(script: Vec<Pipeline>, settings: Settings) -> Result<Option<Outcome>, ScriptError> {
    let script = settings.applied(script);
    let threads = settings.threads_for(&script);
    let mut interrupts = signals(&[Signal::INT]).map_err(|error| nowhere(&error))?;
    let interrupted = async move { interrupts.next().await.map(|_| None).map_err(|error| nowhere(&error)) };
    with_events(threads, race((async move { run_all(script, settings).await.map(Some) }, interrupted)))
}

/// An error about no place in the script.
fn nowhere(error: &impl ToString) -> ScriptError {
    ScriptError::new(Span::default(), error.to_string())
}

/// Runs a future on this number of OS threads, each with an event loop of its own.
fn with_events<T: Send + 'static>(
    threads: usize,
    main: impl Future<Output = Result<T, ScriptError>> + Send + 'static,
) -> Result<T, ScriptError> {
    if threads > 1 {
        return work_stealing(threads, |_| EventLoop::new(), main).map_err(|error| nowhere(&error))?;
    }
    let mut events = EventLoop::new().map_err(|error| nowhere(&error))?;
    round_robin_over(&mut events, main).map_err(|error| nowhere(&error))?
}

async fn run_all(script: Vec<Pipeline>, settings: Settings) -> Result<Outcome, ScriptError> {
    let mut outcome = Outcome::Nothing;
    let settings = Settings { threads: settings.threads_for(&script), ..settings };
    for pipeline in &script {
        let ran = run_pipeline(pipeline, settings).await;
        outcome = ran.map_err(|failure| script_error(&failure, &script))?;
        if outcome == Outcome::ReaderGone {
            break;
        }
    }
    Ok(outcome)
}

/// The place in the script that the name of a failed stage tells, and what was done there, if the
/// name says so: see [`stream_name`].
fn named(failure: &StageError) -> Option<(Span, Option<&str>)> {
    let mut place = failure.stage().strip_prefix('@')?.splitn(3, ':');
    let mut number = || place.next()?.parse().ok();
    let (begin, end) = (number()?, number()?);
    Some((Span::new(begin, end), place.next()))
}

/// The failure of a stage as the user sees it, with its place in the script.
fn script_error(failure: &StageError, script: &[Pipeline]) -> ScriptError {
    let span = match named(failure) {
        Some((span, None)) => span,
        Some((span, Some(what))) => return ScriptError::new(span, format!("{what}: {}", failure.cause())),
        None => return ScriptError::new(Span::default(), failure.to_string()),
    };
    let error = ScriptError::new(span, failure.cause().to_string());
    if script.iter().any(|pipeline| waits(pipeline, span)) {
        return error;
    }
    let (item, offset) = (failure.item(), failure.offset());
    error.with_help(match failure.section() {
        Some(place) => {
            let held = script.iter().rfind(|pipeline| pipeline[0].span.begin <= span.begin);
            let is_line = held.is_some_and(|pipeline| has_lines(pipeline, span));
            let section = if is_line { "line" } else { "section" };
            format!("item {item}, in {section} {} at offset {}", place.items + 1, place.elements)
        }
        None => format!("item {item}, offset {offset}"),
    })
}

/// Whether the stage at `span` is a source, a command or a target. What they say names the file or
/// the command, and their items are bytes that a user does not count. Two stages never begin at one
/// place.
fn waits(pipeline: &[Stage], span: Span) -> bool {
    pipeline.iter().any(|stage| match &stage.kind {
        StageKind::Join2(_, inner) => waits(inner, span),
        StageKind::Branch(of) => waits(&of.then, span) || waits(&of.otherwise, span),
        StageKind::File(_) | StageKind::Stdin | StageKind::Shell(_) => stage.span.begin == span.begin,
        _ => stage.target().is_some() && stage.span.begin == span.begin,
    })
}

/// Whether `stream.rs` tells the line of the input for a failure at `span`: the source yields
/// bytes, and no join, no stage that leaves the lines and no branch that waits is between.
/// Otherwise a section of the failure is one of `foreach`.
fn has_lines(pipeline: &[Stage], span: Span) -> bool {
    // The last of these stages holds `span`.
    let mut before = pipeline.iter().take_while(|stage| stage.span.begin <= span.begin).peekable();
    let mut lines = !matches!(pipeline[0].kind, StageKind::Range(..));
    while let Some(stage) = before.next() {
        lines = match &stage.kind {
            StageKind::Join2(_, inner) => before.peek().is_none() && has_lines(inner, span),
            StageKind::Shell(_) => true,
            StageKind::Branch(_) if waiting_within(stage).is_some() => false,
            _ => lines && !leaves_lines(stage),
        };
    }
    lines
}

async fn run_pipeline(pipeline: &[Stage], settings: Settings) -> Result<Outcome, StageError> {
    // These stages write a count as it is.
    let writes = |stage: &&Stage| {
        stage.target().is_some() || matches!(stage.kind, StageKind::Bytes | StageKind::Lines)
    };
    let counts = pipeline.iter().rev().find(|stage| !writes(stage));
    let counts = counts.is_some_and(|stage| stage.kind == StageKind::Count);
    let progress = Progress::of(pipeline, settings.progress);
    let last = pipeline.last().expect("the parser makes no empty pipeline");
    let (name, path, shown) = match last.target() {
        Some((path, _)) => (failure_name(last), path, path),
        None => (stream_name(last, "write standard output"), "/dev/stdout", "this file"),
    };
    let wrong = |error| failed(&name, 0, error);
    refuse_source(path, shown, pipeline).await.map_err(wrong)?;
    let target = match last.target() {
        Some((path, append)) => Target::file(name, path, append, counts),
        None => {
            let output = stdio::stdout().map_err(wrong)?;
            Target::stdout(name, output, counts)
        }
    };
    let seen = target.seen();
    let parts = settings.parts(pipeline);
    let in_parts = parts.is_some();
    let parts = parts.map(|parts| (parts, settings.threads));
    match stream(pipeline, Taker::Text, &progress, parts)?.pour(target).await {
        Err(failure) if in_parts => return Err(placed(failure, pipeline).await),
        ran => ran?,
    }
    Ok(match (seen.reader_gone(), seen.found()) {
        (true, _) => Outcome::ReaderGone,
        (false, true) => Outcome::Found,
        (false, false) => Outcome::Nothing,
    })
}

/// The failure that the pipeline tells without parts: with its place in the whole stream. `failure`
/// is the failure that it has told in parts.
///
/// The pipeline is run again, up to its failure. So this takes as long as a run without parts. It
/// starts no command: [`runs_in_parts`](crate::parts::runs_in_parts) sees to it that a pipeline
/// with a command fails behind that command only, and there the place is known.
async fn placed(failure: StageError, pipeline: &[Stage]) -> StageError {
    let without_places = |stage: &Stage| match &stage.kind {
        StageKind::Shell(_) | StageKind::Join2(..) => true,
        _ => waiting_within(stage).is_some(),
    };
    match named(&failure) {
        Some((span, None)) if !waits(pipeline, span) && !pipeline.iter().any(without_places) => {
            match stream(pipeline, Taker::Text, &Progress::of(pipeline, false), None) {
                // If there is none, then the file has changed.
                Ok(again) => again.failure().await.unwrap_or(failure),
                Err(_) => failure,
            }
        }
        _ => failure,
    }
}

/// Adds the paths of all files that a pipeline reads, in the brackets of its joins too.
fn add_sources<'a>(pipeline: &'a [Stage], paths: &mut Vec<&'a str>) {
    match pipeline.first().map(|stage| &stage.kind) {
        Some(StageKind::File(names)) => paths.extend(names.iter().map(String::as_str)),
        // What a command reads is not known.
        Some(StageKind::Text(_) | StageKind::Range(..) | StageKind::Shell(_)) | None => {}
        Some(_) => paths.push("/dev/stdin"),
    }
    add_joined(pipeline, paths);
}

/// Adds the paths of the files that are joined to a pipeline, in its branches too.
fn add_joined<'a>(pipeline: &'a [Stage], paths: &mut Vec<&'a str>) {
    for stage in pipeline {
        match &stage.kind {
            StageKind::Join2(_, inner) => add_sources(inner, paths),
            StageKind::Branch(of) => {
                add_joined(&of.then, paths);
                add_joined(&of.otherwise, paths);
            }
            _ => {}
        }
    }
}

/// Refuses a target that the pipeline reads: `to` would empty it before it is read, and a pipeline
/// with `append to`, or with its output at the end of the file, would read its own text without
/// end. `name` is what the user calls the target.
async fn refuse_source(target: &str, name: &str, pipeline: &[Stage]) -> io::Result<()> {
    let identity = async |path: &str| match metadata(path).await {
        Ok(status) if status.is_file() => Some((status.dev(), status.ino())),
        // A pipe or a device may be both. A file that is not there is told when it is opened.
        _ => None,
    };
    let Some(written) = identity(target).await else { return Ok(()) };
    let mut paths = Vec::new();
    add_sources(pipeline, &mut paths);
    for path in paths {
        if identity(path).await == Some(written) {
            return Err(io::Error::other(format!("{name} is also a source of this pipeline")));
        }
    }
    Ok(())
}
