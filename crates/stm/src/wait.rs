//! How a transaction that retries waits: registered once in each variable that it has read.
//!
//! # No wake-up is lost
//! ```text
//!    registration, for each variable         commit, for each variable
//!    1. lock the list                        a. exchange the word: LOCKED
//!    2. exchange the word: WAITERS,          b. store the value
//!       if it is unlocked and has the        c. store the word: new version, unlocked
//!       version that was read                d. if a. has found WAITERS: lock the list, take it,
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
//! A transaction that waits for a predicate is not woken by d.: see `condition.rs`.

use crate::condition::{AttemptConditions, Due, ToWake, WakeCondition};
use crate::engine::Engine;
use crate::log::Log;
use crate::names;
use crate::primitives::{LOOKS, Ordering, lock, relax};
use crate::variable::{Borrowed, Inner, LOCKED, WAITERS};
use selvedge_core::observe::{self, Object, WaitReason};
use selvedge_core::{Queue, Role, WaitQueue};
use std::collections::HashSet;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::pin;
use std::ptr::NonNull;
use std::sync::Arc;

/// The transactions that wait for a variable. Not empty.
#[derive(Default)]
pub(crate) struct Waiters {
    /// Those that each write wakes.
    plain: WaiterPlaces,
    /// Those that wait for predicates. Shared with the commits that evaluate them.
    conditions: Arc<Vec<Arc<WakeCondition>>>,
}

/// Waiters that keep their places in the list until they leave, so that they leave in constant time.
/// The next waiter takes a place that is free.
#[derive(Default)]
struct WaiterPlaces {
    places: Vec<Option<Arc<WaitingTx>>>,
    free: Vec<u32>,
}

impl WaiterPlaces {
    fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }

    /// Adds a waiter; its place.
    fn enter(&mut self, waiter: Arc<WaitingTx>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(waiter);
            return place;
        }
        self.places.push(Some(waiter));
        (self.places.len() - 1) as u32
    }

    /// Takes a waiter out, unless it is not there any more: a commit has taken all waiters, and this
    /// may be another list, made since.
    fn leave(&mut self, place: u32, waiter: &Arc<WaitingTx>) {
        if let Some(entry) = self.places.get_mut(place as usize)
            && entry.as_ref().is_some_and(|there| Arc::ptr_eq(there, waiter))
        {
            *entry = None;
            self.free.push(place);
        }
    }

    fn take_all(&mut self) -> impl Iterator<Item = Arc<WaitingTx>> {
        self.free.clear();
        self.places.drain(..).flatten()
    }
}

/// One transaction that waits. The state tells whether a variable that it has read was written.
pub(crate) struct WaitingTx(WaitQueue<bool, ()>);

enum WokenRole {}

impl Role<bool, ()> for WokenRole {
    type Output = ();

    fn attempt(is_woken: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        is_woken.then_some(())
    }

    fn granted(_: &mut ()) {}

    /// The state stays as it is: the waiter has one future.
    fn abandoned(_: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) {}
}

impl WaitingTx {
    pub(crate) fn new() -> WaitingTx {
        WaitingTx(WaitQueue::new(false))
    }

    pub(crate) fn wake(&self) {
        self.0.with(|is_woken, queue| {
            *is_woken = true;
            queue.grant();
        });
    }
}

/// Step d. above and step e. of `condition.rs`, for a variable that a commit has found with
/// waiters.
#[cold]
pub(crate) fn gather(inner: Borrowed<'_>, woken: &mut Vec<ToWake>) {
    let mut list = lock(&inner.waiters);
    let Some(waiters) = list.as_mut() else { return };
    woken.extend(waiters.plain.take_all().map(ToWake::Waiter));
    if !waiters.conditions.is_empty() {
        if let Some(due) = announce(&inner).then(|| Due::new(inner, &waiters.conditions)).flatten() {
            woken.push(ToWake::Due(due));
            return;
        }
        woken.extend(Due::waiters(&waiters.conditions));
    }
    // Each condition in the list is in its `Registration` too, which leaves the list before it
    // drops the condition. So no predicate is dropped here.
    *list = None;
    // The commits of `NOrec` do not clear the bit by themselves.
    clear_without_list(&inner, &list);
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

/// Takes conditions out of the list of a variable.
pub(crate) fn forget(inner: &Inner, conditions: &[Arc<WakeCondition>]) {
    let mut list = lock(&inner.waiters);
    let Some(waiters) = list.as_mut() else { return };
    let gone: HashSet<*const ()> = conditions.iter().map(|gone| Arc::as_ptr(gone).cast()).collect();
    Arc::make_mut(&mut waiters.conditions).retain(|one| !gone.contains(&Arc::as_ptr(one).cast()));
    tidy(inner, &mut list);
}

/// Drops a list that is empty. The caller has locked it.
fn tidy(inner: &Inner, list: &mut Option<Box<Waiters>>) {
    if list.as_ref().is_some_and(|waiters| waiters.plain.is_empty() && waiters.conditions.is_empty()) {
        *list = None;
        clear_without_list(inner, list);
    }
}

/// Clears `WAITERS` if there is no list. The caller has locked it. A locked word stays: the commit
/// that has locked it finds no list, and clears the bit.
fn clear_without_list(inner: &Inner, list: &Option<Box<Waiters>>) {
    let clear = |word: u64| (word & (LOCKED | WAITERS) == WAITERS).then_some(word & !WAITERS);
    if list.is_none() {
        let _ = inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, clear);
    }
}

