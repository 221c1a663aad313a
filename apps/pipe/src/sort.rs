//! The order of `sort`, and the items that are brought into it.
//!
//! [`Sorted`] says how items of a kind are compared, and [`Gathered`] sorts the items that are in
//! memory. The stage in `stages/sort.rs` has one `Gathered`. [`SortedSource`] in `sort/supply.rs`
//! has one for each piece of a stream that does not fit into memory, and `sort/runs.rs` keeps the
//! sorted pieces in temporary files and merges them.
//!
//! The sort is stable: items that are equal keep their order. It moves numbers of places, and no
//! items. Each place has a [rank](Sorted::rank) beside it, so that most comparisons look at no
//! item.

mod number;
mod runs;
mod supply;

pub use supply::SortedSource;

use crate::language::tree::Order;
use crate::regex::chomp;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{HasKind, Item, Number, Store};
use std::cmp::Ordering;

/// An item that is sorted.
pub trait Sorted: HasKind {
    /// The text that is compared.
    fn key(&self, order: Order) -> &[u8];

    /// An item with a lower rank comes before one with a higher rank, if `order` does not descend.
    fn rank(&self, order: Order) -> u64 {
        let key = self.key(order);
        if order.numeric { number::rank(key) } else { word(key, 0) }
    }

    /// The order of two items with the same rank, if `order` does not descend.
    fn compare_further(&self, other: &Self, order: Order) -> Ordering {
        let (key, other) = (self.key(order), other.key(order));
        if order.numeric { number::compare(key, other) } else { key.cmp(other) }
    }

    /// Whether each rank is that of eight bytes of the text.
    fn has_words(order: Order) -> bool {
        !order.numeric
    }

    /// How many bytes of memory the item needs while it is sorted.
    fn weight(&self) -> usize;

    /// Writes the item to the end of `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Keeps the item that [`write`](Sorted::write) has made these bytes of.
    fn keep_written(bytes: &[u8], items: &mut Self::Store);
}

/// The eight bytes of a text from `at` on, as a number. Zeros stand for those behind the end.
fn word(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    u64::from_be_bytes(match rest.first_chunk() {
        Some(word) => *word,
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            word
        }
    })
}

/// How many bytes a place in [`Gathered`] and the end of a list need.
const PLACE: usize = size_of::<Ranked>() + size_of::<usize>();

impl Sorted for [u8] {
    fn key(&self, _order: Order) -> &[u8] {
        chomp(self)
    }

    fn weight(&self) -> usize {
        self.len() + PLACE
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn keep_written(bytes: &[u8], items: &mut Self::Store) {
        items.keep(bytes);
    }
}

impl Sorted for Fields {
    fn key(&self, order: Order) -> &[u8] {
        self.get(order.column.unwrap_or(1) - 1).unwrap_or_default()
    }

    fn weight(&self) -> usize {
        // Each of the two vectors of a record has a head in the allocator.
        let fields = self.iter().map(|field| field.len() + size_of::<usize>()).sum::<usize>();
        fields + size_of::<Fields>() + 32 + PLACE
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for field in self.iter() {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field);
        }
    }

    fn keep_written(mut bytes: &[u8], items: &mut Vec<Fields>) {
        let mut record = Fields::new();
        while let Some((length, rest)) = bytes.split_first_chunk() {
            let (field, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            record.push(field);
            bytes = rest;
        }
        items.push(record);
    }
}

impl Sorted for Number {
    fn key(&self, _order: Order) -> &[u8] {
        &[]
    }

    fn rank(&self, _order: Order) -> u64 {
        number::rank_of(self.nearest())
    }

    fn compare_further(&self, other: &Number, _order: Order) -> Ordering {
        self.cmp(other)
    }

    fn has_words(_order: Order) -> bool {
        false
    }

    fn weight(&self) -> usize {
        size_of::<Number>() + self.heap_bytes() + PLACE
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        Number::write(self, bytes);
    }

    fn keep_written(bytes: &[u8], items: &mut Vec<Number>) {
        let number = std::str::from_utf8(bytes).ok().and_then(Number::of);
        items.push(number.expect("a number is written as one"));
    }
}

/// The order of two items, of which the ranks are known.
fn compare<A: Sorted + ?Sized>(a: (u64, &A), b: (u64, &A), order: Order) -> Ordering {
    let ordering = a.0.cmp(&b.0).then_with(|| a.1.compare_further(b.1, order));
    if order.descending { ordering.reverse() } else { ordering }
}

/// The place of an item of [`Gathered`], with its rank.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    rank: u64,
    index: usize,
}

/// Items that are sorted in memory.
#[derive(Debug, Clone)]
pub struct Gathered<C> {
    items: C,
    /// All items in their order, after [`sort`](Gathered::sort).
    places: Vec<Ranked>,
}

impl<C: Default> Default for Gathered<C> {
    fn default() -> Self {
        Gathered { items: C::default(), places: Vec::new() }
    }
}

