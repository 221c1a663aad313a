//! `StreamPlace`: where in a stream something lies. Stages that may fail count with it.

use crate::item::Item;

/// A place in a stream: what lies before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamPlace {
    /// Items before it.
    pub items: u64,
    /// Elements before it: bytes, if the items are bytes or lists of bytes.
    pub elements: u64,
}

impl StreamPlace {
    /// The place after `item`.
    #[inline(always)]
    pub(crate) fn pass<A: Item + ?Sized>(&mut self, item: &A) {
        self.items += 1;
        self.elements += A::elements(item);
    }
}
