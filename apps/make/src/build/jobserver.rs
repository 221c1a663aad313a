//! The job server of GNU make: tokens in a pipe, one for each command that may run beside the
//! first.
//!
//! If make, cargo or another ninja has started this build, then the build takes its tokens from
//! there. All of them together run no more commands than the user told the outermost one.
//! `--jobserver` makes the tokens here, for builds that the commands start.
//!
//! `settings.rs` makes a [`Jobserver`], `jobs.rs` takes tokens and gives them back, and `finish.rs`
//! sets `MAKEFLAGS` of commands. Each token must go back as the byte that was taken. The protocol
//! is that of the section "Sharing Job Slots with GNU make" of GNU make's manual.

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use selvedge_io::pipe::Receiver;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// The pipe with the tokens.
#[derive(Debug)]
pub struct Jobserver {
    reading: PathBuf,
    writing: File,
    own: Option<Own>,
}

/// The form of the pipe that a job server offers to commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Descriptors that commands inherit. Every GNU make knows them.
    Pipe,
    /// A named pipe. GNU make knows it from 4.4 on; an earlier one ends with an error.
    Fifo,
}

/// What [`Jobserver::new`] has made.
#[derive(Debug)]
struct Own {
    /// The `MAKEFLAGS` that name it.
    flags: String,
    /// The named pipe, which is removed in the end.
    fifo: Option<PathBuf>,
    /// The descriptors that commands inherit.
    _inherited: Option<(OwnedFd, OwnedFd)>,
}

impl Jobserver {
    /// The job server that the variable `MAKEFLAGS` names. `None` if it names none, or none of
    /// which the pipes exist.
    pub fn from_makeflags(flags: &str) -> Option<Jobserver> {
        let auth = flags.split(' ').rev().find_map(|word| {
            word.strip_prefix("--jobserver-auth=").or_else(|| word.strip_prefix("--jobserver-fds="))
        })?;
        let (reading, writing) = match auth.strip_prefix("fifo:") {
            Some(path) => (PathBuf::from(path), PathBuf::from(path)),
            None => {
                let (reading, writing) = auth.split_once(',')?;
                let (reading, writing) = (reading.parse::<u32>().ok()?, writing.parse::<u32>().ok()?);
                // The path opens the pipe anew, with flags of its own. So make's descriptor
                // stays blocking, although this program's one does not block.
                let path = |fd| PathBuf::from(format!("/proc/self/fd/{fd}"));
                (path(reading), path(writing))
            }
        };
        let fifo = |path: &PathBuf| {
            std::fs::metadata(path)
                .is_ok_and(|file| std::os::unix::fs::FileTypeExt::is_fifo(&file.file_type()))
        };
        if !fifo(&reading) || !fifo(&writing) {
            return None;
        }
        let writing = File::options().read(true).write(true).open(writing).ok()?;
        Some(Jobserver { reading, writing, own: None })
    }

    /// A new job server with `jobs` - 1 tokens. The first command needs none.
    ///
    /// # Errors
    /// Those of the pipe. A named pipe lies in the directory for temporary files. A pipe holds a
    /// limited number of tokens: 65,535 jobs have room.
    pub fn new(jobs: u32, form: Form) -> io::Result<Jobserver> {
        let server = match form {
            Form::Pipe => Jobserver::with_pipe(jobs)?,
            Form::Fifo => Jobserver::with_fifo(jobs)?,
        };
        // From here on the drop of `server` removes a named pipe, also after an error.
        let tokens = vec![b'+'; jobs.saturating_sub(1) as usize];
        let filling = File::options().write(true).custom_flags(NONBLOCK).open(&server.reading)?;
        match (&filling).write_all(&tokens) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::other(format!("no pipe holds the tokens of {jobs} jobs")))
            }
            written => written.map(|()| server),
        }
    }

    fn with_pipe(jobs: u32) -> io::Result<Jobserver> {
        let (reader, writer) = io::pipe()?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        for end in [&reader, &writer] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty())?;
        }
        let flags = format!(" -j{jobs} --jobserver-auth={},{}", reader.as_raw_fd(), writer.as_raw_fd());
        let reading = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let writing = File::from(writer.try_clone()?);
        let own = Own { flags, fifo: None, _inherited: Some((reader, writer)) };
        Ok(Jobserver { reading, writing, own: Some(own) })
    }

    /// The name of the pipe has random letters, so that no other user can make a file of this name
    /// before.
    fn with_fifo(jobs: u32) -> io::Result<Jobserver> {
        let path = loop {
            // Each `RandomState` has keys that begin with random numbers of the system.
            let letters = RandomState::new().build_hasher().finish();
            let path = std::env::temp_dir().join(format!("selvedge-make-{letters:016x}"));
            match mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
                Ok(()) => break path,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let flags = format!(" -j{jobs} --jobserver-auth=fifo:{}", path.display());
        let writing = File::options().read(true).write(true).open(&path)?;
        let own = Own { flags, fifo: Some(path.clone()), _inherited: None };
        Ok(Jobserver { reading: path, writing, own: Some(own) })
    }

    /// The value of `MAKEFLAGS` for commands, if it is another than that of this process.
    pub fn makeflags(&self) -> Option<&str> {
        self.own.as_ref().map(|own| &own.flags[..])
    }

    /// The pipe, to take tokens from it.
    pub(super) fn tokens(&self) -> io::Result<Receiver> {
        let reading = File::options().read(true).write(true).open(&self.reading)?;
        Receiver::from_fd(OwnedFd::from(reading))
    }

    /// Gives a token back.
    pub(super) fn give_back(&self, token: u8) {
        // The token was in the pipe before, so there is room for it. An error means that the pipe
        // has no other users any more, so no build needs the token.
        let _ = (&self.writing).write_all(&[token]);
    }
}

impl Drop for Jobserver {
    fn drop(&mut self) {
        if let Some(Own { fifo: Some(path), .. }) = &self.own {
            let _ = std::fs::remove_file(path);
        }
    }
}
