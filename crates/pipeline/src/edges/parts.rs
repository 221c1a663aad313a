//! Stages that work on parts of a stream side by side: which of them may (`PartByPart`,
//! `ItemByItem`, `SplitByItem`), what a worker makes of a block (`Part`), and how the parts are
//! joined in order (`PartJoiner`). `in_parts` of the crate `selvedge-flow` has the workers.
//!
//! A block may be cut anywhere, also within an item. The worker of a block takes the items that
//! begin and end there. The pieces at the two ends of the block go to the joiner. The joiner puts
//! the end of one block and the head of the next one together, and runs stages of its own on that
//! item. So each byte is read once, and each item is taken once, in a state that depends on nothing
//! but its place.
//!
//! A stage that numbers its items must know how many lie before. `PlaceKnown` says what a stage
//! needs to know and what it tells the next one, and a pair that does not fit does not compile.

use crate::error::StageError;
use crate::item::lists::Cut;
use crate::item::place::StreamPlace;
use crate::item::{Item, Store};
use crate::role::Keep;
use crate::stage::{Split, Transduce};
use std::fmt;
use std::ops::Range;

/// What is known of a place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKnown {
    /// Nothing.
    Nothing,
    /// How many items lie before it.
    Items,
    /// How many items and elements lie before it.
    Elements,
}

impl PlaceKnown {
    /// Whether a stage that needs `needs` can work with this.
    pub const fn covers(self, needs: PlaceKnown) -> bool {
        self as u8 >= needs as u8
    }

    /// The smaller one.
    pub const fn at_most(self, other: PlaceKnown) -> PlaceKnown {
        if other.covers(self) { self } else { other }
    }

    /// Whether anything is known.
    pub const fn is_some(self) -> bool {
        !matches!(self, PlaceKnown::Nothing)
    }
}

/// A transducer that makes of each item what depends on that item and on its place alone.
///
/// What it makes of an item it has put out when it has taken the item, and nothing at the end. It
/// breaks only if it fails, or if the next stage does.
///
/// A stage with a function of the user, such as [`lift121`](crate::lift121), is of this kind if the
/// function keeps nothing from one call to the next. The compiler cannot see that: it takes a
/// closure for `FnMut` where a stage accepts one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot work on parts of a stream side by side",
    label = "what the stage makes of an item depends on items before it"
)]
pub trait ItemByItem<A: Item + ?Sized, B: Item + ?Sized>: Transduce<A, B> {
    /// What the stage must know of the place at which a part begins.
    const NEEDS: PlaceKnown = PlaceKnown::Nothing;

    /// What is known of the place in what it yields, if all is known of that in what it takes.
    const TELLS: PlaceKnown = PlaceKnown::Nothing;

    /// A part begins at `place`, as far as the place is known. The stage is fed the part, and not
    /// what lies between this part and the last one. Returns the place in what it yields, as far as
    /// that is known.
    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        place
    }
}

/// A splitter that judges each item by that item alone, and passes it on at once.
pub trait SplitByItem<A: Item + ?Sized>: Split<A> {}

/// A transducer of a stream that can be cut into parts, so that it makes of each part what it makes
/// of it in the whole stream.
///
/// [`group_by`](crate::group_by) of [`line`](crate::line()) or of
/// [`whole_line`](crate::whole_line), and the stages after it that are [`ItemByItem`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot work on parts of a stream side by side",
    label = "the first stage cuts the stream into lines, and the others work item by item"
)]
pub trait PartByPart<A: Clone + 'static, B: Item + ?Sized>: Transduce<A, B> + Clone {
    /// What the stage must know of the place at which a part begins.
    const NEEDS: PlaceKnown = PlaceKnown::Nothing;

    /// What is known of the place in what it yields, if all is known of that in what it takes.
    const TELLS: PlaceKnown = PlaceKnown::Nothing;

    /// Where a part may end: at the ends of these lists. Each end is found in any piece of the
    /// stream that has it. So one element makes the end.
    fn ends(&self) -> &dyn Cut<A>;

    /// A part begins behind this number of lists and elements. The stage is fed the part, and not
    /// what lies between this part and the last one. Returns the place in what it yields, as far as
    /// that is known.
    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace;
}

/// What stages have made of a block, and the pieces of items at its two ends.
pub struct Part<A, B: Item + ?Sized> {
    /// The elements up to the first end in the block, or all of them.
    head: Vec<A>,
    /// The elements behind the last end in the block.
    tail: Vec<A>,
    /// What the stages have made of the items between.
    made: B::Store,
    /// Where these items lie in the block. `None` if no item ends in the block.
    whole: Option<Range<usize>>,
    /// How many items end in the block, if the stages must know that, and how many elements there
    /// are.
    ended: StreamPlace,
    failure: Option<StageError>,
}

impl<A, B: Item + ?Sized> Default for Part<A, B> {
    fn default() -> Self {
        Part {
            head: Vec::new(),
            tail: Vec::new(),
            made: B::Store::default(),
            whole: None,
            ended: StreamPlace::default(),
            failure: None,
        }
    }
}

