//! Steps that are made of simpler ones: `Graph::prescribe_reduce`, `Graph::prescribe_join` and
//! `Graph::prescribe_join_by`.
//!
//! The program calls them while it builds the graph. All use public collections and
//! `Graph::prescribe` only, so this file has no access to a graph's internals.
//!
//! The result must not depend on the order in which the steps run. A reduction is a tree, and the
//! form of the tree depends on the number of items alone. A join makes each pair once: a step notes
//! its tag and reads the tags of the other side under one lock.

use crate::graph::Graph;
use crate::items::{ItemCol, Items};
use crate::key::{ItemKey, fold, hash_of};
use crate::primitives::{Mutex, lock};
use crate::tags::TagCol;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of values that a step of a reduction combines.
const FAN: u32 = 16;

/// The number of parts of a join, each with a lock.
const PARTS: usize = 16;

/// The tags of both sides of a join that have come and have one key.
type Sides<A, B> = (Vec<A>, Vec<B>);

/// The tags of both sides of a join that have come, by their keys.
struct MetTags<A, B, K>([Mutex<HashMap<K, Sides<A, B>>>; PARTS]);

impl<A: Clone, B: Clone, K: ItemKey> MetTags<A, B, K> {
    fn new() -> Self {
        MetTags(std::array::from_fn(|_| Mutex::new(HashMap::new())))
    }

    /// Notes a tag, and returns the tags of the other side that have come before it. Both are done
    /// under one lock, so of each pair the tag that comes second makes it.
    fn meet<R>(&self, key: K, note: impl FnOnce(&mut Sides<A, B>) -> R) -> R {
        let part = fold(hash_of(&key)) as usize % PARTS;
        note(lock(&self.0[part]).entry(key).or_default())
    }
}

impl<'g> Graph<'g, '_> {
    /// Prescribes a reduction: for each tag of a collection, a step combines items of `from`, and
    /// puts the result under the tag.
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
    ///     let cells = graph.items_in("cells", Items::dense((3_u32, 100_u32)));
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
            self.items_in(name, Items::hashed().counted(|_| Some(1)));
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

    /// Puts each pair of a tag of `left` and a tag of `right` as a tag of `to`. For pairs of some
    /// tags alone there is [`prescribe_join_by`](Graph::prescribe_join_by).
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
        self.prescribe_join_by(left, |_| (), right, |_| (), to);
    }

    /// Puts each pair of a tag of `left` and a tag of `right` that have the same key as a tag of
    /// `to`. The pair is put as soon as both tags are there.
    ///
    /// # Complexity
    /// A tag takes a search in a table, a lock of one of 16 parts of the table, and time for the
    /// tags of the other side with its key. All tags of both collections are kept until the graph
    /// ends.
    ///
    /// # Examples
    /// The orders of each customer, whichever of the two is known first:
    /// ```
    /// use selvedge::cnc::{self, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let letters = cnc::graph(|graph| {
    ///     // The number of a customer and the name; the number of a customer and of an order.
    ///     let customers = graph.tags::<(u32, &'static str)>("customers");
    ///     let orders = graph.tags::<(u32, u32)>("orders");
    ///     let both = graph.tags("both");
    ///     let letters = graph.items("letters");
    ///     graph.prescribe_join_by(customers, |&(id, _)| id, orders, |&(id, _)| id, both);
    ///     graph.prescribe(both, "write", move |((_, name), (_, order)), step| {
    ///         step.put(letters, order, format!("Dear {name}, order {order} is on its way."))
    ///     });
    ///     graph.initialize(|env| {
    ///         for order in [(2, 11), (1, 12), (2, 13), (4, 14)] {
    ///             env.put_tag(orders, order)?;
    ///         }
    ///         for customer in [(1, "Ada"), (2, "Alan"), (3, "Grace")] {
    ///             env.put_tag(customers, customer)?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| {
    ///         view.iter(letters).map(|(_, letter)| letter.clone()).collect::<Vec<_>>()
    ///     }))
    /// })?;
    /// assert_eq!(letters.len(), 3);
    /// assert_eq!(letters[1], "Dear Ada, order 12 is on its way.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_join_by<A, B, K>(
        &'g self,
        left: TagCol<'g, A>,
        left_key: impl Fn(&A) -> K + Send + Sync + 'g,
        right: TagCol<'g, B>,
        right_key: impl Fn(&B) -> K + Send + Sync + 'g,
        to: TagCol<'g, (A, B)>,
    ) where
        A: ItemKey + 'g,
        B: ItemKey + 'g,
        K: ItemKey + 'g,
    {
        let met = Arc::new(MetTags::new());
        let other = met.clone();
        self.prescribe(left, "join", move |a, step| {
            let partners: Vec<B> = met.meet(left_key(&a), |(left, right)| {
                left.push(a.clone());
                right.clone()
            });
            partners.into_iter().try_for_each(|b| step.put_tag(to, (a.clone(), b)))
        });
        self.prescribe(right, "join", move |b, step| {
            let partners: Vec<A> = other.meet(right_key(&b), |(left, right)| {
                right.push(b.clone());
                left.clone()
            });
            partners.into_iter().try_for_each(|a| step.put_tag(to, (a, b.clone())))
        });
    }
}
