//! Sockets that are made in the middle of a connection.
//!
//! smoltcp makes the socket of a connection by a handshake only. So [`Workshop`] plays the peer: it
//! gives a new socket the peer's first segment and the acknowledgement, and throws the answers
//! away. Then the socket is where the connection is, but for its own sequence numbers, which begin
//! anywhere. `growing.rs` makes other buffers so, and `cookies.rs` the socket of a connection of
//! which the stack has kept nothing.
//!
//! The workshop has an interface of its own, without Ethernet: no answer waits for an address.

use crate::flow::{OpeningOptions, SocketPair};
use crate::frames::{FrameRoom, FrameThatCame, Frames, LONGEST_PACKET};
use crate::options::StackOptions;
use crate::segments::{from_peer, opening_of_peer, packet, segment_in};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, TcpSeqNumber};

pub(super) struct Workshop {
    interface: Interface,
    packets: Packets,
}

/// The device of a workshop.
struct Packets(Frames);

impl Device for Packets {
    type RxToken<'a> = FrameThatCame;
    type TxToken<'a> = FrameRoom<'a>;

    fn receive(&mut self, now: Instant) -> Option<(FrameThatCame, FrameRoom<'_>)> {
        self.0.receive(now)
    }

    fn transmit(&mut self, now: Instant) -> Option<FrameRoom<'_>> {
        self.0.transmit(now)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut can = DeviceCapabilities::default();
        can.medium = Medium::Ip;
        can.max_transmission_unit = LONGEST_PACKET;
        can
    }
}

/// How far a connection is when it gets a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) opening: OpeningOptions,
    /// The sequence number of the byte that the program reads next.
    pub(super) reads_at: TcpSeqNumber,
    /// The room that the peer has, in its units.
    pub(super) window: u16,
}

/// A socket in a set of its own, and the sequence number of the first byte that it sends.
pub(super) struct MadeSocket {
    pub(super) set: SocketSet<'static>,
    pub(super) handle: SocketHandle,
    pub(super) start: TcpSeqNumber,
}

impl Workshop {
    pub(super) fn new(options: &StackOptions, now: Instant) -> Workshop {
        let mut config = Config::new(HardwareAddress::Ip);
        // Another sequence of numbers than that of the stack's other sockets.
        config.random_seed = !options.seed;
        let mut packets = Packets(Frames::default());
        let mut interface = Interface::new(config, &mut packets, now);
        interface.update_ip_addrs(|addresses| addresses.extend(options.addresses.iter().copied()));
        Workshop { interface, packets }
    }

    /// Brings a new socket to where a connection is; `None` if it cannot be.
    pub(super) fn establish(
        &mut self,
        flow: SocketPair,
        mut socket: Socket<'static>,
        standing: Standing,
        now: Instant,
    ) -> Option<MadeSocket> {
        let Standing { opening, reads_at, window } = standing;
        socket.listen(flow.local).ok()?;
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        let first = opening_of_peer(flow, before(reads_at), opening, window);
        self.tell(packet(flow.peer, flow.local, &first), &mut set, now);
        let start = segment_in(self.packets.0.made.first()?).seq_number() + 1;
        let acknowledges = from_peer(flow, reads_at, start, window);
        self.tell(packet(flow.peer, flow.local, &acknowledges), &mut set, now);
        let socket = set.get::<Socket<'_>>(handle);
        (socket.state() == State::Established).then_some(MadeSocket { set, handle, start })
    }

    /// Lets the socket hear a packet. Its answers are in `made` until the next packet.
    fn tell(&mut self, packet: Vec<u8>, set: &mut SocketSet<'static>, now: Instant) {
        self.packets.0.made.clear();
        self.packets.0.came = Some(packet);
        self.interface.poll(now, &mut self.packets, set);
    }
}

/// The sequence number before another.
pub(super) fn before(number: TcpSeqNumber) -> TcpSeqNumber {
    TcpSeqNumber(number.0.wrapping_sub(1))
}
