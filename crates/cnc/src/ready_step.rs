//! A step that is ready: [`ReadyStep`], an instance that can run, and [`StepEntry`], the step
//! collection that it belongs to, with the [`Code`] that runs it.
//!
//! `Graph::prescribe` and its variants make an entry with a kind of `Code`; the kinds stand below
//! `kinds/`. Puts of tags make `ReadyStep`s, schedulers move them, and `StepContext::run_to_end`
//! calls [`Code::run`].
//!
//! A `ReadyStep` owns a word: the tag itself, or the address of a box or of an async step's frame
//! (`tag_word.rs`). `StepEntry::free` frees the word, and is `None` for a word that is the tag.
//! Each `ReadyStep` is dropped, or is taken apart with [`ReadyStep::into_parts`], because a lost
//! word is a leak and a copied word is freed twice.
//!
//! **The knot of three files.** The run of a step names the step's view of its graph
//! ([`StepContext`], `step.rs`); the view names what the workers share (`Core`, `core.rs`); and
//! that owns the steps, which are here. A step is code that acts on the graph that owns it, so the
//! three types are one idea in three files. All that they are made of has a type parameter instead
//! of a name from here, and stands below them.

use crate::arena::{Owned, UntilTheEnd};
use crate::error::StepResult;
use crate::primitives::AtomicU64;
use crate::record::RecordedTag;
use crate::step::StepContext;
use crate::stuck::{MadeItem, WaitingStep};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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
/// The code of an entry without instances: of the environment's entry, and of each entry after its
/// closure was dropped.
pub(crate) struct NoCode;

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
