//! Frames for a device that takes long ones, as a TAP device and a packet socket do, with the head
//! that tells it what it has to do: the kernel's `virtio_net_hdr`.
//!
//! The kernel looks at a long segment once. It divides the segment and makes the checksums only if
//! the frames go on to a device that does neither.

use super::sums::words_sum;
use crate::outgoing::OutgoingFrame;
use crate::segments::{MARKS, is_four, set_packet_length, start};
use std::io::IoSlice;
use std::iter;
use std::os::fd::AsFd;

/// The bytes of the head before each frame.
pub(super) const HEAD: usize = 10;
/// The place of a segment's checksum in it.
const SUM: usize = 16;

/// Sends a frame as it is. The device may lose it, because [`Wire`](crate::Wire) promises no
/// delivery.
pub(super) fn send(device: impl AsFd, frame: &[u8]) {
    let _ = rustix::io::writev(device, &[IoSlice::new(&[0; HEAD]), IoSlice::new(frame)]);
}

/// Sends the frames of a run as one.
pub(super) fn send_run(device: impl AsFd, run: &OutgoingFrame) {
    if let Some(frame) = run.as_whole() {
        return send(device, frame);
    }
    let head = head_of_run(run);
    let contents = run.contents().map(IoSlice::new);
    let _ = rustix::io::writev(device, &iter::once(IoSlice::new(&head)).chain(contents).collect::<Vec<_>>());
}

/// The head for the device and those of the frame.
fn head_of_run(run: &OutgoingFrame) -> Vec<u8> {
    let (heads, contents, each) = (run.head(), run.contents_len(), run.each());
    let (segment, four, length) = (start(heads), is_four(heads), heads.len() + contents);
    let (kind, size) = match (contents > each, four) {
        (false, _) => (0, 0),
        (true, true) => (1, each as u16),
        (true, false) => (4, each as u16),
    };
    let mut head = Vec::with_capacity(HEAD + heads.len());
    // It has a checksum to make.
    head.extend([1, kind]);
    for number in [heads.len() as u16, size, segment as u16, SUM as u16] {
        head.extend(number.to_ne_bytes());
    }
    head.extend_from_slice(heads);
    let frame = &mut head[HEAD..];
    set_packet_length(frame, length);
    frame[segment + MARKS] = run.marks();
    // The device expects the sum of the addresses, the protocol and the length there.
    let addresses = if four { 26..34 } else { 22..54 };
    let expected = words_sum(&frame[addresses], 6 + (length - segment) as u32);
    frame[segment + SUM..segment + SUM + 2].copy_from_slice(&expected.to_be_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::tests::{hosts, stream};

    #[test]
    fn a_run_is_one_frame_with_the_same_bytes() {
        for hosts in hosts() {
            let (whole, run) = stream(hosts, 20_000, 1500);
            let head = head_of_run(&run);
            let contents: Vec<&[u8]> = run.contents().collect();
            let joined = [&head[..], &contents.concat()].concat();
            // The checksum of the segment alone is not made yet.
            let segment = start(&whole);
            let sum = segment + SUM;
            assert!(joined[HEAD..HEAD + sum] == whole[..sum]);
            assert!(joined[HEAD + sum + 2..] == whole[sum + 2..]);
            let mut all = joined[HEAD + segment..].to_vec();
            let made = !words_sum(&all, 0);
            all[SUM..SUM + 2].copy_from_slice(&made.to_be_bytes());
            assert_eq!(all, whole[segment..]);
            let word = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
            assert_eq!([word(2), word(4)], [run.head().len(), 1514 - run.head().len()]);
            assert_eq!([word(6), word(8)], [segment, SUM]);
            assert_eq!(head[..2], [1, if is_four(&whole) { 1 } else { 4 }]);
        }
    }

    #[test]
    fn one_segment_is_not_divided() {
        for hosts in hosts() {
            let (_, run) = stream(hosts, 1400, 1500);
            let head = head_of_run(&run);
            assert_eq!(head[..2], [1, 0]);
            assert_eq!(head[4..6], [0, 0]);
        }
    }
}
