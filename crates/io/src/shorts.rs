//! What a short read of a descriptor proves. [`Shorts::of`] answers for the streams of this crate.
//!
//! A *short* read is a read that brings fewer bytes than there was room for. After a short read the
//! thread would like to wait at once, without a second call that fails. The thread may do so only
//! if the short read proves that the kernel's queue was empty at some moment within the call,
//! because then all later data comes with a new edge. A short read proves nothing if the kernel
//! ended the read for another reason. The data left behind then came with an edge that is used up,
//! and the kernel never reports that data again. So the proof depends on the descriptor:
//!
//! | descriptor | a read also ends at | so a short read |
//! |---|---|---|
//! | TCP | the mark of urgent data | proves it, but for the mark |
//! | Unix stream socket | descriptors, other credentials, the mark | proves it, but for these |
//! | pipe, FIFO | the end of a packet (`O_DIRECT`, set at any time) | proves nothing |
//! | terminal | the end of a line | proves nothing |
//! | message socket; eventfd, signalfd, inotify | the end of a message | proves nothing |
//! | a socket of a kind not named here | any place that its protocol chooses | proves nothing |
//!
//! **Descriptors and credentials.** A peer passes descriptors or credentials together with some
//! bytes, and a read ends behind these bytes. `recv` does not tell of this; `recvmsg` does. The
//! streams of this crate give `recvmsg` no room for descriptors and credentials, so `recvmsg` sets
//! `MSG_CTRUNC` whenever a read has ended, or may have ended, because of them. So the streams read
//! Unix sockets by `recvmsg`, and a read with that flag proves nothing.
//!
//! **The mark.** A remote peer sets the mark of urgent data at any time, and a read ends before the
//! mark. While a mark that has arrived lies ahead of the reader, the kernel reports `EPOLLPRI` with
//! every edge. So an edge with `EPOLLPRI` came before every short read that has left data behind a
//! mark: the later edge of two, the edge of the mark's arrival and the edge of the arrival of the
//! data left. If the event loop collected that edge before the read, its table keeps that data may
//! be [left](crate::reactor) until a call has found nothing, and a wait goes on at once. If the
//! event loop did not, the edge is still to come. An event loop that registers the descriptor later
//! learns of the mark at that moment, or the mark has been passed. A peer without urgent data
//! costs nothing by this.
//!
//! **Writing.** A short write proves that there was no more room, because streams, pipes and
//! terminals take as many bytes as they have room for.
//!
//! Not covered: a program that sets a protocol on a stream's descriptor (`TCP_ULP`) and reads the
//! stream by calls of its own.

use crate::sys;
use rustix::net::{AddressFamily, SocketType, ipproto};
use std::os::fd::AsFd;

/// What a short read of a descriptor proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shorts {
    /// Nothing is left.
    Prove,
    /// Nothing is left, unless the kernel says that it has left out descriptors or credentials.
    ProveUnlessCut,
    /// Nothing is proved.
    ProveNothing,
}

impl Shorts {
    /// The answer for any descriptor. It costs system calls, because the kernel is asked for the
    /// socket's kind.
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
