//! The threads of a build: one for each edge that is not up to date.
//!
//! `built` in `app.rs` calls [`build`], once for the manifest and once for the targets. The
//! thread of an edge calls `Runner::run` in `finish.rs`, which runs the command.
//!
//! The program is the paper's [`make`](self#paper). The graph is not walked: each edge that may
//! have to run has a thread and an [`MVar`] that is empty at first. The thread
//!
//! 1. reads the `MVar` of each edge before it, which waits until that edge has ended;
//! 2. decides whether the edge must run: a command before it may have left its outputs as they
//!    were;
//! 3. waits for a permit of the semaphore that `-j` sets, and runs the command;
//! 4. fills its own `MVar`, which lets the edges behind it go on.
//!
//! An edge that is up to date has no thread, so the edges behind it do not wait for it. The `MVar`
//! says whether the edge has succeeded, so the edges behind a failed one do not run. A dyndep file
//! adds inputs to edges while they wait: the thread that has made the file starts the threads of
//! edges that were not needed before, and a thread looks at its inputs again until there is no new
//! one.
//!
//! All threads run on one OS thread, because they hardly compute; the commands are processes.
//!
//! # Paper
//! [HMP05 §7.2], with what its third footnote leaves open: the build stops at the first failure.

use super::Settings;
use super::clock::Clock;
use super::command::Variables;
use super::jobs::Jobs;
use super::status::Status;
use super::timeline::Timeline;
use crate::error::MakeError;
use crate::graph::{EdgeId, NodeId};
use crate::project::Project;
use selvedge_core::{Local, detach_local, round_robin_over};
use selvedge_io::EventLoop;
use selvedge_io::process::Launcher;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::sleep;
use selvedge_sync::MVar;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// How long the commands have to obey a signal before it is sent again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How an edge has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Its outputs are up to date.
    Made,
    /// It failed, or was not run because another one failed or the build was interrupted.
    NotMade,
}

/// How a build has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is up to date; this many commands were run.
    Done(u32),
    /// The text tells the user why the build stopped. The number is the exit status: that with
    /// which the last failed command ended, or 1 for another error.
    Stopped(String, u8),
    /// A signal stopped it.
    Interrupted,
    /// The reader of the standard output has gone, which stopped it.
    Unread,
}

/// The variable that an edge fills when it has ended, and whether `Runner::start` added the edge to
/// `Status::total`.
type Variable = (Rc<MVar<Ended, Local>>, bool);

/// The state that the threads of a build share.
pub(super) struct Runner {
    pub(super) project: Rc<RefCell<Project>>,
    pub(super) options: Settings,
    pub(super) jobs: Jobs,
    pub(super) status: RefCell<Status>,
    pub(super) timeline: RefCell<Timeline>,
    /// By the numbers of edges.
    cells: RefCell<Vec<Option<Variable>>>,
    /// The threads that have not ended, and the variable that the last one fills.
    unfinished: Cell<usize>,
    all_ended: MVar<(), Local>,
    /// The commands that run, by their edges, with their processes.
    pub(super) running: RefCell<BTreeMap<EdgeId, u32>>,
    pub(super) failures: Cell<u32>,
    /// The exit status of the command that failed last.
    pub(super) failed_with: Cell<u8>,
    pub(super) interrupted: Cell<Option<Signal>>,
    /// Full from the first signal on.
    stopped_by_signal: MVar<(), Local>,
    /// The first error that is not the failure of a command.
    error: RefCell<Option<MakeError>>,
    /// Tells the file system's clock. The first command that runs fills it, when the logs are open.
    clock: OnceCell<Clock>,
    /// Starts the commands that have no terminal. They read nothing.
    pub(super) launcher: Launcher,
    pub(super) variables: Variables,
}

/// Makes the targets, which have been visited.
///
/// # Errors
/// A file is missing that no edge makes, or the system gives no event loop.
pub fn build(
    project: &Rc<RefCell<Project>>,
    targets: &[NodeId],
    options: &Settings,
) -> Result<Outcome, MakeError> {
    let edges = project.borrow_mut().plan(targets)?;
    if edges.is_empty() {
        return Ok(Outcome::Done(0));
    }
    let mut events = EventLoop::new()?;
    let (options, project) = (options.clone(), project.clone());
    let ended = round_robin_over(&mut events, async move {
        let jobs = Jobs::new(&project.borrow().graph, &options)?;
        let variables = options.variables();
        let runner = Rc::new(Runner {
            jobs,
            project,
            status: RefCell::new(Status::new(options.style.clone(), options.jobs, options.dry_run)),
            timeline: RefCell::default(),
            cells: RefCell::default(),
            unfinished: Cell::new(0),
            all_ended: MVar::empty_local(),
            running: RefCell::default(),
            failures: Cell::new(0),
            failed_with: Cell::new(0),
            interrupted: Cell::new(None),
            stopped_by_signal: MVar::empty_local(),
            error: RefCell::default(),
            clock: OnceCell::new(),
            launcher: Launcher::new(File::open("/dev/null")?, variables.clone())?,
            variables,
            options,
        });
        let signals = signals(&[Signal::INT, Signal::TERM, Signal::HUP])?;
        detach_local(obey(runner.clone(), signals));
        if runner.options.style.terminal {
            detach_local(tick(runner.clone()));
        }
        runner.start(edges);
        runner.all_ended.take().await;
        let outcome = runner.outcome();
        io::Result::Ok(outcome)
    });
    Ok(ended??)
}

