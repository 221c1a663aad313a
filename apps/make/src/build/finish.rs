//! One edge's command, from its files before to its records after.
//!
//! `Runner::make` in `runner.rs` calls `Runner::run` when an edge must run. `run` waits for a
//! permit, prepares files, runs the process, and calls `read_deps` and `record` in `records.rs`.
//!
//! If this process is killed at any point, then no output that is half made may look fresh to the
//! next build. `distrust` keeps that rule: before the command starts, it replaces the log's entries
//! of the outputs.

use super::INTERRUPTED;
use super::clock::Clock;
use super::command::{End, Running};
use super::runner::{Ended, Runner, passed_on, send};
use crate::disk;
use crate::error::MakeError;
use crate::evaluate::RuleError;
use crate::graph::{CONSOLE, EdgeId, Graph, NodeId, names};
use crate::log::build_log::Entry;
use crate::project::{Project, as_path};
use selvedge_io::signal::Signal;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::rc::Rc;

/// An edge's command, its files and its hash, all evaluated before it runs.
pub(super) struct Order {
    command: Vec<u8>,
    /// The command or its description, as the user sees it.
    shown: Vec<u8>,
    console: bool,
    pub(super) depfile: Vec<u8>,
    pub(super) rspfile: Vec<u8>,
    pub(super) outputs: Vec<NodeId>,
    hash: u64,
}

/// Why a command counts as failed.
pub(super) struct CommandError {
    /// In a few words.
    pub(super) reason: String,
    /// The exit status that the build gets from it.
    pub(super) status: u8,
}

impl CommandError {
    /// A failure that is not told by the command's own status.
    pub(super) fn other(reason: &str) -> CommandError {
        CommandError { reason: reason.to_string(), status: 1 }
    }

    /// The failure that the status of a command tells. A signal counts as the shell counts it.
    fn of(status: ExitStatus) -> Option<CommandError> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(CommandError { reason: format!("code={code}"), status: code as u8 }),
            (None, Some(signal)) => {
                Some(CommandError { reason: format!("signal={signal}"), status: 128 | signal as u8 })
            }
            (None, None) => Some(CommandError::other(&status.to_string())),
        }
    }
}

/// How a command has ended.
pub(super) struct Finished {
    pub(super) failure: Option<CommandError>,
    /// The text that it has written, and the reason of a failure that is this program's.
    pub(super) output: Vec<u8>,
}

impl Order {
    fn of(project: &mut Project, edge: EdgeId, verbose: bool) -> Result<Order, RuleError> {
        let graph = &project.graph;
        Ok(Order {
            shown: shown(graph, edge, verbose)?,
            command: graph.value(edge, names::COMMAND)?,
            console: graph.edge(edge).pool == CONSOLE,
            depfile: graph.path_value(edge, names::DEPFILE)?,
            rspfile: graph.path_value(edge, names::RSPFILE)?,
            outputs: graph.outputs(edge).collect(),
            hash: project.command_hash(edge).expect("the command was evaluated just now"),
        })
    }
}

/// The line that the user sees: the description of an edge, or its command if there is none or if
/// whole commands are shown.
fn shown(graph: &Graph, edge: EdgeId, verbose: bool) -> Result<Vec<u8>, RuleError> {
    let mut shown = if verbose { Vec::new() } else { graph.value(edge, names::DESCRIPTION)? };
    if shown.is_empty() {
        shown = graph.value(edge, names::COMMAND)?;
    }
    Ok(shown)
}

impl Runner {
    /// Waits for a permit, and runs the edge's command.
    ///
    /// # Errors
    /// The build cannot go on: a file that is part of the build runner's own work.
    pub(super) async fn run(self: &Rc<Runner>, edge: EdgeId) -> Result<Ended, MakeError> {
        let pool = self.project.borrow().graph.edge(edge).pool;
        let _job = self.jobs.wait(pool).await?;
        if self.stopped() {
            return Ok(Ended::NotMade);
        }
        let verbose = self.options.style.verbose;
        if self.options.dry_run {
            let mut project = self.project.borrow_mut();
            let reasons = project.take_reasons(edge);
            let shown = shown(&project.graph, edge, verbose)?;
            let console = project.graph.edge(edge).pool == CONSOLE;
            self.status.borrow_mut().start(edge, &shown, console, reasons);
            self.status.borrow_mut().end(edge, &shown, console, None, b"");
            drop(project);
            self.stop_unread();
            return Ok(Ended::Made);
        }
        // The logs must be open before a command is hashed.
        let clock = self.clock()?;
        let order = Order::of(&mut self.project.borrow_mut(), edge, verbose);
        let order = order?;
        let began = self.status.borrow().elapsed();
        let reasons = self.project.borrow_mut().take_reasons(edge);
        self.status.borrow_mut().start(edge, &order.shown, order.console, reasons);
        self.stop_unread();
        if self.stopped() {
            return Ok(Ended::NotMade);
        }
        let mtime = self.prepare(edge, &order, clock)?;
        let lane = self.timeline.borrow_mut().begin();
        let mut finished = self.child(edge, &order).await?;
        let ended = self.status.borrow().elapsed();
        self.timeline.borrow_mut().end(lane, order.shown.clone(), began, ended);
        if self.interrupted.get().is_some() {
            self.remove_half_made(edge, &order)?;
            return Ok(Ended::NotMade);
        }
        let entry =
            Entry { start: began.as_millis() as u32, end: ended.as_millis() as u32, mtime, hash: order.hash };
        let inputs = self.read_deps(edge, &order, &mut finished)?;
        if finished.failure.is_none() {
            self.record(edge, &order, entry, inputs)?;
        }
        let Finished { failure, output } = finished;
        let failure = failure.map(|failure| self.failed(&order, &failure));
        self.status.borrow_mut().end(edge, &order.shown, order.console, failure.as_deref(), &output);
        self.stop_unread();
        Ok(if failure.is_some() { Ended::NotMade } else { Ended::Made })
    }

