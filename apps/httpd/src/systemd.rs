//! What systemd and the server say to each other: readiness and the watchdog (`sd_notify`), and
//! sockets that systemd has bound (`sd_listen_fds`). Both are a few lines of a documented protocol.

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use selvedge_http::{Severity, report};
use selvedge_io::sys::close_on_exec;
use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The first descriptor that systemd passes.
const FIRST: i32 = 3;

/// Tells systemd a state, such as `READY=1`. Does nothing if systemd does not ask for it.
pub(crate) fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let send = || -> io::Result<()> {
        let address = match path.to_string_lossy().strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
        Ok(())
    };
    if let Err(error) = send() {
        report(Severity::Error, format_args!("NOTIFY_SOCKET: {error}"));
    }
}

/// How often systemd wants to hear `WATCHDOG=1`, halved as its documentation advises.
pub(crate) fn watchdog() -> Option<Duration> {
    let micros: u64 = env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let is_for_us = env::var("WATCHDOG_PID").map_or(true, |pid| pid == getpid().as_raw_pid().to_string());
    (is_for_us && micros > 0).then(|| Duration::from_micros(micros / 2))
}

/// The listening sockets that systemd has passed to this process.
///
/// # Errors
/// A descriptor that cannot be taken over.
pub(crate) fn sockets() -> io::Result<Vec<OwnedFd>> {
    let number = |name: &str| env::var(name).ok()?.parse::<i32>().ok();
    if number("LISTEN_PID") != Some(getpid().as_raw_pid()) {
        return Ok(Vec::new());
    }
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, 64);
    // The descriptors are copied by their numbers, which needs no unsafe code.
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    (FIRST..FIRST + count)
        .map(|fd| -> io::Result<OwnedFd> {
            let copy = pidfd_getfd(&own, fd, PidfdGetfdFlags::empty())?;
            // The original stays open, and a program that the server starts must not have it.
            close_on_exec(fd)?;
            Ok(copy)
        })
        .collect()
}
