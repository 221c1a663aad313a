//! The `DatagramCalls` of `Kernel`: the calls on datagram sockets (`Datagrams`). UDP loses, doubles
//! and reorders datagrams; Unix sockets do none of that.
//!
//! `selvedge-io`'s `sys/datagram.rs` makes the calls. The calls that all sockets have (`bind`,
//! `connect`, `recv`, `send`) come in through `sockets.rs`, which passes those on datagram sockets
//! to the functions here. A datagram under way is an entry of the calendar, which `network.rs`
//! brings back to `datagram`.

use super::*;
use selvedge_io::sys::DatagramOption;

/// The lengths of the longest datagrams, in bytes.
const UDP_MAX: usize = 65_507;
const UNIX_MAX: usize = 212_960;
/// How many datagrams a Unix socket keeps for its owner.
const UNIX_QUEUE_MAX: usize = 10;

impl Kernel {
    fn new_datagrams(&mut self, family: AddressFamily, peer: Peer) -> Datagrams {
        Datagrams {
            family,
            name: None,
            shares: false,
            connected: match peer {
                Peer::Socket(other) => vec![other],
                _ => Vec::new(),
            },
            peer,
            queue: VecDeque::new(),
            queued: 0,
            window: self.window(),
            error: None,
            full: false,
            broadcasts: false,
            groups: BTreeSet::new(),
            loops: true,
        }
    }

    fn datagrams(&mut self, id: Id) -> Option<&mut Datagrams> {
        match self.object(id) {
            Some(KernelObject { kind: ObjectKind::Datagrams(socket), .. }) => Some(socket),
            _ => None,
        }
    }

    pub(super) fn is_datagrams(&mut self, id: Id) -> bool {
        self.datagrams(id).is_some()
    }

    /// Lets the socket share an address with other sockets that have the same option.
    pub(super) fn share_datagrams(&mut self, id: Id) {
        if let Some(socket) = self.datagrams(id) {
            socket.shares = true;
        }
    }

    pub(super) fn bind_datagrams(&mut self, id: Id, address: &SocketAddrAny) -> Result<()> {
        let name = self.named(SocketName::of(address)?);
        let socket = self.datagrams(id).expect("the caller has seen that it is one");
        if socket.name.is_some() {
            return Err(Errno::INVAL);
        }
        let shares = socket.shares;
        let others = self.receivers.get(&name).cloned().unwrap_or_default();
        let free =
            others.iter().all(|&other| shares && self.datagrams(other).is_some_and(|other| other.shares));
        if !free
            || matches!(name, SocketName::Path(_)) && self.names.get(&name).is_some_and(|ids| !ids.is_empty())
        {
            return Err(Errno::ADDRINUSE);
        }
        self.receivers.entry(name.clone()).or_default().push(id);
        self.datagrams(id).expect("as above").name = Some(name);
        Ok(())
    }

    /// Sets the peer that the socket sends to and receives from.
    pub(super) fn connect_datagrams(&mut self, id: Id, address: &SocketAddrAny) -> Result<()> {
        let remote = SocketName::of(address)?;
        let peer = match &remote {
            SocketName::Internet(_) => Peer::Named(remote),
            _ => {
                let receiver = self.unix_receiver(&remote)?;
                self.datagrams(receiver).expect("just looked up").connected.push(id);
                Peer::Socket(receiver)
            }
        };
        self.datagrams(id).expect("the caller has seen that it is one").peer = peer;
        Ok(())
    }

    /// The Unix socket at a path.
    fn unix_receiver(&self, name: &SocketName) -> Result<Id> {
        match self.receivers.get(name).and_then(|ids| ids.first()) {
            Some(&id) => Ok(id),
            None if self.names.contains_key(name) => Err(Errno::PROTOTYPE),
            None if self.receivers.contains_key(name) => Err(Errno::CONNREFUSED),
            None => Err(Errno::NOENT),
        }
    }