    /// Counts a failure, and returns the text that the user sees of it.
    fn failed(&self, order: &Order, failure: &CommandError) -> Vec<u8> {
        self.failures.set(self.failures.get() + 1);
        self.failed_with.set(failure.status);
        let project = self.project.borrow();
        let (red, plain) = if self.options.style.colours { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        let mut text = format!("{red}FAILED: [{}] {plain}", failure.reason).into_bytes();
        for output in &order.outputs {
            text.extend_from_slice(project.graph.path(*output));
            text.push(b' ');
        }
        [&text, &b"\n"[..], &order.command, b"\n"].concat()
    }

    /// Makes the directories and the response file of the command, and calls `distrust`. Returns
    /// the time by the file system's clock.
    fn prepare(&self, edge: EdgeId, order: &Order, clock: &Clock) -> Result<i64, MakeError> {
        let mut project = self.project.borrow_mut();
        for output in &order.outputs {
            make_parent(project.graph.path(*output))?;
        }
        if !order.depfile.is_empty() {
            make_parent(&order.depfile)?;
        }
        if !order.rspfile.is_empty() {
            make_parent(&order.rspfile)?;
            let content = project.graph.value(edge, names::RSPFILE_CONTENT)?;
            fs::write(as_path(&order.rspfile), content)
                .map_err(MakeError::of_file(as_path(&order.rspfile)))?;
        }
        self.distrust(&mut project, edge, order)?;
        clock.now().map_err(MakeError::of_file(Path::new(".ninja_lock")))
    }

    /// Replaces each record of the outputs by [`Entry::unfinished`]. A record of an earlier command
    /// may fit the half-made output now, because an output was gone, or may fit it later, when
    /// flags or an input are as they were. An output of a generator without a record gets one,
    /// because an output without a record counts as made by hand there. Every other output without
    /// a record is not up to date.
    fn distrust(&self, project: &mut Project, edge: EdgeId, order: &Order) -> Result<(), MakeError> {
        let generator = project.graph.has(edge, names::GENERATOR)?;
        let Project { build_log, graph, .. } = &mut *project;
        for output in &order.outputs {
            let known = build_log.entry(*output);
            if known.map_or(generator, |entry| !entry.is_unfinished()) {
                let unfinished = known.unwrap_or_default().unfinished();
                let recorded = build_log.record(graph, *output, unfinished);
                recorded.map_err(MakeError::BuildLog)?;
            }
        }
        Ok(())
    }

    async fn child(self: &Rc<Runner>, edge: EdgeId, order: &Order) -> Result<Finished, MakeError> {
        let mut started = match order.console {
            true => Running::start_on_terminal(&order.command, &self.variables),
            false => Running::start(&order.command, &self.launcher),
        };
        let mut by_shell = false;
        let (status, output) = loop {
            let running = match started {
                Ok(running) => running,
                Err(error) => {
                    let failure = Some(CommandError::other("cannot be started"));
                    return Ok(Finished { failure, output: error.to_string().into_bytes() });
                }
            };
            // A command with the terminal is in this process's group, where the terminal's signals
            // reach it.
            if !order.console {
                self.running.borrow_mut().insert(edge, running.id());
                // A signal that came while the command started did not reach it.
                if let Some(signal) = self.interrupted.get() {
                    send(running.id(), passed_on(signal));
                }
            }
            let ended = running.end(self.wait_for_stop()).await;
            self.running.borrow_mut().remove(&edge);
            match ended? {
                End::Of(status, output) => break (status, output),
                End::NotLoaded(error) if by_shell => started = Err(error),
                End::NotLoaded(_) => {
                    by_shell = true;
                    started = Running::start_by_shell(&order.command, &self.launcher);
                }
            }
        };
        let signal = status.signal().map(Signal::from_raw);
        let signal = signal.filter(|signal| [Signal::INT, Signal::TERM, Signal::HUP].contains(signal));
        // A shell tells by this status that Ctrl-C has ended its program.
        let told = (status.code() == Some(INTERRUPTED.into())).then_some(Signal::INT);
        if let Some(signal) = signal.or(told)
            && self.interrupted.get().is_none()
        {
            self.interrupt(signal);
        }
        Ok(Finished { failure: CommandError::of(status), output })
    }

    /// Removes the outputs that an interrupted command has touched. Those of a generator stay,
    /// because the manifest is one of them, and without a manifest no build can make it anew. The
    /// record that `distrust` has left says that they are not finished.
    fn remove_half_made(&self, edge: EdgeId, order: &Order) -> Result<(), RuleError> {
        let mut project = self.project.borrow_mut();
        if project.graph.has(edge, names::GENERATOR)? {
            return Ok(());
        }
        for output in &order.outputs {
            let before = project.mtime(*output).unwrap_or(disk::MISSING);
            let path = project.graph.path(*output);
            if !order.depfile.is_empty() || disk::mtime(path).is_ok_and(|mtime| mtime != before) {
                let _ = fs::remove_file(as_path(path));
            }
        }
        if !order.depfile.is_empty() {
            let _ = fs::remove_file(as_path(&order.depfile));
        }
        Ok(())
    }
}

fn make_parent(path: &[u8]) -> Result<(), MakeError> {
    let Some(parent) = as_path(path).parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if Path::exists(parent) {
        return Ok(());
    }
    fs::create_dir_all(parent).map_err(MakeError::of_file(parent))
}