impl<C> Gathered<C> {
    /// The items, in the order in which they came.
    pub fn items(&mut self) -> &mut C {
        &mut self.items
    }

    /// Brings the items into their order.
    pub fn sort<A: Sorted<Store = C> + ?Sized>(&mut self, order: Order)
    where
        C: Store<A>,
    {
        let items = &self.items;
        let place = |index| Ranked { rank: items.at(index).rank(order), index };
        self.places = (0..items.count()).map(place).collect();
        let sorter = Sorter::<A> { items, order };
        if A::has_words(order) {
            sorter.by_words(&mut self.places, 0);
        } else {
            sorter.by_ranks(&mut self.places);
        }
        if order.descending {
            self.places.reverse();
        }
    }

    /// The sorted item at `at`, if it needs `room` bytes or more.
    pub fn large<A: Sorted<Store = C> + ?Sized>(&self, at: usize, room: usize) -> Option<&A>
    where
        C: Store<A>,
    {
        let item = self.items.at(self.places.get(at)?.index);
        (item.weight() >= room).then_some(item)
    }

    /// Copies sorted items to `out`, from the one at `from` on, until they are some `room` bytes.
    /// Returns the place behind the last one.
    pub fn copy_some<A: Sorted<Store = C> + ?Sized>(&self, from: usize, room: usize, out: &mut C) -> usize
    where
        C: Store<A>,
    {
        let (mut at, mut copied) = (from, 0);
        while at < self.places.len() && copied < room {
            let item = self.items.at(self.places[at].index);
            // A large one is lent as it lies, and not copied.
            if copied > 0 && item.weight() >= room {
                break;
            }
            copied += item.weight();
            out.keep(item);
            at += 1;
        }
        at
    }

    /// The sorted items one by one.
    fn iter<'a, A: Sorted<Store = C> + ?Sized>(&'a self) -> impl Iterator<Item = &'a A>
    where
        C: Store<A> + 'a,
    {
        self.places.iter().map(|place| self.items.at(place.index))
    }

    fn clear<A: Item<Store = C> + ?Sized>(&mut self)
    where
        C: Store<A>,
    {
        self.items.clear();
        self.places.clear();
    }
}

/// Sorts the places of some items, the least first. If the order descends, then equal items have
/// the later one first, because all places are turned round at the end.
struct Sorter<'a, A: Sorted + ?Sized> {
    items: &'a A::Store,
    order: Order,
}

/// Groups of at most this number of texts are compared byte by byte.
const FEW: usize = 16;

/// Texts that are the same up to here are compared byte by byte from here on.
const DEEP: usize = 128;

impl<A: Sorted + ?Sized> Sorter<'_, A> {
    fn text(&self, place: &Ranked) -> &[u8] {
        self.items.at(place.index).key(self.order)
    }

    /// Orders items that are equal.
    fn as_they_came(&self, a: &Ranked, b: &Ranked) -> Ordering {
        if self.order.descending { b.index.cmp(&a.index) } else { a.index.cmp(&b.index) }
    }

    /// By the ranks, and those with the same rank by what is compared further.
    fn by_ranks(&self, places: &mut [Ranked]) {
        places.sort_unstable_by(|a, b| a.rank.cmp(&b.rank).then_with(|| self.as_they_came(a, b)));
        for group in places.chunk_by_mut(|a, b| a.rank == b.rank).filter(|group| group.len() > 1) {
            let item = |place: &Ranked| self.items.at(place.index);
            // The items of a group are in the order in which they came, and a stable sort keeps it.
            group.sort_by(|a, b| item(a).compare_further(item(b), self.order));
        }
    }

    /// By the texts, which are the same up to `at`. The ranks are the words from there on.
    fn by_words(&self, places: &mut [Ranked], at: usize) {
        places.sort_unstable_by_key(|place| place.rank);
        let next = at + size_of::<u64>();
        for group in places.chunk_by_mut(|a, b| a.rank == b.rank).filter(|group| group.len() > 1) {
            if group.len() <= FEW || next > DEEP {
                let rest = |place: &Ranked| self.text(place).get(at..).unwrap_or_default();
                group.sort_unstable_by(|a, b| rest(a).cmp(rest(b)).then_with(|| self.as_they_came(a, b)));
                continue;
            }
            // Texts that have ended come before longer texts, the shorter one first. A shorter one
            // has the same word if the longer one has zeros.
            for place in &mut *group {
                place.rank = self.text(place).len().min(next + 1) as u64;
            }
            group.sort_unstable_by(|a, b| a.rank.cmp(&b.rank).then_with(|| self.as_they_came(a, b)));
            let ended = group.partition_point(|place| place.rank <= next as u64);
            let longer = &mut group[ended..];
            for place in &mut *longer {
                place.rank = word(self.text(place), next);
            }
            if longer.len() > 1 {
                self.by_words(longer, next);
            }
        }
    }
}
