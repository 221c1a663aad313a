//! [`OutgoingFrame`]: what goes to a wire; and [`SegmentContents`]: what a segment carries.
//!
//! The contents of a segment are a part of a frame that smoltcp has made, and stay there until the
//! peer has acknowledged all of that frame. What goes to the wire has heads of its own and refers
//! to them, so a segment that goes, or goes again, is no copy. Segments that follow each other in
//! such a frame go as one: a device that divides long segments (TSO) gets it as it is, and for all
//! others [`OutgoingFrame::for_each`] divides it and makes the sums.

use crate::segments::{
    ETHERNET, SegmentHead, fill_checksum, heads, marks, number, set_heads, start, with_contents,
};
use smoltcp::wire::TcpSeqNumber;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// The longest frame before it is divided. The head of its packet has 16 bits for the length.
pub(crate) const LONG: NonZeroUsize = NonZeroUsize::new(0xFFFF).unwrap();
/// The bytes of TCP's head without options.
const PLAIN: usize = 20;
/// The marks of a segment that ends its direction, and of one that pushes.
const LAST: u8 = 0x01 | 0x08;

/// Frames on their way to a [`Wire`](crate::Wire): one, or one for each segment of a run of a
/// connection.
#[derive(Debug)]
pub struct OutgoingFrame {
    /// The frame; or, if the contents are elsewhere, what stands before them, without the right
    /// length and checksums.
    head: Vec<u8>,
    contents: Option<SegmentContents>,
    /// What follows them and is in other frames of the socket.
    more: Vec<SegmentContents>,
    /// The bytes of contents in each frame but the last.
    each: usize,
}

/// What a segment carries: a part of a frame that a socket has made.
#[derive(Clone, Debug)]
pub(crate) struct SegmentContents {
    frame: Arc<Vec<u8>>,
    range: Range<usize>,
}

/// How long the packets of a connection may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketLength {
    /// The bytes of the longest packet.
    pub(crate) longest: usize,
    /// The most bytes of options and contents of TCP that the peer takes.
    pub(crate) segment: usize,
}

impl SegmentContents {
    /// Those of the segment in a frame.
    pub(crate) fn of(frame: Vec<u8>) -> SegmentContents {
        let range = heads(&frame)..frame.len();
        SegmentContents { frame: Arc::new(frame), range }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.frame[self.range.clone()]
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// The marks of the segment. Those of the frame are the marks of its last segment; the others
    /// push nothing and end nothing.
    fn marks(&self) -> u8 {
        let marks = marks(&self.frame);
        if self.is_last() { marks } else { marks & !LAST }
    }

    /// The heads of the frame.
    fn heads(&self) -> &[u8] {
        &self.frame[..heads(&self.frame)]
    }

    /// How many bytes of contents a segment has room for, with its options and this number of bytes
    /// for both (RFC 6691).
    pub(crate) fn room(&self, segment: usize) -> usize {
        let options = heads(&self.frame) - start(&self.frame) - PLAIN;
        segment.saturating_sub(options).max(1)
    }

    /// Cuts off the first bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.range.start += bytes;
    }

    /// Parts of this length, and a last one, which may be shorter: it alone may have no bytes.
    pub(crate) fn divided(self, most: usize) -> impl Iterator<Item = SegmentContents> {
        let SegmentContents { frame, range } = self;
        let parts = range.len().div_ceil(most).max(1);
        (0..parts).map(move |part| {
            let start = range.start + part * most;
            SegmentContents { frame: frame.clone(), range: start..range.end.min(start + most) }
        })
    }

    /// Whether nothing of the frame follows.
    pub(crate) fn is_last(&self) -> bool {
        self.range.end == self.frame.len()
    }

    /// Those of one segment for two that follow each other.
    pub(crate) fn joined(&self, next: &SegmentContents) -> SegmentContents {
        SegmentContents::of([next.heads(), self.bytes(), next.bytes()].concat())
    }

    /// The frame, if no other segment is in it.
    pub(crate) fn into_frame(self) -> Option<Vec<u8>> {
        Arc::into_inner(self.frame)
    }
}

impl OutgoingFrame {
    /// A frame with all its sums.
    pub(crate) fn whole(frame: Vec<u8>) -> OutgoingFrame {
        OutgoingFrame { head: frame, contents: None, more: Vec::new(), each: 0 }
    }

    /// A frame that smoltcp has made, without the checksum of TCP. A segment goes in packets of
    /// this length at most.
    pub(crate) fn made(mut frame: Vec<u8>, packets: PacketLength) -> OutgoingFrame {
        if frame.len() > packets.longest + ETHERNET {
            let contents = SegmentContents::of(frame);
            return OutgoingFrame::with_heads(contents.heads().to_vec(), contents, packets);
        }
        fill_checksum(&mut frame);
        OutgoingFrame::whole(frame)
    }

    /// A segment with contents, in packets of this length at most.
    pub(crate) fn segment(
        head: &SegmentHead,
        contents: &SegmentContents,
        packets: PacketLength,
    ) -> OutgoingFrame {
        let mut heads = contents.heads().to_vec();
        set_heads(&mut heads, head);
        OutgoingFrame::with_heads(heads, contents.clone(), packets)
    }

