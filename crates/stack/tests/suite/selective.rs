//! What goes again after a loss, and when: a peer that acknowledges selectively, or does not.

use crate::frames::{ACK, SYN, Segment};
use crate::peer::Peer;
use crate::{address, options};
use selvedge_core::{JoinHandle, now, spawn};
use selvedge_io::time::{sleep, timeout};
use selvedge_sim::simulate;
use selvedge_stack::{Stack, TcpListener, TcpOptions};
use std::time::Duration;

/// The bytes of a segment, and the segments that the stack sends at once.
const SEGMENT: usize = 1000;
const FIRST: usize = 10;
/// How long the peer takes to answer.
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// The options of a first segment: the longest segment, and that it selects.
const LONGEST: [u8; 4] = [2, 4, 3, 232];
const SELECTS: [u8; 4] = [4, 2, 1, 1];

/// A transfer of the stack to a peer that loses what a test says.
struct Losing {
    peer: Peer,
    /// The number of the first byte.
    start: u32,
    _stack: Stack,
    _writing: JoinHandle<()>,
}

impl Losing {
    /// A peer that has got the first segments of this number and acknowledged none.
    async fn new(selects: bool, segments: usize) -> Losing {
        let tcp = TcpOptions::new().buffer(60_000).first_buffer(60_000);
        let (mut peer, stack) = Peer::of(7000, options(2).tcp(tcp));
        let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
        let chosen: &[u8] = if selects { &SELECTS } else { &[] };
        let first = Segment { options: [&LONGEST, chosen].concat(), ..peer.segment(SYN, b"") };
        peer.next = first.end();
        peer.put(&first);
        peer.hears(SYN | ACK).await;
        sleep(ROUND_TRIP).await;
        peer.send(ACK, b"");
        let (stream, _) = listener.accept().await.unwrap();
        let writing = spawn(async move {
            stream.write_all(&vec![7; segments * SEGMENT]).await.unwrap();
            // The stream stays open.
            std::future::pending().await
        });
        let mut losing = Losing { start: peer.expects, peer, _stack: stack, _writing: writing };
        assert_eq!(losing.gets().await, (0..FIRST.min(segments)).collect::<Vec<_>>());
        sleep(ROUND_TRIP).await;
        losing
    }

    /// The numbers of the segments that come now.
    async fn gets(&mut self) -> Vec<usize> {
        let mut came = Vec::new();
        while let Ok(Some(segment)) = timeout(Duration::from_micros(1), self.peer.any()).await {
            assert_eq!(segment.contents.len(), SEGMENT, "{segment:?}");
            came.push(segment.sequence.wrapping_sub(self.start) as usize / SEGMENT);
        }
        came
    }

    /// The peer has all before the segment `wanted`, and the segments of these parts.
    fn has(&mut self, wanted: usize, parts: &[(usize, usize)]) {
        let number = |place: usize| self.start.wrapping_add((place * SEGMENT) as u32);
        self.peer.expects = number(wanted);
        let mut options = vec![1, 1, 5, 2 + 8 * parts.len() as u8];
        for (begin, end) in parts {
            options.extend([number(*begin), number(*end)].map(u32::to_be_bytes).concat());
        }
        if parts.is_empty() {
            options.clear();
        }
        let acknowledges = Segment { options, ..self.peer.segment(ACK, b"") };
        self.peer.put(&acknowledges);
    }
}

#[test]
fn a_hole_goes_again_once_and_nothing_else() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        losing.has(1, &[]);
        losing.has(1, &[(2, 3)]);
        losing.has(1, &[(2, 4)]);
        assert_eq!(losing.gets().await, [], "two may have come out of order");
        losing.has(1, &[(2, 5)]);
        assert_eq!(losing.gets().await, [1]);
        for end in 6..=FIRST {
            losing.has(1, &[(2, end)]);
        }
        sleep(ROUND_TRIP * 5).await;
        assert_eq!(losing.gets().await, []);
        losing.has(FIRST, &[]);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(losing.gets().await, []);
    });
}

