//! `sort` in a branch: keeps all items, and yields them in order at the end of the branch.
//!
//! `sorted` in `stage.rs` calls [`sort`]. A `sort` that stands in a pipeline itself is
//! [`SortedSource`](crate::sort::SortedSource), because it may need temporary files, and stages
//! never wait.

use crate::language::tree::Order;
use crate::sort::{Gathered, Sorted};
use selvedge_pipeline::{Flow, Item, Sink, Store, Transduce, Transducer};
use std::ops::ControlFlow;

/// The stage of [`sort`].
#[derive(Debug, Clone)]
pub struct Sort<C> {
    items: Gathered<C>,
    order: Order,
    /// Some items of the output.
    out: C,
}

/// The bytes of a chunk that it yields, more or less.
const CHUNK: usize = 64 << 10;

/// Yields the items in order. All are kept.
pub fn sort<A: Sorted + ?Sized>(order: Order) -> Transducer<A, A, Sort<A::Store>> {
    Transducer::new(Sort { items: Gathered::default(), order, out: <A as Item>::Store::default() })
}

impl<A: Sorted<Store = C> + ?Sized, C: Store<A>> Transduce<A, A> for Sort<C> {
    const CHUNKS: bool = true;

    fn put<S: Sink<A>>(&mut self, item: &A, _out: &mut S) -> Flow {
        self.items.items().keep(item);
        ControlFlow::Continue(())
    }

    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, _out: &mut S) -> Flow {
        self.items.items().keep_all(chunk);
        ControlFlow::Continue(())
    }

    fn end<S: Sink<A>>(&mut self, out: &mut S) -> Flow {
        self.items.sort::<A>(self.order);
        let mut next = 0;
        loop {
            self.out.clear();
            next = self.items.copy_some::<A>(next, CHUNK, &mut self.out);
            if self.out.count() == 0 {
                return ControlFlow::Continue(());
            }
            out.put_chunk(self.out.all())?;
        }
    }
}
