//! Streams that are compressed in the format Zstandard (RFC 8878). Feature `zstd`.
//!
//! ```
//! use selvedge::pipeline::zstd::{unzstd, zstd};
//! use selvedge::pipeline::{count, from_chunks, group_by, line};
//!
//! let packed = (from_chunks(["warp\nwe", "ft\n"]) >> zstd(3)).collect();
//! let lines = from_chunks([packed]) >> unzstd() >> group_by(line()) >> count();
//! assert_eq!(lines.run(), 2);
//! ```
//!
//! The library is the C library of the format, by `zstd-safe`. `ruzstd`, in safe Rust, would need
//! no C compiler, but compresses at one level only and a whole frame at a time.

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use std::fmt;
use zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, get_error_name, zstd_sys::ZSTD_EndDirective,
};

/// How many compressed bytes are unpacked at a time. A failure tells a multiple of it, so the place
/// does not depend on how the stream was cut.
const PACKED: u64 = 4096;

/// How many bytes go on at a time.
const BLOCK: usize = 128 << 10;

/// The longest window, as a power of two: what the tool `zstd` takes too.
const WINDOW: u32 = 27;

/// The stage of [`zstd`].
struct Zstd {
    level: i32,
    /// `None` before the first byte.
    encoder: Option<CCtx<'static>>,
    block: Vec<u8>,
}

/// Compresses a stream into one frame with a check sum. Level 1 is fast, 22 is small.
///
/// # Panics
/// If `level` is not in 1 to 22.
///
/// # Complexity
/// Some megabytes of memory from the first byte to the end, at level 22 some hundred.
pub fn zstd(level: u32) -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    assert!((1..=22).contains(&level), "zstd with a level that is not in 1 to 22");
    Transducer::new(Zstd { level: level as i32, encoder: None, block: Vec::new() })
}

/// The recipe once more: what has been compressed is not copied.
impl Clone for Zstd {
    fn clone(&self) -> Self {
        Zstd { level: self.level, encoder: None, block: Vec::new() }
    }
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("level", &self.level).finish_non_exhaustive()
    }
}

/// The compressor takes all bytes, and its parameters are in their ranges.
const COMPRESSED: &str = "a compressor with memory does not fail";

impl Zstd {
    /// Compresses `chunk`, and at the end of the stream what is left.
    fn compress<S: Sink<u8>>(&mut self, chunk: &[u8], ends: bool, out: &mut S) -> Flow {
        let encoder = self.encoder.get_or_insert_with(|| {
            let mut encoder = CCtx::create();
            for parameter in [CParameter::CompressionLevel(self.level), CParameter::ChecksumFlag(true)] {
                encoder.set_parameter(parameter).expect(COMPRESSED);
            }
            encoder
        });
        // `reserve` counts from the length, so a full block would double the capacity each time.
        self.block.clear();
        self.block.reserve(BLOCK);
        let mut input = InBuffer::around(chunk);
        let directive = match ends {
            true => ZSTD_EndDirective::ZSTD_e_end,
            false => ZSTD_EndDirective::ZSTD_e_continue,
        };
        loop {
            self.block.clear();
            let mut output = OutBuffer::around(&mut self.block);
            let left = encoder.compress_stream2(&mut output, &mut input, directive).expect(COMPRESSED);
            if !self.block.is_empty() {
                out.put_chunk(&self.block)?;
            }
            let over = if ends { left == 0 } else { input.pos() == chunk.len() };
            if over {
                return GO_ON;
            }
        }
    }
}

impl Transduce<u8, u8> for Zstd {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        // The head of the frame tells whether it has bytes, so an empty chunk must not begin it.
        if chunk.is_empty() { GO_ON } else { self.compress(chunk, false, out) }
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        self.compress(&[], true, out)
    }
}

/// The stage of [`unzstd`].
struct Unzstd {
    /// `None` before the first byte.
    decoder: Option<DCtx<'static>>,
    block: Vec<u8>,
    /// Within a frame.
    open: bool,
    /// How many bytes have been unpacked.
    taken: u64,
    failure: Option<StageError>,
}

/// Unpacks a stream of frames, one after the other. An empty stream has none of them.
///
/// # Errors
/// It fails at bytes that are no frame, at a check sum that does not match, at a window of more
/// than 128 MiB, and at an end within a frame. The [offset](StageError::offset) is at most 4 KiB
/// before the mistake. How much is yielded of the bytes before the mistake depends on the cuts of
/// the input: with `gunzip`, this stage is an exception to the rule of [`pipeline`](crate#design).
///
/// # Complexity
/// As much memory as the window of the frame, and a block of 128 KiB.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_chunks;
/// use selvedge::pipeline::zstd::unzstd;
///
/// let failed = (from_chunks(["no frame at all"]) >> unzstd()).try_collect().unwrap_err();
/// assert_eq!(failed.stage(), "unzstd");
/// ```
pub fn unzstd() -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    Transducer::new(Unzstd::new())
}

impl Unzstd {
    fn new() -> Self {
        Unzstd { decoder: None, block: Vec::new(), open: false, taken: 0, failure: None }
    }
}

/// The recipe once more: what has been unpacked is not copied.
impl Clone for Unzstd {
    fn clone(&self) -> Self {
        Unzstd::new()
    }
}

impl fmt::Debug for Unzstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Unzstd {
    #[cold]
    fn fail(&mut self, cause: &'static str) -> Flow {
        let place = self.taken - self.taken % PACKED;
        let place = StreamPlace { items: place, elements: place };
        self.failure = Some(StageError::new("unzstd", place, cause));
        FINISHED
    }

    /// Unpacks `part`. `Err` if it is wrong.
    fn unpack<S: Sink<u8>>(&mut self, part: &[u8], out: &mut S) -> Result<Flow, &'static str> {
        let decoder = self.decoder.get_or_insert_with(|| {
            let mut decoder = DCtx::create();
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW)).expect("it is in its range");
            decoder
        });
        // `reserve` counts from the length, so a full block would double the capacity each time.
        self.block.clear();
        self.block.reserve(BLOCK);
        let mut input = InBuffer::around(part);
        loop {
            self.block.clear();
            let mut output = OutBuffer::around(&mut self.block);
            let left = decoder.decompress_stream(&mut output, &mut input).map_err(get_error_name)?;
            self.open = left != 0;
            if !self.block.is_empty() && out.put_chunk(&self.block).is_break() {
                return Ok(FINISHED);
            }
            // A full block may leave more in the decoder, but not at the end of a frame: a call
            // without input would begin the next frame.
            let drained = left == 0 || self.block.len() < self.block.capacity();
            if input.pos() == part.len() && drained {
                return Ok(GO_ON);
            }
        }
    }
}

impl Transduce<u8, u8> for Unzstd {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, mut chunk: &[u8], out: &mut S) -> Flow {
        while !chunk.is_empty() {
            let room = (PACKED - self.taken % PACKED) as usize;
            let (part, rest) = chunk.split_at(room.min(chunk.len()));
            match self.unpack(part, out) {
                Ok(flow) => flow?,
                Err(cause) => return self.fail(cause),
            }
            self.taken += part.len() as u64;
            chunk = rest;
        }
        GO_ON
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        if self.open { self.fail("the stream ends within a frame") } else { GO_ON }
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
