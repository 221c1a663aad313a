//! What a read that comes back short tells: that nothing is left, or nothing at all.
//!
//! A thread that has read less than it had room for would like to wait at once, without a second call that fails. It may do so only where
//! the short read proves that the kernel's queue was empty at some moment within the call, because then whatever comes later is a new edge.
//! It is no proof where the kernel ends a read for another reason, because what it leaves behind came with an edge that
//! is used up, and is reported never again. So it depends on the descriptor:
//!
//! | descriptor | a read also ends at | so a short read |
//! |---|---|---|
//! | TCP | the mark of urgent data | proves it, but for the mark |
//! | Unix stream socket | passed descriptors, another sender's credentials, the mark of urgent data | proves it if the kernel says so, but for the mark |
//! | pipe, FIFO | the end of a packet (`O_DIRECT`, which whatever holds the writing end can set at any time) | proves nothing |
//! | terminal | the end of a line | proves nothing |
//! | socket that keeps messages apart; eventfd, signalfd, inotify | the end of a message | proves nothing |
//! | a socket of a kind not named here | what its protocol likes | proves nothing |
//!
//! **Descriptors and credentials.** A peer passes them with some bytes, and a read ends behind these. Of that `recvmsg` tells what `recv`
//! does not: our streams give it no room for such things, so that it sets `MSG_CTRUNC` whenever a read has ended, or may have ended, for
//! their sake. So Unix sockets are read by `recvmsg`, and a read with that flag proves nothing.
//!
//! **The mark.** A remote peer sets it when it likes, and a read ends before it. While a mark that has arrived lies ahead of the reader, the
//! kernel reports `EPOLLPRI` with every edge. A short read that has left something behind a mark was so preceded by an edge that said so: the
//! later one of those of the mark's arrival and of the arrival of what was left. If the event loop had collected that edge before the read, it
//! keeps in its table that something may be [left](crate::readiness), until a call has found nothing, and a wait goes on
//! at once. If it had not, the edge is still to come. An event loop that registers the descriptor later is told of the mark at that moment, or
//! the mark has been passed. A peer without urgent data costs nothing by this.
//!
//! **Writing.** A short write proves that there was no more room: streams, pipes and terminals take what they have room for.
//!
//! What this is not about: a program that sets a protocol on a stream's descriptor (`TCP_ULP`), reads it by calls of its own.

use crate::sys;
use rustix::net::{AddressFamily, SocketType, ipproto};
use std::os::fd::AsFd;

/// What a short read of a descriptor proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shorts {
    /// Nothing is left.
    Prove,
    /// Likewise, if the kernel does not say that it has left out descriptors or credentials.
    ProveUnlessCut,
    /// Nothing is proved.
    ProveNothing,
}

impl Shorts {
    /// Of a descriptor that may be any. The kernel is asked.
    pub(crate) fn of(fd: impl AsFd) -> Shorts {
        match sys::socket_kind(fd) {
            Ok((AddressFamily::INET | AddressFamily::INET6, SocketType::STREAM, Some(ipproto::TCP))) => {
                Shorts::Prove
            }
            Ok((AddressFamily::UNIX, SocketType::STREAM, _)) => Shorts::ProveUnlessCut,
            _ => Shorts::ProveNothing,
        }
    }
}
