//! `sort`: keeps all items, and yields them in order at the end.
//!
//! `sorted` in `stage.rs` calls one function for each kind of items. The sort is stable: items that
//! are equal keep their order. It moves numbers of places, and no items.

use crate::language::number::Decimal;
use crate::language::tree::Order;
use crate::regex::chomp;
use selvedge_coroutine::pipeline::csv::Fields;
use selvedge_coroutine::pipeline::{Flow, HasKind, Item, Sink, Store, Transduce, Transducer};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// The stage of [`sort_lines`], [`sort_records`] and [`sort_numbers`].
#[derive(Debug, Clone)]
pub struct Sort<C> {
    items: C,
    order: Order,
}

/// An item that is sorted.
pub trait Sorted: HasKind {
    /// The text that is compared.
    fn key(&self, order: Order) -> &[u8];

    /// The order of two items that are not compared as numbers.
    fn compare(&self, other: &Self, order: Order) -> Ordering {
        self.key(order).cmp(other.key(order))
    }
}

/// The number at the beginning of a text, behind the blanks of `sort`, and 0 if there is none.
#[derive(Debug, Clone, Copy)]
struct NumberKey {
    /// The nearest `f64`, which may be infinite.
    near: f64,
    /// Another number may have the same nearest `f64`.
    is_long: bool,
}

/// The most digits for which two different numbers always have different nearest `f64`s, within the
/// range of `f64`.
const DIGITS: usize = 15;

/// The number at the beginning of a text, with its text.
fn number(text: &[u8]) -> Option<(&str, Decimal<'_>)> {
    let blanks = text.iter().take_while(|byte| b" \t\n".contains(byte)).count();
    let text = &text[blanks..];
    let (length, number) = Decimal::at_beginning(text)?;
    Some((std::str::from_utf8(&text[..length]).ok()?, number))
}

impl NumberKey {
    fn of(text: &[u8]) -> NumberKey {
        let Some((text, number)) = number(text) else { return NumberKey { near: 0.0, is_long: false } };
        // The sum makes 0 of -0, because the two are equal.
        let near = text.parse::<f64>().unwrap_or(0.0) + 0.0;
        let is_long = number.digits() > DIGITS || !near.is_finite() || near.abs() < f64::MIN_POSITIVE;
        NumberKey { near, is_long: is_long && number.digits() > 0 }
    }
}

/// The number at the beginning of a text. A text without one is 0.
fn exact(text: &[u8]) -> Decimal<'_> {
    number(text).map_or(Decimal::ZERO, |(_, number)| number)
}

/// The order of the numbers at the beginnings of two texts with these keys.
fn compare_numbers(a: (NumberKey, &[u8]), b: (NumberKey, &[u8])) -> Ordering {
    a.0.near.total_cmp(&b.0.near).then_with(|| {
        if !a.0.is_long && !b.0.is_long {
            return Ordering::Equal;
        }
        exact(a.1).compare(&exact(b.1))
    })
}

impl Sorted for [u8] {
    fn key(&self, _order: Order) -> &[u8] {
        chomp(self)
    }
}

impl Sorted for Fields {
    fn key(&self, order: Order) -> &[u8] {
        self.get(order.column.unwrap_or(1) - 1).unwrap_or_default()
    }
}

impl Sorted for u64 {
    fn key(&self, _order: Order) -> &[u8] {
        &[]
    }

    fn compare(&self, other: &u64, _order: Order) -> Ordering {
        self.cmp(other)
    }
}

fn sort<A: Sorted + ?Sized>(order: Order) -> Transducer<A, A, Sort<A::Store>> {
    Transducer::new(Sort { items: <A as Item>::Store::default(), order })
}

/// Yields the lines in order, by their bytes or by the number that each begins with. All are kept.
pub fn sort_lines(order: Order) -> Transducer<[u8], [u8], Sort<<[u8] as Item>::Store>> {
    sort(order)
}

/// Yields the records in the order of a column. All are kept.
pub fn sort_records(order: Order) -> Transducer<Fields, Fields, Sort<Vec<Fields>>> {
    sort(order)
}

/// Yields the numbers in order. All are kept.
pub fn sort_numbers(order: Order) -> Transducer<u64, u64, Sort<Vec<u64>>> {
    sort(Order { numeric: false, ..order })
}

impl<A: Sorted + ?Sized, C: Store<A>> Transduce<A, A> for Sort<C> {
    const CHUNKS: bool = true;

    fn put<S: Sink<A>>(&mut self, item: &A, _out: &mut S) -> Flow {
        self.items.keep(item);
        ControlFlow::Continue(())
    }

    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, _out: &mut S) -> Flow {
        self.items.keep_all(chunk);
        ControlFlow::Continue(())
    }

    fn end<S: Sink<A>>(&mut self, out: &mut S) -> Flow {
        let (items, order) = (&self.items, self.order);
        let mut places: Vec<usize> = (0..items.count()).collect();
        let turned = |ordering: Ordering| if order.descending { ordering.reverse() } else { ordering };
        if order.numeric {
            let values: Vec<NumberKey> =
                places.iter().map(|place| NumberKey::of(items.at(*place).key(order))).collect();
            let number = |place: usize| (values[place], items.at(place).key(order));
            places.sort_by(|a, b| turned(compare_numbers(number(*a), number(*b))));
        } else {
            places.sort_by(|a, b| turned(items.at(*a).compare(items.at(*b), order)));
        }
        places.into_iter().try_for_each(|place| out.put(items.at(place)))
    }
}
