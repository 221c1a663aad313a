//! Steps as the graph knows them: [`StepEntry`], one for each step collection, and [`ReadyStep`],
//! an instance that can run.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::OnceLock;

use crate::arena::{Owned, UntilTheEnd};
use crate::collections::NO_TAG;
use crate::error::StepResult;
use crate::key::{ItemKey, is_word};
use crate::step::{Needs, Phase, StepContext};

/// The code of a step collection.
pub(crate) trait Code<'g>: Send + Sync {
    /// Runs an instance.
    ///
    /// # Safety
    /// The word is that of a `ReadyStep` of the entry with this code, which the caller owns. Code
    /// with `takes_word` in its entry owns it afterwards; otherwise the caller owns it still.
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult;

    /// The tag of an instance as text.
    ///
    /// # Safety
    /// As for `run`, but the word is only read.
    unsafe fn tag(&self, word: u64) -> String;

    /// By what instances are sorted: the tag's word, as far as it fits.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn order(&self, word: u64) -> u64;

    /// How urgent an instance is.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn priority(&self, _word: u64) -> i64 {
        0
    }
}

/// A step collection of a graph.
pub(crate) struct StepEntry<'g> {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) code: UntilTheEnd<Box<dyn Code<'g> + 'g>>,
    /// Frees the word of an instance; `None` if the word is the tag itself.
    pub(crate) free: Option<unsafe fn(u64)>,
    /// Whether `Code::run` consumes the word.
    pub(crate) takes_word: bool,
    /// The next step that the same tag collection prescribes.
    pub(crate) next: OnceLock<&'g StepEntry<'g>>,
}

impl StepEntry<'_> {
    /// The name of the collection, and the tag of the instance that has put an item with this word.
    pub(crate) fn made_by(&self, word: u64) -> (String, String) {
        let tag = if self.free.is_none() {
            // SAFETY: the word is a tag, because there is nothing to free.
            unsafe { self.code.tag(word) }
        } else {
            NO_TAG.to_owned()
        };
        (self.name.clone(), tag)
    }
}

/// Code for an entry after its closure was dropped. No instance is left by then.
struct NoCode;

impl<'g> Code<'g> for NoCode {
    unsafe fn run(&self, _: u64, _: &StepContext<'g>) -> StepResult {
        Ok(())
    }

    unsafe fn tag(&self, _: u64) -> String {
        String::new()
    }

    unsafe fn order(&self, _: u64) -> u64 {
        0
    }
}

impl Owned for StepEntry<'_> {
    unsafe fn empty(&self) {
        // SAFETY: as promised by the caller.
        unsafe { self.code.replace(Box::new(NoCode)) };
    }
}

/// An instance of a step that can run: a step collection and a tag. A [`Scheduler`] hands it to a
/// [`Worker`](crate::Worker).
///
/// Dropping it drops the tag, and the step does not run; then the run ends with a panic, because
/// its result would not be determined.
///
/// [`Scheduler`]: crate::schedulers::Scheduler
pub struct ReadyStep<'g> {
    pub(crate) entry: &'g StepEntry<'g>,
    pub(crate) word: u64,
}

// SAFETY: the word is a tag, or a box with a tag, a future or a closure that are all `Send`.
unsafe impl Send for ReadyStep<'_> {}

impl<'g> ReadyStep<'g> {
    /// Takes it apart. The word is the caller's to free.
    #[inline]
    pub(crate) fn into_parts(self) -> (&'g StepEntry<'g>, u64) {
        let this = ManuallyDrop::new(self);
        (this.entry, this.word)
    }

    /// How urgent the instance is, by [`StepCol::priority`](crate::StepCol::priority). A larger
    /// number runs earlier under a scheduler that heeds it.
    pub fn priority(&self) -> i64 {
        // SAFETY: the word is that of `self`.
        unsafe { self.entry.code.priority(self.word) }
    }

    /// The order, the step and the tag, for reports.
    pub(crate) fn describe(&self) -> (u64, String, String) {
        // SAFETY: the word is that of `self`.
        let (order, tag) = unsafe { (self.entry.code.order(self.word), self.entry.code.tag(self.word)) };
        (order, self.entry.name.clone(), tag)
    }
}

impl Drop for ReadyStep<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(free) = self.entry.free {
            // SAFETY: the word is that of `self`, and is used no more.
            unsafe { free(self.word) };
        }
    }
}

impl fmt::Debug for ReadyStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, step, tag) = self.describe();
        write!(f, "Ready({step}({tag}))")
    }
}

/// A tag as the word of a `ReadyStep`. A tag that does not fit lies in a box.
#[inline]
pub(crate) fn to_word<T: ItemKey>(tag: T) -> u64 {
    if is_word::<T>() { tag.to_word() } else { Box::into_raw(Box::new(tag)).expose_provenance() as u64 }
}

/// What frees a tag's word.
pub(crate) fn free_of<T: ItemKey>() -> Option<unsafe fn(u64)> {
    if is_word::<T>() { None } else { Some(free_box::<T>) }
}

/// # Safety
/// The word is the address of a `Box<T>` that was given up, and is used no more.
pub(crate) unsafe fn free_box<T>(word: u64) {
    // SAFETY: as promised by the caller.
    drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<T>(word as usize)) });
}