    pub(super) fn close_datagrams(&mut self, id: Id, socket: &Datagrams) {
        if let Some(name) = &socket.name
            && let Some(ids) = self.receivers.get_mut(name)
        {
            ids.retain(|&other| other != id);
            // The peer keeps its address although no socket has it any more.
            if ids.is_empty() && matches!(name, SocketName::Internet(_)) {
                self.receivers.remove(name);
            }
        }
        socket.connected.iter().for_each(|&sender| self.edge(sender));
    }

    pub(super) fn datagrams_local(&mut self, id: Id) -> Option<SocketName> {
        self.datagrams(id).map(|socket| socket.name.clone().unwrap_or(SocketName::Unnamed))
    }

    pub(super) fn datagrams_peer(&mut self, id: Id) -> Result<Option<SocketAddrAny>> {
        match self.datagrams(id).map(|socket| socket.peer.clone()) {
            Some(Peer::Named(name)) => Ok(name.address()),
            Some(Peer::Socket(peer)) => {
                Ok(self.datagrams_local(peer).unwrap_or(SocketName::Unnamed).address())
            }
            _ => Err(Errno::NOTCONN),
        }
    }

    pub(super) fn datagrams_flags(&self, socket: &Datagrams) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !socket.queue.is_empty() || socket.error.is_some());
        flags.set(EventFlags::ERR, socket.error.is_some());
        let peer_is_full = match socket.peer {
            Peer::Socket(peer) => match self.objects.get(peer as usize) {
                Some(Some(KernelObject { kind: ObjectKind::Datagrams(peer), .. })) => {
                    peer.queue.len() >= UNIX_QUEUE_MAX
                }
                _ => false,
            },
            _ => false,
        };
        flags.set(EventFlags::OUT, !socket.full && !peer_is_full);
        flags
    }

    /// Receives the next datagram, or the part of it for which there is room. With `peek` the
    /// datagram stays in the queue.
    pub(super) fn receive(&mut self, id: Id, room: usize, peek: bool) -> Result<(Vec<u8>, SocketName)> {
        let socket = self.datagrams(id).expect("the caller has seen that it is one");
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let Some((from, bytes)) = socket.queue.front() else { return Err(Errno::AGAIN) };
        let (from, bytes) = (from.clone(), bytes[..room.min(bytes.len())].to_vec());
        if !peek {
            let was_full = socket.queue.len() >= UNIX_QUEUE_MAX && socket.family == AddressFamily::UNIX;
            let (_, whole) = socket.queue.pop_front().expect("looked at above");
            socket.queued -= whole.len();
            let senders = if was_full { socket.connected.clone() } else { Vec::new() };
            senders.into_iter().for_each(|sender| self.edge(sender));
            self.note(u64::from(id) << 32 | bytes.len() as u64);
        }
        Ok((bytes, from))
    }

    /// Sends to the peer.
    pub(super) fn send_datagram(&mut self, id: Id, bytes: &[u8]) -> Result<usize> {
        let socket = self.datagrams(id).expect("the caller has seen that it is one");
        let family = socket.family;
        match socket.peer.clone() {
            Peer::Named(name) => self.send_udp(id, bytes, name),
            Peer::Socket(peer) if self.is_datagrams(peer) => self.send_unix(id, bytes, peer),
            Peer::Socket(_) => {
                self.datagrams(id).expect("as above").peer = Peer::None;
                Err(Errno::CONNREFUSED)
            }
            Peer::None if family == AddressFamily::UNIX => Err(Errno::NOTCONN),
            Peer::None => Err(Errno::DESTADDRREQ),
        }
    }

    fn send_unix(&mut self, id: Id, bytes: &[u8], to: Id) -> Result<usize> {
        if bytes.len() > UNIX_MAX {
            return Err(Errno::MSGSIZE);
        }
        let from = self.datagrams_local(id).expect("the caller has seen that it is one");
        let receiver = self.datagrams(to).expect("looked up, and there");
        if matches!(receiver.peer, Peer::Socket(peer) if peer != id) {
            return Err(Errno::PERM);
        }
        if receiver.queue.len() >= UNIX_QUEUE_MAX {
            return Err(Errno::AGAIN);
        }
        receiver.queued += bytes.len();
        receiver.queue.push_back((from, bytes.to_vec()));
        self.edge(to);
        self.note(u64::from(id) << 32 | bytes.len() as u64 | 1 << 31);
        Ok(bytes.len())
    }

    fn send_udp(&mut self, id: Id, bytes: &[u8], to: SocketName) -> Result<usize> {
        let SocketName::Internet(address) = to else { return Err(Errno::AFNOSUPPORT) };
        let socket = self.datagrams(id).expect("the caller has seen that it is one");
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        if address.is_ipv6() && socket.family == AddressFamily::INET {
            return Err(Errno::AFNOSUPPORT);
        }
        if bytes.len() > UDP_MAX {
            return Err(Errno::MSGSIZE);
        }
        if address.ip() == Ipv4Addr::BROADCAST && !socket.broadcasts {
            return Err(Errno::ACCESS);
        }
        let (full, family) = (socket.full, socket.family);
        if socket.name.is_none() {
            let any = if family == AddressFamily::INET {
                IpAddr::V4(Ipv4Addr::UNSPECIFIED)
            } else {
                IpAddr::V6(Ipv6Addr::UNSPECIFIED)
            };
            self.bind_datagrams(id, &SocketAddr::new(any, 0).into())?;
        }
        if full || self.random.happens(self.conditions.short_write) {
            self.datagrams(id).expect("as above").full = true;
            if !full {
                self.later(Happening::DatagramRoom { to: id });
            }
            return Err(Errno::AGAIN);
        }
        self.note(u64::from(id) << 32 | bytes.len() as u64 | 1 << 31);
        if self.random.happens(self.conditions.datagram_lost) {
            return Ok(bytes.len());
        }
        let copies = 1 + usize::from(self.random.happens(self.conditions.datagram_twice));
        for _ in 0..copies {
            self.later(Happening::Datagram { from: id, to: address, bytes: bytes.to_vec() });
        }
        Ok(bytes.len())
    }

    pub(super) fn datagram_room(&mut self, to: Id) {
        if let Some(socket) = self.datagrams(to) {
            socket.full = false;
            self.edge(to);
        }
    }

    /// A datagram arrives.
    pub(super) fn datagram(&mut self, from: Id, to: SocketAddr, bytes: Vec<u8>) {
        self.note(u64::from(from) << 32 | bytes.len() as u64 | 3 << 30);
        let loops = self.datagrams(from).is_none_or(|sender| sender.loops);
        let source = match self.datagrams_local(from) {
            Some(SocketName::Internet(source)) if !source.ip().is_unspecified() => source,
            Some(SocketName::Internet(source)) => {
                let to_one = !to.ip().is_multicast() && to.ip() != Ipv4Addr::BROADCAST;
                let host = match to {
                    _ if to_one => to.ip(),
                    SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                    SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                };
                SocketAddr::new(host, source.port())
            }
            // The sender was closed meanwhile, so no socket gets the answer.
            _ => return,
        };
        let source = SocketName::Internet(source);
        let many = to.ip().is_multicast() || to.ip() == Ipv4Addr::BROADCAST;
        let mut receivers = Vec::new();
        for host in [to.ip(), Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
            // A socket that is bound to the address itself comes before a socket that is bound to
            // any address.
            if many || receivers.is_empty() {
                receivers.extend(self.takers(SocketAddr::new(host, to.port()), &source, to, loops));
            }
        }
        if receivers.is_empty() && !many {
            return self.later(Happening::Unreachable { from, to });
        }
        if !many && receivers.len() > 1 {
            let chosen = receivers[self.random.below(receivers.len() as u64) as usize];
            receivers = vec![chosen];
        }
        for id in receivers {
            let receiver = self.datagrams(id).expect("looked at above");
            // A datagram without room is lost.
            if receiver.queued == 0 || receiver.queued + bytes.len() <= receiver.window {
                receiver.queued += bytes.len();
                receiver.queue.push_back((source.clone(), bytes.clone()));
                self.edge(id);
            }
        }
    }

    /// The sockets bound to an address that take a datagram from `source` to `to`.
    fn takers(&mut self, bound: SocketAddr, source: &SocketName, to: SocketAddr, loops: bool) -> Vec<Id> {
        let mut takers = self.receivers.get(&SocketName::Internet(bound)).cloned().unwrap_or_default();
        takers.retain(|&id| {
            self.datagrams(id).is_some_and(|receiver| {
                let is_member = !to.ip().is_multicast() || loops && receiver.groups.contains(&to.ip());
                let is_peer = match &receiver.peer {
                    Peer::Named(peer) => peer == source,
                    _ => true,
                };
                // A socket of IPv4 takes no datagram of IPv6.
                is_member && is_peer && (to.is_ipv4() || receiver.family == AddressFamily::INET6)
            })
        });
        takers
    }

    /// A connected sender learns that no socket received its datagram.
    pub(super) fn unreachable(&mut self, from: Id, to: SocketAddr) {
        if let Some(sender) = self.datagrams(from)
            && matches!(&sender.peer, Peer::Named(SocketName::Internet(peer)) if *peer == to)
        {
            sender.error = Some(Errno::CONNREFUSED);
            self.edge(from);
        }
    }
}

