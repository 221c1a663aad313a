//! `select_numbered`: the lists that a splitter calls true, each with its number before it, as in
//! `grep -n`. Users and `selvedge-pipe` call it.
//!
//! A chunk of false lists is only counted, by `Chunk::count`, and no list in it is cut out. So
//! every list, true or false, must pass `Numbering` exactly once. [Pipes, Pipeline examples].

use crate::edges::parts::{ItemByItem, PlaceKnown, SplitByItem};
use crate::item::lists::Lists;
use crate::item::place::StreamPlace;
use crate::item::{Chunk, Flow, GO_ON};
use crate::role::{Splitter, Transducer};
use crate::stage::{Sections, Sink, Split, Transduce};

/// The stage of [`select_numbered`].
#[derive(Debug, Clone)]
pub struct SelectNumbered<S, F, E> {
    splitter: S,
    numbering: Numbering<F, E>,
}

#[derive(Debug, Clone)]
struct Numbering<F, E> {
    /// How many lists have been decided.
    passed: u64,
    number: F,
    list: Vec<E>,
}

/// Yields each list that `splitter` calls true, after what `number` writes for its place. The first
/// list has the number 1.
///
/// It is [`join::zip_lists`](crate::join::zip_lists) with numbers before
/// [`select`](crate::select), but for two things: the splitter does not see the number, and no
/// number is written for a list that is dropped. Dropped lines are counted as fast as `\n` is
/// found.
///
/// # Paper
/// [Pipes, Pipeline examples] `grep -n`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{any, concatenate, from_chunks, group_by};
/// use selvedge::pipeline::{select_numbered, substring, whole_line};
/// use std::io::Write;
///
/// let number = |n, line: &mut Vec<u8>| write!(line, "{n}:").expect("vectors can be written");
/// let found = from_chunks(["warp\n\nweft\nwarp\n"])
///     >> group_by(whole_line())
///     >> select_numbered(any(substring(b"warp")), number)
///     >> concatenate();
/// assert_eq!(found.collect(), b"1:warp\n4:warp\n");
/// ```
pub fn select_numbered<E, S, F>(
    splitter: Splitter<[E], S>,
    number: F,
) -> Transducer<[E], [E], SelectNumbered<S, F, E>>
where
    E: Clone + 'static,
    S: Split<[E]>,
    F: FnMut(u64, &mut Vec<E>),
{
    let numbering = Numbering { passed: 0, number, list: Vec::new() };
    Transducer::new(SelectNumbered { splitter: splitter.stage, numbering })
}

struct NumberSections<'a, F, E, O> {
    numbering: &'a mut Numbering<F, E>,
    out: &'a mut O,
}

impl<E, F, O> Sections<[E]> for NumberSections<'_, F, E, O>
where
    E: Clone + 'static,
    F: FnMut(u64, &mut Vec<E>),
    O: Sink<[E]>,
{
    fn part(&mut self, verdict: bool, item: &[E]) -> Flow {
        let Numbering { passed, number, list } = &mut *self.numbering;
        *passed += 1;
        if !verdict {
            return GO_ON;
        }
        list.clear();
        number(*passed, list);
        list.extend_from_slice(item);
        self.out.put(list)
    }

    fn part_chunk(&mut self, verdict: bool, chunk: Lists<'_, E>) -> Flow {
        if verdict {
            return chunk.each(|list| self.part(true, list));
        }
        self.numbering.passed += chunk.count();
        GO_ON
    }

    fn close(&mut self, _verdict: bool) -> Flow {
        GO_ON
    }
}

impl<E, S, F> Transduce<[E], [E]> for SelectNumbered<S, F, E>
where
    E: Clone + 'static,
    S: Split<[E]>,
    F: FnMut(u64, &mut Vec<E>),
{
    const CHUNKS: bool = true;

    fn put<O: Sink<[E]>>(&mut self, item: &[E], out: &mut O) -> Flow {
        self.splitter.put(item, &mut NumberSections { numbering: &mut self.numbering, out })
    }

    fn put_chunk<O: Sink<[E]>>(&mut self, chunk: Lists<'_, E>, out: &mut O) -> Flow {
        self.splitter.put_chunk(chunk, &mut NumberSections { numbering: &mut self.numbering, out })
    }

    fn end<O: Sink<[E]>>(&mut self, out: &mut O) -> Flow {
        self.splitter.end(&mut NumberSections { numbering: &mut self.numbering, out })
    }
}

impl<E, S, F> ItemByItem<[E], [E]> for SelectNumbered<S, F, E>
where
    E: Clone + 'static,
    S: SplitByItem<[E]>,
    F: FnMut(u64, &mut Vec<E>),
{
    const NEEDS: PlaceKnown = PlaceKnown::Items;

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.numbering.passed = place.items;
        place
    }
}
