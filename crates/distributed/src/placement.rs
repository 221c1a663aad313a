//! Where the items of a collection go: [`ItemPlacement`]. The program makes one for each
//! collection, and `item_collection.rs` asks it at each put, and at each get that may miss.

use std::fmt;

/// Calls the function with each rank to which an item of the key goes.
type Consumers<K> = Box<dyn Fn(&K, &mut dyn FnMut(usize)) + Send + Sync>;

/// The rank on which an item of the key is made.
type Producer<K> = Box<dyn Fn(&K) -> usize + Send + Sync>;

/// On which ranks the items of a collection are.
///
/// All ranks must give the same answer for a key, as a function of the key alone.
///
/// The names are those of Intel's Concurrent Collections for C++.
///
/// # Examples
/// See [`graph`](crate::graph()).
pub struct ItemPlacement<K> {
    pub(crate) way: PlacementWay<K>,
    pub(crate) producer: Option<Producer<K>>,
}

/// How an item comes to the ranks that get it.
pub(crate) enum PlacementWay<K> {
    /// The rank that puts it sends it to all ranks that get it.
    Pushed(Consumers<K>),
    /// It is on the rank that makes it, and each other rank that gets it asks once.
    Fetched,
}

impl<K> ItemPlacement<K> {
    /// The items are got on these ranks alone. The rank that puts an item sends it to each of them,
    /// once. It keeps the item itself only if it is one of them.
    ///
    /// A step on another rank that gets the item waits for ever, and is reported.
    pub fn consumed_on<I>(ranks: impl Fn(&K) -> I + Send + Sync + 'static) -> ItemPlacement<K>
    where
        I: IntoIterator<Item = usize>,
    {
        let each = move |key: &K, put: &mut dyn FnMut(usize)| ranks(key).into_iter().for_each(put);
        ItemPlacement { way: PlacementWay::Pushed(Box::new(each)), producer: None }
    }

    /// The items may be got on any rank, and are kept on this one. Another rank that gets an item
    /// asks for it, once, and keeps a copy. A put on another rank sends the item there.
    ///
    /// # Complexity
    /// Two messages for each item and rank, where [`consumed_on`](Self::consumed_on) has one.
    pub fn produced_on(rank: impl Fn(&K) -> usize + Send + Sync + 'static) -> ItemPlacement<K> {
        ItemPlacement { way: PlacementWay::Fetched, producer: Some(Box::new(rank)) }
    }

    /// Says which rank makes an item that is [pushed](Self::consumed_on), for the report of an item
    /// that was never put.
    #[must_use]
    pub fn with_producer(self, rank: impl Fn(&K) -> usize + Send + Sync + 'static) -> ItemPlacement<K> {
        ItemPlacement { producer: Some(Box::new(rank)), ..self }
    }
}

impl<K> fmt::Debug for ItemPlacement<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            PlacementWay::Pushed(_) => "pushed",
            PlacementWay::Fetched => "fetched",
        };
        write!(f, "ItemPlacement({way})")
    }
}