/// Gives `see` the tag of a word.
///
/// # Panics
/// If the type says that its keys fit in a word, and its `from_word` returns `None`.
///
/// # Safety
/// The word came from `to_word::<T>`, and was not freed.
#[inline]
pub(crate) unsafe fn with_tag<T: ItemKey, R>(word: u64, see: impl FnOnce(&T) -> R) -> R {
    // The test is the one of `to_word`. The result of `from_word` decides nothing, because a safe
    // implementation may be wrong.
    if is_word::<T>() {
        see(&T::from_word(word).expect(NO_KEY))
    } else {
        // SAFETY: `to_word` has put the tag into a box, because `is_word` is false.
        see(unsafe { &*std::ptr::with_exposed_provenance::<T>(word as usize) })
    }
}

/// The tag of a word.
///
/// # Panics
/// As [`with_tag`].
///
/// # Safety
/// As for [`with_tag`].
#[inline]
pub(crate) unsafe fn tag_of<T: ItemKey>(word: u64) -> T {
    if is_word::<T>() {
        T::from_word(word).expect(NO_KEY)
    } else {
        // SAFETY: as promised by the caller.
        unsafe { with_tag(word, T::clone) }
    }
}

/// The panic of an [`ItemKey`] that contradicts itself.
const NO_KEY: &str = "an `ItemKey` with `BITS` makes each key again from its word";

/// How urgent an instance with a tag is.
pub(crate) type Urgency<'g, T> = OnceLock<Box<dyn Fn(&T) -> i64 + Send + Sync + 'g>>;

/// The methods of `Code` about tags, for code with a tag `T` as the word of an instance.
macro_rules! about_tags {
    () => {
        unsafe fn tag(&self, word: u64) -> String {
            // SAFETY: as promised by the caller.
            unsafe { with_tag::<T, _>(word, |tag| format!("{tag:?}")) }
        }

        unsafe fn order(&self, word: u64) -> u64 {
            if is_word::<T>() { word } else { 0 }
        }

        unsafe fn priority(&self, word: u64) -> i64 {
            // SAFETY: as promised by the caller.
            self.urgency.get().map_or(0, |urgency| unsafe { with_tag(word, |tag| urgency(tag)) })
        }
    };
}
pub(crate) use about_tags;

/// A step that runs again from its beginning when an item is missing.
pub(crate) struct ReplayCode<'g, T, F> {
    pub(crate) body: F,
    pub(crate) urgency: &'g Urgency<'g, T>,
}

impl<'g, T, F> Code<'g> for ReplayCode<'g, T, F>
where
    T: ItemKey,
    F: Fn(T, &StepContext<'g>) -> StepResult + Send + Sync,
{
    #[inline]
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: as promised by the caller.
        (self.body)(unsafe { tag_of(word) }, step)
    }

    about_tags!();
}

/// A step with declared items.
pub(crate) struct DependsCode<'g, T, D, F> {
    pub(crate) needs: D,
    pub(crate) body: F,
    pub(crate) urgency: &'g Urgency<'g, T>,
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
        (self.needs)(tag.clone(), &Needs::of(step))?;
        step.enter(Phase::Declared);
        (self.body)(tag, step)
    }

    about_tags!();
}

/// A step over a range of numbers, which is cut while other workers are idle.
pub(crate) struct RangeCode<'g, F> {
    pub(crate) grain: u32,
    pub(crate) body: F,
    pub(crate) urgency: &'g Urgency<'g, (u32, u32)>,
}

type T = (u32, u32);

impl<'g, F> Code<'g> for RangeCode<'g, F>
where
    F: Fn(Range<u32>, &StepContext<'g>) -> StepResult + Send + Sync,
{
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        let (begin, end) = T::from_word(word).expect("two numbers of 32 bits fit in a word");
        if begin >= end {
            return Ok(());
        }
        let next = begin.saturating_add(self.grain).min(end);
        if next < end {
            let middle = next + (end - next) / 2;
            if step.is_wanted() && middle - next > self.grain {
                step.push_like_this((middle, end).to_word());
                step.push_like_this((next, middle).to_word());
            } else {
                step.push_like_this((next, end).to_word());
            }
            step.narrow((begin, next).to_word());
        }
        (self.body)(begin..next, step)
    }

    about_tags!();
}

/// A closure that `StepContext::fork` was given.
pub(crate) type ForkedBody<'g> = Box<dyn Fn(&StepContext<'g>) -> StepResult + Send + 'g>;

/// The steps of `StepContext::fork`: the word is the address of a box with the closure.
pub(crate) struct ForkCode;

impl<'g> Code<'g> for ForkCode {
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: `StepContext::fork` has made the word so, and the caller owns it.
        let body = unsafe { &*std::ptr::with_exposed_provenance::<ForkedBody<'g>>(word as usize) };
        body(step)
    }

    unsafe fn tag(&self, _: u64) -> String {
        String::new()
    }

    unsafe fn order(&self, _: u64) -> u64 {
        0
    }
}

/// # Safety
/// As for [`free_box`], with a `ForkedBody`.
pub(crate) unsafe fn free_forked(word: u64) {
    // SAFETY: as promised by the caller. The lifetime of the closure does not matter to the drop of
    // its box, and it has not ended, because the instance has it.
    unsafe { free_box::<ForkedBody<'_>>(word) };
}
