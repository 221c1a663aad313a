//! Tag collections. The program has the handle [`TagCol`]; the graph owns the store, [`TagStore`].
//!
//! `TagCol::add` makes the stores. `Graph::prescribe` adds the steps to them, and the puts of
//! `step/put.rs` make these steps ready. The catalogue has the stores without their types, as
//! [`AnyTags`].
//!
//! Paper: [NCM11 §2, §2.1]; a memoised tag collection is from §3.2.

use crate::arena::{Owned, UntilTheEnd};
use crate::catalogue::AnyTags;
use crate::core::Core;
use crate::first_panic::clear;
use crate::key::{ItemKey, fold, identity_of};
use crate::primitives::{Mutex, lock};
use crate::ready_step::StepEntry;
use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;

/// A handle of a tag collection: a message board for steps. Each tag that is put runs every step
/// that the collection prescribes, once.
///
/// # Paper
/// [NCM11 §2, §2.1]: `TagCol`. §3.2: executed tags may be stored.
///
/// # Examples
/// A graph's steps put tags in its own collections alone:
/// ```compile_fail,E0521
/// use selvedge::cnc;
///
/// cnc::graph(|one| {
///     cnc::graph(|other| {
///         let tags = one.tags::<u32>("of the first graph");
///         other.initialize(|env| env.put_tag(tags, 1)) // another graph's handle
///     })
/// });
/// ```
/// Its tags run its own steps alone:
/// ```compile_fail,E0521
/// use selvedge::cnc;
///
/// cnc::graph(|one| {
///     cnc::graph(|other| {
///         let tags = one.tags::<u32>("of the first graph");
///         other.prescribe(tags, "step", |_, _| Ok(())); // another graph's handle
///     })
/// });
/// ```
/// Of a memoised collection, a tag that is put again runs nothing:
/// ```
/// use selvedge::cnc::{self, schedulers::OneByOne};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let sum = cnc::graph(|graph| {
///     let tags = graph.memoised_tags::<u32>("numbers");
///     let items = graph.items::<u32, u32>("seen");
///     graph.prescribe(tags, "see", move |n, step| {
///         step.put(items, n, n)?;
///         // Without memory, this would go on for ever.
///         step.put_tag(tags, (n + 3) % 5)
///     });
///     graph.initialize(|env| env.put_tag(tags, 0))?;
///     Ok(graph.run(&OneByOne)?.finalize(|view| view.iter(items).map(|(_, n)| n).sum::<u32>()))
/// })?;
/// assert_eq!(sum, 10);
/// # Ok(())
/// # }
/// ```
pub struct TagCol<'g, T>(pub(crate) &'g TagStore<'g, T>);

impl<T> Clone for TagCol<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TagCol<'_, T> {}

impl<'g, T> TagCol<'g, T> {
    /// The name of the collection.
    pub fn name(&self) -> &'g str {
        &self.0.name
    }
}

impl<T> fmt::Debug for TagCol<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TagCol({})", self.0.name)
    }
}

impl<'g, T: ItemKey + 'g> TagCol<'g, T> {
    /// Adds a tag collection to a graph. A memoised one remembers its tags.
    pub(crate) fn add(core: &'g Core<'g>, name: &str, memoised: bool) -> Self {
        let catalogue = &core.catalogue;
        TagCol(catalogue.add_tags(|number| catalogue.own(TagStore::new(number, name, memoised))))
    }
}

/// The number of parts of a set of tags, each with a lock.
const SETS: usize = 16;

/// The tags of a memoised collection that were put, spread over sets by their hash.
type SeenTags<T> = Box<[Mutex<HashSet<T>>]>;

/// The store of a tag collection.
pub(crate) struct TagStore<'g, T> {
    pub(crate) number: usize,
    pub(crate) name: String,
    /// The steps that the collection prescribes: the first; the others follow in `StepEntry::next`.
    pub(crate) first: OnceLock<&'g StepEntry<'g>>,
    seen: UntilTheEnd<Option<SeenTags<T>>>,
}

impl<T: ItemKey> TagStore<'_, T> {
    pub(crate) fn new(number: usize, name: &str, memoised: bool) -> Self {
        let sets = || (0..SETS).map(|_| Mutex::new(HashSet::new())).collect();
        TagStore {
            number,
            name: name.to_owned(),
            first: OnceLock::new(),
            seen: UntilTheEnd::new(memoised.then(sets)),
        }
    }

    /// Whether the tag is to run the steps.
    #[inline]
    pub(crate) fn is_new(&self, tag: &T) -> bool {
        self.seen.as_ref().is_none_or(|sets| Self::is_first(sets, tag))
    }

    #[cold]
    #[inline(never)]
    fn is_first(sets: &[Mutex<HashSet<T>>], tag: &T) -> bool {
        lock(&sets[fold(identity_of(tag)) as usize % SETS]).insert(tag.clone())
    }
}

impl<'g, T> TagStore<'g, T> {
    /// Adds a step.
    pub(crate) fn prescribe(&self, entry: &'g StepEntry<'g>) {
        let mut place = &self.first;
        while let Err(refused) = place.set(entry) {
            let _ = refused;
            place = &place.get().expect("a value was refused because there is one").next;
        }
    }
}

impl<'g, T: Send + Sync> AnyTags<'g, StepEntry<'g>> for TagStore<'g, T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn first(&self) -> Option<&'g StepEntry<'g>> {
        self.first.get().copied()
    }
}

impl<T> Owned for TagStore<'_, T> {
    unsafe fn empty(&self) {
        // SAFETY: as promised by the caller.
        unsafe { self.seen.replace(None) };
    }

    unsafe fn reset(&self) {
        self.seen.iter().flatten().for_each(clear);
    }
}
