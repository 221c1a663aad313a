//! The parent of several processes while they run: [`supervise`] obeys signals and commands, and
//! looks after the processes.
//!
//! `prefork.rs` starts the processes and calls it. A command that concerns the processes is passed
//! on to each, and the answers become one (`answers.rs`). An upgrade is the parent's own, because
//! the new process becomes the parent of others.

use crate::answers::{ProcessAnswer, alike, apart, labelled};
use crate::configuration::{self, ConfigurationFiles};
use crate::control::{self, Commands};
use crate::prefork::{Children, PreforkedChild};
use crate::reporting;
use crate::startup_error::StartupError;
use crate::systemd;
use crate::takeover::{HandedFiles, hand_over};
use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{detach_local, spawn_local};
use selvedge_http::{Severity, Stop, report};
use selvedge_io::blocking;
use selvedge_io::net::UnixListener;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// How often the parent looks whether all processes are there.
const LOOK: Duration = Duration::from_millis(100);

/// The processes and what their parent does with them. Its threads share it.
pub(crate) struct Family {
    source: ConfigurationFiles,
    children: RefCell<Children>,
    /// The control socket once more, for a parent that takes over.
    control: HandedFiles,
    /// Whether another parent is being started.
    is_handing: Cell<bool>,
    /// Thrown when another parent has taken over.
    handed_over: Stop,
}

/// Obeys signals, and commands at `socket`, until no process is left.
///
/// # Errors
/// Why they had to end.
pub(crate) async fn supervise(family: Rc<Family>, socket: Option<UnixListener>) -> Result<(), StartupError> {
    let mut heard =
        signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2])?;
    if let Some(socket) = socket {
        let family = family.clone();
        // The parent that takes over answers from then on.
        detach_local(async move { control::answer(socket, &*family, &family.handed_over).await });
    }
    while !family.children.borrow().is_over() {
        if let Ok(Ok(signal)) = timeout(LOOK, heard.next()).await {
            match signal {
                Signal::USR2 => {
                    let family = family.clone();
                    // It takes as long as the new processes do.
                    detach_local(async move {
                        // A failure is reported.
                        if family.upgrade().await.is_ok() {
                            family.end(Kill::USR2);
                        }
                    });
                }
                Signal::HUP => {
                    family.children.borrow().pass_on(Kill::HUP);
                    let family = family.clone();
                    detach_local(async move { family.take_level().await });
                }
                Signal::USR1 => family.children.borrow().pass_on(Kill::USR1),
                Signal::QUIT => family.end(Kill::QUIT),
                _ => family.end(Kill::TERM),
            }
        }
        family.children.borrow_mut().look();
    }
    std::mem::replace(&mut family.children.borrow_mut().result, Ok(()))
}

impl Family {
    /// `control` has the control socket, if there is one, for a parent that takes over.
    pub(crate) fn new(source: ConfigurationFiles, children: Children, control: HandedFiles) -> Rc<Family> {
        let children = RefCell::new(children);
        Rc::new(Family { source, children, control, is_handing: Cell::default(), handed_over: Stop::new() })
    }

