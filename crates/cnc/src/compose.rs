//! Steps that are made of simpler ones: `Graph::prescribe_reduce` and `Graph::prescribe_join`.
//!
//! The program calls them while it builds the graph. Both use public collections and
//! `Graph::prescribe` only, so this file has no access to a graph's internals.
//!
//! The result must not depend on the order in which the steps run. A reduction is a tree, and the
//! form of the tree depends on the number of items alone. A join makes each pair once: a step notes
//! its tag and reads the tags of the other side under one lock.

use std::sync::Arc;

use crate::collections::{ItemCol, Items};
use crate::graph::Graph;
use crate::key::ItemKey;
use crate::primitives::{Mutex, lock};
use crate::tags::TagCol;

/// A step of a reduction combines so many values.
const FAN: u32 = 16;

impl<'g> Graph<'g, '_> {
    /// Has each tag of a collection combine items of `from`, and put the result under the tag.
    ///
    /// `key` says the key of each item, by the tag and the item's number from 0 on, and `None`
    /// after the last one. The items are combined in the order of their numbers, as a tree with a
    /// form that depends on their count alone. So the result is the same under every scheduler, bit
    /// for bit, also if `combine` is not associative, as the addition of floating-point numbers. A
    /// reduction of no items puts nothing.
    ///
    /// # Complexity
    /// One step for 16 items, and one for 16 results of those, in a tree. Steps of one level run
    /// side by side. The partial results are dropped.
    ///
    /// # Examples
    /// The sums of the rows of a table:
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sums: Vec<f64> = cnc::graph(|graph| {
    ///     let cells = graph.items_with("cells", Items::dense((3_u32, 100_u32)));
    ///     let (rows, sums) = (graph.tags("rows"), graph.items("sums"));
    ///     let key = |&row: &u32, n| (n < 100).then_some((row, n));
    ///     graph.prescribe_reduce(rows, "sum", cells, key, sums, |a, b| a + b);
    ///     graph.initialize(|env| {
    ///         (0..3).try_for_each(|row| env.put_tag(rows, row))?;
    ///         let all = (0..3).flat_map(|row| (0..100).map(move |column| (row, column)));
    ///         let cell = |i, j| f64::from(i * j) / 10.0;
    ///         all.into_iter().try_for_each(|(i, j)| env.put(cells, (i, j), cell(i, j)))
    ///     })?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(sums).map(|(_, sum)| *sum).collect()))
    /// })?;
    /// let exact = [0.0, 495.0, 990.0];
    /// assert!(sums.iter().zip(exact).all(|(sum, exact)| (sum - exact).abs() < 1e-9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_reduce<T, K, V>(
        &'g self,
        tags: TagCol<'g, T>,
        name: &str,
        from: ItemCol<'g, K, V>,
        key: impl Fn(&T, u32) -> Option<K> + Send + Sync + 'g,
        to: ItemCol<'g, T, V>,
        combine: impl Fn(&V, &V) -> V + Send + Sync + 'g,
    ) where
        T: ItemKey + 'g,
        K: ItemKey + 'g,
        V: Clone + Send + Sync + 'g,
    {
        // A node of the tree: the tag, the level, the number on the level, and the number of nodes
        // on the level below. Level 0 has the items themselves.
        let nodes: TagCol<'g, (T, u32, u32, u32)> = self.tags(name);
        let partial: ItemCol<'g, (T, u32, u32), V> =
            self.items_with(name, Items::hashed().counted(|_| Some(1)));
        let key = Arc::new(key);
        let has_item = key.clone();
        self.prescribe(tags, name, move |tag, step| {
            let mut below = (0..).take_while(|&number| has_item(&tag, number).is_some()).count() as u32;
            let mut level = 0;
            while below > 1 || level == 0 && below > 0 {
                (level, below) = (level + 1, {
                    let width = below.div_ceil(FAN);
                    let node = |number| (tag.clone(), level + 1, number, below);
                    (0..width).try_for_each(|number| step.put_tag(nodes, node(number)))?;
                    width
                });
            }
            Ok(())
        });
        self.prescribe(nodes, name, move |(tag, level, number, below), step| {
            let child = |number| match level {
                1 => step.get(from, key(&tag, number).expect("a key is the same each time")),
                _ => step.get(partial, (tag.clone(), level - 1, number)),
            };
            let begin = number * FAN;
            let mut value = child(begin)?.clone();
            for number in begin + 1..below.min(begin + FAN) {
                value = combine(&value, child(number)?);
            }
            if below <= FAN {
                step.put(to, tag, value)
            } else {
                step.put(partial, (tag, level, number), value)
            }
        });
    }

    /// Puts each pair of a tag of `left` and a tag of `right` as a tag of `to`.
    ///
    /// # Complexity
    /// All tags of both collections are kept until the graph ends.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let products = cnc::graph(|graph| {
    ///     let (left, right) = (graph.tags::<u32>("left"), graph.tags::<u32>("right"));
    ///     let pairs = graph.tags("pairs");
    ///     let products = graph.items("products");
    ///     graph.prescribe_join(left, right, pairs);
    ///     graph.prescribe(pairs, "multiply", move |(a, b), step| {
    ///         step.put(products, (a, b), a * b)
    ///     });
    ///     graph.initialize(|env| {
    ///         (1..=9).try_for_each(|n| env.put_tag(left, n).and_then(|()| env.put_tag(right, n)))
    ///     })?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(products).map(|(_, n)| *n).sum::<u32>()))
    /// })?;
    /// assert_eq!(products, 45 * 45);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_join<A, B>(&'g self, left: TagCol<'g, A>, right: TagCol<'g, B>, to: TagCol<'g, (A, B)>)
    where
        A: ItemKey + 'g,
        B: ItemKey + 'g,
    {
        // A tag is noted, and those of the other side are copied, under one lock. So of each pair
        // the tag that is noted second makes it, and the pairs do not depend on the order.
        let met = Arc::new(Mutex::new((Vec::<A>::new(), Vec::<B>::new())));
        let other = met.clone();
        self.prescribe(left, "join", move |a, step| {
            let partners = {
                let mut met = lock(&met);
                met.0.push(a.clone());
                met.1.clone()
            };
            partners.into_iter().try_for_each(|b| step.put_tag(to, (a.clone(), b)))
        });
        self.prescribe(right, "join", move |b, step| {
            let partners = {
                let mut met = lock(&other);
                met.1.push(b.clone());
                met.0.clone()
            };
            partners.into_iter().try_for_each(|a| step.put_tag(to, (a, b.clone())))
        });
    }
}
