//! `group_by`: each true section of a splitter becomes one list, and false sections are dropped.
//! Users call it to get lines, words or records out of a stream.
//!
//! If the splitter has a `Cut`, the stage passes the whole block on as `Lists` and looks for no
//! end. Otherwise it copies a section that is not complete into `list`. A `close` without items is
//! an empty list, which must not be lost. [Pipes, Parting and joining the stream].

use crate::edges::parts::{PartByPart, PlaceKnown};
use crate::item::lists::{Cut, Lists, empty};
use crate::item::place::StreamPlace;
use crate::item::{Flow, GO_ON};
use crate::role::{Splitter, Transducer};
use crate::splitters::split::LineSplit;
use crate::stage::{Sections, Sink, Split, Transduce};

/// The stage of [`group_by`].
#[derive(Debug, Clone)]
pub struct GroupBy<S, E> {
    splitter: S,
    /// The list that is open.
    list: Vec<E>,
}

/// Makes a list of each true section, also of an empty one, and drops the false sections.
///
/// The lists of [`line`](crate::line()) and [`whole_line`](crate::whole_line) lie in the block that
/// they came in, and their ends are found when a stage asks for them. Only the list that reaches
/// over the end of a block is copied.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `groupBy`, by its description: its printed type says
/// splitter.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line};
///
/// let lines = (from_chunks(["warp\n\nwe", "ft\n"]) >> group_by(line())).collect();
/// assert_eq!(lines.iter().collect::<Vec<_>>(), [&b"warp"[..], b"", b"weft"]);
/// ```
#[doc(alias = "groupBy")]
pub fn group_by<E: Clone + 'static, S: Split<E>>(
    splitter: Splitter<E, S>,
) -> Transducer<E, [E], GroupBy<S, E>> {
    Transducer::new(GroupBy { splitter: splitter.stage, list: Vec::new() })
}

/// Gathers each true section.
struct Gather<'a, E, O> {
    list: &'a mut Vec<E>,
    out: &'a mut O,
}

impl<E: Clone + 'static, O: Sink<[E]>> Sections<E> for Gather<'_, E, O> {
    #[inline]
    fn part(&mut self, verdict: bool, item: &E) -> Flow {
        if verdict {
            self.list.push(item.clone());
        }
        GO_ON
    }

    fn part_chunk(&mut self, verdict: bool, chunk: &[E]) -> Flow {
        if verdict {
            self.list.extend_from_slice(chunk);
        }
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if !verdict {
            return GO_ON;
        }
        let flow = self.out.put(self.list);
        empty(self.list);
        flow
    }
}

impl<E: Clone + 'static, S: Split<E>> Transduce<E, [E]> for GroupBy<S, E> {
    const CHUNKS: bool = true;

    fn put<O: Sink<[E]>>(&mut self, item: &E, out: &mut O) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<O: Sink<[E]>>(&mut self, mut chunk: &[E], out: &mut O) -> Flow {
        let list = &mut self.list;
        let Some(cut) = self.splitter.cut() else {
            return self.splitter.put_chunk(chunk, &mut Gather { list, out });
        };
        if !list.is_empty() {
            let Some((end, next)) = cut.first(chunk) else {
                list.extend_from_slice(chunk);
                return GO_ON;
            };
            list.extend_from_slice(&chunk[..end]);
            out.put(list)?;
            empty(list);
            chunk = &chunk[next..];
        }
        let (whole, rest) = chunk.split_at(cut.last(chunk));
        list.extend_from_slice(rest);
        if whole.is_empty() { GO_ON } else { out.put_chunk(Lists::cut(whole, cut)) }
    }

    fn end<O: Sink<[E]>>(&mut self, out: &mut O) -> Flow {
        let list = &mut self.list;
        if self.splitter.cut().is_none() {
            return self.splitter.end(&mut Gather { list, out });
        }
        if list.is_empty() { GO_ON } else { out.put(list) }
    }
}

impl PartByPart<u8, [u8]> for GroupBy<LineSplit, u8> {
    const TELLS: PlaceKnown = PlaceKnown::Elements;

    fn ends(&self) -> &dyn Cut<u8> {
        self.splitter.ends()
    }

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.list.clear();
        // A line end that belongs to no line is one element.
        let dropped = if self.splitter.ends().is_gapless() { 0 } else { place.items };
        StreamPlace { items: place.items, elements: place.elements - dropped }
    }
}