    /// Whether another parent has taken over.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.is_requested()
    }

    /// Ends all processes, as the signal says.
    fn end(&self, signal: Kill) {
        let mut children = self.children.borrow_mut();
        children.end();
        children.pass_on(signal);
    }

    /// A new parent takes all sockets over. Then the processes are to retire.
    ///
    /// # Errors
    /// Why they go on.
    async fn upgrade(&self) -> Result<String, String> {
        if self.children.borrow().ending || self.is_handing.replace(true) {
            return Err("the server stops, or hands over already".to_owned());
        }
        let handed = match self.files() {
            Ok(files) => {
                let program = self.children.borrow().program.clone();
                let handed = blocking(move || hand_over(&program, &files)).await;
                handed.unwrap_or_else(|error| Err(error.to_string()))
            }
            Err(error) => Err(error.to_string()),
        };
        self.is_handing.set(false);
        let children = &mut *self.children.borrow_mut();
        match handed {
            Ok(process) if children.ending => {
                if let Some(process) = Pid::from_raw(process) {
                    // A process that has ended by itself is stopped too.
                    let _ = kill_process(process, Kill::TERM);
                }
                Err("the server was stopped meanwhile".to_owned())
            }
            Ok(process) => {
                systemd::notify(&format!("MAINPID={process}"));
                let own = std::process::id();
                let said = format!("process {process} serves; process {own} ends with its last connection");
                report(Severity::Notice, format_args!("{said}"));
                children.pid_file.leave();
                children.end();
                self.handed_over.request();
                Ok(said + "\n")
            }
            Err(why) => {
                report(Severity::Error, format_args!("{why}; these processes go on"));
                Err(why)
            }
        }
    }

    /// All that a parent that takes over gets.
    fn files(&self) -> std::io::Result<HandedFiles> {
        let children = self.children.borrow();
        let mut files = children.handing.share(0, 1)?;
        files.append(&mut self.control.share(0, 1)?);
        children.pid_file.hand(&mut files)?;
        Ok(files)
    }

    /// The processes that run: the number of each, that in the system, and where it obeys.
    fn places(&self) -> Vec<(usize, i32, PathBuf)> {
        let children = self.children.borrow();
        let running = children.running.iter();
        let of = |(number, child): (&usize, &PreforkedChild)| {
            let process = Pid::from_child(&child.successor.process).as_raw_pid();
            (*number, process, children.commands[*number].path())
        };
        running.map(of).collect()
    }

    /// What the processes answer to `command`, all asked at the same time.
    async fn ask_all(&self, command: &str) -> Vec<ProcessAnswer> {
        let ask = |(number, process, path): (usize, i32, PathBuf)| {
            let command = command.to_owned();
            (number, process, spawn_local(async move { control::pass_on(&path, &command).await }))
        };
        let asked: Vec<_> = self.places().into_iter().map(ask).collect();
        let mut answers = Vec::new();
        for (number, process, asked) in asked {
            let text = asked.await.unwrap_or_else(|error| Err(error.to_string()));
            answers.push(ProcessAnswer { number, process, text });
        }
        answers
    }

    /// Asks the processes, one after the other, to read the configuration again. If the first
    /// refuses it, no other one is asked.
    ///
    /// # Errors
    /// The mistake in it, or the process that does not answer.
    async fn reload(&self) -> Result<String, String> {
        let mut answers = Vec::new();
        for (number, process, path) in self.places() {
            let text = control::pass_on(&path, "reload").await.map_err(|why| match answers.is_empty() {
                true => why,
                false => format!("process {process}: {why}"),
            })?;
            answers.push(ProcessAnswer { number, process, text: Ok(text) });
        }
        self.take_level().await;
        Ok(alike(&answers))
    }

    /// Takes the level of the parent's own reports from the configuration as it is now. The
    /// processes report a mistake in it.
    async fn take_level(&self) {
        let source = self.source.clone();
        let loaded = blocking(move || configuration::load(&source).map(|loaded| loaded.process.level));
        if let Ok(Ok(level)) = loaded.await {
            reporting::begin(level, false);
        }
    }

    /// The parent's own state.
    fn status(&self) -> String {
        let children = self.children.borrow();
        let (running, count) = (children.running.len(), children.count);
        format!("parent       {}\nprocesses    {running} of {count}\n", std::process::id())
    }
}

impl Commands for Family {
    async fn obey(&self, command: &str) -> Result<String, String> {
        match command {
            "status" => Ok(self.status() + &alike(&self.ask_all(command).await)),
            "reload" => self.reload().await,
            "retire" | "stop" => Ok(String::new()),
            "upgrade" => self.upgrade().await,
            "threads" => Ok(apart(&self.ask_all(command).await)),
            "counters" => Ok(labelled(&self.ask_all(command).await)),
            other => Err(format!("{other:?} is no command")),
        }
    }

    fn answered(&self, command: &str) {
        match command {
            "retire" | "upgrade" => self.end(Kill::USR2),
            "stop" => self.end(Kill::TERM),
            _ => {}
        }
    }
}
