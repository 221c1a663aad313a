//! Stages that put text around the items: a line end behind the last line, and a text around a
//! stream of bytes.
//!
//! `stage::dynamic` calls [`complete_line`] for `lines`, and [`around_stream`] for `prepend` and
//! `append` over bytes.

use selvedge_pipeline::{Flow, ItemByItem, Lists, PlaceKnown, Sink, Transduce, Transducer};
use std::ops::ControlFlow;

/// The stage of [`complete_line`].
#[derive(Debug, Clone)]
pub struct CompleteLine;

/// Gives a line end to the last line, if it has none. All others are passed on as they lie in their
/// block.
pub fn complete_line() -> Transducer<[u8], [u8], CompleteLine> {
    Transducer::new(CompleteLine)
}

impl Transduce<[u8], [u8]> for CompleteLine {
    const CHUNKS: bool = true;

    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        if item.ends_with(b"\n") { out.put(item) } else { out.put(&[item, b"\n"].concat()) }
    }

    /// Each list in a chunk ends with a line end, because `whole_line` has cut the block there.
    /// Only a list that comes alone, through `put`, may lack it.
    fn put_chunk<S: Sink<[u8]>>(&mut self, chunk: Lists<'_, u8>, out: &mut S) -> Flow {
        out.put_chunk(chunk)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }
}

impl ItemByItem<[u8], [u8]> for CompleteLine {
    const TELLS: PlaceKnown = PlaceKnown::Items;
}

/// The stage of [`around_stream`].
#[derive(Debug, Clone)]
pub struct AroundStream {
    before: Vec<u8>,
    after: Vec<u8>,
    begun: bool,
}

/// Puts `before` before a stream of bytes and `after` behind it, also if the stream is empty.
pub fn around_stream(before: &[u8], after: &[u8]) -> Transducer<u8, u8, AroundStream> {
    Transducer::new(AroundStream { before: before.to_vec(), after: after.to_vec(), begun: false })
}

impl AroundStream {
    fn begin<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        if std::mem::replace(&mut self.begun, true) || self.before.is_empty() {
            return ControlFlow::Continue(());
        }
        out.put_chunk(&self.before)
    }
}

impl Transduce<u8, u8> for AroundStream {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.begin(out)?;
        out.put(item)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        // An empty chunk begins no stream: a splitter passes one behind the last line end of a
        // block.
        if chunk.is_empty() {
            return ControlFlow::Continue(());
        }
        self.begin(out)?;
        out.put_chunk(chunk)
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        self.begin(out)?;
        out.put_chunk(&self.after)
    }
}
