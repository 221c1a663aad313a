//! Records of bytes for users of the pipeline: `fixed` cuts records of one length, `unframe` reads
//! records with their length before them, and `frame` writes such records.
//!
//! Each stage keeps the part of a record that a chunk has cut off. `unframe` has a limit for the
//! length, because the length comes from the input: without the limit an input could make the stage
//! allocate any amount. A record that the end of the input cuts off is a failure.

use crate::error::StageError;
use crate::item::lists::Lists;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};

/// The stage of [`fixed`].
#[derive(Debug, Clone)]
struct Fixed<E> {
    length: usize,
    /// The first elements of the open record.
    carry: Vec<E>,
    ends: Vec<usize>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields lists of `length` elements each. They lie in the block that they came in.
///
/// # Errors
/// It fails at the end of the input within a record.
///
/// # Panics
/// If `length` is 0.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{binary, from_chunks};
///
/// let pairs = (from_chunks(["warpw", "eft"]) >> binary::fixed(2)).collect();
/// assert_eq!(pairs.iter().collect::<Vec<_>>(), [b"wa", b"rp", b"we", b"ft"]);
/// let failed = (from_chunks(["weft!"]) >> binary::fixed(2)).try_collect().unwrap_err();
/// assert_eq!((failed.item(), failed.offset()), (3, 4));
/// ```
pub fn fixed<E: Clone + 'static>(length: usize) -> Transducer<E, [E], impl Transduce<E, [E]> + Clone> {
    assert!(length > 0, "binary::fixed of no elements");
    let (carry, ends) = (Vec::new(), Vec::new());
    Transducer::new(Fixed { length, carry, ends, place: StreamPlace::default(), failure: None })
}

impl<E: Clone + 'static> Transduce<E, [E]> for Fixed<E> {
    const CHUNKS: bool = true;

    fn put<S: Sink<[E]>>(&mut self, item: &E, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<[E]>>(&mut self, mut chunk: &[E], out: &mut S) -> Flow {
        if !self.carry.is_empty() {
            let missing = (self.length - self.carry.len()).min(chunk.len());
            self.carry.extend_from_slice(&chunk[..missing]);
            chunk = &chunk[missing..];
            if self.carry.len() < self.length {
                return GO_ON;
            }
            self.place.items += 1;
            out.put(&self.carry)?;
            self.carry.clear();
        }
        let records = chunk.len() / self.length;
        self.carry.extend_from_slice(&chunk[records * self.length..]);
        self.place.items += records as u64;
        if records == 0 {
            return GO_ON;
        }
        self.ends.clear();
        self.ends.extend((1..=records).map(|record| record * self.length));
        out.put_chunk(Lists::with_ends(chunk, &self.ends))
    }

    fn end<S: Sink<[E]>>(&mut self, _out: &mut S) -> Flow {
        if self.carry.is_empty() {
            return GO_ON;
        }
        let place = StreamPlace { elements: self.place.items * self.length as u64, ..self.place };
        self.failure = Some(StageError::new("binary::fixed", place, "the input ends within a record"));
        FINISHED
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// How the length of a record is written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// One byte.
    U8,
    /// Two bytes, the most significant one first.
    U16Be,
    /// Two bytes, the least significant one first.
    U16Le,
    /// Four bytes, the most significant one first.
    U32Be,
    /// Four bytes, the least significant one first.
    U32Le,
    /// Seven bits in each byte, the least significant ones first. The top bit says that another
    /// byte follows. At most ten bytes.
    Varint,
}

impl Prefix {
    /// The length that `bytes` begin with, and how many bytes it takes. `None` if there are too
    /// few.
    fn read(self, bytes: &[u8]) -> Result<Option<(u64, usize)>, &'static str> {
        let big = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let little = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(match self {
            Prefix::U8 => bytes.get(..1).map(|bytes| (big(bytes), 1)),
            Prefix::U16Be => bytes.get(..2).map(|bytes| (big(bytes), 2)),
            Prefix::U16Le => bytes.get(..2).map(|bytes| (little(bytes), 2)),
            Prefix::U32Be => bytes.get(..4).map(|bytes| (big(bytes), 4)),
            Prefix::U32Le => bytes.get(..4).map(|bytes| (little(bytes), 4)),
            Prefix::Varint => {
                let mut length = 0;
                for (index, byte) in bytes.iter().enumerate() {
                    if index == 9 && *byte > 1 {
                        return Err("a varint with more than 64 bits");
                    }
                    length |= u64::from(byte & 0x7f) << (7 * index);
                    if *byte < 0x80 {
                        return Ok(Some((length, index + 1)));
                    }
                }
                None
            }
        })
    }

    /// Writes a length. `None` if it does not fit.
    fn write(self, length: usize, to: &mut Vec<u8>) -> Option<()> {
        match self {
            Prefix::U8 => to.push(length.try_into().ok()?),
            Prefix::U16Be => to.extend_from_slice(&u16::try_from(length).ok()?.to_be_bytes()),
            Prefix::U16Le => to.extend_from_slice(&u16::try_from(length).ok()?.to_le_bytes()),
            Prefix::U32Be => to.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes()),
            Prefix::U32Le => to.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes()),
            Prefix::Varint => {
                let mut rest = length;
                while rest >= 0x80 {
                    to.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                to.push(rest as u8);
            }
        }
        Some(())
    }
}

