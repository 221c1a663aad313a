//! Calls on pipes, FIFOs and standard streams, and the calls that start child processes.
//!
//! `pipe.rs`, `stdio.rs` and `process.rs` of this crate make them. Pipes have a simulated side, the
//! trait `PipeCalls` (`kernel.rs`). Standard streams and child processes have none: in a simulation
//! their calls fail with `EOPNOTSUPP` or `Unsupported`.

use super::gate::{is_simulated, make, on, only_counted, through};
use super::interposed::is_interposed;
use super::{Call, Fd, open};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// A pipe in non-blocking mode: the end to read from, and the end to write to.
///
/// # Errors
/// Those of `pipe2`.
pub fn pipe() -> Result<(Fd, Fd)> {
    let real = || {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((reader.into(), writer.into()))
    };
    make(Call::Pipe, real, |kernel| {
        let (reader, writer) = kernel.pipes()?.pipe()?;
        Ok((Fd::simulated(reader), Fd::simulated(writer)))
    })
}

/// A pipe for the output of a child process: the end to read from, in non-blocking mode, and the
/// end that the child writes to.
///
/// # Errors
/// Those of `pipe2` and of `ioctl`. `EOPNOTSUPP` in a simulation.
pub(crate) fn pipe_of_child() -> Result<(Fd, OwnedFd)> {
    through(Call::Pipe, |_| {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok((reader.into(), writer))
    })
}

/// A pipe for the input of a child process: the end that the child reads from, and the end to write
/// to, in non-blocking mode.
///
/// # Errors
/// As for [`pipe_of_child`].
pub(crate) fn pipe_to_child() -> Result<(OwnedFd, Fd)> {
    through(Call::Pipe, |_| {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        Ok((reader, writer.into()))
    })
}

/// Reads the bytes that are there. For a descriptor in non-blocking mode the call does not wait.
///
/// # Errors
/// Those of `read`.
#[inline]
pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    if !is_interposed() {
        return rustix::io::read(fd, buffer);
    }
    if let Some(_counting) = only_counted(Call::Read, &fd) {
        return rustix::io::read(fd, buffer);
    }
    let bytes = read_interposed(fd.as_fd(), buffer.len())?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Appends the bytes that are there to a vector, within its capacity.
///
/// # Errors
/// Those of `read`.
#[inline]
pub fn read_to_spare(fd: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize> {
    if !is_interposed() {
        return rustix::io::read(fd, rustix::buffer::spare_capacity(buffer));
    }
    if let Some(_counting) = only_counted(Call::Read, &fd) {
        return rustix::io::read(fd, rustix::buffer::spare_capacity(buffer));
    }
    let bytes = read_interposed(fd.as_fd(), buffer.capacity() - buffer.len())?;
    buffer.extend_from_slice(&bytes);
    Ok(bytes.len())
}

#[cold]
fn read_interposed(fd: BorrowedFd<'_>, room: usize) -> Result<Vec<u8>> {
    let real = |fd: BorrowedFd<'_>, limit| {
        outside_simulation()?;
        let mut bytes = vec![0; room.min(limit)];
        let read = rustix::io::read(fd, &mut bytes[..])?;
        bytes.truncate(read);
        Ok(bytes)
    };
    on(Call::Read, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.pipes()?.read(fd, room.min(limit))
    })
}

/// An error in a simulation, because a simulated program has no standard streams.
pub(super) fn outside_simulation() -> Result<()> {
    if is_simulated() { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}

/// Writes as many bytes as there is room for. For a descriptor in non-blocking mode the call does
/// not wait.
///
/// # Errors
/// Those of `write`.
#[inline]
pub fn write(fd: impl AsFd, bytes: &[u8]) -> Result<usize> {
    let real = |fd: BorrowedFd<'_>, limit| {
        outside_simulation()?;
        rustix::io::write(fd, &bytes[..bytes.len().min(limit)])
    };
    on(Call::Write, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.pipes()?.write(fd, &bytes[..bytes.len().min(limit)])
    })
}

/// Opens an end of a FIFO in non-blocking mode. The call may take long.
///
/// # Errors
/// Those of `open`: `ENXIO` for the writing end, while no process has the reading end open.
pub fn open_fifo(path: &Path, write: bool) -> Result<Fd> {
    let end = if write { OFlags::WRONLY } else { OFlags::RDONLY };
    let flags = end | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    open(CWD, path, flags, Mode::empty())
}

/// Opens the terminal or pipe of a descriptor once more. The new descriptor has a mode of its own.
///
/// # Errors
/// Those of `open`: `ENXIO` for a socket, `EACCES` for a terminal or pipe of another user.
pub fn reopen(fd: impl AsFd, write: bool) -> Result<Fd> {
    outside_simulation()?;
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    open_fifo(Path::new(&path), write)
}

/// Starts a program. The call may take long.
///
/// # Errors
/// Those of `fork` and `exec`. `Unsupported` in a simulation.
pub fn start(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    if is_simulated() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated world has no child processes"));
    }
    through(Call::Spawn, |_| command.spawn())
}

/// Sends a signal to a child process. The child must not have been waited for, so that the number
/// is still the child's.
///
/// # Errors
/// Those of `kill`; `EINVAL` for a number that no signal has.
pub(crate) fn signal_process(process: u32, signal: i32) -> Result<()> {
    let number = i32::try_from(process).ok().filter(|number| *number > 0).ok_or(Errno::SRCH)?;
    // SAFETY: the call takes two numbers, and touches no memory of this process.
    match unsafe { libc::kill(number, signal) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// Sends a signal to all processes of a child's process group. The child must lead a group of its
/// own and must not have been waited for, so that the group's number is still the child's.
///
/// # Errors
/// As for [`signal_process`].
pub(crate) fn signal_group(leader: u32, signal: i32) -> Result<()> {
    let number = i32::try_from(leader).ok().filter(|number| *number > 1).ok_or(Errno::SRCH)?;
    // SAFETY: the call takes two numbers, and touches no memory of this process.
    match unsafe { libc::kill(-number, signal) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
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
