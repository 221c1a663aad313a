//! What a graph is made of: [`Catalogue`], with the steps, the item collections and the tag
//! collections of a graph, and the memory in which they lie. `Core` owns it.
//!
//! A step and a collection have their places in the catalogue as numbers. They stay as long as the
//! graph, and so do references to them. `E` is the entry of a step collection, and `R` a step that
//! is ready.

use crate::any_items::AnyItems;
use crate::arena::{Arena, Owned};
use crate::first_panic::FirstPanic;
use crate::primitives::{Mutex, lock};
use std::sync::OnceLock;

/// A tag collection, whatever its type.
pub(crate) trait AnyTags<'g, E>: Sync {
    fn name(&self) -> &str;

    /// The first step that the collection prescribes.
    fn first(&self) -> Option<&'g E>;
}

/// The steps and the collections of a graph.
pub(crate) struct Catalogue<'g, E, R> {
    arena: Arena,
    steps: Mutex<Vec<&'g E>>,
    items: Mutex<Vec<&'g dyn AnyItems<'g, R>>>,
    tags: Mutex<Vec<&'g dyn AnyTags<'g, E>>>,
    environment: OnceLock<&'g E>,
    forked: OnceLock<&'g E>,
}

impl<'g, E, R> Catalogue<'g, E, R> {
    pub(crate) fn new() -> Self {
        Catalogue {
            arena: Arena::new(),
            steps: Mutex::new(Vec::new()),
            items: Mutex::new(Vec::new()),
            tags: Mutex::new(Vec::new()),
            environment: OnceLock::new(),
            forked: OnceLock::new(),
        }
    }

    /// Takes an object in, which lasts as long as the graph.
    pub(crate) fn own<T: Owned + Send + Sync + 'g>(&'g self, object: T) -> &'g T {
        // SAFETY: `self` is borrowed for `'g`, so the arena is dropped after `'g`. After `'g`,
        // `graph` calls `Core::close` alone, which uses the entries of suspended steps before the
        // drop of the arena. `graph` makes `'g` for all lifetimes (`for<'g>`), so `T: 'g` says that
        // all that `T` borrows outlives the call of `graph`, and with it the drop of the arena.
        unsafe { self.arena.add(object) }
    }

    /// Adds the step that `make` makes. `make` gets all steps before it.
    pub(crate) fn add_step(&self, make: impl FnOnce(&[&'g E]) -> &'g E) -> &'g E {
        let mut steps = lock(&self.steps);
        let step = make(&steps);
        steps.push(step);
        step
    }

    /// Adds the item collection that `make` makes. `make` gets its number.
    pub(crate) fn add_items<T: AnyItems<'g, R>>(&self, make: impl FnOnce(usize) -> &'g T) -> &'g T {
        let mut items = lock(&self.items);
        let added = make(items.len());
        items.push(added);
        added
    }

    /// Adds the tag collection that `make` makes. `make` gets its number.
    pub(crate) fn add_tags<T: AnyTags<'g, E>>(&self, make: impl FnOnce(usize) -> &'g T) -> &'g T {
        let mut tags = lock(&self.tags);
        let added = make(tags.len());
        tags.push(added);
        added
    }

    /// The entry of the environment, which `make` adds at the first call.
    pub(crate) fn environment(&self, make: impl FnOnce() -> &'g E) -> &'g E {
        self.environment.get_or_init(make)
    }

    /// The entry of the forked steps, which `make` adds at the first call.
    pub(crate) fn forked(&self, make: impl FnOnce() -> &'g E) -> &'g E {
        self.forked.get_or_init(make)
    }

    /// The entry of the forked steps, if a step was forked.
    pub(crate) fn forked_if_any(&self) -> Option<&'g E> {
        self.forked.get().copied()
    }

    /// How many steps there are.
    pub(crate) fn steps(&self) -> usize {
        lock(&self.steps).len()
    }

    /// The step with a number.
    pub(crate) fn step(&self, number: usize) -> Option<&'g E> {
        lock(&self.steps).get(number).copied()
    }

    pub(crate) fn each_step(&self) -> Vec<&'g E> {
        lock(&self.steps).clone()
    }

    pub(crate) fn each_items(&self) -> Vec<&'g dyn AnyItems<'g, R>> {
        lock(&self.items).clone()
    }

    pub(crate) fn each_tags(&self) -> Vec<&'g dyn AnyTags<'g, E>> {
        lock(&self.tags).clone()
    }

    /// Drops the items, and the tags that were put. The collections and the steps stay.
    ///
    /// # Safety
    /// As for [`Arena::reset`].
    pub(crate) unsafe fn reset(&self, panics: &mut FirstPanic) {
        // SAFETY: as promised by the caller.
        unsafe { self.arena.reset(panics) };
    }

    /// Keeps all objects for ever.
    pub(crate) fn leak(&self) {
        self.arena.leak();
    }
}
