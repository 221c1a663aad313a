//! How a transaction that retries waits: registered once in each variable that it has read.
//!
//! # No wake-up is lost
//! ```text
//!    registration, for each variable         commit, for each variable
//!    1. lock the list                        a. exchange the word: LOCKED
//!    2. exchange the word: WAITERS,          b. store the value
//!       if it is unlocked and has the        c. store the word: new version, unlocked
//!       version that was read                d. if a. has found WAITERS: lock the list, empty it,
//!    3. add the waiter, unlock the list         unlock it, and wake all that were in it
//! ```
//! Both 2. and a. are atomic exchanges of the same word. If a. comes first, then 2. finds the
//! variable locked or its version changed; the transaction does not wait, and runs again. If 2.
//! comes first, a. finds `WAITERS`, and d. waits for the list until 3. has added the waiter. So
//! each commit that writes a variable after its registration wakes the waiter. A commit before the
//! registration of one variable and after that of another one is noticed for the same reason.
//!
//! d. may wake a waiter that was registered after c.: its transaction runs once more than it must.
//!
//! `NOrec` locks no word. In its place stands the sequence: a. makes it odd and then loads the
//! word, c. makes it even, and 2. sets `WAITERS` first, loads an even sequence then, and compares
//! the value.
//!
//! A transaction that waits for a predicate is not woken by d.: see `evaluate.rs`.

use crate::address::VarAddress;
use crate::condition::{Predicate, WakeCondition};
use crate::describe::describe;
use crate::engine::Engine;
use crate::primitives::lock;
use crate::reads::ReadEntry;
use crate::session::{self, Session};
use crate::variable::{Borrowed, Inner};
use crate::waiter::{WaitingTx, WokenRole};
use crate::waking::clear_without_waiters;
use selvedge_core::observe::{self, Object, WaitReason};
use selvedge_core::{Shared, Waiting};
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The conditions of an attempt that is going to wait.
pub(crate) struct AttemptConditions {
    waiter: Arc<WaitingTx>,
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
    pub(crate) unsafe fn add(
        &mut self,
        at: Range<usize>,
        reads: &[ReadEntry],
        predicate: impl Predicate + 'static,
    ) {
        // SAFETY: the caller's contract.
        let condition = unsafe { WakeCondition::new(self.waiter.clone(), &reads[at.clone()], predicate) };
        self.list.extend(condition.map(|condition| (at, condition)));
    }

    /// The variables that the attempt has read outside of the predicates: it is woken by each write
    /// to them.
    fn read_outside(&self, reads: &[ReadEntry]) -> HashSet<VarAddress> {
        let is_outside = |at: usize| !self.list.iter().any(|(within, _)| within.contains(&at));
        reads.iter().enumerate().filter(|(at, _)| is_outside(*at)).map(|(_, read)| read.variable).collect()
    }

    fn into_list(self) -> Vec<Arc<WakeCondition>> {
        self.list.into_iter().map(|(_, condition)| condition).collect()
    }
}

/// A waiter in the lists of its variables, which it leaves when this is dropped.
///
/// It lies in the memory of a thread that waits, so it is small: mostly there is one variable.
pub(crate) struct Registration {
    /// Dropped or kept by `drop`.
    waiter: ManuallyDrop<Arc<WaitingTx>>,
    /// None if no variable has another handle.
    first: Option<WaitedFor>,
    more: Option<Box<FurtherRegistered>>,
}

/// A variable, with a handle of the registration.
#[derive(Clone, Copy)]
struct WaitedFor {
    inner: NonNull<Inner>,
    /// The place of the waiter in the variable's list. `NO_PLACE` if only its conditions are there.
    place: u32,
}

const NO_PLACE: u32 = u32::MAX;
/// Neither the waiter nor a condition of it is in the list of the variable.
const IN_NO_LIST: u32 = u32::MAX - 1;

#[derive(Default)]
struct FurtherRegistered {
    others: Vec<WaitedFor>,
    conditions: Vec<Arc<WakeCondition>>,
}

// SAFETY: the handles of variables are Send, and so is the waiter.
unsafe impl Send for Registration {}
// SAFETY: as above; a shared registration only leads to the waiter.
unsafe impl Sync for Registration {}

/// The number of reads up to which each is compared with those before it.
const FEW: usize = 16;

impl Registration {
    /// Registers the transaction in the variables that it has read. `None` if one of them has
    /// changed since.
    ///
    /// # Panics
    /// If the transaction has read no variable.
    pub(crate) fn new<E: Engine>(
        session: &mut Session,
        conditions: Option<AttemptConditions>,
    ) -> Option<Registration> {
        let begun = conditions.as_ref().map(|_| E::moment());
        let log = &mut session.log;
        let outside = conditions.as_ref().map(|conditions| conditions.read_outside(&log.reads));
        let are_few = log.reads.len() <= FEW;
        let reads = if are_few { &log.reads } else { log.distinct_reads() };
        assert!(!reads.is_empty(), "a transaction retries that has read no variable: no commit can wake it");
        let (waiter, more) = match conditions {
            None => {
                let spare = session.spare_waiter.take();
                (spare.unwrap_or_else(|| Arc::new(WaitingTx::new())), None)
            }
            Some(conditions) => {
                let waiter = conditions.waiter.clone();
                let conditions = conditions.into_list();
                (waiter, Some(Box::new(FurtherRegistered { others: Vec::new(), conditions })))
            }
        };
        let mut registration = Registration { waiter: ManuallyDrop::new(waiter), first: None, more };
        for (at, read) in reads.iter().enumerate() {
            if are_few && reads[..at].iter().any(|earlier| earlier.variable == read.variable) {
                continue;
            }
            // SAFETY: the session of this log is pinned.
            let inner = unsafe { Borrowed::at(read.variable) };
            let is_plain = outside.as_ref().is_none_or(|outside| outside.contains(&read.variable));
            // A variable without a handle is out of reach of any later transaction, so this one
            // does not wait for it.
            if inner.hold() && !registration.enter::<E>(inner, read.seen, is_plain) {
                // SAFETY: the handle of `hold`, which did not go into the registration.
                unsafe { Inner::release(inner.pointer()) };
                return None;
            }
        }
        // Step 5. of `evaluate.rs`.
        if begun.is_some_and(|begun| begun != E::moment()) {
            return None;
        }
        Some(registration)
    }