impl<A, B: Item + ?Sized> fmt::Debug for Part<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("made", &self.made.count()).finish_non_exhaustive()
    }
}

impl<A: Clone + 'static, B: Item + ?Sized> Part<A, B> {
    /// Cuts the block, and puts aside the pieces at its ends. The memory of an earlier block is
    /// used again. [`make`](Part::make) has the rest of the work.
    pub fn cut<T: PartByPart<A, B>>(&mut self, stages: &T, block: &[A]) {
        self.head.clear();
        self.tail.clear();
        self.made.clear();
        self.failure = None;
        self.ended = StreamPlace { items: 0, elements: block.len() as u64 };
        let ends = stages.ends();
        self.whole = ends.first(block).map(|(_, next)| next..ends.last(block));
        let (head, tail) = match &self.whole {
            Some(whole) => (&block[..whole.start], &block[whole.end..]),
            None => (block, &block[..0]),
        };
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if let Some(whole) = self.whole.as_ref().filter(|_| T::NEEDS.is_some()) {
            self.ended.items = 1 + ends.count(&block[whole.clone()]);
        }
    }

    /// How many items end in the block that was cut, if the stages need to know that, and how many
    /// elements it has.
    pub fn ended(&self) -> StreamPlace {
        self.ended
    }

    /// Runs the stages on the items of the block that was cut. The block begins at `place`: how
    /// many items end before it, and how many elements lie before it.
    pub fn make<T: PartByPart<A, B>>(&mut self, stages: &mut T, block: &[A], place: StreamPlace) {
        let Some(whole) = self.whole.clone().filter(|whole| !whole.is_empty()) else { return };
        let elements = place.elements + whole.start as u64;
        let _in_the_output = stages.begin_part(StreamPlace { items: place.items + 1, elements });
        if stages.put_chunk(&block[whole], &mut Keep(&mut self.made)).is_break() {
            self.failure = stages.failure().cloned();
        }
    }

    /// What the stages have made of the items of the block. These come after those of
    /// [`PartJoiner::join`].
    pub fn made(&self) -> &B::Store {
        &self.made
    }

    /// Why there is nothing after [`made`](Part::made), if a stage has failed.
    pub fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// Runs stages on the items that reach over the end of a block.
#[derive(Debug, Clone)]
pub struct PartJoiner<A, T> {
    stages: T,
    /// What the stages have not been fed of the item that has not ended: the tail of one block.
    open: Vec<A>,
    /// What lies before the item that has not ended.
    place: StreamPlace,
    /// How many elements of the item the stages have been fed. `None` if they do not know that it
    /// has begun.
    fed: Option<u64>,
}

impl<A: Clone + 'static, T> PartJoiner<A, T> {
    /// A joiner with stages of its own, before the first part.
    pub fn new(stages: T) -> Self {
        PartJoiner { stages, open: Vec::new(), place: StreamPlace::default(), fed: None }
    }

    /// Takes the next part, and keeps in `items` what the stages make of the item that ends in its
    /// head. What [`Part::made`] has comes after that.
    ///
    /// The joiner keeps the tail of one block at most. An item that is longer than a block goes to
    /// the stages piece by piece.
    ///
    /// # Errors
    /// The failure of a stage at this item.
    pub fn join<B>(&mut self, part: &Part<A, B>, items: &mut B::Store) -> Result<(), StageError>
    where
        B: Item + ?Sized,
        T: PartByPart<A, B>,
    {
        self.open.extend_from_slice(&part.head);
        if part.whole.is_none() && self.open.is_empty() {
            return Ok(());
        }
        let flow = self.put_open(items);
        let Some(fed) = self.fed.filter(|_| part.whole.is_some()) else { return flow };
        let ended = part.ended();
        // The item began at `place`, and its last elements were the head of the block.
        let block_begin = self.place.elements + fed - part.head.len() as u64;
        self.place.items += ended.items;
        self.place.elements = block_begin + ended.elements - part.tail.len() as u64;
        self.open.extend_from_slice(&part.tail);
        self.fed = None;
        flow
    }

    /// The stream has ended. Keeps in `items` what the stages make of the last item, if the item
    /// lacks its end.
    ///
    /// # Errors
    /// The failure of a stage at this item.
    pub fn end<B>(&mut self, items: &mut B::Store) -> Result<(), StageError>
    where
        B: Item + ?Sized,
        T: PartByPart<A, B>,
    {
        self.put_open(items)?;
        let _over = self.stages.end(&mut Keep(items));
        self.stages.failure().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Feeds the stages with what they have not been fed of the item.
    fn put_open<B>(&mut self, items: &mut B::Store) -> Result<(), StageError>
    where
        B: Item + ?Sized,
        T: PartByPart<A, B>,
    {
        if self.fed.is_none() {
            let _in_the_output = self.stages.begin_part(self.place);
        }
        let flow = self.stages.put_chunk(&self.open, &mut Keep(items));
        self.fed = Some(self.fed.unwrap_or(0) + self.open.len() as u64);
        self.open.clear();
        match self.stages.failure() {
            Some(failure) if flow.is_break() => Err(failure.clone()),
            _ => Ok(()),
        }
    }
}