/// A waiter in the lists of its variables, which it leaves when this is dropped.
pub(crate) struct Registration {
    waiter: Arc<WaitingTx>,
    conditions: Vec<Arc<WakeCondition>>,
    variables: Vec<WaitedFor>,
}

/// A variable with a handle of a registration.
struct WaitedFor {
    inner: NonNull<Inner>,
    /// The waiter's place among the plain ones. Without a meaning if only predicates wait for the
    /// variable.
    place: u32,
}

// SAFETY: the handles of variables are Send, and so is the waiter.
unsafe impl Send for Registration {}
// SAFETY: as above; a shared registration only leads to the waiter.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers the transaction in the variables that it has read. `None` if one of them has
    /// changed since.
    ///
    /// # Panics
    /// If the transaction has read no variable.
    pub(crate) fn new<E: Engine>(
        log: &mut Log,
        conditions: Option<AttemptConditions>,
    ) -> Option<Registration> {
        let outside = conditions.as_ref().map(|conditions| conditions.read_outside(&log.reads));
        let reads = log.distinct_reads();
        assert!(!reads.is_empty(), "a transaction retries that has read no variable: no commit can wake it");
        let (waiter, conditions) = match conditions {
            Some(conditions) => (conditions.waiter.clone(), conditions.into_list()),
            None => (Arc::new(WaitingTx::new()), Vec::new()),
        };
        let mut registration =
            Registration { waiter, conditions, variables: Vec::with_capacity(reads.len()) };
        for read in reads {
            // SAFETY: the session of this log is pinned.
            let inner = unsafe { Borrowed::new(read.inner) };
            let is_plain = outside.as_ref().is_none_or(|outside| outside.contains(&read.inner));
            // A variable without a handle is out of reach of any later transaction, so this one
            // does not wait for it.
            if inner.hold() && !registration.enter::<E>(inner, read.seen, is_plain) {
                // SAFETY: the handle of `hold`, which did not go into `variables`.
                unsafe { Inner::release(inner.pointer()) };
                return None;
            }
        }
        Some(registration)
    }

    /// Steps 1. to 3. above. False if the variable is not as it was read. If it is plain, each
    /// write wakes the waiter.
    fn enter<E: Engine>(&mut self, inner: Borrowed<'_>, seen: u64, is_plain: bool) -> bool {
        let mut list = lock(&inner.waiters);
        if !E::announce_waiter(&inner, seen) {
            clear_without_list(&inner, &list);
            return false;
        }
        let waiters = list.get_or_insert_default();
        let place = match is_plain {
            true => waiters.plain.enter(self.waiter.clone()),
            false => {
                let watching = self.conditions.iter().filter(|condition| condition.watches(inner.pointer()));
                Arc::make_mut(&mut waiters.conditions).extend(watching.cloned());
                u32::MAX
            }
        };
        self.variables.push(WaitedFor { inner: inner.pointer(), place });
        true
    }

    /// Waits until a commit wakes the transaction, which was begun at `place`. The thread is listed
    /// with that place; an observer is told the variables too.
    pub(crate) async fn woken(&self, place: &'static Location<'static>) {
        let mut wait = pin!(self.waiter.0.wait_at::<WokenRole>((), place));
        poll_fn(|cx| {
            let polled = wait.as_mut().poll(cx);
            if polled.is_pending() {
                observe::waits_on(|| self.reason(place));
            }
            polled
        })
        .await;
    }

    /// "waits to read a new value of ..."
    #[cold]
    fn reason(&self, place: &'static Location<'static>) -> WaitReason {
        // SAFETY: the registration has handles to them.
        let variables = names::describe(self.variables.iter().map(|one| unsafe { one.inner.as_ref() }));
        let object = format!("{variables}, in the transaction begun at {place}");
        WaitReason { call: "read a new value of", object: Object::Name(object.into()) }
    }

    fn leave(&self, inner: &Inner, place: u32) {
        let mut list = lock(&inner.waiters);
        let Some(waiters) = list.as_mut() else { return };
        waiters.plain.leave(place, &self.waiter);
        let is_mine = |one: &Arc<WakeCondition>| self.conditions.iter().any(|mine| Arc::ptr_eq(mine, one));
        if waiters.conditions.iter().any(is_mine) {
            Arc::make_mut(&mut waiters.conditions).retain(|one| !is_mine(one));
        }
        tidy(inner, &mut list);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for &WaitedFor { inner, place } in &self.variables {
            // SAFETY: the registration has a handle to it, which ends here.
            unsafe {
                self.leave(inner.as_ref(), place);
                Inner::release(inner);
            }
        }
    }
}
