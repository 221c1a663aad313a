//! Steps that other steps fork: [`ForkCode`], the kind of [`StepContext::fork`]. Such a step has no
//! tag, and belongs to no step collection of the program.
//!
//! The word of an instance is the address of a box with a [`ForkedStep`]. `step/put.rs` numbers the
//! forked steps.
//!
//! Paper: [NCM11 §2.2] `forkStep`.

use crate::core::Core;
use crate::error::StepResult;
use crate::ready_step::{Code, StepEntry};
use crate::record::EdgeEnd;
use crate::step::StepContext;
use crate::tag_word::free_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A step that `StepContext::fork` has made.
struct ForkedStep<'g> {
    /// By `StepContext::next_fork`.
    number: u64,
    body: ForkedBody<'g>,
    /// Set when no thread waits for what the step does.
    given_up: Option<Arc<AtomicBool>>,
}

/// A closure that `StepContext::fork` was given.
type ForkedBody<'g> = Box<dyn Fn(&StepContext<'g>) -> StepResult + Send + 'g>;

/// The steps of `StepContext::fork`: the word is the address of a box with a [`ForkedStep`].
/// Reports sort them by their numbers, and do not show the numbers.
struct ForkCode;

/// # Safety
/// The word is that of a forked step, which lives during the use of the result.
unsafe fn forked<'a, 'g>(word: u64) -> &'a ForkedStep<'g> {
    // SAFETY: `StepContext::fork` has made the word so; and as promised by the caller.
    unsafe { &*std::ptr::with_exposed_provenance(word as usize) }
}

impl<'g> Code<'g> for ForkCode {
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: as promised by the caller, which owns the word.
        (unsafe { forked::<'_, 'g>(word) }.body)(step)
    }

    unsafe fn tag(&self, _: u64) -> String {
        String::new()
    }

    unsafe fn tag_in_record(&self, word: u64) -> String {
        // SAFETY: as promised by the caller.
        format!("{:x}", unsafe { forked::<'_, 'g>(word) }.number)
    }

    unsafe fn order(&self, word: u64) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe { forked::<'_, 'g>(word) }.number
    }

    unsafe fn is_cancelled(&self, word: u64) -> bool {
        // SAFETY: as promised by the caller.
        let given_up = unsafe { &forked::<'_, 'g>(word).given_up };
        given_up.as_ref().is_some_and(|given_up| given_up.load(Ordering::Relaxed))
    }
}

/// # Safety
/// As for [`free_box`], with a `ForkedStep`.
unsafe fn free_forked(word: u64) {
    // SAFETY: as promised by the caller. The lifetime of the closure does not matter to the drop of
    // its box. All that it borrows outlives the graph, as the head of `waiters.rs` says.
    unsafe { free_box::<ForkedStep<'_>>(word) };
}

/// The entry of the forked steps, which the first fork of the graph makes.
fn forked_entry<'g>(core: &'g Core<'g>) -> &'g StepEntry<'g> {
    core.catalogue.forked(|| core.add_entry("fork", Box::new(ForkCode), Some(free_forked), false))
}

impl<'g> StepContext<'g> {
    /// Runs a closure as a step of its own, without a tag.
    ///
    /// # Errors
    /// If the step has missed an item before and has not returned.
    ///
    /// # Paper
    /// [NCM11 §2.2] `forkStep`. §3.3 HCilk: a parent that has to wait for its forks gets the items
    /// that they put; it is an async step, or forks the step that goes on.
    ///
    /// # Examples
    /// Items made in a step, and a step that waits for two others:
    /// ```
    /// use selvedge::cnc::{self, StepContext, StepResult, schedulers::Stealing};
    ///
    /// fn fib<'g>(step: &StepContext<'g>, n: u64, to: cnc::ItemCol<'g, (), u64>) -> StepResult {
    ///     if n < 2 {
    ///         return step.put(to, (), n);
    ///     }
    ///     let (one, two) = (step.item("one"), step.item("two"));
    ///     step.fork(move |step| fib(step, n - 1, one))?;
    ///     step.fork(move |step| fib(step, n - 2, two))?;
    ///     step.fork(move |step| step.put(to, (), *step.get(one, ())? + *step.get(two, ())?))
    /// }
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let result = cnc::graph(|graph| {
    ///     let result = graph.item("result");
    ///     graph.initialize(|env| env.fork(move |step| fib(step, 12, result)))?;
    ///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.get(result, ()).copied()))
    /// })?;
    /// assert_eq!(result, Some(144));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "forkStep")]
    pub fn fork(&self, body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g) -> StepResult {
        self.fork_as(body, None, || self.next_fork())
    }

    /// Forks a step that counts as cancelled when `given_up` is set.
    pub(crate) fn fork_until(
        &self,
        body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g,
        given_up: Arc<AtomicBool>,
    ) -> StepResult {
        self.fork_as(body, Some(given_up), || self.next_fork())
    }

    /// Forks a step with a number that `number` makes.
    pub(crate) fn fork_as(
        &self,
        body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g,
        given_up: Option<Arc<AtomicBool>>,
        number: impl FnOnce() -> u64,
    ) -> StepResult {
        self.begin_effect(EdgeEnd::Forks)?;
        let step = Box::new(ForkedStep { number: number(), body: Box::new(body), given_up });
        let word = Box::into_raw(step).expose_provenance() as u64;
        self.push_new(forked_entry(self.core()), word);
        Ok(())
    }
}
