//! Runs of segments: frames of one connection that follow each other, which a TAP device takes as
//! one long frame, with a head that says how it is divided. The kernel then looks at it once, and
//! divides it only if it goes on to a device that takes no long frames.

use super::sums::words_sum;
use crate::segments::{is_four, number, set_packet_length, start};
use std::io::IoSlice;
use std::ops::Range;

/// The bytes of the head before each frame of such a device: the kernel's `virtio_net_hdr`.
pub(super) const HEAD: usize = 10;
/// The longest packet.
const LONGEST: usize = 0xFFFF;
/// The marks of a segment: its end, its push, its acknowledgement.
const FIN: u8 = 1;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// Where the parts of a frame with a segment begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct FrameParts {
    segment: usize,
    contents: usize,
}

impl FrameParts {
    /// Those of a frame, if it has a segment of TCP behind plain heads.
    fn of(frame: &[u8]) -> Option<FrameParts> {
        match frame.get(12..15)? {
            [8, 0, 0x45] if *frame.get(23)? == 6 => {}
            [0x86, 0xDD, _] if *frame.get(20)? == 6 => {}
            _ => return None,
        }
        let segment = start(frame);
        let contents = segment + usize::from(*frame.get(segment + 12)? >> 4) * 4;
        (contents >= segment + 20 && frame.len() >= contents).then_some(FrameParts { segment, contents })
    }

    /// The parts of the heads that differ in the frames of a run: lengths, sums, numbers, marks.
    /// `four`: of IPv4.
    fn own(self, four: bool) -> [Range<usize>; 4] {
        let tcp = self.segment;
        let ip = if four { [16..20, 24..26] } else { [18..20, 18..20] };
        let [length, sum] = ip;
        [length, sum, tcp + 4..tcp + 8, tcp + 13..tcp + 14]
    }
}

/// Whether the heads of two frames are those of segments that differ in their places alone.
fn alike(one: &[u8], other: &[u8], parts: FrameParts) -> bool {
    let sum = parts.segment + 16..parts.segment + 18;
    let mut from = 0;
    for own in parts.own(is_four(one)).into_iter().chain([sum, parts.contents..parts.contents]) {
        if from < own.start && one[from..own.start] != other[from..own.start] {
            return false;
        }
        from = from.max(own.end);
    }
    true
}

/// The number of frames at the beginning that may go as one: all but the last have equally many
/// bytes, and no mark but that they acknowledge.
pub(super) fn run(frames: &[Vec<u8>]) -> usize {
    let Some((first, rest)) = frames.split_first() else { return 0 };
    let Some(parts) = FrameParts::of(first) else { return 1 };
    let (each, mut total, mut last) = (first.len() - parts.contents, first.len(), first);
    for (before, next) in rest.iter().enumerate() {
        let full = last.len() - parts.contents == each && each > 0 && last[parts.segment + 13] == ACK;
        let fits = FrameParts::of(next) == Some(parts)
            && (1..=each).contains(&(next.len() - parts.contents))
            && total + next.len() <= LONGEST
            && next[parts.segment + 13] & !(FIN | PSH) == ACK
            && number(next) == number(last) + each
            && alike(first, next, parts);
        if !full || !fits {
            return before + 1;
        }
        total += next.len() - parts.contents;
        last = next;
    }
    frames.len()
}

