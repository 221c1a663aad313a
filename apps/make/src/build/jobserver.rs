//! The job server of GNU make: tokens in a pipe, one for each command that may run beside the
//! first.
//!
//! If make, cargo or another ninja has started this build, then the build takes its tokens from
//! there. All of them together run no more commands than the user told the outermost one.
//! `--jobserver` makes the tokens here, for builds that the commands start.
//!
//! `app.rs` makes a [`Jobserver`], `jobs.rs` takes tokens and gives them back, and `finish.rs` sets
//! `MAKEFLAGS` of commands. Each token must go back as the byte that was taken. The protocol is
//! that of the section "Sharing Job Slots with GNU make" of GNU make's manual.

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
    /// The pipe that [`new`](Self::new) has made, and the `MAKEFLAGS` that name it.
    own: Option<(PathBuf, String)>,
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
    /// The name of the pipe has random letters, so that no other user can make a file of this name
    /// before.
    ///
    /// # Errors
    /// Those of the pipe, which lies in the directory for temporary files. A pipe holds a limited
    /// number of tokens: 65,535 jobs have room.
    pub fn new(jobs: u32) -> io::Result<Jobserver> {
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
        // From here on the drop of `server` removes the pipe, also after an error.
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
        // The token was in the pipe before, so there is room for it. An error means that the pipe
        // has no other users any more, so no build needs the token.
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
