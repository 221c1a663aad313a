//! `section_parts`: what a splitter says of a stream, as a stream. Users call it to see the
//! sections of a splitter, and to work on items with their verdicts. `roles.rs` has `SectionPart`,
//! and the way back: the body of a `splitter` puts such parts.

use crate::bodies::roles::SectionPart;
use crate::item::Flow;
use crate::role::{Splitter, Transducer};
use crate::stage::{Sections, Sink, Split, Transduce};

/// The stage of [`section_parts`].
#[derive(Debug, Clone)]
pub struct ToSectionParts<S> {
    splitter: S,
}

/// Yields each item with its verdict, and the end of each section. So a program sees what a
/// splitter selects, the empty sections too.
///
/// # Paper
/// [Pipes, Parting and joining the stream]: `splitterToMarker` of the package SCC, which it names.
///
/// # Examples
/// ```
/// use selvedge::pipeline::SectionPart::{Close, Item};
/// use selvedge::pipeline::{from_chunks, line, section_parts};
///
/// let parts = (from_chunks(["a\n\n"]) >> section_parts(line())).collect();
/// // The line `a`, its end, a blank line, and its end.
/// assert_eq!(parts[..2], [Item(true, b'a'), Close(true)]);
/// assert_eq!(parts[2..4], [Item(false, b'\n'), Close(false)]);
/// assert_eq!(parts[4..], [Close(true), Item(false, b'\n'), Close(false)]);
/// ```
#[doc(alias = "splitterToMarker")]
pub fn section_parts<A: Clone + 'static, S: Split<A>>(
    splitter: Splitter<A, S>,
) -> Transducer<A, SectionPart<A>, ToSectionParts<S>> {
    Transducer::new(ToSectionParts { splitter: splitter.stage })
}

/// Puts the parts of sections into `out`.
struct PutParts<'a, O> {
    out: &'a mut O,
}

impl<A: Clone + 'static, O: Sink<SectionPart<A>>> Sections<A> for PutParts<'_, O> {
    #[inline]
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.out.put(&SectionPart::Item(verdict, item.clone()))
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.out.put(&SectionPart::Close(verdict))
    }
}

impl<A: Clone + 'static, S: Split<A>> Transduce<A, SectionPart<A>> for ToSectionParts<S> {
    const CHUNKS: bool = true;

    fn put<O: Sink<SectionPart<A>>>(&mut self, item: &A, out: &mut O) -> Flow {
        self.splitter.put(item, &mut PutParts { out })
    }

    fn put_chunk<O: Sink<SectionPart<A>>>(&mut self, chunk: &[A], out: &mut O) -> Flow {
        self.splitter.put_chunk(chunk, &mut PutParts { out })
    }

    fn end<O: Sink<SectionPart<A>>>(&mut self, out: &mut O) -> Flow {
        self.splitter.end(&mut PutParts { out })
    }
}