    fn conditions(&self) -> &[Arc<WakeCondition>] {
        self.more.as_deref().map_or(&[], |more| &more.conditions)
    }

    fn variables(&self) -> impl Iterator<Item = WaitedFor> {
        let others = self.more.as_deref().map_or(&[][..], |more| &more.others);
        self.first.into_iter().chain(others.iter().copied())
    }

    /// Steps 1. to 3. above. False if the variable is not as it was read. If it is plain, each
    /// write wakes the waiter.
    fn enter<E: Engine>(&mut self, inner: Borrowed<'_>, seen: u64, is_plain: bool) -> bool {
        let mut list = lock(&inner.waiters);
        if !E::announce_waiter(&inner, seen) {
            clear_without_waiters(&inner, &list);
            return false;
        }
        let waiters = list.get_or_insert_default();
        let place = match is_plain {
            true => waiters.enter(Arc::clone(&self.waiter)),
            false => {
                let watching =
                    self.conditions().iter().filter(|condition| condition.watches(inner.address()));
                Arc::make_mut(waiters.conditions.get_or_insert_default()).extend(watching.cloned());
                NO_PLACE
            }
        };
        let waited_for = WaitedFor { inner: inner.pointer(), place };
        match self.first {
            None => self.first = Some(waited_for),
            Some(_) => self.more.get_or_insert_default().others.push(waited_for),
        }
        true
    }

    /// Waits until a commit wakes the transaction, which was begun at `place`. The thread is listed
    /// with that place; an observer is told the variables too.
    pub(crate) fn woken(self, place: &'static Location<'static>) -> WaitsForWrite {
        // SAFETY: the future has the waiter as long as this reference: it drops `wait` before
        // `registration`, and gives neither away.
        let waiter: &'static WaitingTx = unsafe { &*Arc::as_ptr(&self.waiter) };
        WaitsForWrite { wait: waiter.wait_at(place), registration: self }
    }

    /// "waits to read a new value of ..."
    #[cold]
    fn reason(&self, place: &'static Location<'static>) -> WaitReason {
        // SAFETY: the registration has handles to them.
        let variables = self.variables().map(|one| unsafe { &*one.inner.as_ptr() });
        let object = format!("{}, in the transaction begun at {place}", describe(variables));
        WaitReason { call: "read a new value of", object: Object::Name(object.into()) }
    }

    /// A commit has woken the transaction. If that waits for one variable and no predicate, the
    /// commit has taken it out of the only list in which it was.
    fn note_woken(&mut self) {
        if self.more.is_none()
            && let Some(first) = &mut self.first
        {
            first.place = IN_NO_LIST;
        }
    }

    fn leave(&self, inner: &Inner, place: u32) {
        let mut list = lock(&inner.waiters);
        let Some(waiters) = list.as_mut() else { return };
        waiters.leave(place, &self.waiter);
        let is_mine = |one: &Arc<WakeCondition>| self.conditions().iter().any(|mine| Arc::ptr_eq(mine, one));
        waiters.retain_conditions(|one| !is_mine(one));
        clear_without_waiters(inner, &list);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for WaitedFor { inner, place } in self.variables() {
            // SAFETY: the registration has a handle to it, which ends here.
            unsafe {
                if place != IN_NO_LIST {
                    self.leave(inner.as_ref(), place);
                }
                Inner::release(inner);
            }
        }
        // SAFETY: no access follows.
        keep(unsafe { ManuallyDrop::take(&mut self.waiter) });
    }
}

/// Keeps the memory of a waiter for the next one of this OS thread, if there is no other reference
/// to it. Under Miri none is kept, so that Miri sees each access to a waiter that has gone; and
/// none in a model, because a session is forgotten there.
fn keep(mut waiter: Arc<WaitingTx>) {
    if cfg!(not(any(miri, loom)))
        && let Some(alone) = Arc::get_mut(&mut waiter)
    {
        *alone = WaitingTx::new();
        session::with_kept(|session| session.spare_waiter = Some(waiter));
    }
}

/// The wait of a registered transaction: see [`Registration::woken`].
///
/// It lies in the memory of each thread that waits. So it is no `async` block, which would have the
/// registration and the wait in it twice; and it is polled with the place of the transaction, which
/// the transaction has already.
pub(crate) struct WaitsForWrite {
    /// Pinned. It refers to the waiter of `registration`, so it is dropped first.
    wait: Waiting<'static, bool, (), WokenRole, Shared>,
    registration: Registration,
}

impl WaitsForWrite {
    /// Polls it as a future. The transaction was begun at `place`.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        place: &'static Location<'static>,
    ) -> Poll<()> {
        // SAFETY: `wait` is not moved: it is polled in its place.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let polled = unsafe { Pin::new_unchecked(&mut this.wait) }.poll(cx);
        match polled {
            Poll::Pending => observe::waits_on(|| this.registration.reason(place)),
            Poll::Ready(()) => this.registration.note_woken(),
        }
        polled
    }
}