#[test]
fn segments_out_of_order_get_time_to_come() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        losing.has(1, &[(2, 3)]);
        sleep(ROUND_TRIP / 5).await;
        assert_eq!(losing.gets().await, []);
        // A quarter of the round trip is over.
        sleep(ROUND_TRIP / 5).await;
        assert_eq!(losing.gets().await, [1]);
    });
}

#[test]
fn all_holes_go_in_one_round_trip() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        losing.has(1, &[(2, 4)]);
        losing.has(1, &[(5, 7), (2, 4)]);
        losing.has(1, &[(8, 10), (5, 7), (2, 4)]);
        assert_eq!(losing.gets().await, [1, 4, 7]);
        losing.has(4, &[(8, 10), (5, 7)]);
        sleep(ROUND_TRIP).await;
        assert_eq!(losing.gets().await, []);
    });
}

#[test]
fn what_is_lost_again_goes_again_without_a_timer() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, 2 * FIRST).await;
        losing.has(0, &[(1, FIRST)]);
        let again = losing.gets().await;
        assert_eq!(again[..2], [0, FIRST], "the hole, and new ones behind it");
        sleep(ROUND_TRIP).await;
        // The peer has the new ones, and not the hole.
        losing.has(0, &[(1, FIRST + again.len() - 1)]);
        assert_eq!(losing.gets().await[0], 0);
    });
}

#[test]
fn a_lost_end_is_found_by_a_probe() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        losing.has(FIRST - 3, &[]);
        let before = now();
        let probe = losing.peer.any().await.unwrap();
        assert!((ROUND_TRIP..ROUND_TRIP * 10).contains(&now().since(before)));
        assert_eq!(probe.sequence.wrapping_sub(losing.start) as usize, (FIRST - 1) * SEGMENT);
        sleep(ROUND_TRIP).await;
        losing.has(FIRST - 3, &[(FIRST - 1, FIRST)]);
        sleep(ROUND_TRIP / 2).await;
        assert_eq!(losing.gets().await, [FIRST - 3, FIRST - 2]);
    });
}

#[test]
fn a_peer_may_throw_away_what_it_had() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        losing.has(0, &[(1, FIRST)]);
        assert_eq!(losing.gets().await, [0]);
        // It has the hole, and nothing else any more.
        losing.has(1, &[]);
        let mut has = 1;
        while has < FIRST {
            let segment = losing.peer.any().await.unwrap();
            assert_eq!(segment.sequence.wrapping_sub(losing.start) as usize, has * SEGMENT);
            has += 1;
            losing.has(has, &[]);
        }
    });
}

#[test]
fn a_peer_that_does_not_select_gets_a_hole_in_each_round_trip() {
    simulate(0..1, || async {
        let mut losing = Losing::new(false, FIRST).await;
        losing.has(1, &[]);
        losing.has(1, &[]);
        losing.has(1, &[]);
        assert_eq!(losing.gets().await, []);
        losing.has(1, &[]);
        assert_eq!(losing.gets().await, [1]);
        losing.has(4, &[]);
        assert_eq!(losing.gets().await, [4]);
        losing.has(FIRST, &[]);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(losing.gets().await, []);
    });
}

#[test]
fn a_silent_peer_gets_the_first_segment_again_and_later_each_time() {
    simulate(0..1, || async {
        let mut losing = Losing::new(true, FIRST).await;
        let (mut last, mut waits) = (now(), Vec::new());
        while waits.len() < 5 {
            losing.peer.any().await.unwrap();
            waits.push(now().since(last).as_millis());
            last = now();
        }
        // A probe, and timers that wait twice as long each time.
        let longer = |pair: &[u128]| pair[1] >= pair[0] * 2 - pair[0] / 8;
        assert!(waits[0] < 150 && waits[1..].windows(2).all(longer), "{waits:?} ms");
    });
}
