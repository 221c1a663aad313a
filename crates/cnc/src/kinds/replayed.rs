//! Steps that run again from their beginning when an item is missing: [`ReplayCode`], the kind of
//! `Graph::prescribe`. The shortest kind, and the model for others.

use crate::error::StepResult;
use crate::hints::StepHints;
use crate::key::ItemKey;
use crate::ready_step::Code;
use crate::step::StepContext;
use crate::tag_word::{about_tags, tag_of, with_tag};

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
