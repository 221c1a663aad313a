//! The `SocketCalls` of `Kernel`: the system calls on sockets, which `selvedge-io`'s
//! `sys/socket.rs` makes.
//!
//! Streams and listeners are served here, and calls on datagram sockets are passed to
//! `datagrams.rs`. A call changes its own end at once. What the other end sees of it is an entry of
//! the calendar (`network.rs`), so it takes time and comes in order.

use super::*;
use rustix::io::ReadWriteFlags;

/// How many bytes one `sendfile` reads at most.
const SENDFILE_MAX: usize = 64 * 1024;

impl Kernel {
    /// Two streams that are each other's peers.
    pub(super) fn connect_pair(
        &mut self,
        local: SocketName,
        remote: SocketName,
        state: StreamState,
    ) -> (Id, Id) {
        let first = self.objects.len() as Id;
        let one = StreamSocket::new(local.clone(), remote.clone(), first + 1, state, self.window());
        let other = StreamSocket::new(remote, local, first, StreamState::Connected, self.window());
        (self.add(ObjectKind::Stream(Box::new(one))), self.add(ObjectKind::Stream(Box::new(other))))
    }

    pub(super) fn window(&mut self) -> usize {
        let Range { start, end } = self.conditions.window;
        start.max(1) + self.random.below((end - start).max(1) as u64) as usize
    }

    /// The name, with a port of the kernel's choice if it has none.
    pub(super) fn named(&mut self, name: SocketName) -> SocketName {
        match name {
            SocketName::Internet(address) if address.port() == 0 => {
                self.next_port = self.next_port.checked_add(1).unwrap_or(32_768);
                SocketName::Internet(SocketAddr::new(address.ip(), self.next_port))
            }
            name => name,
        }
    }

    /// A listener at an address: one that is bound to the address, or to any address with its port.
    /// If there are several, the kernel draws one.
    pub(super) fn listener(&mut self, name: &SocketName) -> Option<Id> {
        let any = match name {
            SocketName::Internet(address) => {
                let port = address.port();
                let v4 = SocketName::Internet((Ipv4Addr::UNSPECIFIED, port).into());
                let v6 = SocketName::Internet((Ipv6Addr::UNSPECIFIED, port).into());
                if address.is_ipv4() { vec![v4, v6] } else { vec![v6] }
            }
            _ => Vec::new(),
        };
        let found: Vec<Id> = [name.clone()]
            .iter()
            .chain(&any)
            .filter_map(|name| self.names.get(name))
            .flatten()
            .copied()
            .filter(|&id| {
                matches!(&self.objects[id as usize], Some(KernelObject { kind: ObjectKind::Listener(_), .. }))
            })
            .collect();
        match found.len() {
            0 => None,
            many => Some(found[self.random.below(many as u64) as usize]),
        }
    }

    /// Puts a new connection into the backlog of a listener; false if the backlog is full.
    pub(super) fn enqueue(&mut self, listener: Id, stream: Id) -> bool {
        let Some(KernelObject { kind: ObjectKind::Listener(queue), .. }) = self.object(listener) else {
            return false;
        };
        if queue.backlog.len() >= queue.backlog_max {
            return false;
        }
        queue.backlog.push_back(stream);
        self.edge(listener);
        true
    }

    /// Enters into the calendar that a sender has room.
    pub(super) fn room_comes(&mut self, sender: Id) {
        if let Some(stream) = self.stream(sender) {
            stream.room_comes = true;
        }
        self.later(Happening::Room { to: sender });
    }
}

