//! Conditions: the predicates for which transactions wait, which the commits evaluate.
//!
//! A transaction that waits for a [predicate](Tx::wait_for) registers a [`WakeCondition`] in the
//! variables that the predicate has read. A commit that writes one of them evaluates the predicate,
//! and wakes the transaction only if the predicate holds. So of 1000 transactions that wait for the
//! same variable, those run that have something to do.
//!
//! # No wake-up is lost
//! ```text
//!    commit, for each variable that has conditions, after steps a. to d. of `wait.rs`
//!    e. with the list locked: set WAITERS again, which c. has cleared; share the conditions
//!    f. once for all variables, if one of them has conditions: a SeqCst fence
//!    g. evaluate each condition, without a lock of this crate
//!    h. lock the list, take out those to wake, unlock it, and wake them
//! ```
//! A condition stays in the lists while it is evaluated, so a second commit evaluates it too.
//! 1. Let a condition hold after the last of the commits that have written its variables. Each of
//!    these commits has a fence; let W be the commit with the last one in the order of fences. The
//!    stores of the others come before their fences, so g. of W sees all of them, and the condition
//!    holds there.
//! 2. A commit on a variable between c. and e. of another commit finds no `WAITERS`, and evaluates
//!    nothing. Step e. of the other commit is an exchange of the same word, and reads from its
//!    store. So step g. of the other commit sees its values.
//! 3. If a variable is locked at each of some looks of e., all its conditions are taken out and
//!    woken.
//! 4. A predicate that now reads a variable in which it is not registered, that meets a conflict,
//!    or that panics, wakes its transaction. The transaction then registers anew, or panics itself.
//! 5. While a transaction registers in its variables, one after the other, a commit may evaluate
//!    its condition. If the predicate does not hold then, a variable without the registration has
//!    had the value that the transaction has read, or the registration will find it changed. Under
//!    `NOrec` it would not find a value that was written back; there no commit may come between the
//!    first variable and the last (`Engine::moment`).
//!
//! The lists are not locked in g., because a predicate is code of the program: it may drop a future
//! that is registered in the same list.

use crate::attempt::Evaluated;
use crate::engine::Engine;
use crate::primitives::{Ordering, fence};
use crate::reads::ReadEntry;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::{Borrowed, Inner};
use crate::wait::{self, WaitingTx};
use selvedge_core::internal::{indivisible, quietly};
use std::collections::HashSet;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Whether a transaction is to be woken: see [`Tx::wait_for`].
pub(crate) trait Predicate: Send + Sync {
    /// Whether the predicate holds.
    ///
    /// # Safety
    /// The pointer is one to a `Tx<E>` that is alive, for the engine E with which `PredicateOf` was
    /// made.
    unsafe fn holds(&self, tx: NonNull<()>) -> Tried<bool>;
}

/// A predicate for the transactions of an engine.
struct PredicateOf<F, E>(F, PhantomData<fn() -> E>);

impl<E: Engine, F: Fn(&Tx<E>) -> Tried<bool> + Send + Sync> Predicate for PredicateOf<F, E> {
    unsafe fn holds(&self, tx: NonNull<()>) -> Tried<bool> {
        // SAFETY: the caller's contract.
        (self.0)(unsafe { tx.cast::<Tx<E>>().as_ref() })
    }
}

/// A transaction that waits for a predicate.
pub(crate) struct WakeCondition<P: ?Sized = dyn Predicate> {
    waiter: Arc<WaitingTx>,
    /// The variables that the predicate has read when it did not hold, but those without a handle.
    /// The handles of the condition keep another variable from lying at the same address.
    first: HeldVariable,
    others: Box<[HeldVariable]>,
    predicate: P,
}

impl WakeCondition {
    /// `None` if the predicate has read no variable that a later transaction can reach.
    ///
    /// # Safety
    /// The session of the log with these reads is pinned.
    unsafe fn new<E: Engine>(
        waiter: Arc<WaitingTx>,
        reads: &[ReadEntry],
        predicate: impl Fn(&Tx<E>) -> Tried<bool> + Send + Sync + 'static,
    ) -> Option<Arc<WakeCondition>> {
        let mut seen = HashSet::new();
        let distinct = reads.iter().map(|read| read.inner).filter(|inner| seen.insert(*inner));
        // SAFETY: the caller's contract.
        let mut variables = distinct.filter_map(|inner| HeldVariable::of(unsafe { Borrowed::new(inner) }));
        let first = variables.next()?;
        let others = variables.collect();
        Some(Arc::new(WakeCondition {
            waiter,
            first,
            others,
            predicate: PredicateOf::<_, E>(predicate, PhantomData),
        }))
    }

    /// Whether the predicate has read the variable when it did not hold.
    #[inline]
    pub(crate) fn watches(&self, inner: NonNull<Inner>) -> bool {
        self.first.0 == inner || self.others.iter().any(|other| other.0 == inner)
    }

    /// Whether the predicate holds.
    ///
    /// # Safety
    /// The transaction is one of the engine of the variables in which the condition is registered.
    #[inline]
    pub(crate) unsafe fn holds<E: Engine>(&self, tx: &Tx<E>) -> Tried<bool> {
        // SAFETY: the predicate reads variables of one engine, because no function of `Tx<E>` takes
        // variables of another one. The condition is registered in these, so E is the predicate's.
        unsafe { self.predicate.holds(NonNull::from(tx).cast()) }
    }
}

/// The conditions of an attempt that is going to wait.
pub(crate) struct AttemptConditions {
    pub(crate) waiter: Arc<WaitingTx>,
    /// Each with its reads in the log.
    list: Vec<(Range<usize>, Arc<WakeCondition>)>,
}

