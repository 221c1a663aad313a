//! What a step sees of the graph of all ranks: [`DistributedStep`], and [`DistributedNeeds`] for
//! steps that declare their items. Both stand around the types of `cnc` with the same operations.
//! Async steps have a handle of their own, in `async_step.rs`.
//!
//! A put for another rank goes to the `Outbox`, of which `cnc` knows nothing. So `DistributedStep`
//! itself keeps the rule that a step which may run again gets before it puts. Otherwise such a step
//! would send its puts twice.

use crate::error::DistributedStepError;
use crate::item_collection::{DistributedItems, PutScope};
use crate::tag_collection::DistributedTags;
use selvedge_cnc::{ItemKey, Needs, StepContext, StepResult};
use selvedge_mpi::Message;
use std::cell::Cell;
use std::fmt;

/// The graph of all ranks, as a step of one rank sees it.
pub struct DistributedStep<'s, 'g> {
    step: &'s StepContext<'g>,
    scope: PutScope,
    /// A step that misses an item runs again. The environment does not.
    may_run_again: bool,
    /// It has put something for another rank.
    has_sent: Cell<bool>,
    /// A get has returned an error.
    has_missed: Cell<bool>,
}

impl<'s, 'g> DistributedStep<'s, 'g> {
    pub(crate) fn new(step: &'s StepContext<'g>) -> DistributedStep<'s, 'g> {
        DistributedStep {
            step,
            scope: PutScope::AllRanks,
            may_run_again: true,
            has_sent: Cell::new(false),
            has_missed: Cell::new(false),
        }
    }

    pub(crate) fn environment(step: &'s StepContext<'g>, scope: PutScope) -> DistributedStep<'s, 'g> {
        DistributedStep { scope, may_run_again: false, ..DistributedStep::new(step) }
    }

    /// The step in the graph of this rank, for collections of this rank alone.
    ///
    /// A step gets before it puts: also a get here must come before a put for another rank.
    pub fn local(&self) -> &'s StepContext<'g> {
        self.step
    }

    /// The item of a key.
    ///
    /// # Errors
    /// If the item is not there yet. The step is to return the error, and runs again when the item
    /// is there. Otherwise as for [`StepContext::get`].
    pub fn get<K, V>(&self, items: DistributedItems<'g, K, V>, key: K) -> StepResult<&'s V>
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        self.before_get(items, &key)?;
        let Some(producer) = items.shared.producer_elsewhere(&key) else {
            return self.step.get(items.local, key).inspect_err(|_| self.has_missed.set(true));
        };
        self.step.get(items.local, key.clone()).inspect_err(|_| {
            self.has_missed.set(true);
            items.shared.note_missed(key, producer);
        })
    }

    /// Takes a counted item out, as the last step of this rank that gets it.
    ///
    /// # Errors
    /// As for [`StepContext::take`].
    pub fn take<K, V>(&self, items: DistributedItems<'g, K, V>, key: K) -> StepResult<V>
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        self.before_get(items, &key)?;
        let producer = items.shared.producer_elsewhere(&key);
        self.step.take(items.local, key.clone()).inspect_err(|_| {
            self.has_missed.set(true);
            if let Some(producer) = producer {
                items.shared.note_missed(key, producer);
            }
        })
    }

    /// # Errors
    /// If the step may run again and has put something for another rank.
    fn before_get<K: ItemKey, V>(&self, items: DistributedItems<'g, K, V>, key: &K) -> StepResult {
        if self.may_run_again && self.has_sent.get() {
            let (collection, key) = (items.local.name().to_string(), format!("{key:?}"));
            return Err(DistributedStepError::GetAfterPut { collection, key }.into());
        }
        Ok(())
    }

    /// Puts an item on the ranks that its collection names.
    ///
    /// # Errors
    /// As for [`StepContext::put`], and if the collection names a rank that there is not.
    pub fn put<K, V>(&self, items: DistributedItems<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey + Message,
        V: Message + Clone + Sync,
    {
        if self.has_missed.get() {
            // It will run again, or has failed. The graph says so, and nothing is put.
            return self.step.put(items.local, key, value);
        }
        let here = |key, value| self.step.put(items.local, key, value);
        let has_sent = items.shared.put(key, value, self.scope, here)?;
        self.has_sent.set(self.has_sent.get() || has_sent);
        Ok(())
    }

    /// Puts a tag on the rank that its collection names. A range is cut first: see
    /// [`DistributedRanges`](crate::DistributedRanges).
    ///
    /// # Errors
    /// As for [`StepContext::put_tag`], and if the collection names a rank that there is not.
    pub fn put_tag<T: ItemKey + Message>(&self, tags: DistributedTags<'g, T>, tag: T) -> StepResult {
        if self.has_missed.get() {
            return self.step.put_tag(tags.local, tag);
        }
        let here = |tag| self.step.put_tag(tags.local, tag);
        let has_sent = tags.shared.put(tags.local.name(), tag, self.scope, here)?;
        self.has_sent.set(self.has_sent.get() || has_sent);
        Ok(())
    }
}

impl fmt::Debug for DistributedStep<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step.fmt(f)
    }
}

/// The items that a step will get, as it declares them: [`Needs`] over ranks.
pub struct DistributedNeeds<'n, 's, 'g>(pub(crate) &'n Needs<'s, 'g>);

impl<'g> DistributedNeeds<'_, '_, 'g> {
    /// Declares that the step will get an item.
    ///
    /// # Errors
    /// As for [`Needs::on`].
    pub fn on<K, V>(&self, items: DistributedItems<'g, K, V>, key: K) -> StepResult
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        let producer = items.shared.producer_elsewhere(&key);
        self.0.on(items.local, key.clone()).inspect_err(|_| {
            if let Some(producer) = producer {
                items.shared.note_missed(key, producer);
            }
        })
    }
}

impl fmt::Debug for DistributedNeeds<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
