//! The facts that a program adds about the instances of a step collection: [`StepHints`]. The
//! program adds them by `StepCol`.
//!
//! The code of each step borrows the `StepHints`. From them it answers `ReadyStep::priority`,
//! `ReadyStep::affinity`, `ReadyStep::is_cancelled`, and the questions of the reports.
//! `TaskPool::priority` and `Affine` use the first two.
//!
//! A hint decides on which worker and when a step runs, and never changes its result. A
//! cancellation alone decides which steps run.

use crate::arena::{Owned, UntilTheEnd};
use crate::first_panic::clear;
use crate::key::ItemKey;
use crate::primitives::{Mutex, lock};
use crate::stuck::MadeItem;
use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A function of a tag.
type OfTag<'g, T, R> = Box<dyn Fn(&T) -> R + Send + Sync + 'g>;

/// The number of an item collection, and the item of a tag, if its key has a text.
type MadeOfTag<'g, T> = (usize, OfTag<'g, T, Option<MadeItem>>);

/// The facts about the instances of a step collection, as functions of their tags.
pub(crate) struct StepHints<'g, T> {
    priority: UntilTheEnd<OnceLock<OfTag<'g, T, i64>>>,
    affinity: UntilTheEnd<OnceLock<OfTag<'g, T, usize>>>,
    makes: Mutex<Vec<MadeOfTag<'g, T>>>,
    all_cancelled: AtomicBool,
    cancelled: Mutex<HashSet<T>>,
}

impl<T> Default for StepHints<'_, T> {
    fn default() -> Self {
        StepHints {
            priority: UntilTheEnd::new(OnceLock::new()),
            affinity: UntilTheEnd::new(OnceLock::new()),
            makes: Mutex::new(Vec::new()),
            all_cancelled: AtomicBool::new(false),
            cancelled: Mutex::new(HashSet::new()),
        }
    }
}

impl<'g, T: ItemKey> StepHints<'g, T> {
    pub(crate) fn set_priority(&self, urgency: impl Fn(&T) -> i64 + Send + Sync + 'g) {
        let _ = self.priority.set(Box::new(urgency));
    }

    pub(crate) fn set_affinity(&self, place: impl Fn(&T) -> usize + Send + Sync + 'g) {
        let _ = self.affinity.set(Box::new(place));
    }

    /// Adds an item that each instance puts: the number of its collection, and the item of a tag.
    pub(crate) fn add_made(&self, number: usize, made: impl Fn(&T) -> Option<MadeItem> + Send + Sync + 'g) {
        lock(&self.makes).push((number, Box::new(made)));
    }

    pub(crate) fn cancel_tag(&self, tag: T) {
        lock(&self.cancelled).insert(tag);
    }

    pub(crate) fn cancel(&self) {
        self.all_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn priority(&self, tag: &T) -> i64 {
        self.priority.get().map_or(0, |priority| priority(tag))
    }

    pub(crate) fn affinity(&self, tag: &T) -> Option<usize> {
        self.affinity.get().map(|affinity| affinity(tag))
    }

    pub(crate) fn makes(&self, tag: &T) -> Vec<MadeItem> {
        lock(&self.makes).iter().filter_map(|(_, makes)| makes(tag)).collect()
    }

    /// The numbers of the collections in which the instances put, as the program has said.
    pub(crate) fn made_collections(&self) -> Vec<usize> {
        lock(&self.makes).iter().map(|&(number, _)| number).collect()
    }

    pub(crate) fn is_cancelled(&self, tag: &T) -> bool {
        self.all_cancelled.load(Ordering::Relaxed) || lock(&self.cancelled).contains(tag)
    }
}

impl<T> Owned for StepHints<'_, T> {
    unsafe fn empty(&self) {
        // SAFETY: as promised by the caller.
        unsafe { self.priority.replace(OnceLock::new()) };
        // SAFETY: as above.
        unsafe { self.affinity.replace(OnceLock::new()) };
        // No code of the program runs under the locks.
        let makes = std::mem::take(&mut *lock(&self.makes));
        let cancelled = std::mem::take(&mut *lock(&self.cancelled));
        drop((makes, cancelled));
    }

    unsafe fn reset(&self) {
        self.all_cancelled.store(false, Ordering::Relaxed);
        clear(&self.cancelled);
    }
}
