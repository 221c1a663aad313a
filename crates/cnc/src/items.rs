//! Item collections, as the program has them: the handle [`ItemCol`], and the description of a
//! collection, [`Items`]. The graph owns the store (`item_store.rs`).
//!
//! Paper: [NCM11 §2, §2.1].

use crate::core::Core;
use crate::item_store::{CountOf, ItemStore};
use crate::key::{Grid, ItemKey};
use crate::storage::{Shape, Storage};
use std::fmt;

/// A handle of an item collection: a table in which each key is put once.
///
/// The handle is a copy of a reference. It belongs to one graph: with another graph's steps it does
/// not compile.
///
/// # Paper
/// [NCM11 §2, §2.1]: `ItemCol`, a table of single-assignment items. Appendix A: the table is chosen
/// by the type of the keys.
///
/// # Examples
/// ```compile_fail,E0521
/// use selvedge::cnc;
///
/// cnc::graph(|one| {
///     cnc::graph(|other| {
///         let items = one.items::<u32, u32>("of the first graph");
///         other.initialize(|env| env.put(items, 1, 1)) // another graph's handle
///     })
/// });
/// ```
pub struct ItemCol<'g, K, V>(pub(crate) &'g ItemStore<'g, K, V>);

impl<K, V> Clone for ItemCol<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for ItemCol<'_, K, V> {}

impl<'g, K, V> ItemCol<'g, K, V> {
    /// The name of the collection, for reports.
    pub fn name(&self) -> &'g str {
        &self.0.name
    }
}

impl<K, V> fmt::Debug for ItemCol<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItemCol({})", self.0.name)
    }
}

impl<'g, K: ItemKey + 'g, V: Send + Sync + 'g> ItemCol<'g, K, V> {
    /// Adds an item collection to a graph, which the environment makes, or a step.
    pub(crate) fn add(core: &'g Core<'g>, name: &str, items: Items<'g, K, V>, by_step: bool) -> Self {
        let catalogue = &core.catalogue;
        ItemCol(catalogue.add_items(|number| catalogue.own(items.build(number, name, by_step))))
    }
}

/// How the items of a collection are kept. The default: hashed, and kept to the end of the graph.
///
/// # Paper
/// [NCM11 §3.4]: maps, because there was no concurrent hash table. Appendix A: the form of a map is
/// chosen by the type of its keys.
///
/// # Differences
/// 1. The program chooses the form, because an array needs to know its extent. Of a hashed
///    collection the type of the keys chooses whether they are compared as words.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, Items, schedulers::OneByOne};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let (rows, columns) = (4_u32, 6_u32);
/// let sum = cnc::graph(|graph| {
///     let cells = graph.items_in("cells", Items::dense((rows, columns)).counted(|_| Some(1)));
///     let total = graph.items::<(), u32>("total");
///     let tags = graph.tags::<()>("all");
///     graph.prescribe(tags, "sum", move |(), step| {
///         let mut sum = 0;
///         for cell in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
///             sum += *step.get(cells, cell)?;
///         }
///         step.put(total, (), sum)
///     });
///     graph.initialize(|env| {
///         env.put_tag(tags, ())?;
///         (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
///             .try_for_each(|cell| env.put(cells, cell, cell.0 * cell.1))
///     })?;
///     let finished = graph.run(&OneByOne)?;
///     Ok(finished.finalize(|view| view.get(total, ()).copied()))
/// })?;
/// assert_eq!(sum, Some(90));
/// # Ok(())
/// # }
/// ```
pub struct Items<'g, K, V> {
    place: StoragePlan<K>,
    count: Option<CountOf<'g, K>>,
    equal: Option<fn(&V, &V) -> bool>,
}

/// Where the items of a collection are to lie.
enum StoragePlan<K> {
    Hashed,
    Dense(Shape<K>),
    Paged(Shape<K>),
    Streamed,
}

impl<K: ItemKey, V> Default for Items<'_, K, V> {
    fn default() -> Self {
        Items::hashed()
    }
}

impl<'g, K: ItemKey, V> Items<'g, K, V> {
    /// Any keys. Keys that fit in a word are compared as words.
    ///
    /// # Complexity
    /// A get of an item that is there is a search in a table, without a lock. A new key takes a
    /// lock of one of 16 parts of the table, and memory of its own until the graph ends.
    pub fn hashed() -> Self {
        Items { place: StoragePlan::Hashed, count: None, equal: None }
    }

    /// The keys below `extent` on each axis, in an array that is made at once.
    ///
    /// # Complexity
    /// A get is an index into the array. An item takes 16 bytes beside its value. A page of memory
    /// is used from its first touch on. An array of 4 MiB or more asks the system for pages of
    /// 2 MiB, so a large array with few items is better [`paged`](Items::paged).
    pub fn dense(extent: K) -> Self
    where
        K: Grid,
    {
        Items { place: StoragePlan::Dense(Shape::new(&extent)), count: None, equal: None }
    }

