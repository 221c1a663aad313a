//! A peer that is no stack: it says what a script says, segment by segment.

use crate::frames::{ACK, PSH, RST, SYN, Segment, told_address};
use crate::{address, host, options};
use selvedge_io::time::timeout;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpStream, Weather, Wire};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::Duration;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The host 1, which does what a script says, on the wire of a stack, the host 2.
pub(crate) struct Peer {
    pub(crate) wire: SimulatedWire,
    pub(crate) came: VecDeque<Segment>,
    pub(crate) own: SocketAddrV4,
    pub(crate) stack: SocketAddrV4,
    /// The number of its next byte, and of the byte that it expects.
    pub(crate) next: u32,
    pub(crate) expects: u32,
    pub(crate) window: u16,
}

impl Peer {
    /// The peer, with this first number, and the stack.
    pub(crate) fn new(first: u32) -> (Peer, Stack) {
        Peer::of(first, options(2))
    }

    pub(crate) fn of(first: u32, options: StackOptions) -> (Peer, Stack) {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let own = SocketAddrV4::new(host(1).0, 4000);
        let stack = SocketAddrV4::new(host(2).0, 80);
        let peer =
            Peer { wire: left, came: VecDeque::new(), own, stack, next: first, expects: 0, window: 60_000 };
        (peer, Stack::start(options, right))
    }

    /// Sends a segment with the peer's numbers, and counts it.
    pub(crate) fn send(&mut self, flags: u8, contents: &[u8]) {
        let segment = self.segment(flags, contents);
        self.next = segment.end();
        self.put(&segment);
    }

    pub(crate) fn segment(&self, flags: u8, contents: &[u8]) -> Segment {
        let acknowledges = if flags & ACK == 0 { 0 } else { self.expects };
        let segment = Segment::new(self.own, self.stack, flags);
        let (sequence, window, contents) = (self.next, self.window, contents.to_vec());
        Segment { sequence, acknowledges, window, contents, ..segment }
    }

    pub(crate) fn put(&self, segment: &Segment) {
        self.wire.send(&segment.frame(host(1).1, host(2).1));
    }

    /// The next segment of the stack, if one comes within a minute.
    pub(crate) async fn any(&mut self) -> Option<Segment> {
        let next = async {
            loop {
                if let Some(segment) = self.came.pop_front() {
                    return segment;
                }
                for frame in self.wire.receive().await.unwrap() {
                    match told_address(&frame, host(1).0, host(1).1) {
                        Some(told) => self.wire.send(&told),
                        None => self.came.extend(Segment::of(&frame)),
                    }
                }
            }
        };
        timeout(60 * SECOND, next).await.ok()
    }

    /// The next segment of the stack has these flags. The peer expects what comes after it.
    pub(crate) async fn hears(&mut self, flags: u8) -> Segment {
        let segment = self.any().await.expect("a segment");
        assert_eq!(segment.flags & !PSH, flags, "{segment:?}");
        self.expects = segment.end();
        segment
    }

    /// Whether the stack knows nothing of the connection: it resets what comes for it.
    pub(crate) async fn is_forgotten(&mut self) -> bool {
        // What is on its way, and what has come.
        while let Ok(Some(_)) = timeout(SECOND / 1000, self.any()).await {}
        self.send(ACK, b"");
        matches!(timeout(SECOND, self.any()).await, Ok(Some(Segment { flags, .. })) if flags & RST != 0)
    }

    /// The peer asks a listener for a connection, and gets it.
    pub(crate) async fn connect(&mut self, listener: &TcpListener) -> TcpStream {
        self.send(SYN, b"");
        let answer = self.hears(SYN | ACK).await;
        assert_eq!(answer.acknowledges, self.next);
        self.send(ACK, b"");
        listener.accept().await.unwrap().0
    }
}

/// A peer with an open connection.
pub(crate) async fn open() -> (Peer, TcpStream, Stack) {
    let (mut peer, stack) = Peer::new(7000);
    let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
    let stream = peer.connect(&listener).await;
    (peer, stream, stack)
}
