//! Steps that declare the items that they will get: [`DependsCode`], the kind of
//! `Graph::prescribe_depends`, and [`Needs`], which the closure of the declarations gets.
//!
//! The code calls the program's closure with a `Needs` before each try of the step. [`Needs::on`]
//! notes an item that is there, and makes the step wait for an item that is not. The gets of the
//! body then accept the noted items only; `step/declare.rs` has both.
//!
//! A declaration claims nothing, so a closure that runs again declares all items again.

use crate::error::{Halted, StepResult};
use crate::hints::StepHints;
use crate::items::ItemCol;
use crate::key::ItemKey;
use crate::ready_step::Code;
use crate::step::{Phase, StepContext};
use crate::tag_word::{about_tags, tag_of, with_tag};

/// A step with declared items: `needs` declares them, and then `body` runs.
pub(crate) struct DependsCode<'g, T, D, F> {
    pub(crate) needs: D,
    pub(crate) body: F,
    pub(crate) hints: &'g StepHints<'g, T>,
}

impl<'g, T, D, F> Code<'g> for DependsCode<'g, T, D, F>
where
    T: ItemKey,
    D: Fn(T, &Needs<'_, 'g>) -> StepResult + Send + Sync,
    F: Fn(T, &StepContext<'g>) -> StepResult + Send + Sync,
{
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: as promised by the caller.
        let tag: T = unsafe { tag_of(word) };
        step.enter(Phase::Declares);
        (self.needs)(tag.clone(), &Needs(step))?;
        if step.is_halted() {
            // The closure has dropped the error of a declaration.
            return Err(Halted(None));
        }
        step.enter(Phase::Declared);
        (self.body)(tag, step)
    }

    about_tags!(with_tag::<T, _>);
}

/// The items that a step will get, as it declares them; see
/// [`prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Debug)]
pub struct Needs<'s, 'g>(&'s StepContext<'g>);

impl<'s, 'g> Needs<'s, 'g> {
    /// Declares that the step will get an item, or only that it comes after the put of the item. A
    /// step that does not get it is not in the item's count.
    ///
    /// # Errors
    /// If the item is not there yet. The step is to return the error, and declares again when the
    /// item is there. If the closure returns something else, the step does the same.
    pub fn on<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult {
        self.0.declare(items.0, &key, false)
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
    ///     let words = graph.items_in("words", twice);
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
        self.0.declare(items.0, &key, true)
    }
}