    fn with_heads(head: Vec<u8>, contents: SegmentContents, packets: PacketLength) -> OutgoingFrame {
        let room = (packets.longest + ETHERNET).saturating_sub(head.len());
        let each = room.min(contents.room(packets.segment));
        OutgoingFrame { head, contents: Some(contents), more: Vec::new(), each: each.max(1) }
    }

    /// Takes one more segment, behind the others; false if it cannot be one of this run.
    pub(crate) fn append(&mut self, sequence: TcpSeqNumber, next: &SegmentContents) -> bool {
        let length = self.contents_len();
        let Some(last) = self.more.last_mut().or(self.contents.as_mut()) else { return false };
        let follows = number(&self.head) + length == sequence
            && length > 0
            && length.is_multiple_of(self.each)
            && last.marks() & LAST == 0
            && self.head.len() + length + next.len() <= LONG.get();
        if follows {
            if Arc::ptr_eq(&last.frame, &next.frame) && last.range.end == next.range.start {
                last.range.end = next.range.end;
            } else {
                self.more.push(next.clone());
            }
        }
        follows
    }

    fn contents_parts(&self) -> impl Iterator<Item = &SegmentContents> {
        self.contents.iter().chain(&self.more)
    }

    /// How many bytes of contents are elsewhere.
    pub(crate) fn contents_len(&self) -> usize {
        self.contents_parts().map(SegmentContents::len).sum()
    }

    /// The frame, if its contents are in it.
    pub(crate) fn as_whole(&self) -> Option<&[u8]> {
        self.contents.is_none().then_some(&self.head)
    }

