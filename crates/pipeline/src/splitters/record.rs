//! What a splitter has said of the items so far, so that two splitters can be compared item by
//! item.
//!
//! Two splitters over one stream decide at different times: one of them may hold an item back until
//! it sees the next ones. A [`Marks`] keeps the marks of the items that only one has decided.
//!
//! `logic.rs` and `flow.rs` use it as the downstream side of their splitters. It never breaks.

use crate::item::{Flow, GO_ON, Item};
use crate::stage::Sections;
use std::collections::VecDeque;

/// What a splitter says of one item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mark {
    pub(crate) verdict: bool,
    /// A section begins with the item.
    pub(crate) cut: bool,
    /// How many true sections have begun since the item before: this item's, and empty ones.
    pub(crate) starts: u32,
}

/// The marks of a splitter, in the order of the items.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    pub(crate) marks: VecDeque<Mark>,
    /// No item of the section that is open has come.
    fresh: bool,
    /// Empty true sections since the last item.
    empty: u32,
}

impl Marks {
    pub(crate) fn new() -> Marks {
        Marks { marks: VecDeque::new(), fresh: true, empty: 0 }
    }
}

impl<A: Item + ?Sized> Sections<A> for Marks {
    #[inline]
    fn part(&mut self, verdict: bool, _item: &A) -> Flow {
        let cut = std::mem::replace(&mut self.fresh, false);
        let starts = std::mem::take(&mut self.empty) + u32::from(cut && verdict);
        self.marks.push_back(Mark { verdict, cut, starts });
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if std::mem::replace(&mut self.fresh, true) {
            self.empty += u32::from(verdict);
        }
        GO_ON
    }
}
