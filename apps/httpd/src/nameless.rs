//! [`NamelessSocket`]: a listening Unix socket without a path, which only the process that made it
//! can connect to.
//!
//! `prefork.rs` makes one for each process, hands the listening end to that process, and sends it
//! commands by [`NamelessSocket::path`]. No file is left behind, whatever process dies, and the
//! sockets of two parents do not meet in an upgrade.

use crate::listeners;
use crate::takeover::HandedFiles;
use rustix::fs::{Mode, OFlags, open};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A Unix socket that listens and has no path.
#[derive(Debug)]
pub(crate) struct NamelessSocket {
    listener: OwnedFd,
    /// The socket's file, by which a client reaches it though its name is gone.
    file: OwnedFd,
}

impl NamelessSocket {
    /// Makes a socket, which is at a path in `directory` for a moment. Only its owner may use it.
    ///
    /// # Errors
    /// With the path in the message: no file can be made there, or no descriptor is left.
    pub(crate) fn bind(directory: &Path) -> io::Result<NamelessSocket> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let path = directory.join(format!(".selvedge-{}-{number}", std::process::id()));
        // It removes the path when it is dropped.
        let bound = listeners::bind_control(&path, &mut HandedFiles::default())?;
        let listener = bound.listeners[0].unix[0].as_fd().try_clone_to_owned()?;
        let file = open(&path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        Ok(NamelessSocket { listener, file })
    }

    /// The end that listens, for the process that is to answer.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub(crate) fn listener(&self) -> io::Result<OwnedFd> {
        self.listener.try_clone()
    }

    /// Where this process, and no other one, connects to the socket.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_is_reached_without_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let sockets = [(); 2].map(|()| NamelessSocket::bind(directory.path()).unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        for (number, socket) in sockets.iter().enumerate() {
            let mut client = UnixStream::connect(socket.path()).unwrap();
            client.write_all(&[number as u8]).unwrap();
            let listener = UnixListener::from(socket.listener().unwrap());
            let mut heard = [9];
            listener.accept().unwrap().0.read_exact(&mut heard).unwrap();
            assert_eq!(heard, [number as u8]);
        }
        let gone = directory.path().join("gone");
        assert!(NamelessSocket::bind(&gone).unwrap_err().to_string().contains("gone/.selvedge-"));
    }
}