/// Passes the user's signals on to the commands. The second one kills them.
async fn obey(runner: Rc<Runner>, mut signals: selvedge_io::signal::Signals) {
    let mut is_first = true;
    while let Ok(signal) = signals.next().await {
        match is_first {
            true => runner.interrupt(signal),
            false => runner.send_all(rustix::process::Signal::KILL),
        }
        is_first = false;
    }
}

/// Sends the user's signal again to commands that go on. A shell may lose a signal that comes while
/// it starts a program.
async fn insist(runner: Rc<Runner>, signal: rustix::process::Signal) {
    loop {
        sleep(PATIENCE).await;
        runner.send_all(signal);
    }
}

/// Sends a signal to the process group of a command.
pub(super) fn send(process: u32, signal: rustix::process::Signal) {
    if let Some(group) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw)
        && rustix::process::kill_process_group(group, signal).is_err()
    {
        // The command is starting and has no group yet, or it has ended already.
        let _ = rustix::process::kill_process(group, signal);
    }
}

/// The signal as commands get it.
pub(super) fn passed_on(signal: Signal) -> rustix::process::Signal {
    rustix::process::Signal::from_named_raw(signal.as_raw()).unwrap_or(rustix::process::Signal::TERM)
}

async fn tick(runner: Rc<Runner>) {
    loop {
        sleep(Duration::from_secs(1)).await;
        runner.status.borrow_mut().tick();
        runner.stop_unread();
    }
}

/// The thread of an edge.
async fn thread_of(runner: Rc<Runner>, edge: EdgeId) {
    let ended = match runner.make(edge).await {
        Ok(ended) => ended,
        Err(error) => {
            runner.error.borrow_mut().get_or_insert(error);
            Ended::NotMade
        }
    };
    let cell = runner.cells.borrow()[edge.index()].clone();
    let (cell, _) = cell.expect("the edge has a thread, so it has a variable");
    cell.try_put(ended).expect("the edge's own thread fills its variable");
    runner.unfinished.set(runner.unfinished.get() - 1);
    if runner.unfinished.get() == 0 {
        runner.all_ended.put(()).await;
    }
}

/// The paper's `readMVar`: waits until the variable is full, and leaves it so.
async fn read(cell: &MVar<Ended, Local>) -> Ended {
    let ended = cell.take().await;
    // There is no `.await` between the two, so no other thread of this OS thread runs in between.
    // The edge's own thread fills the variable once, before the `take` returns.
    cell.try_put(ended).expect("the value was just taken out");
    ended
}

impl Runner {
    /// Starts the threads of edges.
    fn start(self: &Rc<Runner>, edges: Vec<EdgeId>) {
        let project = self.project.borrow();
        let mut cells = self.cells.borrow_mut();
        cells.resize(project.graph.edges.len(), None);
        for edge in &edges {
            let counts = project.is_wanted(*edge) && !project.graph.is_phony(*edge);
            cells[edge.index()] = Some((Rc::new(MVar::empty_local()), counts));
            self.status.borrow_mut().total += u32::from(counts);
        }
        self.unfinished.set(self.unfinished.get() + edges.len());
        for edge in edges {
            detach_local(thread_of(self.clone(), edge));
        }
    }