/// The parts of the one frame, with its head, that a [`run`] of two frames or more is: `head` gets
/// the first, and the others are the contents of the frames. The kernel makes the checksum of the
/// segment, and expects the sum of the addresses in its place.
pub(super) fn parts<'a>(frames: &'a [Vec<u8>], head: &'a mut Vec<u8>) -> Vec<IoSlice<'a>> {
    head.clear();
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return Vec::new() };
    let Some(parts) = FrameParts::of(first) else { return Vec::new() };
    let FrameParts { segment, contents } = parts;
    let (each, four) = ((first.len() - contents) as u16, is_four(first));
    // It has a checksum to make, and is divided by TCP over this version of IP.
    head.extend([1, if four { 1 } else { 4 }]);
    for number in [contents as u16, each, segment as u16, 16] {
        head.extend(number.to_ne_bytes());
    }
    head.extend_from_slice(&first[..contents]);
    let length = contents + frames.iter().map(|frame| frame.len() - contents).sum::<usize>();
    let frame = &mut head[HEAD..];
    let addresses = if four { 26..34 } else { 22..54 };
    set_packet_length(frame, length);
    frame[segment + 13] = last[segment + 13];
    let expected = words_sum(&frame[addresses], 6 + (length - segment) as u32);
    frame[segment + 16..segment + 18].copy_from_slice(&expected.to_be_bytes());
    let others = frames.iter().map(|frame| IoSlice::new(&frame[contents..]));
    std::iter::once(IoSlice::new(head)).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::SocketPair;
    use crate::segments::{SegmentChange, divided, framed, from_peer, packet, rewrite};
    use smoltcp::wire::{TcpControl, TcpRepr, TcpSeqNumber};
    use std::net::SocketAddr;

    fn hosts() -> [(SocketAddr, SocketAddr); 2] {
        [("10.0.0.1:7", "10.0.0.2:8"), ("[fd00::1]:7", "[fd00::2]:8")]
            .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()))
    }

    /// The frames of a stream of this many bytes, with an end.
    fn stream((from, to): (SocketAddr, SocketAddr), bytes: usize, most: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let contents: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
        let flow = SocketPair { local: to, peer: from };
        let whole = TcpRepr {
            control: TcpControl::Fin,
            payload: &contents,
            ..from_peer(flow, TcpSeqNumber(-5000), TcpSeqNumber(9), 77)
        };
        let frame = framed(&packet(from, to, &whole), &[2; 6], &[4; 6]);
        let parts = divided(&frame, most);
        (frame, parts)
    }

    /// The one frame with its head.
    fn joined(frames: &[Vec<u8>]) -> Vec<u8> {
        parts(frames, &mut Vec::new()).iter().flat_map(|part| part.iter().copied()).collect()
    }

    #[test]
    fn a_run_is_one_frame_with_the_same_bytes() {
        for hosts in hosts() {
            let (whole, parts) = stream(hosts, 20_000, 1500);
            assert!(parts.len() > 13 && run(&parts) == parts.len());
            let joined = joined(&parts);
            let at = FrameParts::of(&whole).unwrap();
            // The checksum of the segment alone is not made yet.
            let sum = HEAD + at.segment + 16;
            assert!(joined[HEAD..sum] == whole[..at.segment + 16]);
            assert!(joined[sum + 2..] == whole[at.segment + 18..]);
            let mut all = joined[HEAD + at.segment..].to_vec();
            let made = !words_sum(&all, 0);
            all[16..18].copy_from_slice(&made.to_be_bytes());
            assert_eq!(all, whole[at.segment..]);
            let size = u16::from_ne_bytes([joined[4], joined[5]]);
            assert_eq!(usize::from(size), parts[0].len() - at.contents);
        }
    }

    #[test]
    fn a_run_ends_where_a_segment_does_not_follow() {
        for hosts in hosts() {
            let (_, parts) = stream(hosts, 9000, 1500);
            let at = FrameParts::of(&parts[0]).unwrap();
            let change = |place: usize, change: &dyn Fn(&mut Vec<u8>)| {
                let mut frames = parts.clone();
                change(&mut frames[place]);
                run(&frames)
            };
            assert_eq!(change(3, &|frame| frame[at.segment + 7] ^= 1), 3, "another number");
            assert_eq!(change(3, &|frame| frame[at.segment + 15] ^= 1), 3, "another window");
            assert_eq!(change(3, &|frame| frame[at.segment - 1] ^= 1), 3, "another host");
            assert_eq!(change(3, &|frame| frame[at.segment + 13] |= PSH), 4, "a push");
            assert_eq!(change(3, &|frame| frame.truncate(frame.len() - 1)), 4, "a short one");
            assert_eq!(change(0, &|frame| frame[13] = 6), 1, "no packet of IP");
            assert_eq!(change(0, &|frame| frame.truncate(30)), 1, "half a head");
            assert_eq!(run(&parts[..1]), 1);
            assert_eq!(run(&[]), 0);
        }
    }

    #[test]
    fn a_run_is_no_longer_than_a_packet_may_be() {
        for hosts in hosts() {
            let (_, parts) = stream(hosts, 9000, 1500);
            let each = parts[0].len() - FrameParts::of(&parts[0]).unwrap().contents;
            let many: Vec<Vec<u8>> = (0..60)
                .map(|place| {
                    let mut frame = parts[0].clone();
                    rewrite(&mut frame, SegmentChange::SequenceBy((place * each) as i32));
                    frame
                })
                .collect();
            let run = run(&many);
            assert!((40..60).contains(&run), "{run} of 60");
            assert!(joined(&many[..run]).len() - HEAD - 14 <= LONGEST);
        }
    }
}
