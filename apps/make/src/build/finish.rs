//! One edge's command, from its files before to its records after.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use selvedge_io::signal::Signal;

use super::command::Running;
use super::runner::{Ended, Runner, passed_on, send};
use crate::evaluate::Circle;
use crate::graph::{CONSOLE, EdgeId, NodeId, names};
use crate::log::build_log::Entry;
use crate::log::deps_log::Deps;
use crate::project::{Project, as_path};
use crate::{canonical, depfile, disk};

/// What is known of an edge's command before it runs.
struct Order {
    command: Vec<u8>,
    /// What the user sees of it.
    shown: String,
    console: bool,
    depfile: Vec<u8>,
    rspfile: Vec<u8>,
    outputs: Vec<NodeId>,
    hash: u64,
}

impl Order {
    fn of(project: &mut Project, edge: EdgeId, verbose: bool) -> Result<Order, Circle> {
        let graph = &project.graph;
        let command = graph.value(edge, names::COMMAND)?;
        let description = graph.value(edge, names::DESCRIPTION)?;
        let shown = if description.is_empty() || verbose { &command } else { &description };
        Ok(Order {
            shown: String::from_utf8_lossy(shown).into_owned(),
            command,
            console: graph.edge(edge).pool == CONSOLE,
            depfile: graph.path_value(edge, names::DEPFILE)?,
            rspfile: graph.path_value(edge, names::RSPFILE)?,
            outputs: graph.outputs(edge).collect(),
            hash: project.command_hash(edge).expect("the command was evaluated just now"),
        })
    }
}

/// Text with the path of which the system said something.
fn at(path: &[u8], error: &io::Error) -> String {
    format!("{}: {error}", String::from_utf8_lossy(path))
}

impl Runner {
    /// Waits for a permit, and runs the edge's command.
    ///
    /// # Errors
    /// For the user, if the build cannot go on: a file that is part of the build runner's own work.
    pub(super) async fn run(&self, edge: EdgeId) -> Result<Ended, String> {
        let pool = self.project.borrow().graph.edge(edge).pool;
        let _job = self.jobs.wait(pool).await.map_err(|error| error.to_string())?;
        if self.stopped() {
            return Ok(Ended::NotMade);
        }
        let verbose = self.options.style.verbose;
        let order = Order::of(&mut self.project.borrow_mut(), edge, verbose);
        let order = order?;
        let began = self.status.borrow().elapsed();
        self.status.borrow_mut().start(edge, &order.shown, order.console);
        if self.options.dry_run {
            self.status.borrow_mut().end(edge, &order.shown, order.console, None, b"");
            return Ok(Ended::Made);
        }
        let mtime = self.prepare(edge, &order)?;
        let lane = self.timeline.borrow_mut().begin();
        let (status, mut output) = self.child(edge, &order).await?;
        let ended = self.status.borrow().elapsed();
        self.timeline.borrow_mut().end(lane, order.shown.clone(), began, ended);
        if self.interrupted.get().is_some() {
            self.remove_half_made(&order);
            return Ok(Ended::NotMade);
        }
        let entry =
            Entry { start: began.as_millis() as u32, end: ended.as_millis() as u32, mtime, hash: order.hash };
        let mut failure = (!status.success()).then(|| describe(status));
        if failure.is_none()
            && let Err(error) = self.succeed(edge, &order, entry)
        {
            output.extend_from_slice(error.as_bytes());
            failure = Some("its depfile cannot be used".into());
        }
        let failure = failure.map(|reason| self.failed(&order, &reason));
        self.status.borrow_mut().end(edge, &order.shown, order.console, failure.as_deref(), &output);
        Ok(if failure.is_some() { Ended::NotMade } else { Ended::Made })
    }

    /// Counts a failure, and says what is shown of it.
    fn failed(&self, order: &Order, reason: &str) -> String {
        self.failures.set(self.failures.get() + 1);
        let project = self.project.borrow();
        let outputs: Vec<_> = order.outputs.iter().map(|output| project.graph.path_text(*output)).collect();
        let command = String::from_utf8_lossy(&order.command);
        format!("FAILED: [{reason}] {}\n{command}\n", outputs.join(" "))
    }

