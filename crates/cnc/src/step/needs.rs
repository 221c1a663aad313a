//! The declaration of the items that a step will get: [`Needs`].
//!
//! `DependsCode` in `code.rs` calls the program's closure with a `Needs` before each try of the
//! step. [`Needs::on`] notes an item that is there, and makes the step wait for an item that is
//! not. The gets of the body then accept the noted items only.
//!
//! A declaration claims nothing, so a closure that runs again declares all items again.

use crate::code::ReadyStep;
use crate::collections::ItemCol;
use crate::error::{Halted, StepResult};
use crate::in_use::InUse;
use crate::key::ItemKey;
use crate::record::EdgeEnd;
use crate::slot::ItemSlot;
use crate::storage::NoPlace;

use super::{DeclaredItem, FAILED, MISSED, MissedGet, StepContext};

/// The items that a step will get, as it declares them; see
/// [`prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Debug)]
pub struct Needs<'s, 'g>(&'s StepContext<'g>);

impl<'s, 'g> Needs<'s, 'g> {
    pub(crate) fn of(step: &'s StepContext<'g>) -> Needs<'s, 'g> {
        Needs(step)
    }

    /// Declares that the step will get an item, or only that it comes after the put of the item. A
    /// step that does not get it is not in the item's count.
    ///
    /// # Errors
    /// If the item is not there yet. The step is to return the error, and declares again when the
    /// item is there. If the closure returns something else, the step does the same.
    pub fn on<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult {
        self.declare(items, &key, false)
    }

    /// Declares that the step will [`take`](StepContext::take) a counted item.
    ///
    /// # Errors
    /// As for [`on`](Needs::on), and if steps with other gets of the item have not ended.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let longest = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let twice = Items::<u32, String>::hashed().counted(|_| Some(2));
    ///     let words = graph.items_with("words", twice);
    ///     let sizes = graph.items::<u32, usize>("sizes");
    ///     let louder = graph.items::<u32, String>("louder");
    ///     graph.prescribe(tags, "measure", move |n, step| {
    ///         let size = step.get(words, n)?.len();
    ///         step.put(sizes, n, size)
    ///     });
    ///     graph.prescribe_depends(
    ///         tags,
    ///         "change",
    ///         move |n, needs| needs.to_take(words, n),
    ///         move |n, step| {
    ///             let mut word: String = step.take(words, n)?;
    ///             word.push('!');
    ///             step.put(louder, n, word)
    ///         },
    ///     );
    ///     graph.initialize(|env| {
    ///         env.put_tag(tags, 0)?;
    ///         env.put(words, 0, "selvedge".to_owned())
    ///     })?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.get(louder, 0).cloned()))
    /// })?;
    /// assert_eq!(longest.as_deref(), Some("selvedge!"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_take<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult {
        self.declare(items, &key, true)
    }

    fn declare<K: ItemKey, V: Send + Sync>(
        &self,
        items: ItemCol<'g, K, V>,
        key: &K,
        takes: bool,
    ) -> StepResult {
        let (step, store) = (self.0, items.0);
        if step.flags.get() & (MISSED | FAILED) != 0 {
            return Err(Halted(None));
        }
        step.note(EdgeEnd::Gets(store.number));
        // One look, because another worker may give the place up at any time.
        let found = match store.storage.find(key) {
            Ok(found) => found,
            // The item was put, and has gone. A step that only wants to come after
            // the item is not in its count; a get in the body is told.
            Err(NoPlace::Retired) => return Ok(()),
            Err(NoPlace::Outside) => return Err(step.outside(store, key)),
        };
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at = std::ptr::from_ref(slot).cast();
        if !slot.state.was_put() {
            step.note_missed(store, key, false);
            return Err(step.miss(MissedGet::Item(&slot.state, found.into_page_use())));
        }
        if takes && slot.state.is_kept() {
            return Err(step.not_counted(store, key));
        }
        if takes && slot.state.is_in_use() {
            step.note_missed(store, key, true);
            return Err(step.miss(MissedGet::InUse(store, at, InUse::ToBeLast, found.into_page_use())));
        }
        step.declared.borrow_mut().push(DeclaredItem { slot: at, takes });
        Ok(())
    }
}
