//! [`Launch`]: starts one program with an environment, a directory and pipes of its own, and does
//! not wait until the kernel has loaded it.
//!
//! `sys/launch.rs` has the way in which it starts the program, and why that is sound. Where there
//! is no such way, `Launch::start` starts a [`Command`] instead.

use super::{Child, Command, reap_orphans};
use crate::error::doing;
use crate::pipe::{Receiver, Sender};
use crate::sys::{self, Orders, Strings};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::Arc;

/// A program to be started with nothing of this process but what is given: a whole environment, a
/// pipe for each standard stream, a process group of its own. It is for a program that starts
/// others for its clients, as a web server does.
///
/// As with a [`Launcher`](super::Launcher), starting does not wait until the kernel has loaded the
/// program: [`Child::load_error`].
///
/// # Examples
/// ```
/// use selvedge::process::Launch;
///
/// selvedge::run_local(async {
///     let mut launch = Launch::new("/bin/sh");
///     launch.arg("-c").arg("echo $CLOTH in $PWD; cat").env("CLOTH", "linen").directory("/");
///     let mut child = launch.start()?;
///     let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
///     stdin.write_all(b"warp\n").await?;
///     drop(stdin);
///     assert_eq!(stdout.read_to_end().await?, b"linen in /\nwarp\n");
///     assert!(child.wait().await?.success());
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Launch {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Launch {
    /// The program at a path. No list of directories is searched for it.
    pub fn new(program: impl AsRef<Path>) -> Launch {
        let words = vec![program.as_ref().as_os_str().to_owned()];
        Launch { words, environment: Vec::new(), directory: None }
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Launch {
        self.words.push(argument.as_ref().to_owned());
        self
    }

    /// Adds a variable to the environment, which is empty at first.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Launch {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The directory that the child begins in. Without one it is that of this process.
    pub fn directory(&mut self, directory: impl AsRef<Path>) -> &mut Launch {
        self.directory = Some(directory.as_ref().to_path_buf());
        self
    }

    /// Starts the program. The child's three streams are pipes.
    ///
    /// # Errors
    /// No room for another process or pipe; `InvalidInput` if a word, a variable or the directory
    /// has a zero within. Where the operating system offers only the way of
    /// [`Command::spawn_here`], also that the program cannot be loaded.
    pub fn start(&self) -> io::Result<Child> {
        let starting = || doing(format!("start {}", self.words[0].display()));
        reap_orphans();
        let text = |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        let environment: Vec<_> = self.environment.iter().map(text).collect();
        let words = || self.words.iter().map(|word| word.as_bytes());
        let mut orders = Orders::new(
            Arc::new(Strings::new(words().take(1))?),
            Arc::new(Strings::new(words())?),
            Arc::new(Strings::new(environment.iter().map(|variable| &variable[..]))?),
        );
        if let Some(directory) = &self.directory {
            orders.begin_in(Arc::new(Strings::new([directory.as_os_str().as_bytes()].into_iter())?));
        }
        let (input, stdin) = sys::pipe_to_child().map_err(io::Error::from).map_err(starting())?;
        let (stdout, output) = sys::pipe_of_child().map_err(io::Error::from).map_err(starting())?;
        let (stderr, errors) = sys::pipe_of_child().map_err(io::Error::from).map_err(starting())?;
        let Ok(id) = sys::launch(&mut orders, [input.as_fd(), output.as_fd(), errors.as_fd()]) else {
            return self.start_loaded().map_err(starting());
        };
        let mut child = Child::new(id, Some(orders));
        child.stdin = Some(Sender::of_child(stdin));
        child.stdout = Some(Receiver::of_child(stdout));
        child.stderr = Some(Receiver::of_child(stderr));
        Ok(child)
    }

    /// As [`start`](Launch::start), with the program loaded in the end.
    fn start_loaded(&self) -> io::Result<Child> {
        let mut command = process::Command::new(&self.words[0]);
        command.args(&self.words[1..]).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Command::from(command).spawn_here()
    }
}
