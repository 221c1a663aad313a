//! [`Definitions`]: what the handles of a distributed graph refer to. It is made before the graph
//! and dropped after it, so that a handle is a copy of references, as the handles of a graph are.
//!
//! `DistributedGraph` adds to it, and nothing is taken out.

use std::any::Any;
use std::cell::OnceCell;

/// Values of any types that stay where they are.
#[derive(Default)]
pub(crate) struct Definitions {
    first: OnceCell<Box<Definition>>,
}

struct Definition {
    value: Box<dyn Any + Send + Sync>,
    next: OnceCell<Box<Definition>>,
}

impl Definitions {
    /// Keeps a value to the end.
    ///
    /// # Complexity
    /// O(values): a graph has some ten.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, value: T) -> &T {
        let mut place = &self.first;
        while let Some(taken) = place.get() {
            place = &taken.next;
        }
        let definition = Definition { value: Box::new(value), next: OnceCell::new() };
        let kept = place.get_or_init(|| Box::new(definition));
        kept.value.downcast_ref().expect("the place was free, so it has the value")
    }
}
