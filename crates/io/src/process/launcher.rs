//! [`Launcher`]: starts many programs that share an environment and an input.
//!
//! `sys/launch.rs` has the way in which it starts one, and why that is sound. Where the kernel, a
//! sandbox or the processor's kind has no such way, `Launcher::start` starts a [`Command`] instead.

use super::{Child, Command, reap_orphans};
use crate::error::doing;
use crate::pipe::Receiver;
use crate::sys::{self, Orders, Strings};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process;
use std::sync::Arc;

/// Starts programs that have one environment and one standard input, each with a pipe for both of
/// its outputs and in a process group of its own. It is for a program that starts many others, as
/// a build runner does.
///
/// [`start`](Launcher::start) does not wait until the kernel has loaded the program, which a
/// [`Command`] does. So the calling OS thread is blocked for a shorter time, and is switched to
/// once less. Whether the program could be loaded is known when the child has ended:
/// [`Child::load_error`].
///
/// # Examples
/// ```
/// use selvedge::process::Launcher;
/// use std::fs::File;
/// use std::io::ErrorKind;
///
/// selvedge::run_local(async {
///     let launcher = Launcher::new(File::open("/dev/null")?, [("GREETING", "hello")])?;
///     let (mut child, output) = launcher.start(["sh", "-c", "echo $GREETING; echo to you >&2"])?;
///     assert_eq!(output.read_to_end().await?, b"hello\nto you\n");
///     assert!(child.wait().await?.success());
///
///     let (mut child, _) = launcher.start(["/no/such/program"])?;
///     assert_eq!(child.wait().await?.code(), Some(127));
///     assert_eq!(child.load_error().unwrap().kind(), ErrorKind::NotFound);
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Launcher {
    input: OwnedFd,
    /// Each variable with its value, as `NAME=value`.
    environment: Arc<Strings>,
    /// The variables that this process has not, or has with other values.
    variables: Vec<(OsString, OsString)>,
    /// The variable `PATH` of the environment.
    path: Vec<u8>,
}

impl Launcher {
    /// A launcher for programs that read from `input`, and have the present environment of this
    /// process with these variables in addition, or with these values.
    ///
    /// # Errors
    /// `InvalidInput` if a variable has a zero within.
    pub fn new<N, V>(
        input: impl Into<OwnedFd>,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> io::Result<Launcher>
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables: Vec<(OsString, OsString)> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let inherited =
            std::env::vars_os().filter(|(name, _)| variables.iter().all(|(other, _)| name != other));
        let all: Vec<_> = inherited.chain(variables.iter().cloned()).collect();
        let text = |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        let texts: Vec<_> = all.iter().map(text).collect();
        let path = all.iter().find(|(name, _)| name == "PATH");
        // What the C library takes where there is no `PATH`.
        let path = path.map_or(&b"/bin:/usr/bin"[..], |(_, value)| value.as_bytes()).to_vec();
        let environment = Arc::new(Strings::new(texts.iter().map(|text| &text[..]))?);
        Ok(Launcher { input: input.into(), environment, variables, path })
    }

    /// Starts the program that the first word names, with all words as its arguments. A name
    /// without `/` is looked for in the directories of `PATH`.
    ///
    /// The pipe ends when the child and all processes that have inherited it have ended.
    ///
    /// # Errors
    /// No room for another process or pipe; `InvalidInput` if there is no word, or if one has a
    /// zero within. Where the operating system offers only the way of [`Command::spawn_here`], also
    /// that the program cannot be loaded.
    pub fn start(&self, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<(Child, Receiver)> {
        let words: Vec<_> = words.into_iter().collect();
        let Some(program) = words.first().map(|word| word.as_ref().as_bytes()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        };
        let starting = || doing(format!("start {}", program.escape_ascii()));
        reap_orphans();
        let arguments = Strings::new(words.iter().map(|word| word.as_ref().as_bytes()))?;
        let mut orders = Orders::new(self.paths(program)?, Arc::new(arguments), self.environment.clone());
        let (reader, writer) = sys::pipe_of_child().map_err(io::Error::from).map_err(starting())?;
        let child = match sys::launch(&mut orders, [self.input.as_fd(), writer.as_fd(), writer.as_fd()]) {
            Ok(id) => Child::new(id, Some(orders)),
            Err(_) => self.start_loaded(&words, writer).map_err(starting())?,
        };
        Ok((child, Receiver::of_child(reader)))
    }

    /// All paths at which the program may be.
    fn paths(&self, program: &[u8]) -> io::Result<Arc<Strings>> {
        if program.contains(&b'/') {
            return Strings::new([program].into_iter()).map(Arc::new);
        }
        let within = |directory: &[u8]| match directory {
            // The present directory.
            b"" => program.to_vec(),
            _ => [directory, b"/", program].concat(),
        };
        let paths: Vec<_> = self.path.split(|byte| *byte == b':').map(within).collect();
        Strings::new(paths.iter().map(|path| &path[..])).map(Arc::new)
    }

    /// As [`start`](Launcher::start), with the program loaded in the end.
    fn start_loaded(&self, words: &[impl AsRef<OsStr>], output: OwnedFd) -> io::Result<Child> {
        let mut command = process::Command::new(&words[0]);
        command.args(&words[1..]).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(self.input.try_clone()?).stdout(output.try_clone()?).stderr(output).process_group(0);
        Command::from(command).spawn_here()
    }
}
