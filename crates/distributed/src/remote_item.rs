//! [`RemoteItem`]: the items of a pipeline that may go from rank to rank, and the form in which a
//! chunk of them goes. `serve.rs` and `on_rank.rs` send and receive chunks.

use selvedge_mpi::Message;
use selvedge_pipeline::{Chunk, Item, ListStore, Store};
use std::ops::ControlFlow;

/// An item of a pipeline that may go to another rank: a value that is a
/// [`Message`], or a list `[E]` of such values.
#[diagnostic::on_unimplemented(
    message = "items of type `{Self}` cannot go to another rank",
    note = "an item is a value that is an `mpi::Message`, or a list `[E]` of such values"
)]
pub trait RemoteItem: Item<Store: Send> {
    /// A chunk as a message.
    type Wire: Message;

    /// The chunk as a message.
    fn to_wire(chunk: Self::Chunk<'_>) -> Self::Wire;

    /// The items of a message.
    fn from_wire(wire: Self::Wire) -> Self::Store;
}

impl<T: Message + Clone> RemoteItem for T {
    type Wire = Vec<T>;

    fn to_wire(chunk: &[T]) -> Vec<T> {
        chunk.to_vec()
    }

    fn from_wire(wire: Vec<T>) -> Vec<T> {
        wire
    }
}

/// The elements of all lists, and the length of each list.
impl<E: Message + Clone> RemoteItem for [E] {
    type Wire = (Vec<E>, Vec<u64>);

    fn to_wire(chunk: <[E] as Item>::Chunk<'_>) -> (Vec<E>, Vec<u64>) {
        let (mut elements, mut lengths) = (Vec::new(), Vec::new());
        let _never_breaks = chunk.each(|list| {
            elements.extend_from_slice(list);
            lengths.push(list.len() as u64);
            ControlFlow::Continue(())
        });
        (elements, lengths)
    }

    fn from_wire((elements, lengths): (Vec<E>, Vec<u64>)) -> ListStore<E> {
        let mut lists = ListStore::default();
        let mut rest = &elements[..];
        for length in lengths {
            let (list, after) = rest.split_at(rest.len().min(length as usize));
            lists.keep(list);
            rest = after;
        }
        lists
    }
}