    /// The file system's clock. The first call opens the logs for records too, and makes their
    /// directory: a build with nothing to run needs no file that can be written.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn clock(&self) -> Result<&Clock, MakeError> {
        if let Some(clock) = self.clock.get() {
            return Ok(clock);
        }
        let directory = &self.options.log_directory;
        if !directory.as_os_str().is_empty() {
            fs::create_dir_all(directory).map_err(MakeError::of_file(directory))?;
        }
        let project = &mut *self.project.borrow_mut();
        let opened = project.build_log.open(&project.graph);
        opened.map_err(MakeError::of_file(&directory.join(".ninja_log")))?;
        let opened = project.deps_log.open(&project.graph);
        opened.map_err(MakeError::of_file(&directory.join(".ninja_deps")))?;
        let lock = directory.join(".ninja_lock");
        let clock = Clock::new(&lock).map_err(MakeError::of_file(&lock))?;
        Ok(self.clock.get_or_init(|| clock))
    }

    /// Stops the build. `obey` calls it for a signal to this process, and `Runner::child` for a
    /// command that such a signal has ended.
    pub(super) fn interrupt(self: &Rc<Runner>, signal: Signal) {
        self.interrupted.set(Some(signal));
        // It is full already after an earlier signal.
        let _ = self.stopped_by_signal.try_put(());
        self.send_all(passed_on(signal));
        detach_local(insist(self.clone(), passed_on(signal)));
    }

    /// Stops the build if the reader of the standard output has gone. SIGPIPE would end this
    /// process in the middle, and leave what the commands have begun.
    pub(super) fn stop_unread(self: &Rc<Runner>) {
        if self.status.borrow().is_unread() && self.interrupted.get().is_none() {
            self.interrupt(Signal::TERM);
        }
    }

    /// Waits until a signal stops the build.
    pub(super) async fn wait_for_stop(&self) {
        self.stopped_by_signal.take().await;
        // It stays full for the other commands. No other thread runs in between.
        let _ = self.stopped_by_signal.try_put(());
    }

    /// Sends a signal to all commands that run.
    fn send_all(&self, signal: rustix::process::Signal) {
        self.running.borrow().values().for_each(|process| send(*process, signal));
    }

    /// Whether the build starts no other command.
    pub(super) fn stopped(&self) -> bool {
        let failed = self.options.failures.is_some_and(|most| self.failures.get() >= most);
        failed || self.interrupted.get().is_some() || self.error.borrow().is_some()
    }

    async fn make(self: &Rc<Runner>, edge: EdgeId) -> Result<Ended, MakeError> {
        if self.wait_for_inputs(edge).await == Ended::NotMade || self.stopped() {
            return Ok(Ended::NotMade);
        }
        let (must_run, phony) = {
            let mut project = self.project.borrow_mut();
            let must_run = project.must_run(edge)?;
            let phony = project.graph.is_phony(edge);
            let counted = self.cells.borrow()[edge.index()].as_ref().is_some_and(|(_, counted)| *counted);
            let mut status = self.status.borrow_mut();
            match (must_run && !phony, counted) {
                (true, false) => status.total += 1,
                (false, true) => status.total -= 1,
                _ => {}
            }
            (must_run, phony)
        };
        // The frame of `run` is large. With a box of its own it is there while the edge runs, and
        // the threads of edges that wait stay small.
        if must_run && !phony && Box::pin(self.run(edge)).await? == Ended::NotMade {
            return Ok(Ended::NotMade);
        }
        self.read_dyndeps(edge)?;
        Ok(Ended::Made)
    }

    /// Waits for the edges before this one.
    async fn wait_for_inputs(&self, edge: EdgeId) -> Ended {
        let mut known = 0;
        loop {
            let cells: Vec<_> = {
                let (project, cells) = (self.project.borrow(), self.cells.borrow());
                let inputs = project.graph.inputs(edge).chain(project.deps_of(edge));
                let makers = inputs.filter_map(|input| project.graph.maker(input));
                makers.filter_map(|maker| Some(cells[maker.index()].as_ref()?.0.clone())).collect()
            };
            // A dyndep file may have come while this thread waited, and with it more inputs.
            if cells.len() == known {
                return Ended::Made;
            }
            // A variable that this thread has read before is full, so `read` does not wait again.
            for cell in &cells {
                if read(cell).await == Ended::NotMade {
                    return Ended::NotMade;
                }
            }
            known = cells.len();
        }
    }

    /// Reads the dyndep files that the edge has made, and starts the threads of the edges that have
    /// become necessary.
    fn read_dyndeps(self: &Rc<Runner>, edge: EdgeId) -> Result<(), MakeError> {
        let mut edges = Vec::new();
        {
            let mut project = self.project.borrow_mut();
            if project.graph.dyndeps.is_empty() {
                return Ok(());
            }
            let outputs: Vec<_> = project.graph.outputs(edge).collect();
            for output in outputs {
                if project.is_pending_dyndep(output) && !self.options.dry_run {
                    edges.extend(project.dyndep_made(output)?);
                }
            }
        }
        if !edges.is_empty() {
            self.start(edges);
        }
        Ok(())
    }

    fn outcome(&self) -> Outcome {
        let mut status = self.status.borrow_mut();
        status.close();
        if let Some(path) = &self.options.timeline
            && let Err(error) = self.timeline.borrow().write(path)
        {
            return Outcome::Stopped(format!("{}: {error}", path.display()), 1);
        }
        if status.is_unread() {
            return Outcome::Unread;
        }
        if self.interrupted.get().is_some() {
            return Outcome::Interrupted;
        }
        if let Some(error) = self.error.take() {
            return Outcome::Stopped(error.to_string(), 1);
        }
        let reason = match (self.failures.get(), self.options.failures) {
            (0, _) => return Outcome::Done(status.finished()),
            (failures, Some(most)) if failures >= most && most > 1 => "subcommands failed",
            (_, Some(1)) => "subcommand failed",
            _ => "cannot make progress due to previous errors",
        };
        Outcome::Stopped(reason.into(), self.failed_with.get())
    }
}
