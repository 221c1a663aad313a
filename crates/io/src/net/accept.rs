//! `Acceptor`: accepting connections, in every state of the process and the network. `TcpListener`
//! and `UnixListener` hold one.
//!
//! An error of one connection, or a lack of descriptors or memory, ends no `accept`: it is tried
//! again. `share` gives another event loop a descriptor of the same socket; `reactor/exclusive.rs`
//! notes both, so that the kernel wakes one loop for a connection and not all.

use crate::error::doing;
use crate::sys::{self, Fd};
use crate::time::sleep;
use crate::{NonBlocking, reactor::Exclusive};
use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use selvedge_core::yield_now;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long a listener pauses when descriptors or memory have run out: the first pause, and the
/// longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// The part of a listener that TCP and Unix sockets share.
#[derive(Debug)]
pub(crate) struct Acceptor {
    /// Declared first, so that it is dropped before the descriptor is closed: see [`Exclusive`].
    exclusive: OnceLock<Exclusive>,
    io: NonBlocking<Fd>,
    pauses: AtomicU64,
}

impl Acceptor {
    /// Takes over a listening socket in non-blocking mode.
    pub(crate) fn new(fd: Fd) -> Acceptor {
        Acceptor { exclusive: OnceLock::new(), io: NonBlocking::assume(fd), pauses: AtomicU64::new(0) }
    }

    /// Waits for the next connection. Errors name the address `at`.
    ///
    /// A connection that its peer broke off before is skipped. When descriptors or memory have run
    /// out, the connection stays in the kernel's queue, and `accept` tries again after a pause.
    pub(crate) async fn accept(&self, at: impl Display) -> io::Result<(Fd, Option<SocketAddrAny>)> {
        let mut pause = PAUSES.0;
        loop {
            let error = match self.io.read_with(|fd| Ok(sys::accept(fd)?)).await {
                Ok(accepted) => return Ok(accepted),
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.pauses.fetch_add(1, Relaxed);
                    sleep(pause).await;
                    pause = (2 * pause).min(PAUSES.1);
                }
                // These are errors of the connection, not of the listener: accept(2), "Error
                // handling".
                Some(
                    Errno::CONNABORTED
                    | Errno::PERM
                    | Errno::PROTO
                    | Errno::NOPROTOOPT
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH
                    | Errno::NONET,
                ) => yield_now().await,
                _ => return Err(doing(format_args!("accept on {at}"))(error)),
            }
        }
    }

    /// How many times `accept` has paused because descriptors or memory had run out.
    pub(crate) fn pauses(&self) -> u64 {
        self.pauses.load(Relaxed)
    }

    /// Another descriptor of the same socket, for another event loop. Both are noted as exclusive.
    pub(crate) fn share(&self) -> io::Result<Acceptor> {
        let share = Acceptor::new(sys::duplicate(&self.io)?);
        for one in [self, &share] {
            one.exclusive.get_or_init(|| Exclusive::note(one.io.as_fd().as_raw_fd()));
        }
        Ok(share)
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.io.as_fd()
    }
}
