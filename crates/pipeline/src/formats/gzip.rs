//! Streams that are compressed in the format gzip (RFC 1952). Feature `gzip`.
//!
//! ```
//! use selvedge::pipeline::gzip::{gunzip, gzip};
//! use selvedge::pipeline::{from_chunks, group_by, line, count};
//!
//! let packed = (from_chunks(["warp\nwe", "ft\n"]) >> gzip(6)).collect();
//! let lines = from_chunks([packed]) >> gunzip() >> group_by(line()) >> count();
//! assert_eq!(lines.run(), 2);
//! ```

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use std::error::Error;
use std::fmt;
use std::io::Write;

/// How many compressed bytes are unpacked at a time. One of them is a thousand bytes at most, so
/// that a hostile stream takes a few megabytes and not more.
const PACKED: usize = 4096;

/// What a stream says that ends within a member.
const ENDED: &str = "the stream ends within a member";

/// The stage of [`gzip`].
struct Gzip {
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
pub fn gzip(level: u32) -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
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

/// The two bytes at the beginning of a member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The stage of [`gunzip`].
struct Gunzip {
    state: Members,
    /// A member has come.
    begun: bool,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Where the stage is in a stream of members.
enum Members {
    /// Between two members, or before the first one. The first byte of [`MAGIC`] may have come.
    Between { magic: bool },
    /// In a member.
    Within(Box<GzDecoder<Vec<u8>>>),
    /// In the zeros behind the last member.
    Padding,
}

/// Unpacks a stream of gzip members, one after the other. An empty stream has none of them. Zeros
/// behind the last member are passed over, as the tool gzip does, because tapes are filled with
/// zeros.
///
/// # Errors
/// It fails at bytes that are no gzip member, at a check sum that does not match, and at an end
/// within a member. The [offset](StageError::offset) is at most 4 KiB before the mistake. How far
/// it is before, and how much is yielded of the bytes before the mistake, depends on the cuts of
/// the input: with `unzstd`, this stage is an exception to the rule of [`pipeline`](crate#design).
///
/// # Complexity
/// 50 KiB of memory from the first byte to the end, and up to 4 MiB for a while.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_chunks;
/// use selvedge::pipeline::gzip::gunzip;
///
/// let failed = (from_chunks(["no gzip at all"]) >> gunzip()).try_collect().unwrap_err();
/// assert_eq!(failed.stage(), "gunzip");
/// ```
pub fn gunzip() -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    Transducer::new(Gunzip::new())
}

impl Gunzip {
    fn new() -> Self {
        Gunzip {
            state: Members::Between { magic: false },
            begun: false,
            place: StreamPlace::default(),
            failure: None,
        }
    }
}

/// The recipe once more: what has been unpacked is not copied.
impl Clone for Gunzip {
    fn clone(&self) -> Self {
        Gunzip::new()
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Gunzip {
    /// Fails at the byte that lies this number of bytes behind the place.
    #[cold]
    fn fail(&mut self, behind: usize, error: impl Into<Box<dyn Error + Send + Sync>>) -> Flow {
        let StreamPlace { items, elements } = self.place;
        let place = StreamPlace { items: items + behind as u64, elements: elements + behind as u64 };
        self.failure = Some(StageError::new("gunzip", place, error));
        FINISHED
    }

    /// Takes up to [`PACKED`] bytes. The place is that of the first one.
    fn unpack<S: Sink<u8>>(&mut self, part: &[u8], out: &mut S) -> Flow {
        let mut at = 0;
        while at < part.len() {
            match &mut self.state {
                Members::Within(decoder) => {
                    let written = decoder.write(&part[at..]);
                    // What came before a mistake is right.
                    pass(decoder.get_mut(), out)?;
                    match written {
                        // The member has ended before this byte.
                        Ok(0) => match decoder.try_finish() {
                            Ok(()) => self.state = Members::Between { magic: false },
                            Err(error) => return self.fail(0, error),
                        },
                        Ok(length) => at += length,
                        Err(error) => return self.fail(0, error),
                    }
                    continue;
                }
                Members::Between { magic } if part[at] == MAGIC[usize::from(*magic)] => {
                    if *magic {
                        let mut decoder = GzDecoder::new(Vec::new());
                        if let Err(error) = decoder.write_all(&MAGIC) {
                            return self.fail(at, error);
                        }
                        self.begun = true;
                        self.state = Members::Within(Box::new(decoder));
                    } else {
                        *magic = true;
                    }
                }
                Members::Between { magic: false } if self.begun && part[at] == 0 => {
                    self.state = Members::Padding;
                }
                Members::Padding if part[at] == 0 => {}
                _ if self.begun => return self.fail(at, "bytes behind the last member that are no member"),
                _ => return self.fail(at, "the stream is not in gzip format"),
            }
            at += 1;
        }
        GO_ON
    }
}

impl Transduce<u8, u8> for Gunzip {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        for part in chunk.chunks(PACKED) {
            self.unpack(part, out)?;
            self.place.items += part.len() as u64;
            self.place.elements += part.len() as u64;
        }
        GO_ON
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        match &mut self.state {
            Members::Between { magic: false } | Members::Padding => GO_ON,
            Members::Between { magic: true } => self.fail(0, ENDED),
            Members::Within(decoder) => {
                // What came before a mistake is right. An error is told below.
                let _ = decoder.flush();
                pass(decoder.get_mut(), out)?;
                // A whole member takes no further byte, and only its check sum may be wrong.
                if !matches!(decoder.write(&[0]), Ok(0)) {
                    return self.fail(0, ENDED);
                }
                let finished = decoder.try_finish();
                finished.map_or_else(|error| self.fail(0, error), |()| GO_ON)
            }
        }
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
