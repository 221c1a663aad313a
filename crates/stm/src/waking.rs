//! What a commit does with the waiters of a variable that it has written, and the other operations
//! on the list of a variable.
//!
//! `registration.rs` argues why no wake-up is lost, and `evaluate.rs` for transactions that wait
//! for predicates: it evaluates them, and gives [`WokenByCommit::wake_all`] the function that does
//! so.

use crate::condition::{HeldVariable, WakeCondition};
use crate::primitives::{LOOKS, Ordering, fence, lock, relax};
use crate::variable::{Borrowed, Inner, LOCKED, WAITERS};
use crate::waiter::WaitingTx;
use crate::waiters::Waiters;
use crate::weak::Weak;
use selvedge_core::internal::quietly;
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// Evaluates the predicates of conditions: gives each condition with a transaction to wake.
pub(crate) trait Evaluate: Copy + Fn(&[Arc<WakeCondition>]) -> Vec<&Arc<WakeCondition>> {}

impl<F: Copy + Fn(&[Arc<WakeCondition>]) -> Vec<&Arc<WakeCondition>>> Evaluate for F {}

/// What a commit wakes, or may wake, after it has published its values.
enum ToWake {
    Waiter(Arc<WaitingTx>),
    /// The conditions of a variable, which are to be evaluated.
    Due(Due),
}

impl ToWake {
    fn wake(self, evaluate: impl Evaluate) {
        match self {
            // A foreign waker may panic. The panic is reported, and the others are woken all the
            // same.
            ToWake::Waiter(waiter) => quietly(|| waiter.wake()),
            // With `due` the last handle to a predicate may end, and with it values of the program,
            // of which a destructor may panic.
            ToWake::Due(due) => quietly(|| due.wake(evaluate)),
        }
    }
}

/// What a commit wakes. Mostly that is one waiter, which takes no memory of its own.
#[derive(Default)]
pub(crate) struct WokenByCommit {
    first: Option<ToWake>,
    others: Vec<ToWake>,
    has_due: bool,
}

impl WokenByCommit {
    fn push(&mut self, woken: ToWake) {
        self.has_due |= matches!(woken, ToWake::Due(_));
        match self.first {
            None => self.first = Some(woken),
            Some(_) => self.others.push(woken),
        }
    }

    /// Wakes the transactions of a commit. The commit has given its session back. `evaluate` gives
    /// the conditions with transactions to wake.
    pub(crate) fn wake_all(self, evaluate: impl Evaluate) {
        if self.has_due {
            // Step f. of `evaluate.rs`.
            fence(Ordering::SeqCst);
        }
        if let Some(first) = self.first {
            first.wake(evaluate);
        }
        if !self.others.is_empty() {
            self.others.into_iter().for_each(|other| other.wake(evaluate));
        }
    }
}

/// The conditions of a variable, as a commit to it has found them.
struct Due {
    variable: HeldVariable,
    conditions: Arc<Vec<Arc<WakeCondition>>>,
}

impl Due {
    /// `None` if the variable has no handle any more.
    fn new(variable: Borrowed<'_>, conditions: &Arc<Vec<Arc<WakeCondition>>>) -> Option<Due> {
        Some(Due { variable: HeldVariable::of(variable)?, conditions: conditions.clone() })
    }

    /// Steps g. and h. of `evaluate.rs`.
    fn wake(self, evaluate: impl Evaluate) {
        let Due { variable, conditions } = self;
        let woken: Vec<Arc<WakeCondition>> = evaluate(&conditions).into_iter().cloned().collect();
        if woken.is_empty() {
            return;
        }
        // Before the list is changed, because a list that is shared is copied then.
        drop(conditions);
        forget(variable.inner(), &woken);
        woken.iter().for_each(|condition| quietly(|| condition.waiter.wake()));
    }

    /// Wakes all that wait, without an evaluation.
    fn waiters(conditions: &[Arc<WakeCondition>]) -> impl Iterator<Item = ToWake> {
        conditions.iter().map(|condition| ToWake::Waiter(condition.waiter.clone()))
    }
}

/// Step d. of `registration.rs` and step e. of `evaluate.rs`, for a variable that a commit has
/// found with waiters.
#[cold]
pub(crate) fn gather(inner: Borrowed<'_>, woken: &mut WokenByCommit) {
    let mut list = lock(&inner.waiters);
    let Some(waiters) = list.as_mut() else { return };
    waiters.take_plain(|waiter| woken.push(ToWake::Waiter(waiter)));
    if let Some(conditions) = &waiters.conditions {
        if let Some(due) = announce(&inner).then(|| Due::new(inner, conditions)).flatten() {
            woken.push(ToWake::Due(due));
            return;
        }
        Due::waiters(conditions).for_each(|waiter| woken.push(waiter));
        // Each condition in the list is in its `Registration` too, which leaves the list before it
        // drops the condition. So no predicate is dropped here.
        waiters.conditions = None;
    }
    // The commits of `NOrec` do not clear the bit by themselves.
    clear_without_waiters(&inner, &list);
}

/// Sets `WAITERS` in an unlocked word. False if it was locked at each of some looks.
fn announce(inner: &Inner) -> bool {
    let set = |word: u64| (word & LOCKED == 0).then_some(word | WAITERS);
    (0..LOOKS).any(|_| {
        let is_set = inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set).is_ok();
        if !is_set {
            relax();
        }
        is_set
    })
}

/// A weak handle to a variable.
pub(crate) fn weak(inner: Borrowed<'_>) -> Weak {
    lock(&inner.waiters).get_or_insert_default().weak(inner.pointer().cast())
}

/// Step c. of `weak.rs`.
///
/// # Safety
/// The caller is about to free the variable: no handle and no transaction can reach it.
#[inline(always)]
pub(crate) unsafe fn forget_weak(inner: NonNull<Inner>) {
    // SAFETY: the caller's contract: an upgrade alone may run meanwhile, which uses another field.
    let waiters = unsafe { &mut (*inner.as_ptr()).waiters };
    let waiters = waiters.get_mut().unwrap_or_else(PoisonError::into_inner);
    if let Some(anchor) = waiters.as_mut().and_then(|waiters| waiters.take_weak()) {
        anchor.end();
    }
}

/// Takes conditions out of the list of a variable.
fn forget(inner: &Inner, conditions: &[Arc<WakeCondition>]) {
    let mut list = lock(&inner.waiters);
    let Some(waiters) = list.as_mut() else { return };
    let gone: HashSet<*const ()> = conditions.iter().map(|gone| Arc::as_ptr(gone).cast()).collect();
    waiters.retain_conditions(|one| !gone.contains(&Arc::as_ptr(one).cast()));
    clear_without_waiters(inner, &list);
}

/// Clears `WAITERS` in the word of a variable that a commit or a turn has unlocked without a new
/// version, if nothing waits for the variable any more.
pub(crate) fn clear_if_alone(inner: &Inner) {
    clear_without_waiters(inner, &lock(&inner.waiters));
}

/// Clears `WAITERS` if there is no waiter. The caller has locked the list. A locked word stays: the
/// commit or the turn that has locked it clears the bit, with a new version or by `clear_if_alone`.
pub(crate) fn clear_without_waiters(inner: &Inner, list: &Option<Box<Waiters>>) {
    let clear = |word: u64| (word & (LOCKED | WAITERS) == WAITERS).then_some(word & !WAITERS);
    if list.as_ref().is_none_or(|waiters| waiters.is_empty()) {
        let _ = inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, clear);
    }
}