/// The stage of [`unframe`].
#[derive(Debug, Clone)]
struct Unframe {
    prefix: Prefix,
    limit: u64,
    /// The first bytes of the open record, with its length.
    carry: Vec<u8>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields the records of a stream in which the length of each record stands before it.
///
/// # Errors
/// It fails at a length of more than `limit` bytes, before memory for the record is taken, and at
/// the end of the input within a record.
///
/// # Complexity
/// O(length of the input), and at most twice `limit` bytes of memory.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{binary, from_chunks, group_by, line};
/// use selvedge::pipeline::binary::Prefix;
///
/// let lines = from_chunks(["warp\n\nweft"]) >> group_by(line());
/// let framed = (lines >> binary::frame(Prefix::U8)).collect();
/// assert_eq!(framed, b"\x04warp\x00\x04weft");
/// let records = (from_chunks([framed]) >> binary::unframe(Prefix::U8, 100)).collect();
/// assert_eq!(records.iter().collect::<Vec<_>>(), [&b"warp"[..], b"", b"weft"]);
/// ```
pub fn unframe(prefix: Prefix, limit: u64) -> Transducer<u8, [u8], impl Transduce<u8, [u8]> + Clone> {
    Transducer::new(Unframe {
        prefix,
        limit,
        carry: Vec::new(),
        place: StreamPlace::default(),
        failure: None,
    })
}

impl Unframe {
    fn fail(&mut self, cause: &'static str) -> Flow {
        self.failure = Some(StageError::new("binary::unframe", self.place, cause));
        FINISHED
    }

    /// The record that begins `bytes`: where its payload begins and where it ends. `None` if it is
    /// not whole. The first number is then how many bytes are missing at least.
    fn record(&self, bytes: &[u8]) -> Result<Result<(usize, usize), usize>, &'static str> {
        let Some((length, begin)) = self.prefix.read(bytes)? else { return Ok(Err(1)) };
        if length > self.limit {
            return Err("a record that is longer than the limit");
        }
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(begin));
        let end = end.ok_or("a record that does not fit into memory")?;
        Ok(if end <= bytes.len() { Ok((begin, end)) } else { Err(end - bytes.len()) })
    }

    fn parse<S: Sink<[u8]>>(&mut self, mut chunk: &[u8], out: &mut S) -> Flow {
        while !self.carry.is_empty() {
            match self.record(&self.carry) {
                Ok(Ok((begin, end))) => {
                    self.place.items += 1;
                    self.place.elements += end as u64;
                    out.put(&self.carry[begin..end])?;
                    self.carry.clear();
                }
                Ok(Err(missing)) => {
                    if chunk.is_empty() {
                        return GO_ON;
                    }
                    let (more, rest) = chunk.split_at(missing.min(chunk.len()));
                    self.carry.extend_from_slice(more);
                    chunk = rest;
                }
                Err(cause) => return self.fail(cause),
            }
        }
        while !chunk.is_empty() {
            match self.record(chunk) {
                Ok(Ok((begin, end))) => {
                    self.place.items += 1;
                    self.place.elements += end as u64;
                    out.put(&chunk[begin..end])?;
                    chunk = &chunk[end..];
                }
                Ok(Err(_)) => {
                    self.carry.extend_from_slice(chunk);
                    return GO_ON;
                }
                Err(cause) => return self.fail(cause),
            }
        }
        GO_ON
    }
}

impl Transduce<u8, [u8]> for Unframe {
    const CHUNKS: bool = true;

    fn put<S: Sink<[u8]>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.parse(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<[u8]>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        self.parse(chunk, out)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        if self.carry.is_empty() { GO_ON } else { self.fail("the input ends within a record") }
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// The stage of [`frame`].
#[derive(Debug, Clone)]
struct AddLength {
    prefix: Prefix,
    head: Vec<u8>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields the bytes of each list with its length before them. [`unframe`] has an example.
///
/// # Errors
/// It fails at a list that is longer than the prefix can say.
pub fn frame(prefix: Prefix) -> Transducer<[u8], u8, impl Transduce<[u8], u8> + Clone> {
    Transducer::new(AddLength { prefix, head: Vec::new(), place: StreamPlace::default(), failure: None })
}

impl Transduce<[u8], u8> for AddLength {
    fn put<S: Sink<u8>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        self.head.clear();
        if self.prefix.write(item.len(), &mut self.head).is_none() {
            let cause = "a record that is longer than its prefix can say";
            self.failure = Some(StageError::new("binary::frame", self.place, cause));
            return FINISHED;
        }
        self.place.items += 1;
        self.place.elements += item.len() as u64;
        out.put_chunk(&self.head)?;
        out.put_chunk(item)
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
