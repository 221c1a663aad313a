//! The steps of a graph as its workers run them: [`StepEntry`], one for each step collection, and
//! [`ReadyStep`], an instance that can run.
//!
//! `Graph::prescribe` and its variants make an entry with one of the kinds of [`Code`]:
//! [`ReplayCode`], [`DependsCode`], [`ForkCode`], the kind of `ranges.rs`, or the two kinds of
//! `async_step.rs`. Puts of tags make `ReadyStep`s, schedulers move them, and
//! `StepContext::run_to_end` calls [`Code::run`].
//!
//! A `ReadyStep` owns a word: the tag itself, or the address of a box or of an async step's frame.
//! `StepEntry::free` frees the word, and is `None` for a word that is the tag. Each `ReadyStep` is
//! dropped, or is taken apart with [`ReadyStep::into_parts`], because a lost word is a leak and a
//! copied word is freed twice.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::arena::{Owned, UntilTheEnd};
use crate::error::{Halted, StepResult};
use crate::hints::StepHints;
use crate::key::{ItemKey, hash_of, is_word};
use crate::primitives::AtomicU64;
use crate::record::RecordedTag;
use crate::step::{Needs, Phase, StepContext};
use crate::stuck::{MadeItem, WaitingStep};

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

    /// The tag of an instance as text, for a record.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn tag_in_record(&self, word: u64) -> String {
        // SAFETY: as promised by the caller.
        unsafe { self.tag(word) }
    }

    /// The number by which reports sort instances: the tag's word, or 0 if the tag does not fit.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn order(&self, word: u64) -> u64;

    /// A word that is the same for the instance in each run of the program: the word of the tag, or
    /// its hash if the tag does not fit.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn identity(&self, word: u64) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe { self.order(word) }
    }

    /// The number of the entry as which instances go on, if it is another one.
    fn rest(&self) -> Option<usize> {
        None
    }

    /// If the word is the address of a frame in a place of `frames.rs`: the number of its size.
    fn frame(&self) -> Option<usize> {
        None
    }

    /// The number of parts of an instance, for counts of what is done. The word is read only if it
    /// is the tag itself.
    fn parts(&self, _word: u64) -> u64 {
        1
    }

    /// How urgent an instance is.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn priority(&self, _word: u64) -> i64 {
        0
    }

    /// On which worker an instance is to run.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn affinity(&self, _word: u64) -> Option<usize> {
        None
    }

    /// Whether the program has cancelled an instance.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn is_cancelled(&self, _word: u64) -> bool {
        false
    }

    /// The items that an instance puts, as far as the program has said so.
    ///
    /// # Safety
    /// As for `tag`.
    unsafe fn makes(&self, _word: u64) -> Vec<MadeItem> {
        Vec::new()
    }

    /// The numbers of the collections in which instances put, as far as the program has said so.
    fn made_collections(&self) -> Vec<usize> {
        Vec::new()
    }
}

/// A step collection of a graph.
pub(crate) struct StepEntry<'g> {
    pub(crate) number: usize,
    /// The number under which it is counted and reported. The two entries of an async step have
    /// the same one.
    pub(crate) row: usize,
    /// How many steps before it have the same name.
    pub(crate) twin: usize,
    pub(crate) name: String,
    pub(crate) code: UntilTheEnd<Box<dyn Code<'g> + 'g>>,
    /// Frees the word of an instance; `None` if the word is the tag itself.
    pub(crate) free: Option<unsafe fn(u64)>,
    /// Whether `Code::run` consumes the word.
    pub(crate) takes_word: bool,
    /// How many instances were cancelled.
    pub(crate) cancelled: AtomicU64,
    /// Whether the word of an instance that has ended is to be freed.
    pub(crate) drops: bool,
    /// An instance has got a counted item, and has then missed another one.
    pub(crate) missed_with_claims: AtomicBool,
    /// The next step that the same tag collection prescribes.
    pub(crate) next: OnceLock<&'g StepEntry<'g>>,
}

impl StepEntry<'_> {
    /// The tag of a word, if the word is the tag itself.
    pub(crate) fn tag_of_word(&self, word: u64) -> Option<String> {
        // SAFETY: the word is a tag, because there is nothing to free.
        self.free.is_none().then(|| unsafe { self.code.tag(word) })
    }
}

/// The code of the environment's entry, which has no instances.
pub(crate) struct EnvironmentCode;

impl<'g> Code<'g> for EnvironmentCode {
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

    unsafe fn reset(&self) {
        self.cancelled.store(0, Ordering::Relaxed);
        self.missed_with_claims.store(false, Ordering::Relaxed);
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

    /// The number of the worker on which the instance is to run, by
    /// [`StepCol::affinity`](crate::StepCol::affinity).
    pub fn affinity(&self) -> Option<usize> {
        // SAFETY: the word is that of `self`.
        unsafe { self.entry.code.affinity(self.word) }
    }

    /// The name of the step.
    pub fn step(&self) -> &'g str {
        &self.entry.name
    }

