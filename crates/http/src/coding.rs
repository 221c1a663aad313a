//! Bodies as stages of a pipeline, in both directions: a body that is read becomes its content, and
//! content becomes a body in chunked coding. For [`flow`](https://docs.rs/selvedge-flow), or any
//! other ends.
//!
//! ```
//! use selvedge::pipeline::{count, from_chunks, group_by, line};
//! use selvedge::flow;
//! use selvedge::http::body::Framing;
//! use selvedge::http::coding::{chunked, content};
//! use selvedge::net::UnixStream;
//!
//! let lines = selvedge::run_local(async {
//!     let (here, there) = UnixStream::pair()?;
//!     (from_chunks(["warp\nwe", "ft\n"]) >> chunked() >> flow::write(there)).run().await?;
//!     let body = flow::read(here) >> content(Framing::Chunked, 1 << 20);
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
//!         (body >> group_by(line()) >> count()).run().await?,
//!     )
//! });
//! assert_eq!(lines.unwrap().unwrap(), 2);
//! ```

use crate::body::{Decoder, Framing};
use crate::status::Status;
use selvedge_pipeline::{Flow, Sink, StageError, StreamPlace, Transduce, Transducer};
use std::ops::ControlFlow;

/// The stage of [`content`].
#[derive(Debug, Clone)]
pub struct BodyContent {
    /// Or why the body is refused before its first byte.
    decoder: Result<Decoder, Status>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields the content of a body that is framed so, and is finished with its last byte. The content
/// is not copied.
///
/// Bytes behind the body that came in the same chunk are lost, so it is for the last message of a
/// connection, or for a source that ends with the body. The stage learns of a body without a byte
/// when the first chunk comes, or the end: ask [`Framing::has_content`] before a socket is read.
///
/// # Errors
/// It fails where the framing has an error, where the content exceeds `bytes_max`, and at an end
/// within the body. The cause names the status that answers such a request.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_chunks;
/// use selvedge::http::body::Framing;
/// use selvedge::http::coding::content;
///
/// let body = |text| from_chunks([text]) >> content(Framing::Length(4), 10);
/// assert_eq!(body("warp and more").collect(), b"warp");
/// let failed = body("wa").try_collect().unwrap_err();
/// assert_eq!(failed.to_string(), "content: item 3, offset 2: the end within a body");
/// ```
pub fn content(framing: Framing, bytes_max: u64) -> Transducer<u8, u8, BodyContent> {
    let decoder = Decoder::new(framing, bytes_max);
    Transducer::new(BodyContent { decoder, place: StreamPlace::default(), failure: None })
}

impl BodyContent {
    #[cold]
    fn fail(&mut self, cause: &str) -> Flow {
        self.failure = Some(StageError::new("content", self.place, cause));
        ControlFlow::Break(())
    }
}

impl Transduce<u8, u8> for BodyContent {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, mut chunk: &[u8], out: &mut S) -> Flow {
        loop {
            let piece = match &mut self.decoder {
                Ok(decoder) => decoder.decode(chunk),
                Err(status) => Err(*status),
            };
            let piece = match piece {
                Ok(piece) => piece,
                Err(status) => return self.fail(&format!("a body that is refused with {status}")),
            };
            self.place.items += piece.consumed as u64;
            self.place.elements += piece.consumed as u64;
            if !piece.content.is_empty() {
                out.put_chunk(piece.content)?;
            }
            if piece.done {
                return ControlFlow::Break(());
            }
            chunk = &chunk[piece.consumed..];
            if chunk.is_empty() {
                return ControlFlow::Continue(());
            }
        }
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        match &self.decoder {
            Ok(decoder) if decoder.is_done() => ControlFlow::Continue(()),
            Ok(_) => self.fail("the end within a body"),
            Err(status) => {
                let cause = format!("a body that is refused with {status}");
                self.fail(&cause)
            }
        }
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// The stage of [`chunked`].
#[derive(Debug, Clone)]
pub struct ChunkedCoding {
    size: Vec<u8>,
}

/// Yields the body in chunked coding (RFC 9112 §7.1) that has this content: a chunk for each chunk
/// that comes, and the last one at the end. So what is yielded depends on how the input is cut, and
/// the content of it does not.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_chunks;
/// use selvedge::http::coding::chunked;
///
/// let body = (from_chunks(["warp ", "", "weft"]) >> chunked()).collect();
/// assert_eq!(body, b"5\r\nwarp \r\n4\r\nweft\r\n0\r\n\r\n");
/// ```
pub fn chunked() -> Transducer<u8, u8, ChunkedCoding> {
    Transducer::new(ChunkedCoding { size: Vec::new() })
}

impl Transduce<u8, u8> for ChunkedCoding {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        // A chunk of no bytes would be the end of the body.
        if chunk.is_empty() {
            return ControlFlow::Continue(());
        }
        self.size.clear();
        self.size.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.put_chunk(&self.size)?;
        out.put_chunk(chunk)?;
        out.put_chunk(b"\r\n")
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        out.put_chunk(b"0\r\n\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_pipeline::{StageError, from_chunks};

    /// The content of a body that comes in pieces of `length` bytes.
    fn read(body: &[u8], framing: Framing, bytes_max: u64, length: usize) -> Result<Vec<u8>, StageError> {
        (from_chunks(body.chunks(length)) >> content(framing, bytes_max)).try_collect()
    }

    #[test]
    fn a_body_is_the_same_at_every_cut() {
        let body = (from_chunks([&b"warp"[..], &[b'x'; 300], b"weft"]) >> chunked()).collect();
        let whole = [&b"warp"[..], &[b'x'; 300], b"weft"].concat();
        for length in 1..body.len() + 1 {
            assert_eq!(read(&body, Framing::Chunked, 308, length).unwrap(), whole, "{length}");
            // What follows the body is not its content.
            let more = [&body[..], b"GET / HTTP/1.1"].concat();
            assert_eq!(read(&more, Framing::Chunked, 308, length).unwrap(), whole, "{length}");
            assert_eq!(read(&whole, Framing::Length(4), 4, length).unwrap(), b"warp", "{length}");
        }
        assert_eq!(read(b"GET /", Framing::None, 0, 1).unwrap(), b"");
    }

    #[test]
    fn a_body_that_is_refused_fails_where_the_mistake_is() {
        let failed = |body: &[u8], framing, max| {
            let failures = [1, 3, 100].map(|length| read(body, framing, max, length).unwrap_err());
            assert!(failures.iter().all(|one| one.to_string().ends_with(&failures[0].cause().to_string())));
            failures[0].to_string()
        };
        let cases = [
            (&b"2\r\nab\r\n"[..], Framing::Chunked, 9, "the end within a body"),
            (b"x", Framing::Chunked, 9, "400 Bad Request"),
            (b"5\r\nwarp!\r\n0\r\n\r\n", Framing::Chunked, 4, "413 Content Too Large"),
            (b"warp!", Framing::Length(5), 4, "413 Content Too Large"),
            (b"warp", Framing::Length(5), 5, "the end within a body"),
        ];
        for (body, framing, max, cause) in cases {
            let failed = failed(body, framing, max);
            assert!(failed.contains(cause), "{failed}");
        }
    }
}