impl DatagramCalls for Kernel {
    fn datagram_socket(&mut self, family: AddressFamily) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let socket = self.new_datagrams(family, Peer::None);
        let id = self.add(ObjectKind::Datagrams(Box::new(socket)));
        Ok(self.describe(id))
    }

    fn datagram_pair(&mut self) -> Result<(RawFd, RawFd)> {
        if self.open + 2 > self.conditions.descriptors_max {
            return Err(Errno::MFILE);
        }
        let first = self.objects.len() as Id;
        let one = self.new_datagrams(AddressFamily::UNIX, Peer::Socket(first + 1));
        let other = self.new_datagrams(AddressFamily::UNIX, Peer::Socket(first));
        let (one, other) = (
            self.add(ObjectKind::Datagrams(Box::new(one))),
            self.add(ObjectKind::Datagrams(Box::new(other))),
        );
        Ok((self.describe(one), self.describe(other)))
    }

    fn set_datagram_option(&mut self, fd: RawFd, option: DatagramOption) -> Result<()> {
        let id = self.id(fd)?;
        let socket = self.datagrams(id).ok_or(Errno::NOPROTOOPT)?;
        let mut join = |group: IpAddr, joins: bool| match joins {
            _ if !group.is_multicast() => Err(Errno::INVAL),
            true if socket.groups.insert(group) => Ok(()),
            true => Err(Errno::ADDRINUSE),
            false if socket.groups.remove(&group) => Ok(()),
            false => Err(Errno::ADDRNOTAVAIL),
        };
        match option {
            DatagramOption::Broadcast(yes) => socket.broadcasts = yes,
            DatagramOption::JoinV4(group, _) => return join(group.into(), true),
            DatagramOption::LeaveV4(group, _) => return join(group.into(), false),
            DatagramOption::JoinV6(group, _) => return join(group.into(), true),
            DatagramOption::LeaveV6(group, _) => return join(group.into(), false),
            DatagramOption::MulticastLoopV4(yes) | DatagramOption::MulticastLoopV6(yes) => socket.loops = yes,
            DatagramOption::Ttl(1..=255) => {}
            DatagramOption::MulticastTtlV4(0..=255) | DatagramOption::MulticastHopsV6(0..=255) => {}
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn receive_from(
        &mut self,
        fd: RawFd,
        room: usize,
        peek: bool,
    ) -> Result<(Vec<u8>, Option<SocketAddrAny>)> {
        let id = self.id(fd)?;
        if !self.is_datagrams(id) {
            return Err(Errno::OPNOTSUPP);
        }
        let (bytes, from) = self.receive(id, room, peek)?;
        Ok((bytes, from.address()))
    }

    fn send_to(&mut self, fd: RawFd, bytes: &[u8], to: &SocketAddrAny) -> Result<usize> {
        let id = self.id(fd)?;
        if !self.is_datagrams(id) {
            return Err(Errno::OPNOTSUPP);
        }
        match SocketName::of(to)? {
            name @ SocketName::Internet(_) => self.send_udp(id, bytes, name),
            name => {
                let to = self.unix_receiver(&name)?;
                self.send_unix(id, bytes, to)
            }
        }
    }
}
