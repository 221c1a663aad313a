//! How a socket is made to repeat its first segment, when `recovery.rs` says that it is lost.

use super::connections::StackConnection;
use crate::flow::SocketPair;
use crate::frames::Frames;
use crate::segments::{framed, from_peer, packet};
use smoltcp::iface::Interface;
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;
use smoltcp::wire::TcpSeqNumber;

impl StackConnection {
    /// The bytes on their way to the peer, of which the socket can repeat the first.
    pub(super) fn on_way(&mut self) -> usize {
        let socket = self.seat.socket();
        let sends = matches!(
            socket.state(),
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck
        );
        // smoltcp repeats an end without bytes by its timer alone.
        let repeats = sends && socket.send_queue() > 0 && self.room_to > self.wanted;
        if repeats { self.sent_to - self.wanted } else { 0 }
    }

    /// Makes the socket repeat its first segment: it hears three equal acknowledgements. A window
    /// that changes before them makes it begin to count. Returns when the socket has more to do.
    pub(super) fn repeat(
        &mut self,
        flow: SocketPair,
        interface: &mut Interface,
        frames: &mut Frames,
        now: Instant,
    ) -> Option<Instant> {
        (self.recovery.is_due, self.recovery.hears) = (false, true);
        if self.on_way() == 0 {
            return None;
        }
        let mut looked_at = None;
        let window = self.peers_window();
        for window in [window ^ 1, window, window, window, window] {
            self.place(flow, self.wanted, window, interface, frames);
            looked_at = self.poll(interface, frames, now);
        }
        looked_at
    }

    /// Puts an acknowledgement of the peer to where the socket takes it.
    fn place(
        &mut self,
        flow: SocketPair,
        wanted: TcpSeqNumber,
        window: u16,
        interface: &Interface,
        frames: &mut Frames,
    ) {
        let socket = self.seat.socket();
        let has_ended =
            matches!(socket.state(), State::CloseWait | State::Closing | State::LastAck | State::TimeWait);
        let next = self.reads_at + socket.recv_queue() + usize::from(has_ended);
        let heard = packet(flow.peer, flow.local, &from_peer(flow, next, wanted, window));
        let hardware = interface.hardware_addr();
        frames.came = Some(framed(&heard, &[2, 0, 0, 0, 0, 0], hardware.as_bytes()));
    }
}