    /// The frame, or what stands before its contents.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The contents that are elsewhere.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.contents_parts().map(SegmentContents::bytes)
    }

    /// The bytes of contents in each frame but the last.
    pub(crate) fn each(&self) -> usize {
        self.each
    }

    /// The marks of the last segment.
    pub(crate) fn marks(&self) -> u8 {
        self.contents_parts().last().map_or_else(|| marks(&self.head), SegmentContents::marks)
    }

    /// Gives each of the frames to `send`, in order and with all checksums.
    pub fn for_each(&self, mut send: impl FnMut(&[u8])) {
        if let Some(frame) = self.as_whole() {
            return send(frame);
        }
        let mut sequence = number(&self.head);
        // Each part but the last is as long as some whole segments.
        for part in self.contents_parts().flat_map(|part| part.clone().divided(self.each)) {
            send(&with_contents(&self.head, sequence, part.bytes(), part.marks()));
            sequence += part.len();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::flow::{Cargo, SocketPair};
    use crate::segments::{MARKS, framed, from_peer, packet, segment_in};
    use smoltcp::wire::{TcpControl, TcpRepr};
    use std::net::SocketAddr;

    pub(crate) fn hosts() -> [(SocketAddr, SocketAddr); 2] {
        [("10.0.0.1:7", "10.0.0.2:8"), ("[fd00::1]:7", "[fd00::2]:8")]
            .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()))
    }

    /// The frame of a segment with this many bytes that ends its direction, and the same in packets
    /// of `longest` bytes at most.
    pub(crate) fn stream(
        (from, to): (SocketAddr, SocketAddr),
        bytes: usize,
        longest: usize,
    ) -> (Vec<u8>, OutgoingFrame) {
        let contents: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
        let flow = SocketPair { local: to, peer: from };
        let whole = TcpRepr {
            control: TcpControl::Fin,
            payload: &contents,
            ..from_peer(flow, TcpSeqNumber(-5), TcpSeqNumber(9), 77)
        };
        let frame = framed(&packet(from, to, &whole), &[2; 6], &[4; 6]);
        let run = OutgoingFrame::segment(&head(-5), &SegmentContents::of(frame.clone()), packets(longest));
        (frame, run)
    }

    fn head(sequence: i32) -> SegmentHead {
        SegmentHead {
            hardware: *[[4; 6], [2; 6]].concat().first_chunk().unwrap(),
            sequence: TcpSeqNumber(sequence),
            acknowledges: TcpSeqNumber(9),
            window: 77,
        }
    }

    fn packets(longest: usize) -> PacketLength {
        PacketLength { longest, segment: 0xFFFF }
    }

    fn frames(run: &OutgoingFrame) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        run.for_each(|frame| frames.push(frame.to_vec()));
        frames
    }

    #[test]
    fn the_frames_of_a_run_are_its_bytes_in_order() {
        for (from, to) in hosts() {
            let flow = SocketPair { local: to, peer: from };
            for (bytes, longest) in [(0, 1500), (1, 1500), (1400, 600), (1460, 1500), (20_000, 1500)] {
                let (whole, run) = stream((from, to), bytes, longest);
                let (mut next, mut came) = (TcpSeqNumber(-5), Vec::new());
                let frames = frames(&run);
                let room = longest + ETHERNET - heads(&whole);
                assert_eq!(frames.len(), bytes.div_ceil(room).max(1));
                for (index, frame) in frames.iter().enumerate() {
                    assert!(frame.len() <= longest + ETHERNET && frame[..12] == whole[..12]);
                    let Cargo::Segment(of, head) = Cargo::of(frame) else { panic!("{frame:?}") };
                    assert_eq!((of, head.sequence, head.window), (flow, next, 77));
                    assert_eq!(head.ends, index + 1 == frames.len());
                    let segment = segment_in(&frame[ETHERNET..]);
                    assert!(segment.verify_checksum(&from.ip().into(), &to.ip().into()));
                    came.extend_from_slice(segment.payload());
                    next += head.length;
                }
                assert!(came == whole[heads(&whole)..], "{bytes} bytes");
            }
        }
    }

    /// Also one that goes past the queue of its connection.
    #[test]
    fn a_long_segment_that_smoltcp_has_made_is_divided() {
        for hosts in hosts() {
            let (whole, expected) = stream(hosts, 9000, 1500);
            assert!(frames(&OutgoingFrame::made(whole.clone(), packets(1500))) == frames(&expected));
            let length = PacketLength { longest: 1500, segment: 500 };
            let short = frames(&OutgoingFrame::made(whole.clone(), length));
            assert_eq!((short.len(), short[0].len()), (18, heads(&whole) + 500));
            let mut one = whole[..heads(&whole) + 100].to_vec();
            let one_length = one.len();
            crate::segments::set_packet_length(&mut one, one_length);
            let made = OutgoingFrame::made(one, packets(1500));
            assert!(frames(&made)[0].len() == heads(&whole) + 100 && made.as_whole().is_some());
        }
    }

    /// Options of TCP take room from the contents, as RFC 6691 says.
    #[test]
    fn options_take_room() {
        for (from, to) in hosts() {
            let flow = SocketPair { local: to, peer: from };
            let selects = TcpRepr {
                sack_ranges: [Some((5, 9)), None, None],
                payload: &[7; 3000],
                ..from_peer(flow, TcpSeqNumber(-5), TcpSeqNumber(9), 77)
            };
            let frame = framed(&packet(from, to, &selects), &[2; 6], &[4; 6]);
            let contents = SegmentContents::of(frame.clone());
            assert_eq!(contents.room(1460), 1448);
            let length = PacketLength { longest: 1500, segment: 1000 };
            let lengths: Vec<usize> =
                frames(&OutgoingFrame::segment(&head(-5), &contents, length)).iter().map(Vec::len).collect();
            assert_eq!(lengths, [988, 988, 988, 36].map(|bytes| heads(&frame) + bytes));
        }
    }

    /// The segments of a frame go as one run, and one that does not follow begins another.
    #[test]
    fn segments_that_follow_each_other_are_a_run() {
        for hosts in hosts() {
            let (whole, expected) = stream(hosts, 9000, 1500);
            let room = 1514 - heads(&whole);
            let parts: Vec<_> = SegmentContents::of(whole.clone()).divided(room).collect();
            let sequence = |part: usize| TcpSeqNumber((part * room) as i32 - 5);
            let mut run = OutgoingFrame::segment(&head(-5), &parts[0], packets(1500));
            assert!(frames(&run)[0].len() == 1514 && run.marks() & 1 == 0, "it does not end yet");
            assert!(!run.append(sequence(2), &parts[2]), "one is missing");
            assert!(!run.append(sequence(2), &parts[1]), "it has another number");
            let mut other = OutgoingFrame::segment(&head(-5), &parts[0], packets(1500));
            for (part, contents) in parts.iter().enumerate().skip(1) {
                assert!(run.append(sequence(part), contents));
                // A segment that is in a frame of its own.
                let mut frame = [&whole[..heads(&whole)], contents.bytes()].concat();
                let start = crate::segments::start(&frame);
                frame[start + MARKS] = contents.marks();
                assert!(other.append(sequence(part), &SegmentContents::of(frame)));
            }
            assert_eq!([run.contents().count(), other.contents().count()], [1, parts.len()]);
            assert!(frames(&run) == frames(&expected) && frames(&other) == frames(&expected));
            assert!(!run.append(sequence(7), &parts[0]), "a short one is the last");
            // A part taken off and put on again.
            let mut rest = SegmentContents::of(whole.clone());
            rest.skip(700);
            let first = SegmentContents::of(whole[..heads(&whole) + 700].to_vec());
            assert!(first.joined(&rest).bytes() == &whole[heads(&whole)..]);
        }
    }

    #[test]
    fn a_run_is_no_longer_than_a_packet_may_be() {
        for hosts in hosts() {
            let (whole, _) = stream(hosts, 50_000, 1500);
            let frame = [&whole[..], &[7; 20_000]].concat();
            let room = 1514 - heads(&whole);
            let mut parts = SegmentContents::of(frame).divided(room).enumerate();
            let (_, first) = parts.next().unwrap();
            let mut run = OutgoingFrame::segment(&head(-5), &first, packets(1500));
            let appended = parts
                .take_while(|(part, next)| run.append(TcpSeqNumber((part * room) as i32 - 5), next))
                .count();
            assert!((40..45).contains(&appended), "{appended}");
        }
    }
}