impl SocketCalls for Kernel {
    fn socket(&mut self, family: AddressFamily) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let socket = Socket { family, name: None, shares_port: false, lingers: false };
        let id = self.add(ObjectKind::Socket(socket));
        Ok(self.describe(id))
    }

    fn socket_pair(&mut self) -> Result<(RawFd, RawFd)> {
        self.has_descriptor_left()?;
        let (one, other) =
            self.connect_pair(SocketName::Unnamed, SocketName::Unnamed, StreamState::Connected);
        let (one, other) = (self.describe(one), self.describe(other));
        if self.open > self.conditions.descriptors_max {
            self.close(one);
            self.close(other);
            return Err(Errno::MFILE);
        }
        Ok((one, other))
    }

    fn set_option(&mut self, fd: RawFd, option: SocketOption) -> Result<()> {
        let id = self.id(fd)?;
        match (&mut self.object(id).expect("a descriptor's object is there").kind, option) {
            (
                ObjectKind::Epoll(_) | ObjectKind::File(_) | ObjectKind::Pipe(_) | ObjectKind::Signals(_),
                _,
            ) => {
                return Err(Errno::NOTSOCK);
            }
            (ObjectKind::Datagrams(_), SocketOption::ReusePort(true)) => self.share_datagrams(id),
            (ObjectKind::Socket(socket), SocketOption::ReusePort(yes)) => socket.shares_port = yes,
            (ObjectKind::Socket(socket), SocketOption::Linger(time)) => {
                socket.lingers = time == Some(Duration::ZERO);
            }
            (ObjectKind::Stream(stream), SocketOption::Linger(time)) => {
                stream.lingers = time == Some(Duration::ZERO);
            }
            _ => {}
        }
        Ok(())
    }

    fn bind(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()> {
        let id = self.id(fd)?;
        if self.is_datagrams(id) {
            return self.bind_datagrams(id, address);
        }
        let name = self.named(SocketName::of(address)?);
        let Some(KernelObject { kind: ObjectKind::Socket(socket), .. }) = self.object(id) else {
            return Err(Errno::INVAL);
        };
        if socket.name.is_some() {
            return Err(Errno::INVAL);
        }
        let shares = socket.shares_port;
        let others = self.names.get(&name).cloned().unwrap_or_default();
        let all_share = others.iter().all(|&other| match &self.objects[other as usize] {
            Some(KernelObject { kind: ObjectKind::Listener(listener), .. }) => listener.shares_port,
            Some(KernelObject { kind: ObjectKind::Socket(socket), .. }) => socket.shares_port,
            _ => false,
        });
        if !(others.is_empty() || shares && all_share) {
            return Err(Errno::ADDRINUSE);
        }
        self.names.entry(name.clone()).or_default().push(id);
        if let Some(KernelObject { kind: ObjectKind::Socket(socket), .. }) = self.object(id) {
            socket.name = Some(name);
        }
        Ok(())
    }

    fn listen(&mut self, fd: RawFd, backlog: i32) -> Result<()> {
        let id = self.id(fd)?;
        let object = self.object(id).expect("a descriptor's object is there");
        let ObjectKind::Socket(socket) = &object.kind else { return Err(Errno::INVAL) };
        let (name, shares_port) = (socket.name.clone().ok_or(Errno::INVAL)?, socket.shares_port);
        let backlog_max = backlog.max(0) as usize + 1;
        object.kind = ObjectKind::Listener(ListeningSocket {
            name,
            backlog: VecDeque::new(),
            backlog_max,
            shares_port,
        });
        Ok(())
    }

    fn accept(&mut self, fd: RawFd) -> Result<(RawFd, Option<SocketAddrAny>)> {
        let id = self.id(fd)?;
        let Some(KernelObject { kind: ObjectKind::Listener(listener), .. }) = self.object(id) else {
            return Err(Errno::INVAL);
        };
        let Some(&next) = listener.backlog.front() else { return Err(Errno::AGAIN) };
        self.has_descriptor_left()?;
        let fails = self.random.happens(self.conditions.accept_fails);
        let broken = fails && self.random.below(2) == 0;
        if fails && !broken {
            const FULL: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
            return Err(FULL[self.random.below(4) as usize]);
        }
        if let Some(KernelObject { kind: ObjectKind::Listener(listener), .. }) = self.object(id) {
            listener.backlog.pop_front();
        }
        if broken {
            let peer = self.stream(next).map(|stream| stream.peer);
            self.objects[next as usize] = None;
            peer.into_iter().for_each(|peer| self.reset(peer));
            return Err(Errno::CONNABORTED);
        }
        let peer = self.stream(next).expect("a backlog is of streams").remote.address();
        Ok((self.describe(next), peer))
    }

    fn connect(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()> {
        let id = self.id(fd)?;
        if self.is_datagrams(id) {
            return self.connect_datagrams(id, address);
        }
        let remote = SocketName::of(address)?;
        let window = self.window();
        let Some(KernelObject { kind: ObjectKind::Socket(socket), .. }) = self.object(id) else {
            return Err(match self.stream(id).map(|stream| stream.state) {
                Some(StreamState::Connecting) => Errno::ALREADY,
                Some(_) => Errno::ISCONN,
                None => Errno::INVAL,
            });
        };
        let (family, bound, lingers) = (socket.family, socket.name.clone(), socket.lingers);
        if family == AddressFamily::UNIX {
            let listener = self.listener(&remote).ok_or(Errno::CONNREFUSED)?;
            let server =
                StreamSocket::new(remote.clone(), SocketName::Unnamed, id, StreamState::Connected, window);
            let server = self.add(ObjectKind::Stream(Box::new(server)));
            if !self.enqueue(listener, server) {
                self.objects[server as usize] = None;
                return Err(Errno::AGAIN);
            }
            let window = self.window();
            let stream =
                StreamSocket::new(SocketName::Unnamed, remote, server, StreamState::Connected, window);
            self.object(id).expect("as above").kind = ObjectKind::Stream(Box::new(stream));
            return Ok(());
        }
        let host = if family == AddressFamily::INET {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        };
        let local = bound.unwrap_or_else(|| self.named(SocketName::Internet(SocketAddr::new(host, 0))));
        let mut stream = StreamSocket::new(local, remote, Id::MAX, StreamState::Connecting, window);
        stream.lingers = lingers;
        self.object(id).expect("as above").kind = ObjectKind::Stream(Box::new(stream));
        self.later(Happening::Knock { from: id, tries: 1 });
        Err(Errno::INPROGRESS)
    }

    fn socket_error(&mut self, fd: RawFd) -> Result<Result<()>> {
        let id = self.id(fd)?;
        let error = match &mut self.object(id).expect("a descriptor's object is there").kind {
            ObjectKind::Stream(stream) => stream.error.take(),
            ObjectKind::Datagrams(socket) => socket.error.take(),
            _ => None,
        };
        Ok(error.map_or(Ok(()), Err))
    }

    fn local_address(&mut self, fd: RawFd) -> Result<SocketAddrAny> {
        let id = self.id(fd)?;
        let name = match &self.object(id).expect("a descriptor's object is there").kind {
            ObjectKind::Epoll(_) | ObjectKind::File(_) | ObjectKind::Pipe(_) | ObjectKind::Signals(_) => {
                return Err(Errno::NOTSOCK);
            }
            ObjectKind::Datagrams(socket) => socket.name.clone().unwrap_or(SocketName::Unnamed),
            ObjectKind::Socket(socket) => socket.name.clone().unwrap_or(SocketName::Unnamed),
            ObjectKind::Listener(listener) => listener.name.clone(),
            ObjectKind::Stream(stream) => stream.local.clone(),
        };
        name.address().ok_or(Errno::INVAL)
    }

    fn peer_address(&mut self, fd: RawFd) -> Result<Option<SocketAddrAny>> {
        let id = self.id(fd)?;
        if self.is_datagrams(id) {
            return self.datagrams_peer(id);
        }
        let (_, stream) = self.stream_at(fd)?;
        match stream.state {
            StreamState::Connected => Ok(stream.remote.address()),
            _ => Err(Errno::NOTCONN),
        }
    }

    fn recv(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>> {
        let id = self.id(fd)?;
        if self.is_datagrams(id) {
            return Ok(self.receive(id, room, false)?.0);
        }
        let (id, stream) = self.stream_at(fd)?;
        if stream.unread() == 0 || room == 0 {
            return match stream.error.take() {
                Some(error) => Err(error),
                None if stream.state == StreamState::Connecting => Err(Errno::NOTCONN),
                None if stream.ended
                    || stream.read_shut
                    || stream.state == StreamState::Broken
                    || room == 0 =>
                {
                    Ok(Vec::new())
                }
                None => Err(Errno::AGAIN),
            };
        }
        let bytes = stream.take(room);
        let peer = stream.peer;
        self.note(u64::from(id) << 32 | bytes.len() as u64);
        if self.stream(peer).is_some_and(|sender| sender.wants_room && !sender.room_comes) {
            self.room_comes(peer);
        }
        Ok(bytes)
    }

    fn send(&mut self, fd: RawFd, bytes: &[u8], _: bool) -> Result<usize> {
        let id = self.id(fd)?;
        if self.is_datagrams(id) {
            return self.send_datagram(id, bytes);
        }
        let (id, stream) = self.stream_at(fd)?;
        if let Some(error) = stream.error.take() {
            return Err(error);
        }
        match stream.state {
            StreamState::Connecting => return Err(Errno::AGAIN),
            StreamState::Broken => return Err(Errno::PIPE),
            StreamState::Connected if stream.write_shut => return Err(Errno::PIPE),
            StreamState::Connected => {}
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let (peer, full) = (stream.peer, stream.full);
        // A peer that is gone takes everything, once; its answer is a reset.
        let room = self.stream(peer).map_or(usize::MAX, |peer| peer.room());
        let mut sent = if full { 0 } else { bytes.len().min(room) };
        if sent > 1 && self.random.happens(self.conditions.short_write) {
            sent = 1 + self.random.below(sent as u64 - 1) as usize;
            self.stream(id).expect("as above").full = true;
            self.room_comes(id);
        }
        if sent < bytes.len() {
            self.stream(id).expect("as above").wants_room = true;
        }
        if sent == 0 {
            return Err(Errno::AGAIN);
        }
        self.note(u64::from(id) << 32 | sent as u64 | 1 << 31);
        let mut rest = &bytes[..sent];
        while !rest.is_empty() {
            let Range { start, end } = self.conditions.segment;
            let length = start.max(1) + self.random.below((end - start).max(1) as u64) as usize;
            let (segment, others) = rest.split_at(length.min(rest.len()));
            rest = others;
            let at = self.arrival(peer, segment.len());
            let what = Happening::Segment { to: peer, from: id, bytes: segment.to_vec() };
            self.enter(at, what);
        }
        Ok(sent)
    }

    /// Sends from a simulated file or a real one.
    fn send_file(&mut self, socket: RawFd, file: BorrowedFd<'_>, from: u64, count: usize) -> Result<usize> {
        let mut bytes = vec![0; count.min(SENDFILE_MAX)];
        let read = match file.as_raw_fd() {
            raw if number(raw).is_some() => self.pread(raw, &mut bytes, from, ReadWriteFlags::empty())?,
            _ => rustix::io::pread(file, &mut bytes[..], from)?,
        };
        if read == 0 { Ok(0) } else { self.send(socket, &bytes[..read], false) }
    }

    fn unacknowledged(&mut self, fd: RawFd) -> Result<usize> {
        let peer = self.stream_at(fd)?.1.peer;
        Ok(self.stream(peer).map_or(0, |peer| peer.on_the_way))
    }

    fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<()> {
        let (id, stream) = self.stream_at(fd)?;
        if stream.state != StreamState::Connected {
            return Err(Errno::NOTCONN);
        }
        let peer = stream.peer;
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            stream.read_shut = true;
        }
        let writes = matches!(how, Shutdown::Write | Shutdown::Both);
        if writes && !mem::replace(&mut stream.write_shut, true) {
            self.end(peer);
        }
        self.edge(id);
        Ok(())
    }
}
