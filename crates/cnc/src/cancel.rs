//! The word that a worker looks at before each step, [`Attention`], and the program's handle to end
//! a run early: [`Canceller`].
//!
//! `Core` owns one `Attention`. `StepContext::run` loads `needed` before each step, and calls
//! `StepContext::attend` if it is set. `Core::fail`, `Canceller::cancel`, `StepCol::cancel`,
//! `Graph::record`, `Graph::monitor`, `Graph::live` and the drop of a `LiveGet` set it.
//!
//! `needed` is never cleared, and each reason sets it. The loads are relaxed, so a worker may run
//! some more steps before it sees a reason.

use crate::bell::RunBell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a worker has to attend to something before it runs a step. `needed` is set with each of the
/// reasons, so that a worker looks at one word when there is none.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    needed: AtomicBool,
    stopped: AtomicBool,
    /// How often the program has cancelled steps.
    cancellations: AtomicU64,
    /// The program has dropped a `LiveGet` before its end.
    some_given_up: AtomicBool,
    bell: RunBell,
}

impl Attention {
    /// Whether the worker has to look at the reasons.
    #[inline]
    pub(crate) fn is_needed(&self) -> bool {
        self.needed.load(Ordering::Relaxed)
    }

    /// The workers look at the reasons from now on. The caller has set a reason elsewhere.
    pub(crate) fn need(&self) {
        self.needed.store(true, Ordering::Relaxed);
    }

    /// No other step is to begin.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.need();
        self.bell.stop();
    }

    /// Forgets what was stopped, cancelled and given up. `is_needed` says whether there is another
    /// reason to look.
    pub(crate) fn reset(&self, is_needed: bool) {
        self.bell.reset();
        self.stopped.store(false, Ordering::Relaxed);
        self.cancellations.store(0, Ordering::Relaxed);
        self.some_given_up.store(false, Ordering::Relaxed);
        self.needed.store(is_needed, Ordering::Relaxed);
    }

    /// Where the run and its living environment meet.
    pub(crate) fn bell(&self) -> &RunBell {
        &self.bell
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Some steps are not to begin.
    pub(crate) fn cancel_some(&self) {
        // Release: which steps are cancelled is visible to a thread that sees the number.
        self.cancellations.fetch_add(1, Ordering::Release);
        self.need();
    }

    /// From now on a worker asks, before it runs a step of a `LiveGet`, whether the program has
    /// given that step up. This is no cancellation, because `StepContext::settle` would look
    /// through all items for it, and a step of a `LiveGet` keeps no claim while it waits.
    pub(crate) fn give_up_some(&self) {
        // Release: which steps were given up is visible to a thread that sees this.
        self.some_given_up.store(true, Ordering::Release);
        self.need();
    }

    /// Whether some steps are not to begin.
    pub(crate) fn are_some_cancelled(&self) -> bool {
        self.cancellations() != 0 || self.some_given_up.load(Ordering::Acquire)
    }

    /// How often the program has cancelled steps.
    pub(crate) fn cancellations(&self) -> u64 {
        self.cancellations.load(Ordering::Acquire)
    }
}

/// Stops the run. Single steps are cancelled with
/// [`StepCol::cancel_tag`](crate::StepCol::cancel_tag) and
/// [`StepCol::cancel`](crate::StepCol::cancel).
#[derive(Clone, Debug)]
pub struct Canceller(pub(crate) Arc<Attention>);

impl Canceller {
    /// Ends the run: steps that have begun come to their end, and no others begin.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, GraphError, schedulers::OneByOne};
    ///
    /// let end = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u64>("numbers");
    ///     let canceller = graph.canceller();
    ///     graph.prescribe(tags, "count for ever", move |n, step| {
    ///         if n == 1_000 {
    ///             canceller.cancel();
    ///         }
    ///         step.put_tag(tags, n + 1)
    ///     });
    ///     graph.initialize(|env| env.put_tag(tags, 0))?;
    ///     graph.run(&OneByOne).map(|_| ())
    /// });
    /// assert!(matches!(end, Err(GraphError::Cancelled)));
    /// ```
    pub fn cancel(&self) {
        self.0.stop();
    }
}