    /// The tag, as `Debug` writes it.
    pub fn tag(&self) -> String {
        // SAFETY: the word is that of `self`.
        unsafe { self.entry.code.tag(self.word) }
    }

    /// The tag, for a record.
    pub(crate) fn recorded_tag(&self) -> RecordedTag {
        if self.entry.free.is_none() {
            RecordedTag::Word(self.word)
        } else {
            RecordedTag::Text(self.tag_in_record())
        }
    }

    /// The text of the tag in a record. A forked step has its number there.
    pub(crate) fn tag_in_record(&self) -> String {
        // SAFETY: the word is that of `self`.
        unsafe { self.entry.code.tag_in_record(self.word) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: the word is that of `self`.
        unsafe { self.entry.code.is_cancelled(self.word) }
    }

    /// The instance as a waiting step, for reports.
    pub(crate) fn describe(&self) -> WaitingStep {
        // SAFETY: the word is that of `self`.
        let (order, makes) = unsafe { (self.entry.code.order(self.word), self.entry.code.makes(self.word)) };
        WaitingStep { step: self.entry.name.clone(), order, tag: self.tag(), makes }
    }
}

impl Drop for ReadyStep<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(free) = self.entry.free {
            // SAFETY: the word is that of `self`, and is used no more. The drop may come after
            // `'g`, at the end of the graph; the heads of `waiters.rs` and `frames.rs` say why all
            // that the tag, the closure or the future borrows is alive then.
            unsafe { free(self.word) };
        }
    }
}

impl fmt::Debug for ReadyStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready({}({}))", self.step(), self.tag())
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
    // `to_word` makes the same test, so the tag is in a box if `is_word` is false. The result of
    // `from_word` decides nothing, because a safe implementation may be wrong.
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

/// The methods of `Code` about tags. `$see` gives a closure the tag of a word.
macro_rules! about_tags {
    ($see:expr) => {
        unsafe fn tag(&self, word: u64) -> String {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| $crate::key::text_of(tag)) }
        }

        unsafe fn order(&self, word: u64) -> u64 {
            // SAFETY: as promised by the caller.
            if is_word::<T>() { unsafe { $see(word, |tag| ItemKey::to_word(tag)) } } else { 0 }
        }

        unsafe fn identity(&self, word: u64) -> u64 {
            let identity = |tag: &T| if is_word::<T>() { tag.to_word() } else { hash_of(tag) };
            // SAFETY: as promised by the caller.
            unsafe { $see(word, identity) }
        }

        unsafe fn priority(&self, word: u64) -> i64 {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.priority(tag)) }
        }

        unsafe fn affinity(&self, word: u64) -> Option<usize> {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.affinity(tag)) }
        }

        unsafe fn is_cancelled(&self, word: u64) -> bool {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.is_cancelled(tag)) }
        }

        unsafe fn makes(&self, word: u64) -> Vec<MadeItem> {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.makes(tag)) }
        }

        fn made_collections(&self) -> Vec<usize> {
            self.hints.made_collections()
        }
    };
}
pub(crate) use about_tags;

/// A step that runs again from its beginning when an item is missing.
pub(crate) struct ReplayCode<'g, T, F> {
    pub(crate) body: F,
    pub(crate) hints: &'g StepHints<'g, T>,
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

    about_tags!(with_tag::<T, _>);
}

/// A step with declared items.
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
        (self.needs)(tag.clone(), &Needs::of(step))?;
        if step.is_halted() {
            // The closure has dropped the error of a declaration.
            return Err(Halted(None));
        }
        step.enter(Phase::Declared);
        (self.body)(tag, step)
    }

    about_tags!(with_tag::<T, _>);
}

/// A step that `StepContext::fork` has made.
pub(crate) struct ForkedStep<'g> {
    /// By `StepContext::next_fork`.
    pub(crate) number: u64,
    pub(crate) body: ForkedBody<'g>,
    /// Set when no thread waits for what the step does.
    pub(crate) given_up: Option<Arc<AtomicBool>>,
}

/// A closure that `StepContext::fork` was given.
pub(crate) type ForkedBody<'g> = Box<dyn Fn(&StepContext<'g>) -> StepResult + Send + 'g>;

/// The steps of `StepContext::fork`: the word is the address of a box with a [`ForkedStep`].
/// Reports sort them by their numbers, and do not show the numbers.
pub(crate) struct ForkCode;

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
pub(crate) unsafe fn free_forked(word: u64) {
    // SAFETY: as promised by the caller. The lifetime of the closure does not matter to the drop of
    // its box. All that it borrows outlives the graph, as the head of `waiters.rs` says.
    unsafe { free_box::<ForkedStep<'_>>(word) };
}
