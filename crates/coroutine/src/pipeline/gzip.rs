//! Streams that are compressed in the format gzip (RFC 1952). Feature `gzip`.
//!
//! ```
//! use selvedge::coroutine::pipeline::gzip::{gunzip, gzip};
//! use selvedge::coroutine::pipeline::{from_chunks, group_by, line, count};
//!
//! let packed = (from_chunks(["warp\nwe", "ft\n"]) >> gzip(6)).collect();
//! let lines = from_chunks([packed]) >> gunzip() >> group_by(line()) >> count();
//! assert_eq!(lines.run(), 2);
//! ```

use super::failure::{StageFailure, StreamPlace};
use super::item::{FINISHED, Flow, GO_ON};
use super::role::Transducer;
use super::stage::{Sink, Transduce};
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use std::fmt;
use std::io::{self, Write};

/// How many compressed bytes are unpacked at a time. One of them is a thousand bytes at most, so
/// that a hostile stream takes a few megabytes and not more.
const PACKED: usize = 4096;

/// The stage of [`gzip`].
pub struct Gzip {
    level: Compression,
    /// `None` before the first byte.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

/// Compresses a stream into one gzip member, which carries no name and no time. Level 0 stores the
/// bytes as they are, 1 is fast, 9 is small.
///
/// # Panics
/// If `level` exceeds 9.
///
/// # Complexity
/// 300 KiB of memory from the first byte to the end.
pub fn gzip(level: u32) -> Transducer<u8, u8, Gzip> {
    assert!(level <= 9, "gzip with a level above 9");
    Transducer::new(Gzip { level: Compression::new(level), encoder: None })
}

/// The recipe once more: what has been compressed is not copied.
impl Clone for Gzip {
    fn clone(&self) -> Self {
        Gzip { level: self.level, encoder: None }
    }
}

impl fmt::Debug for Gzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gzip").field("level", &self.level).finish_non_exhaustive()
    }
}

/// A vector takes all bytes, and a compressor takes any.
const WRITTEN: &str = "a compressor that writes into a vector does not fail";

impl Gzip {
    fn encoder(&mut self) -> &mut GzEncoder<Vec<u8>> {
        self.encoder.get_or_insert_with(|| GzEncoder::new(Vec::new(), self.level))
    }
}

/// Passes on what is in `made`, and keeps its memory.
fn pass<S: Sink<u8>>(made: &mut Vec<u8>, out: &mut S) -> Flow {
    if made.is_empty() {
        return GO_ON;
    }
    let flow = out.put_chunk(made);
    made.clear();
    flow
}

impl Transduce<u8, u8> for Gzip {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        let encoder = self.encoder();
        encoder.write_all(chunk).expect(WRITTEN);
        pass(encoder.get_mut(), out)
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        self.encoder().try_finish().expect(WRITTEN);
        let encoder = self.encoder();
        pass(encoder.get_mut(), out)
    }
}

/// The stage of [`gunzip`].
pub struct Gunzip {
    /// `None` before the first byte.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Unpacks a stream of gzip members, one after the other. An empty stream has none of them.
///
/// # Errors
/// It fails at bytes that are no gzip member, at a check sum that does not match, and at an end
/// within a member. The [offset](StageFailure::offset) is at most 4 KiB before the mistake. How far
/// it is before, and how much is yielded of the bytes before the mistake, depends on the cuts of
/// the input: with `unzstd`, this stage is an exception to the rule of [`pipeline`](super#design).
///
/// # Complexity
/// 50 KiB of memory from the first byte to the end, and up to 4 MiB for a while.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::from_chunks;
/// use selvedge::coroutine::pipeline::gzip::gunzip;
///
/// let failed = (from_chunks(["no gzip at all"]) >> gunzip()).try_collect().unwrap_err();
/// assert_eq!(failed.stage(), "gunzip");
/// ```
pub fn gunzip() -> Transducer<u8, u8, Gunzip> {
    Transducer::new(Gunzip { decoder: None, place: StreamPlace::default(), failure: None })
}

/// The recipe once more: what has been unpacked is not copied.
impl Clone for Gunzip {
    fn clone(&self) -> Self {
        Gunzip { decoder: None, place: StreamPlace::default(), failure: None }
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Gunzip {
    #[cold]
    fn fail(&mut self, error: io::Error) -> Flow {
        self.failure = Some(StageFailure::new("gunzip", self.place, error));
        FINISHED
    }
}

impl Transduce<u8, u8> for Gunzip {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        for part in chunk.chunks(PACKED) {
            let decoder = self.decoder.get_or_insert_with(|| MultiGzDecoder::new(Vec::new()));
            let written = decoder.write_all(part);
            // What came before a mistake is right.
            pass(decoder.get_mut(), out)?;
            if let Err(error) = written {
                return self.fail(error);
            }
            self.place.items += part.len() as u64;
            self.place.elements += part.len() as u64;
        }
        GO_ON
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        let Some(decoder) = &mut self.decoder else { return GO_ON };
        let finished = decoder.try_finish();
        pass(decoder.get_mut(), out)?;
        finished.map_or_else(|error| self.fail(error), |()| GO_ON)
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}
