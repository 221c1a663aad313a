//! [`JobHeader`]: what the receiver of a message of a job needs beside its bytes, in two forms.
//!
//! The rings of `processes/` write all fields at fixed places, before the bytes. The link over an
//! MPI library (`launched.rs`) writes a [tail](HeaderTail) behind the bytes, and leaves out what is
//! zero: MPI's shared memory has lines of the cache as its unit, and a second line makes a short
//! message half as slow again. So the tail of a message of the world with tag 0 is one byte.

/// What goes with the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobHeader {
    pub(crate) kind: JobMessageKind,
    pub(crate) context: u64,
    pub(crate) mark: u32,
    pub(crate) source: u32,
    pub(crate) tag: u32,
    /// The number of the answer that the sender waits for, or that this is.
    pub(crate) answer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobMessageKind {
    Message = 0,
    /// A message with a sender that waits until a receive takes it.
    Synchronous = 1,
    Answer = 2,
    Returned = 3,
    Failed = 4,
}

impl JobMessageKind {
    fn from_number(number: u8) -> Option<JobMessageKind> {
        Some(match number {
            0 => JobMessageKind::Message,
            1 => JobMessageKind::Synchronous,
            2 => JobMessageKind::Answer,
            3 => JobMessageKind::Returned,
            4 => JobMessageKind::Failed,
            _ => return None,
        })
    }

    /// Whether a header of this kind has a number of an answer.
    fn has_answer(self) -> bool {
        matches!(self, JobMessageKind::Synchronous | JobMessageKind::Answer)
    }
}

/// A header as the last bytes of a message. It is read from its end:
///
/// - one byte has the kind ([`KIND`]), the code of the tag's length (from bit [`TAG`]), and whether
///   a second byte is there ([`HAS_MORE`]). It is never 255, because there is no kind 7;
/// - the second byte has the codes of the lengths of mark and source, and the number of bytes of
///   the context;
/// - then the tag, the context, the mark, the source and the answer, each without the upper bytes
///   that are zero. A source that is the rank from which MPI has the message is left out.
#[derive(Debug)]
pub(crate) struct HeaderTail {
    /// The tail is at the end.
    room: [u8; HeaderTail::BYTES_MAX],
    start: usize,
}

/// The bits of the last byte that are the kind.
const KIND: u8 = 0b111;
const TAG: u32 = 3;
const HAS_MORE: u8 = 1 << 5;

/// In the second byte.
const MARK: u32 = 4;
const SOURCE: u32 = 6;
const CONTEXT: u8 = 0b1111;

/// The highest bits of a context are marks of its lane. The tail has them as the lowest ones.
const LANE_BITS: u32 = 3;

/// What the two bits of a code mean.
const LENGTHS: [usize; 4] = [0, 1, 2, 4];

/// The code of the shortest length for a number.
fn code(number: u32) -> u8 {
    match number {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    }
}

impl HeaderTail {
    /// The longest.
    pub(crate) const BYTES_MAX: usize = 30;

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.room[self.start..]
    }

    /// Writes the lowest bytes of a number before the bytes that are there. Most numbers have none.
    #[inline]
    fn put(&mut self, number: u64, length: usize) {
        if length == 0 {
            return;
        }
        let bytes = number.to_le_bytes();
        self.start -= length;
        self.room[self.start..self.start + length].copy_from_slice(&bytes[..length]);
    }
}

/// Takes a number of this length from the end. Most have the length 0.
#[inline]
fn pop(bytes: &mut &[u8], length: usize) -> Option<u64> {
    if length == 0 {
        return Some(0);
    }
    let (rest, last) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    let mut number = [0; 8];
    number.get_mut(..length)?.copy_from_slice(last);
    *bytes = rest;
    Some(u64::from_le_bytes(number))
}

impl JobHeader {
    /// The length of the form with fixed places.
    pub(crate) const BYTES: usize = 29;

    pub(crate) fn of(kind: JobMessageKind) -> JobHeader {
        JobHeader { kind, context: 0, mark: 0, source: 0, tag: 0, answer: 0 }
    }

    /// All fields at fixed places.
    pub(crate) fn to_bytes(self) -> [u8; JobHeader::BYTES] {
        let mut bytes = [0; JobHeader::BYTES];
        bytes[0] = self.kind as u8;
        bytes[1..9].copy_from_slice(&self.context.to_le_bytes());
        bytes[9..13].copy_from_slice(&self.mark.to_le_bytes());
        bytes[13..17].copy_from_slice(&self.source.to_le_bytes());
        bytes[17..21].copy_from_slice(&self.tag.to_le_bytes());
        bytes[21..].copy_from_slice(&self.answer.to_le_bytes());
        bytes
    }

