//! Pipes, FIFOs, the standard streams, and child processes.

use super::{Call, Fd, through};
use rustix::fs::{Mode, OFlags};
use rustix::io::Result;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// A pipe in non-blocking mode: the end to read from, and the end to write to.
///
/// # Errors
/// Those of `pipe2`.
pub fn pipe() -> Result<(Fd, Fd)> {
    through(Call::Pipe, |_| {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((reader.into(), writer.into()))
    })
}

/// Reads what is there; of a descriptor in non-blocking mode without waiting.
///
/// # Errors
/// Those of `read`.
#[inline]
pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    through(Call::Read, |limit| {
        let room = buffer.len().min(limit);
        rustix::io::read(fd, &mut buffer[..room])
    })
}

/// Appends what is there to a vector, within its capacity.
///
/// # Errors
/// Those of `read`.
#[inline]
pub fn read_to_spare(fd: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize> {
    through(Call::Read, |limit| match limit {
        usize::MAX => rustix::io::read(fd, rustix::buffer::spare_capacity(buffer)),
        _ => {
            let mut some = vec![0; limit.min(buffer.capacity() - buffer.len())];
            let read = rustix::io::read(fd, &mut some[..])?;
            buffer.extend_from_slice(&some[..read]);
            Ok(read)
        }
    })
}

/// Writes what there is room for; to a descriptor in non-blocking mode without waiting.
///
/// # Errors
/// Those of `write`.
#[inline]
pub fn write(fd: impl AsFd, bytes: &[u8]) -> Result<usize> {
    through(Call::Write, |limit| rustix::io::write(fd, &bytes[..bytes.len().min(limit)]))
}

/// Opens an end of a FIFO in non-blocking mode. It may take long.
///
/// # Errors
/// Those of `open`: `ENXIO` for the writing end, while nobody reads.
pub fn open_fifo(path: &Path, write: bool) -> Result<Fd> {
    let end = if write { OFlags::WRONLY } else { OFlags::RDONLY };
    let flags = end | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    through(Call::Open, |_| Ok(rustix::fs::open(path, flags, Mode::empty())?.into()))
}

/// Opens the terminal or pipe that a descriptor stands for once more: the new one has a mode of its own.
///
/// # Errors
/// Those of `open`: `ENXIO` for a socket, `EACCES` for somebody else's.
pub fn reopen(fd: impl AsFd, write: bool) -> Result<Fd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    open_fifo(Path::new(&path), write)
}

/// Starts a program. It may take long.
///
/// # Errors
/// Those of `fork` and `exec`.
pub fn start(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    through(Call::Spawn, |_| command.spawn())
}

/// A descriptor that becomes readable when a child process has ended.
///
/// # Errors
/// Those of `pidfd_open`: `ENOSYS` before Linux 5.3.
pub fn process_descriptor(id: u32) -> Result<Fd> {
    through(Call::Spawn, |_| {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
        Ok(rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?.into())
    })
}