    /// The keys below `extent` on each axis, in pages of 1,024 items. A page is made when the first
    /// of its items is touched, and is used for others when all its items are gone.
    ///
    /// # Complexity
    /// A get of a kept item is two indices. A put, and a get of a counted or missing item, is also
    /// two atomic additions. The directory takes 8 bytes for 1,024 keys.
    pub fn paged(extent: K) -> Self
    where
        K: Grid,
    {
        Items { place: StoragePlan::Paged(Shape::new(&extent)), count: None, equal: None }
    }

    /// Any keys, for a stream of [counted](Items::counted) items that may have no end: an item that
    /// has gone leaves nothing behind, and its place is used for another key.
    ///
    /// The result is the same under every scheduler, as that of any collection. A program with a
    /// fault is told of less:
    /// - If the keys fit in a word ([`ItemKey::BITS`]), the collection remembers which keys have
    ///   gone, as runs of keys that follow one another. So a second put and a get too many are told
    ///   as ever; a second put names one of the two steps.
    /// - Of other keys it remembers nothing. A second put is told until the last step with a get of
    ///   the item has ended, and makes another item from then on. A get too many waits for such an
    ///   item, and is told as [`Stuck`](crate::GraphError::Stuck). Which of both comes depends on
    ///   the schedule. So only a program that puts each key once, and counts its gets right, has
    ///   one result. A step that [declares](crate::Needs::on) an item and does not get it waits for
    ///   ever if it comes after the last get.
    ///
    /// # Complexity
    /// A get, a put, and the end of an item each take a lock of one of 16 parts of the table, and
    /// both a new key that fits in a word and its end take another one. The memory is that of the
    /// most items that were there at one time, and 16 to 50 bytes for each gap between keys that
    /// have gone and fit in a word. Keys that are far apart are better of a type that fits in no
    /// word.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::TaskPool};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let last = cnc::graph(|graph| {
    ///     let rounds = graph.tags::<u64>("rounds");
    ///     let once = Items::streamed().counted(|&n: &u64| (n < 50_000).then_some(1));
    ///     let state = graph.items_in("state", once);
    ///     graph.prescribe(rounds, "round", move |n, step| {
    ///         let before: u64 = *step.get(state, n)?;
    ///         step.put(state, n + 1, before + n)?;
    ///         if n + 1 < 50_000 { step.put_tag(rounds, n + 1) } else { Ok(()) }
    ///     });
    ///     graph.initialize(|env| env.put(state, 0, 0).and_then(|()| env.put_tag(rounds, 0)))?;
    ///     let finished = graph.run(&TaskPool::fifo(2))?;
    ///     assert_eq!(finished.statistics().items[0].put, 50_001);
    ///     Ok(finished.finalize(|view| view.get(state, 50_000).copied()))
    /// })?;
    /// assert_eq!(last, Some(1_249_975_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn streamed() -> Self {
        Items { place: StoragePlan::Streamed, count: None, equal: None }
    }

    /// Says how often the item of a key is got; `None` for an item that is kept. An item is dropped
    /// when the last step that got it has ended. So a get too many is an error, and so is a count
    /// that is left when the run has ended.
    ///
    /// A report does not name the tag of the step that has put an item with more than 65,535 gets.
    ///
    /// # Complexity
    /// A get takes two atomic exchanges. With more than 65,535 gets of an item, they are of another
    /// word of the item, and the last two steps with a get take one more each.
    #[must_use]
    pub fn counted(mut self, count: impl Fn(&K) -> Option<u32> + Send + Sync + 'g) -> Self {
        self.count = Some(Box::new(count));
        self
    }

    /// A second put of an equal value is no error, and has no effect. For an item that is
    /// [counted](Items::counted) it is an error, because its value may be gone.
    #[must_use]
    pub fn equal_allowed(mut self) -> Self
    where
        V: PartialEq,
    {
        self.equal = Some(V::eq);
        self
    }

    fn build(self, number: usize, name: &str, by_step: bool) -> ItemStore<'g, K, V> {
        let storage = match self.place {
            StoragePlan::Hashed => Storage::table(),
            StoragePlan::Dense(shape) => Storage::dense(shape),
            StoragePlan::Paged(shape) => Storage::paged(shape),
            StoragePlan::Streamed => Storage::streamed(),
        };
        ItemStore::new((number, name, by_step), storage, self.count, self.equal)
    }
}

impl<K, V> fmt::Debug for Items<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("counted", &self.count.is_some()).finish_non_exhaustive()
    }
}