    /// `None` if it is no header.
    pub(crate) fn from_bytes(bytes: &[u8; JobHeader::BYTES]) -> Option<JobHeader> {
        let [kind, rest @ ..] = bytes;
        let kind = JobMessageKind::from_number(*kind)?;
        let (context, rest) = rest.split_first_chunk()?;
        let (mark, rest) = rest.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (tag, rest) = rest.split_first_chunk()?;
        Some(JobHeader {
            kind,
            context: u64::from_le_bytes(*context),
            mark: u32::from_le_bytes(*mark),
            source: u32::from_le_bytes(*source),
            tag: u32::from_le_bytes(*tag),
            answer: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }

    /// The tail of a message that this rank of the job sends.
    pub(crate) fn to_tail(self, from: usize) -> HeaderTail {
        let JobHeader { kind, context, mark, source, tag, answer } = self;
        let mut tail = HeaderTail { room: [0; _], start: HeaderTail::BYTES_MAX };
        // The marks of a lane are the highest bits of a context.
        let context = context.rotate_left(LANE_BITS);
        let context_bytes = 8 - context.leading_zeros() as usize / 8;
        let source_code = if source as usize == from { 0 } else { code(source).max(1) };
        let more = context_bytes as u8 | code(mark) << MARK | source_code << SOURCE;
        let has_more = if more == 0 { 0 } else { HAS_MORE };
        tail.put(u64::from(kind as u8 | code(tag) << TAG | has_more), 1);
        tail.put(more.into(), usize::from(more != 0));
        tail.put(tag.into(), LENGTHS[code(tag) as usize]);
        tail.put(context, context_bytes);
        tail.put(mark.into(), LENGTHS[code(mark) as usize]);
        tail.put(source.into(), LENGTHS[source_code as usize]);
        tail.put(answer, if kind.has_answer() { 8 } else { 0 });
        tail
    }

    /// The bytes of a message from this rank of the job, and the header in its tail. `None` if
    /// there is no header.
    pub(crate) fn split_tail(message: &[u8], from: usize) -> Option<(&[u8], JobHeader)> {
        let (&last, mut bytes) = message.split_last()?;
        let kind = JobMessageKind::from_number(last & KIND)?;
        let more = match last & HAS_MORE {
            0 => 0,
            _ => pop(&mut bytes, 1)? as u8,
        };
        let length = |byte: u8, at: u32| LENGTHS[usize::from(byte >> at & 0b11)];
        let tag = pop(&mut bytes, length(last, TAG))? as u32;
        let context = pop(&mut bytes, usize::from(more & CONTEXT))?.rotate_right(LANE_BITS);
        let mark = pop(&mut bytes, length(more, MARK))? as u32;
        let source = match length(more, SOURCE) {
            0 => from as u32,
            length => pop(&mut bytes, length)? as u32,
        };
        let answer = pop(&mut bytes, if kind.has_answer() { 8 } else { 0 })?;
        Some((bytes, JobHeader { kind, context, mark, source, tag, answer }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::MessageLane;

    const KINDS: [JobMessageKind; 5] = [
        JobMessageKind::Message,
        JobMessageKind::Synchronous,
        JobMessageKind::Answer,
        JobMessageKind::Returned,
        JobMessageKind::Failed,
    ];

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for kind in KINDS {
            let header =
                JobHeader { kind, context: u64::MAX - 1, mark: 2, source: 3, tag: u32::MAX, answer: 1 << 40 };
            assert_eq!(JobHeader::from_bytes(&header.to_bytes()), Some(header));
        }
        assert_eq!(JobHeader::from_bytes(&[9; JobHeader::BYTES]), None);
    }

    #[test]
    fn a_tail_is_read_as_it_was_written_and_leaves_the_bytes() {
        let numbers = [0, 1, 0xff, 0x100, 0xffff, 0x1_0000, u32::MAX];
        let contexts = [0, 7, 5 << 32, 1 << 61, u64::MAX];
        for kind in KINDS {
            for (at, &tag) in numbers.iter().enumerate() {
                for context in contexts {
                    let (mark, source) =
                        (numbers[(at + 3) % numbers.len()], numbers[(at + 5) % numbers.len()]);
                    let answer = if kind.has_answer() { u64::MAX - 1 } else { 0 };
                    let header = JobHeader { kind, context, mark, source, tag, answer };
                    for from in [0, source as usize] {
                        let tail = header.to_tail(from);
                        assert!(tail.as_bytes().last().is_some_and(|&last| last != u8::MAX));
                        let message = [b"text", tail.as_bytes()].concat();
                        assert_eq!(JobHeader::split_tail(&message, from), Some((&b"text"[..], header)));
                        // It may be cut anywhere, and then be a message without a part of its text.
                        for end in 0..message.len() {
                            let _ = JobHeader::split_tail(&message[..end], from);
                        }
                    }
                }
            }
        }
        assert_eq!(JobHeader::split_tail(&[7], 0), None);
        assert_eq!(JobHeader::split_tail(&[HAS_MORE], 0), None);
        // A context of 15 bytes.
        let long = [&[0; 40][..], &[CONTEXT, HAS_MORE]].concat();
        assert_eq!(JobHeader::split_tail(&long, 0), None);
    }

    #[test]
    fn the_tail_of_a_short_message_is_short() {
        let of = |lane: MessageLane, source, tag| JobHeader {
            context: lane.context,
            mark: lane.mark,
            source,
            tag,
            ..JobHeader::of(JobMessageKind::Message)
        };
        let length = |header: JobHeader| header.to_tail(1).as_bytes().len();
        assert_eq!(length(of(MessageLane::own(0), 1, 0)), 1);
        assert_eq!(length(of(MessageLane::own(0), 1, 200)), 2);
        assert_eq!(length(of(MessageLane::own(0), 1, 10_000)), 3);
        let collective = MessageLane::collective(0, 3 << 24, 9);
        assert_eq!(length(of(collective, 1, collective.number.0)), 8);
        let longest = JobHeader {
            kind: JobMessageKind::Answer,
            answer: 1,
            ..of(MessageLane::own(u64::MAX), u32::MAX, u32::MAX)
        };
        assert_eq!(length(JobHeader { mark: u32::MAX, ..longest }), HeaderTail::BYTES_MAX);
    }
}