    /// What must be there before the command runs: directories, the response file, and a record
    /// that keeps a half-made output from looking fresh. Returns the time by the file system's
    /// clock.
    fn prepare(&self, edge: EdgeId, order: &Order) -> Result<i64, String> {
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
            fs::write(as_path(&order.rspfile), content).map_err(|error| at(&order.rspfile, &error))?;
        }
        self.distrust(&mut project, edge, order)?;
        let clock = self.clock.as_ref().expect("a build that runs commands has a clock");
        now(clock).map_err(|error| at(b".ninja_lock", &error))
    }

    /// The log may hold a record of each output that would fit what the command leaves half-made:
    /// the same command, and no input is newer. That is so if the command runs because an output is
    /// gone. Such a record is replaced, so that a process that is killed leaves nothing that looks
    /// fresh.
    fn distrust(&self, project: &mut Project, edge: EdgeId, order: &Order) -> Result<(), String> {
        for output in &order.outputs {
            let entry = project.build_log.entry(*output).filter(|entry| entry.hash == order.hash);
            if entry.is_some_and(|entry| !project.has_newer_input(edge, entry.mtime)) {
                let nothing = Entry { start: 0, end: 0, mtime: 0, hash: 0 };
                let Project { build_log, graph, .. } = &mut *project;
                build_log.record(graph, *output, nothing).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    async fn child(&self, edge: EdgeId, order: &Order) -> Result<(ExitStatus, Vec<u8>), String> {
        let flags = self.options.jobserver.as_ref().and_then(|server| server.makeflags());
        let running = Running::start(&order.command, order.console, flags).await;
        let running = running.map_err(|error| error.to_string())?;
        // A command with the terminal is in this process's group, where the terminal's signals
        // reach it.
        if !order.console {
            self.running.borrow_mut().insert(edge, running.id());
            // A signal that came while the command started did not reach it.
            if let Some(signal) = self.interrupted.get() {
                send(running.id(), passed_on(signal));
            }
        }
        let ended = running.end().await;
        self.running.borrow_mut().remove(&edge);
        let (status, output) = ended.map_err(|error| error.to_string())?;
        let signal = status.signal().map(Signal::from_raw);
        if let Some(signal) =
            signal.filter(|signal| [Signal::INT, Signal::TERM, Signal::HUP].contains(signal))
            && self.interrupted.get().is_none()
        {
            self.interrupt(signal);
        }
        Ok((status, output))
    }

    /// Removes the outputs that an interrupted command has touched.
    fn remove_half_made(&self, order: &Order) {
        let mut project = self.project.borrow_mut();
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
    }

    /// What follows a command that succeeded: its deps, what it has left as it was, the logs.
    fn succeed(&self, edge: EdgeId, order: &Order, mut entry: Entry) -> Result<(), String> {
        let mut project = self.project.borrow_mut();
        let deps = project.graph.value(edge, names::DEPS)?;
        let inputs = match &deps[..] {
            b"" => None,
            b"gcc" => Some(self.depfile(&mut project, order)?),
            other => return Err(format!("unknown deps type '{}'", String::from_utf8_lossy(other))),
        };
        let restats = project.graph.restats(edge)?;
        let generator = project.graph.has(edge, names::GENERATOR)?;
        if restats || generator {
            let (mut unchanged, began) = (false, entry.mtime);
            for output in &order.outputs {
                let before = project.mtime(*output).map_err(|error| error.to_string())?;
                let after = disk::mtime(project.graph.path(*output)).map_err(|error| error.to_string())?;
                entry.mtime = entry.mtime.max(after);
                if restats && before == after {
                    project.set_clean(*output);
                    unchanged = true;
                }
            }
            if unchanged {
                entry.mtime = began;
            }
        }
        if !order.rspfile.is_empty() && !self.options.keep_rspfile {
            let _ = fs::remove_file(as_path(&order.rspfile));
        }
        let Project { graph, build_log, deps_log, .. } = &mut *project;
        for output in &order.outputs {
            if let Some(inputs) = &inputs {
                let mtime = disk::mtime(graph.path(*output)).map_err(|error| error.to_string())?;
                let deps = Deps { mtime, inputs: inputs.clone() };
                deps_log.record(graph, *output, deps).map_err(|error| error.to_string())?;
            }
        }
        for output in &order.outputs {
            build_log.record(graph, *output, entry).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Reads and removes the depfile that a compiler has written.
    fn depfile(&self, project: &mut Project, order: &Order) -> Result<Vec<NodeId>, String> {
        if order.depfile.is_empty() {
            return Err("edge with deps=gcc but no depfile makes no sense".into());
        }
        let path = as_path(&order.depfile);
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&order.depfile, &error)),
        };
        let parsed = depfile::parse(&text);
        let parsed = parsed.map_err(|error| at(&order.depfile, &io::Error::other(error)))?;
        let mut nodes = Vec::with_capacity(parsed.inputs.len());
        for mut input in parsed.inputs {
            canonical::canonicalize(&mut input);
            nodes.push(project.graph.node(&input));
        }
        if !self.options.keep_depfile {
            fs::remove_file(path).map_err(|error| at(&order.depfile, &error))?;
        }
        Ok(nodes)
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code={code}"),
        (None, Some(signal)) => format!("signal={signal}"),
        (None, None) => status.to_string(),
    }
}

fn make_parent(path: &[u8]) -> Result<(), String> {
    let Some(parent) = as_path(path).parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if Path::exists(parent) {
        return Ok(());
    }
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

/// The time by the clock of the file system on which `clock` lies.
fn now(clock: &File) -> io::Result<i64> {
    use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    futimens(clock, &Timestamps { last_access: now, last_modification: now })?;
    let stat = rustix::fs::fstat(clock)?;
    Ok(stat.st_mtime * 1_000_000_000 + i64::try_from(stat.st_mtime_nsec).unwrap_or(0))
}
