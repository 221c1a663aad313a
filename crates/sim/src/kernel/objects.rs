//! [`KernelObject`], for which descriptors of the simulated kernel stand, and the state of each
//! kind of object. The state of a connection is in `stream.rs`.
//!
//! `Kernel` (`kernel.rs`) has the objects, and the files beside this one make the calls on them:
//! `sockets.rs`, `datagrams.rs`, `files.rs`, `pipes.rs`, `signals.rs`, `readiness.rs`.

use super::id::Id;
use super::socket_name::SocketName;
use super::stream::StreamSocket;
use crate::disk::tree::Ino;
use rustix::event::epoll::EventFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::net::IpAddr;

#[derive(Debug)]
pub(super) struct KernelObject {
    pub(super) kind: ObjectKind,
    /// The numbers of its descriptors.
    pub(super) numbers: Vec<usize>,
}

#[derive(Debug)]
pub(super) enum ObjectKind {
    Epoll(Epoll),
    /// A socket that is neither connected nor listening yet.
    Socket(Socket),
    Listener(ListeningSocket),
    Stream(Box<StreamSocket>),
    Datagrams(Box<Datagrams>),
    File(OpenInode),
    Pipe(PipeEnd),
    Signals(Subscription),
}

#[derive(Debug, Default)]
pub(super) struct Epoll {
    pub(super) members: BTreeMap<usize, Member>,
    /// The members with an edge to report, in the order of the edges.
    pub(super) edges: VecDeque<usize>,
}

impl Epoll {
    pub(super) fn edge(&mut self, number: usize) {
        if let Some(member) = self.members.get_mut(&number)
            && !mem::replace(&mut member.queued, true)
        {
            self.edges.push_back(number);
        }
    }
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) data: u64,
    pub(super) interest: EventFlags,
    pub(super) queued: bool,
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) family: AddressFamily,
    pub(super) name: Option<SocketName>,
    pub(super) shares_port: bool,
    pub(super) lingers: bool,
}

#[derive(Debug)]
pub(super) struct ListeningSocket {
    pub(super) name: SocketName,
    pub(super) backlog: VecDeque<Id>,
    pub(super) backlog_max: usize,
    pub(super) shares_port: bool,
}

#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) family: AddressFamily,
    pub(super) name: Option<SocketName>,
    pub(super) shares: bool,
    pub(super) peer: Peer,
    /// The Unix sockets that are connected to this one.
    pub(super) connected: Vec<Id>,
    pub(super) queue: VecDeque<(SocketName, Vec<u8>)>,
    pub(super) queued: usize,
    /// How many bytes the queue holds at most.
    pub(super) window: usize,
    pub(super) error: Option<Errno>,
    /// The socket takes no datagram to send until a `DatagramRoom` happens.
    pub(super) full: bool,
    pub(super) broadcasts: bool,
    pub(super) groups: BTreeSet<IpAddr>,
    /// Whether a datagram to a group comes back to this host, on which all members are.
    pub(super) loops: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Peer {
    None,
    Named(SocketName),
    /// The other socket of a pair, or the socket that had the path at the time of the connect.
    Socket(Id),
}

/// An open file.
#[derive(Debug)]
pub(super) struct OpenInode {
    pub(super) ino: Ino,
    pub(super) flags: OFlags,
}

impl OpenInode {
    pub(super) fn reaches_only(&self) -> bool {
        self.flags.contains(OFlags::PATH)
    }

    pub(super) fn reads(&self) -> bool {
        !self.reaches_only() && !self.flags.contains(OFlags::WRONLY)
    }

    pub(super) fn writes(&self) -> bool {
        !self.reaches_only() && self.flags.intersects(OFlags::WRONLY | OFlags::RDWR)
    }
}

/// A write of this number of bytes at most is made as a whole, or not at all.
pub(super) const PIPE_BUF: usize = 4096;

/// One end of a pipe.
#[derive(Debug)]
pub(super) struct PipeEnd {
    pub(super) pipe: Id,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) fifo: Option<Ino>,
}

/// The buffer between the ends.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    pub(super) capacity: usize,
    /// The ends that have the pipe open.
    pub(super) readers: Vec<Id>,
    pub(super) writers: Vec<Id>,
    /// The pipe was open for writing at some time.
    pub(super) begun: bool,
    /// The pipe takes no bytes until a `PipeRoom` happens.
    pub(super) full: bool,
}

impl Pipe {
    pub(super) fn room(&self) -> usize {
        if self.full { 0 } else { self.capacity - self.bytes.len() }
    }

    pub(super) fn flags(&self, end: &PipeEnd) -> EventFlags {
        let mut flags = EventFlags::empty();
        if end.reads {
            flags.set(EventFlags::IN, !self.bytes.is_empty());
            flags.set(EventFlags::HUP, self.begun && self.writers.is_empty());
        }
        if end.writes {
            flags.set(EventFlags::OUT, self.room() >= PIPE_BUF);
            flags.set(EventFlags::ERR, self.readers.is_empty());
        }
        flags
    }
}

/// A subscription to the signals of a mask.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) mask: u64,
    pub(super) pending: u64,
}
