//! Stages that gather items, and yield at the end: counts, sums, the lines that came, the last
//! items.
//!
//! `stage::dynamic` calls one function for each. [`unique`] is the exception: it yields each new
//! line at once. Only [`unique`] and [`tally`] keep more, the longer the stream is: each different
//! line once.

use crate::language::tree::FoldKind;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{
    Chunk, Flow, Item, Number, Sink, StageError, Store, StreamPlace, Transduce, Transducer,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// The stage of [`count_all`].
#[derive(Debug, Clone)]
pub struct CountAll {
    count: u64,
}

/// Yields the number of items.
pub fn count_all<A: Item + ?Sized>() -> Transducer<A, Number, CountAll> {
    Transducer::new(CountAll { count: 0 })
}

impl<A: Item + ?Sized> Transduce<A, Number> for CountAll {
    const CHUNKS: bool = true;

    fn put<S: Sink<Number>>(&mut self, _item: &A, _out: &mut S) -> Flow {
        self.count += 1;
        ControlFlow::Continue(())
    }

    fn put_chunk<S: Sink<Number>>(&mut self, chunk: A::Chunk<'_>, _out: &mut S) -> Flow {
        self.count += chunk.count();
        ControlFlow::Continue(())
    }

    fn end<S: Sink<Number>>(&mut self, out: &mut S) -> Flow {
        out.put(&Number::from(self.count))
    }
}

/// The stage of [`count_chunks`].
#[derive(Debug, Clone)]
pub struct CountChunks;

/// Yields the number of items of each chunk. [`add_counts`] makes one number of them.
pub fn count_chunks<A: Item + ?Sized>() -> Transducer<A, Number, CountChunks> {
    Transducer::new(CountChunks)
}

impl<A: Item + ?Sized> Transduce<A, Number> for CountChunks {
    const CHUNKS: bool = true;

    fn put<S: Sink<Number>>(&mut self, _item: &A, out: &mut S) -> Flow {
        out.put(&Number::from(1_u64))
    }

    fn put_chunk<S: Sink<Number>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        out.put(&Number::from(chunk.count()))
    }

    fn end<S: Sink<Number>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }
}

/// Yields the sum of all counts of [`count_chunks`].
pub fn add_counts() -> Transducer<Number, Number, FoldNumbers> {
    fold_numbers(FoldKind::Sum)
}

/// The stage of [`fold_numbers`].
#[derive(Debug, Clone)]
pub struct FoldNumbers {
    kind: FoldKind,
    so_far: Option<Number>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields one number made of all: their sum, the least or the greatest. The sum of none is 0, and
/// there is no least and no greatest of none.
///
/// It fails if the sum has too many digits.
pub fn fold_numbers(kind: FoldKind) -> Transducer<Number, Number, FoldNumbers> {
    let so_far = (kind == FoldKind::Sum).then(|| Number::from(0_u64));
    Transducer::new(FoldNumbers { kind, so_far, place: StreamPlace::default(), failure: None })
}

impl Transduce<Number, Number> for FoldNumbers {
    fn put<S: Sink<Number>>(&mut self, item: &Number, _out: &mut S) -> Flow {
        match (&mut self.so_far, self.kind) {
            (None, _) => self.so_far = Some(item.clone()),
            (Some(sum), FoldKind::Sum) => {
                let has_added = sum.add(item);
                if !has_added {
                    let cause = "the sum has more than a million digits";
                    self.failure = Some(StageError::new("sum", self.place, cause));
                    return ControlFlow::Break(());
                }
            }
            (Some(least), FoldKind::Min) if item < least => *least = item.clone(),
            (Some(greatest), FoldKind::Max) if item > greatest => *greatest = item.clone(),
            _ => {}
        }
        self.place.items += 1;
        self.place.elements += 1;
        ControlFlow::Continue(())
    }

    fn end<S: Sink<Number>>(&mut self, out: &mut S) -> Flow {
        self.so_far.as_ref().map_or(ControlFlow::Continue(()), |number| out.put(number))
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// The stage of [`unique`].
#[derive(Debug, Clone)]
pub struct Unique {
    seen: HashSet<Vec<u8>>,
}

/// Yields each line that has not come before. It keeps all different lines.
pub fn unique() -> Transducer<[u8], [u8], Unique> {
    Transducer::new(Unique { seen: HashSet::new() })
}

impl Transduce<[u8], [u8]> for Unique {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        if self.seen.contains(item) {
            return ControlFlow::Continue(());
        }
        self.seen.insert(item.to_vec());
        out.put(item)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }
}

/// The stage of [`tally`].
#[derive(Debug, Clone)]
pub struct Tally {
    places: HashMap<Vec<u8>, usize>,
    counts: Vec<(Vec<u8>, u64)>,
}

/// Yields a record for each different line, in the order in which they came first: how often it
/// came, and the line.
pub fn tally() -> Transducer<[u8], Fields, Tally> {
    Transducer::new(Tally { places: HashMap::new(), counts: Vec::new() })
}

impl Transduce<[u8], Fields> for Tally {
    fn put<S: Sink<Fields>>(&mut self, item: &[u8], _out: &mut S) -> Flow {
        let line = crate::regex::chomp(item);
        match self.places.get(line) {
            Some(place) => self.counts[*place].1 += 1,
            None => {
                self.places.insert(line.to_vec(), self.counts.len());
                self.counts.push((line.to_vec(), 1));
            }
        }
        ControlFlow::Continue(())
    }

    fn end<S: Sink<Fields>>(&mut self, out: &mut S) -> Flow {
        let record =
            |(line, count): &(Vec<u8>, u64)| [count.to_string().as_bytes(), line].into_iter().collect();
        self.counts.iter().try_for_each(|counted| out.put(&record(counted)))
    }
}

/// The stage of [`last_items`].
#[derive(Debug, Clone)]
pub struct LastItems<C> {
    items: C,
    count: usize,
}

/// Yields the last `count` items. It keeps up to twice as many and 64 more.
pub fn last_items<A: Item + ?Sized>(count: usize) -> Transducer<A, A, LastItems<A::Store>> {
    Transducer::new(LastItems { items: A::Store::default(), count })
}

impl<A: Item + ?Sized, C: Store<A>> Transduce<A, A> for LastItems<C> {
    fn put<S: Sink<A>>(&mut self, item: &A, _out: &mut S) -> Flow {
        self.items.keep(item);
        // `forget` moves the items that stay. So it is called when it can drop at least as many
        // items as it moves.
        if self.items.count() >= self.count.saturating_mul(2).saturating_add(64) {
            self.items.forget(self.items.count() - self.count);
        }
        ControlFlow::Continue(())
    }

    fn end<S: Sink<A>>(&mut self, out: &mut S) -> Flow {
        let kept = self.items.count();
        out.put_chunk(self.items.chunk(kept.saturating_sub(self.count)..kept))
    }
}
