//! The job server of GNU make: tokens in a pipe, one for each command that may run beside the
//! first.
//!
//! A build that is started by make, cargo or another ninja takes its tokens from there, so that all
//! of them together run no more commands than the outermost one was told. `--jobserver` makes the
//! tokens here, for builds that the commands start.

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use selvedge_io::pipe::Receiver;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// The pipe with the tokens.
#[derive(Debug)]
pub struct Jobserver {
    reading: PathBuf,
    writing: File,
    /// The pipe that was made here, and the flags that tell commands of it.
    own: Option<(PathBuf, String)>,
}

impl Jobserver {
    /// The job server of which the variable `MAKEFLAGS` tells. `None`: it tells of none that is
    /// there.
    pub fn from_makeflags(flags: &str) -> Option<Jobserver> {
        let auth = flags.split(' ').rev().find_map(|word| {
            word.strip_prefix("--jobserver-auth=").or_else(|| word.strip_prefix("--jobserver-fds="))
        })?;
        let (reading, writing) = match auth.strip_prefix("fifo:") {
            Some(path) => (PathBuf::from(path), PathBuf::from(path)),
            None => {
                let (reading, writing) = auth.split_once(',')?;
                let (reading, writing) = (reading.parse::<u32>().ok()?, writing.parse::<u32>().ok()?);
                // Opened anew: the flag that reading must not block is of this opening alone, and
                // make's own is left as it was.
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

    /// A new job server with `jobs` - 1 tokens, and the first command's one that is in no pipe.
    ///
    /// The name of the pipe has random letters, so that no other user can take it before.
    ///
    /// # Errors
    /// Those of the pipe, which lies in the directory for temporary files. A pipe holds a limited
    /// number of tokens: 65,535 jobs have room.
    pub fn new(jobs: u32) -> io::Result<Jobserver> {
        let path = loop {
            // Each `RandomState` has keys that the system's random numbers have given.
            let letters = RandomState::new().build_hasher().finish();
            let path = std::env::temp_dir().join(format!("selvedge-make-{letters:016x}"));
            match mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
                Ok(()) => break path,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let flags = format!(" -j{jobs} --jobserver-auth=fifo:{}", path.display());
        // From here on a drop removes the pipe, also if something goes wrong.
        let writing = File::options().read(true).write(true).open(&path)?;
        let server = Jobserver { reading: path.clone(), writing, own: Some((path, flags)) };
        let tokens = vec![b'+'; jobs.saturating_sub(1) as usize];
        let filling = File::options().write(true).custom_flags(NONBLOCK).open(&server.reading)?;
        match (&filling).write_all(&tokens) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::other(format!("no pipe holds the tokens of {jobs} jobs")))
            }
            written => written.map(|()| server),
        }
    }

    /// The value of `MAKEFLAGS` for commands, if it is another than that of this process.
    pub fn makeflags(&self) -> Option<&str> {
        self.own.as_ref().map(|(_, flags)| &flags[..])
    }

    /// The pipe, to take tokens from it.
    pub(super) fn tokens(&self) -> io::Result<Receiver> {
        let reading = File::options().read(true).write(true).open(&self.reading)?;
        Receiver::from_fd(OwnedFd::from(reading))
    }

    /// Gives a token back.
    pub(super) fn give_back(&self, token: u8) {
        // The token was in the pipe before, so there is room for it. If the pipe's other users are
        // gone, so is the need for tokens.
        let _ = (&self.writing).write_all(&[token]);
    }
}

impl Drop for Jobserver {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.own {
            let _ = std::fs::remove_file(path);
        }
    }
}
