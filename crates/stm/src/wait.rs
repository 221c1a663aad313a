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
//! A transaction that waits for a predicate is not woken by d.: see `condition.rs`.

use crate::condition::{AttemptConditions, Due, ToWake, WakeCondition, WokenByCommit};
use crate::engine::Engine;
use crate::names;
use crate::primitives::{LOOKS, Ordering, lock, relax};
use crate::session::{self, Session};
use crate::variable::{Borrowed, Inner, LOCKED, WAITERS};
use crate::weak::{Weak, WeakAnchor};
use selvedge_core::observe::{self, Object, WaitReason};
use selvedge_core::{Queue, Role, Shared, WaitQueue, Waiting};
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

/// The transactions that wait for a variable. A variable that nothing waits for any more keeps this
/// without waiters, for the next one.
#[derive(Default)]
pub(crate) struct Waiters {
    /// The waiters that each write wakes. A waiter keeps its place until it leaves, so that it
    /// leaves in constant time; the next waiter takes a free place. This is place 0. Mostly there
    /// is one waiter, which takes no memory of its own then.
    first: Option<Arc<WaitingTx>>,
    /// The places from 1 on. None if all of them are free, and the variable has had no weak handle.
    others: Option<Box<WaiterPlaces>>,
    /// The conditions for which transactions wait. The commits that evaluate them share the list.
    /// `None` if there are none.
    conditions: Option<Arc<Vec<Arc<WakeCondition>>>>,
}

#[derive(Default)]
struct WaiterPlaces {
    all: Vec<Option<Arc<WaitingTx>>>,
    free: Vec<u32>,
    /// Here, because few variables have more than one waiter, and few have weak handles.
    weak: Option<WeakAnchor>,
}

impl WaiterPlaces {
    fn are_free(&self) -> bool {
        self.free.len() == self.all.len()
    }
}

impl Waiters {
    fn is_empty(&self) -> bool {
        self.first.is_none()
            && self.others.as_ref().is_none_or(|others| others.are_free())
            && self.conditions.is_none()
    }

    /// A weak handle to the variable with these waiters.
    fn weak(&mut self, inner: NonNull<Inner>) -> Weak {
        let anchor = &mut self.others.get_or_insert_default().weak;
        anchor.get_or_insert_with(|| WeakAnchor::new(inner.cast())).weak()
    }

    /// What the weak handles of the variable share, if it has had one. The variable is freed next.
    fn take_weak(&mut self) -> Option<WeakAnchor> {
        self.others.as_mut()?.weak.take()
    }

    /// Takes out the places from 1 on, with the waiters that are in some of them.
    fn take_places(&mut self) -> Vec<Option<Arc<WaitingTx>>> {
        if let Some(others) = &mut self.others
            && others.weak.is_some()
        {
            others.free = Vec::new();
            return std::mem::take(&mut others.all);
        }
        self.others.take().map(|others| others.all).unwrap_or_default()
    }

    /// Keeps those conditions for which `stays` is true.
    fn retain_conditions(&mut self, stays: impl Fn(&Arc<WakeCondition>) -> bool) {
        if let Some(conditions) = &mut self.conditions
            && !conditions.iter().all(&stays)
        {
            let list = Arc::make_mut(conditions);
            list.retain(stays);
            if list.is_empty() {
                self.conditions = None;
            }
        }
    }

    /// Adds a waiter that each write wakes; its place.
    fn enter(&mut self, waiter: Arc<WaitingTx>) -> u32 {
        if self.first.is_none() {
            self.first = Some(waiter);
            return 0;
        }
        let others = self.others.get_or_insert_default();
        if let Some(place) = others.free.pop() {
            others.all[place as usize - 1] = Some(waiter);
            return place;
        }
        others.all.push(Some(waiter));
        others.all.len() as u32
    }

    /// Takes a waiter out, unless it is not there any more, because a commit has taken all waiters.
    /// Its place may have another waiter since.
    fn leave(&mut self, place: u32, waiter: &Arc<WaitingTx>) {
        let is_there =
            |there: &Option<Arc<WaitingTx>>| there.as_ref().is_some_and(|there| Arc::ptr_eq(there, waiter));
        if place == 0 {
            if is_there(&self.first) {
                self.first = None;
            }
            return;
        }
        if let Some(others) = &mut self.others
            && let Some(entry) = others.all.get_mut(place as usize - 1)
            && is_there(entry)
        {
            *entry = None;
            others.free.push(place);
            if others.are_free() {
                drop(self.take_places());
            }
        }
    }

    /// Takes out all waiters that each write wakes.
    fn take_plain(&mut self, into: &mut WokenByCommit) {
        if let Some(first) = self.first.take() {
            into.push(ToWake::Waiter(first));
        }
        if self.others.is_some() {
            let others = self.take_places().into_iter().flatten();
            others.for_each(|waiter| into.push(ToWake::Waiter(waiter)));
        }
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
pub(crate) fn gather(inner: Borrowed<'_>, woken: &mut WokenByCommit) {
    let mut list = lock(&inner.waiters);
    let Some(waiters) = list.as_mut() else { return };
    waiters.take_plain(woken);
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
    lock(&inner.waiters).get_or_insert_default().weak(inner.pointer())
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
pub(crate) fn forget(inner: &Inner, conditions: &[Arc<WakeCondition>]) {
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
fn clear_without_waiters(inner: &Inner, list: &Option<Box<Waiters>>) {
    let clear = |word: u64| (word & (LOCKED | WAITERS) == WAITERS).then_some(word & !WAITERS);
    if list.as_ref().is_none_or(|waiters| waiters.is_empty()) {
        let _ = inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, clear);
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
            if are_few && reads[..at].iter().any(|earlier| earlier.inner == read.inner) {
                continue;
            }
            // SAFETY: the session of this log is pinned.
            let inner = unsafe { Borrowed::new(read.inner) };
            let is_plain = outside.as_ref().is_none_or(|outside| outside.contains(&read.inner));
            // A variable without a handle is out of reach of any later transaction, so this one
            // does not wait for it.
            if inner.hold() && !registration.enter::<E>(inner, read.seen, is_plain) {
                // SAFETY: the handle of `hold`, which did not go into the registration.
                unsafe { Inner::release(inner.pointer()) };
                return None;
            }
        }
        // Step 5. of `condition.rs`.
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
                    self.conditions().iter().filter(|condition| condition.watches(inner.pointer()));
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
        WaitsForWrite { wait: waiter.0.wait_at((), place), registration: self }
    }

    /// "waits to read a new value of ..."
    #[cold]
    fn reason(&self, place: &'static Location<'static>) -> WaitReason {
        // SAFETY: the registration has handles to them.
        let variables = self.variables().map(|one| unsafe { &*one.inner.as_ptr() });
        let object = format!("{}, in the transaction begun at {place}", names::describe(variables));
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
