//! The items that wait for a body: `Io` in `body.rs` takes them from the front, and gives items
//! back to the front.
//!
//! Items without a destructor are copied out, and a count tells how many are gone. The others are
//! moved out of a vector that has the first item last. Both are a load and a store for an item, in
//! safe code, and items without a destructor need not be turned around before.

use std::mem::{needs_drop, swap, take};

/// Items in the order of the stream.
pub(crate) struct Queue<A> {
    /// The first item is the last one, if items are moved out.
    items: Vec<A>,
    /// How many of `items` are gone, if items are copied out.
    gone: usize,
}

impl<A> Queue<A> {
    /// Whether items are moved out.
    const MOVES: bool = needs_drop::<A>();

    pub(crate) const fn new() -> Self {
        Queue { items: Vec::new(), gone: 0 }
    }

    /// Takes the items of `items` into the queue, which is empty, and leaves the queue's memory.
    pub(crate) fn fill_from(&mut self, items: &mut Vec<A>) {
        debug_assert!(self.first().is_none(), "items would be out of order");
        self.clear();
        if Self::MOVES {
            items.reverse();
        }
        swap(&mut self.items, items);
    }

    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&A> {
        if Self::MOVES { self.items.last() } else { self.items.get(self.gone) }
    }

    /// Removes all items, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.gone = 0;
    }

    /// All items, in the order of the stream. The queue is empty after that.
    pub(crate) fn take_all(&mut self) -> Vec<A> {
        let mut items = take(&mut self.items);
        if Self::MOVES {
            items.reverse();
        } else {
            items.drain(..take(&mut self.gone));
        }
        items
    }
}

impl<A: Clone> Queue<A> {
    /// Copies the items of a chunk into the queue, which is empty.
    pub(crate) fn fill(&mut self, chunk: &[A]) {
        debug_assert!(self.first().is_none(), "items would be out of order");
        self.clear();
        if Self::MOVES {
            self.items.extend(chunk.iter().rev().cloned());
        } else {
            self.items.extend_from_slice(chunk);
        }
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<A> {
        if Self::MOVES {
            return self.items.pop();
        }
        let item = self.items.get(self.gone)?.clone();
        self.gone += 1;
        Some(item)
    }

    #[inline]
    pub(crate) fn push_front(&mut self, item: A) {
        if Self::MOVES {
            return self.items.push(item);
        }
        if self.gone == 0 {
            self.make_space(&item);
        }
        self.gone -= 1;
        self.items[self.gone] = item;
    }

    /// Makes as many places before the first item as there are items. So the cost of many calls of
    /// `push_front` is constant for each.
    #[cold]
    fn make_space(&mut self, filler: &A) {
        self.gone = self.items.len().max(8);
        let mut items = vec![filler.clone(); self.gone];
        items.append(&mut self.items);
        self.items = items;
    }
}