impl AttemptConditions {
    pub(crate) fn new() -> AttemptConditions {
        AttemptConditions { waiter: Arc::new(WaitingTx::new()), list: Vec::new() }
    }

    /// Adds a predicate that does not hold, with its reads in the log.
    ///
    /// # Safety
    /// The session of the log is pinned.
    pub(crate) unsafe fn add<E: Engine>(
        &mut self,
        at: Range<usize>,
        reads: &[ReadEntry],
        predicate: impl Fn(&Tx<E>) -> Tried<bool> + Send + Sync + 'static,
    ) {
        // SAFETY: the caller's contract.
        let condition = unsafe { WakeCondition::new(self.waiter.clone(), &reads[at.clone()], predicate) };
        self.list.extend(condition.map(|condition| (at, condition)));
    }

    /// The variables that the attempt has read outside of the predicates: it is woken by each write
    /// to them.
    pub(crate) fn read_outside(&self, reads: &[ReadEntry]) -> HashSet<NonNull<Inner>> {
        let is_outside = |at: usize| !self.list.iter().any(|(within, _)| within.contains(&at));
        reads.iter().enumerate().filter(|(at, _)| is_outside(*at)).map(|(_, read)| read.inner).collect()
    }

    pub(crate) fn into_list(self) -> Vec<Arc<WakeCondition>> {
        self.list.into_iter().map(|(_, condition)| condition).collect()
    }
}

/// What a commit wakes, or may wake, after it has published its values.
pub(crate) enum ToWake {
    Waiter(Arc<WaitingTx>),
    /// The conditions of a variable, which are to be evaluated.
    Due(Due),
}

impl ToWake {
    fn wake<E: Engine>(self) {
        match self {
            // A foreign waker may panic. The panic is reported, and the others are woken all the
            // same.
            ToWake::Waiter(waiter) => quietly(|| waiter.wake()),
            // With `due` the last handle to a predicate may end, and with it values of the program,
            // of which a destructor may panic.
            ToWake::Due(due) => quietly(|| due.wake::<E>()),
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
    pub(crate) fn push(&mut self, woken: ToWake) {
        self.has_due |= matches!(woken, ToWake::Due(_));
        match self.first {
            None => self.first = Some(woken),
            Some(_) => self.others.push(woken),
        }
    }

    /// Wakes the transactions of a commit. The commit has given its session back.
    pub(crate) fn wake_all<E: Engine>(self) {
        if self.has_due {
            // Step f. above.
            fence(Ordering::SeqCst);
        }
        if let Some(first) = self.first {
            first.wake::<E>();
        }
        if !self.others.is_empty() {
            self.others.into_iter().for_each(ToWake::wake::<E>);
        }
    }
}

/// A variable with a handle of its own.
struct HeldVariable(NonNull<Inner>);

// SAFETY: the handle of a variable is Send and Sync, as `TVar` and `TWord` are.
unsafe impl Send for HeldVariable {}
// SAFETY: as above.
unsafe impl Sync for HeldVariable {}

impl HeldVariable {
    /// `None` if the variable has no handle any more.
    fn of(variable: Borrowed<'_>) -> Option<HeldVariable> {
        variable.hold().then(|| HeldVariable(variable.pointer()))
    }
}

impl Drop for HeldVariable {
    fn drop(&mut self) {
        // SAFETY: `of` has made the handle, which ends here.
        unsafe { Inner::release(self.0) };
    }
}

/// The conditions of a variable, as a commit to it has found them.
pub(crate) struct Due {
    variable: HeldVariable,
    conditions: Arc<Vec<Arc<WakeCondition>>>,
}

impl Due {
    /// `None` if the variable has no handle any more.
    pub(crate) fn new(variable: Borrowed<'_>, conditions: &Arc<Vec<Arc<WakeCondition>>>) -> Option<Due> {
        Some(Due { variable: HeldVariable::of(variable)?, conditions: conditions.clone() })
    }

    /// Steps g. and h. above.
    fn wake<E: Engine>(self) {
        let Due { variable, conditions } = self;
        let woken: Vec<Arc<WakeCondition>> = evaluate::<E>(&conditions).into_iter().cloned().collect();
        if woken.is_empty() {
            return;
        }
        // Before the list is changed, because a list that is shared is copied then.
        drop(conditions);
        // SAFETY: the handle keeps the variable alive.
        wait::forget(unsafe { variable.0.as_ref() }, &woken);
        woken.iter().for_each(|condition| quietly(|| condition.waiter.wake()));
    }

    /// Wakes all that wait, without an evaluation.
    pub(crate) fn waiters(conditions: &[Arc<WakeCondition>]) -> impl Iterator<Item = ToWake> {
        conditions.iter().map(|condition| ToWake::Waiter(condition.waiter.clone()))
    }
}

/// The conditions with transactions to wake: each holds, or it is not known whether it holds.
///
/// One attempt evaluates them all, unless one of them leaves something behind in it.
fn evaluate<E: Engine>(conditions: &[Arc<WakeCondition>]) -> Vec<&Arc<WakeCondition>> {
    let mut woken = Vec::new();
    let mut left = conditions.iter();
    while !left.as_slice().is_empty() {
        // A predicate that panics leaves its condition here.
        let mut running = None;
        quietly(|| {
            let tx = Tx::<E>::for_predicates();
            indivisible(|| {
                for condition in left.by_ref() {
                    running = Some(condition);
                    // SAFETY: the conditions are registered in a variable that a transaction of the
                    // engine E has written.
                    match unsafe { tx.evaluate(condition) } {
                        Evaluated::Stays => {}
                        Evaluated::Wakes => woken.push(condition),
                        Evaluated::Spent => return,
                    }
                }
                running = None;
            });
        });
        woken.extend(running);
    }
    woken
}
