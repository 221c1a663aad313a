//! One attempt of a transaction, from its begin to its end: [`attempt`], with its [`AttemptState`].
//!
//! # What an ordinary attempt does
//! An attempt is ordinary if it meets no conflict, has no branch, hook or predicate, and wakes no
//! transaction. It takes the session of its OS thread, pins it, reads the clock, runs the body,
//! commits, unpins the session and puts it back. The code for other attempts is in separate
//! functions, which are not inlined.

use crate::condition::{AttemptConditions, WakeCondition, WokenByCommit};
use crate::engine::{Conflict, Engine, HasWaiters, read_in_turn};
use crate::log::BranchMark;
use crate::reads::ReadEntry;
use crate::session::{self, Free, Garbage, Session};
use crate::stop::{Abort, Stop, StopReason, Tried};
use crate::transaction::Tx;
use crate::turn::CommitTurn;
use crate::variable::{Borrowed, WAITERS};
use crate::wait::{self, Registration};
use selvedge_core::internal::{indivisible, quietly};
use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An attempt from its begin to its end. Dropped before its end, it has no effect.
pub(crate) struct AttemptState<E: Engine> {
    /// Pinned. Given back at the end.
    session: ManuallyDrop<Box<Session>>,
    /// Released before the session is unpinned. The commit of an ordinary attempt leaves nothing to
    /// release.
    engine: E::Attempt,
    /// A read has failed: the attempt cannot commit.
    has_conflict: bool,
    /// A predicate runs.
    in_predicate: bool,
    /// `None` as long as the body has added no hook and waits for no predicate.
    extras: Option<Box<Extras>>,
}

pub(crate) type BoxedHook = Box<dyn FnOnce()>;

/// The state that few attempts need.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) after_commit: Vec<BoxedHook>,
    pub(crate) on_abort: Vec<BoxedHook>,
    /// The hooks of `on_abort` that belong to undone branches.
    undone: Vec<BoxedHook>,
    /// The predicates that did not hold.
    pub(crate) conditions: Option<AttemptConditions>,
}

impl Extras {
    fn run_after_commit(self) {
        let Extras { after_commit, on_abort, undone, conditions } = self;
        undone.into_iter().for_each(quietly);
        // Destructors of the program, which keep no hook from running.
        quietly(|| drop((on_abort, conditions)));
        after_commit.into_iter().for_each(|hook| hook());
    }

    fn run_after_abort(self) {
        let Extras { after_commit, on_abort, undone, conditions } = self;
        undone.into_iter().chain(on_abort).for_each(quietly);
        quietly(|| drop((after_commit, conditions)));
    }
}

/// How an attempt ended.
pub(crate) enum Attempted<R, X> {
    Committed(R),
    Aborted(X),
    Conflict,
    Retry(Registration),
}

/// Runs the body once. With a turn it meets no conflict, unless it retries and a variable changes
/// after the turn.
#[inline(always)]
pub(crate) fn attempt<E: Engine, R, X>(
    body: &mut impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
    turn: Option<Box<CommitTurn>>,
) -> Attempted<R, X> {
    let mut tx = Tx { state: RefCell::new(AttemptState::begin(turn)) };
    let result = match E::OPAQUE {
        true => indivisible(|| body(&tx)),
        false => match catch_unwind(AssertUnwindSafe(|| indivisible(|| body(&tx)))) {
            Ok(result) => result,
            Err(panic) => {
                tx.state.get_mut().resume_if_it_holds(panic);
                return Attempted::Conflict;
            }
        },
    };
    match result {
        Ok(result) => match tx.state.get_mut().commit() {
            Ok(rest) => {
                // `commit` has ended the attempt.
                std::mem::forget(tx);
                if let Some(rest) = rest {
                    rest.run::<E>();
                }
                Attempted::Committed(result)
            }
            Err(Conflict) => Attempted::Conflict,
        },
        Err(ending) => tx.state.get_mut().end_without_effect(ending),
    }
}

/// What is left to do for a commit when the session has been given back: code of the program.
struct RestOfCommit {
    nodes: Vec<Garbage>,
    woken: WokenByCommit,
    extras: Option<Box<Extras>>,
}

impl RestOfCommit {
    #[cold]
    #[inline(never)]
    fn run<E: Engine>(self) {
        drop(self.nodes);
        self.woken.wake_all::<E>();
        if let Some(extras) = self.extras {
            extras.run_after_commit();
        }
    }
}

impl<E: Engine> AttemptState<E> {
    #[inline(always)]
    fn begin(turn: Option<Box<CommitTurn>>) -> AttemptState<E> {
        let mut session = session::take();
        session.pin();
        if turn.is_some() {
            session.log.search_always();
        }
        AttemptState {
            session: ManuallyDrop::new(session),
            engine: E::begin(turn),
            has_conflict: false,
            in_predicate: false,
            extras: None,
        }
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(crate) fn extras(&mut self) -> &mut Extras {
        self.session.log.set_unordinary();
        self.extras.get_or_insert_default()
    }

    /// Waits for a predicate, with its reads from `from` on, unless the attempt has written.
    pub(crate) fn add_condition(
        &mut self,
        from: usize,
        predicate: impl Fn(&Tx<E>) -> Tried<bool> + Send + Sync + 'static,
    ) {
        if self.session.log.writes.is_empty() {
            let conditions = &mut self.extras().conditions;
            let mut conditions = conditions.take().unwrap_or_else(AttemptConditions::new);
            let reads = &self.session.log.reads;
            // SAFETY: the session is pinned until the attempt ends.
            unsafe { conditions.add(from..reads.len(), reads, predicate) };
            self.extras().conditions = Some(conditions);
        }
    }

    /// The value of a variable, as a pointer to its node or as the bits of a word.
    #[inline(always)]
    fn load(&mut self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        let log = &mut self.session.log;
        if log.needs_search(inner.pointer()) {
            return self.load_with_search(inner);
        }
        if log.reads.has_room()
            && let Some((seen, value)) = E::glance(&mut self.engine, log, &inner)
        {
            // SAFETY: there is room.
            unsafe { log.reads.push_within(ReadEntry { inner: inner.pointer(), seen }) };
            return Ok(value);
        }
        E::read(&mut self.engine, log, inner).map_err(|conflict| self.stop(conflict))
    }

    /// A read of a variable that the attempt has perhaps written; or in a turn, or after a
    /// conflict.
    #[inline(never)]
    fn load_with_search(&mut self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        let log = &mut self.session.log;
        if self.has_conflict {
            return Err(Stop(StopReason::Conflict));
        }
        if let Some(at) = log.find(inner.pointer()) {
            return Ok(log.writes[at].value);
        }
        if let Some(turn) = E::turn(&mut self.engine) {
            return Ok(read_in_turn(turn, log, inner));
        }
        E::read(&mut self.engine, log, inner).map_err(|conflict| self.stop(conflict))
    }

    /// A read has failed, and so will all others.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, _: Conflict) -> Stop {
        self.has_conflict = true;
        self.session.log.search_always();
        Stop(StopReason::Conflict)
    }

    /// Whether the attempt has seen one moment, so that a panic or an error of its body counts.
    fn holds(&mut self) -> bool {
        !self.has_conflict && E::holds(&mut self.engine, &self.session.log)
    }

    /// Goes on with a panic of the body, if the body has seen one moment.
    #[cold]
    fn resume_if_it_holds(&mut self, panic: Box<dyn Any + Send>) {
        if self.holds() {
            resume_unwind(panic);
        }
        quietly(|| drop(panic));
    }

    /// Publishes the writes and ends the attempt. With an error there is no effect, because another
    /// transaction is in the way, and the attempt has not ended.
    #[inline(always)]
    fn commit(&mut self) -> Result<Option<RestOfCommit>, Conflict> {
        if !self.session.log.is_ordinary() {
            return self.commit_unordinary();
        }
        let HasWaiters(is_waited_for) = E::commit(&mut self.engine, &mut self.session)?;
        if is_waited_for {
            return Ok(Some(self.end_with_rest()));
        }
        self.session.log.clear();
        self.close();
        Ok(None)
    }

    #[cold]
    #[inline(never)]
    fn commit_unordinary(&mut self) -> Result<Option<RestOfCommit>, Conflict> {
        if self.has_conflict {
            return Err(Conflict);
        }
        let _ = E::commit(&mut self.engine, &mut self.session)?;
        Ok(Some(self.end_with_rest()))
    }

    /// The end of a commit that has something left to do.
    #[cold]
    #[inline(never)]
    fn end_with_rest(&mut self) -> RestOfCommit {
        let mut woken = WokenByCommit::default();
        for write in self.session.log.writes.iter().filter(|write| write.found & WAITERS != 0) {
            // SAFETY: the session of the log is pinned.
            wait::gather(unsafe { Borrowed::new(write.inner) }, &mut woken);
        }
        let nodes = self.session.log.clear_all(true);
        let extras = self.extras.take();
        E::release(&mut self.engine);
        self.close();
        RestOfCommit { nodes, woken, extras }
    }

    /// The end of a body without a value.
    #[inline(never)]
    fn end_without_effect<R, X>(&mut self, ending: Abort<X>) -> Attempted<R, X> {
        match ending {
            _ if self.has_conflict => Attempted::Conflict,
            Abort::Error(_) if !self.holds() => Attempted::Conflict,
            Abort::Error(error) => Attempted::Aborted(error),
            Abort::Stop(Stop(StopReason::Conflict)) => Attempted::Conflict,
            Abort::Stop(Stop(StopReason::Retry)) => match self.register() {
                Some(registration) => Attempted::Retry(registration),
                None => Attempted::Conflict,
            },
        }
    }

    /// Registers the transaction in the variables that it has read. `None` if one of them has
    /// changed.
    fn register(&mut self) -> Option<Registration> {
        // The registration needs variables that are unlocked, and compares them by itself.
        E::release(&mut self.engine);
        let conditions = self.extras.as_mut().and_then(|extras| extras.conditions.take());
        Registration::new::<E>(&mut self.session, conditions)
    }

    /// Gives the session back. The caller has released the engine and emptied the log, and does not
    /// call this again.
    #[inline(always)]
    fn close(&mut self) {
        self.session.unpin();
        // SAFETY: the caller's promise: no access follows.
        session::put(unsafe { ManuallyDrop::take(&mut self.session) });
    }
}

impl<E: Engine> Drop for AttemptState<E> {
    /// The end of an attempt without effect.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let nodes = self.session.log.clear_all(false);
        let extras = self.extras.take();
        E::release(&mut self.engine);
        self.close();
        drop(nodes);
        if let Some(extras) = extras {
            extras.run_after_abort();
        }
    }
}

impl<E: Engine> Tx<E> {
    /// The value of a variable, as a pointer to its node or as the bits of a word.
    #[inline(always)]
    pub(crate) fn load(&self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: only functions of this crate borrow the state, none of them calls this one
        // meanwhile, and `Tx` is not `Sync`.
        unsafe { &mut *self.state.as_ptr() }.load(inner)
    }

    /// See [`Log::changes`](crate::log::Log::changes).
    pub(crate) fn changes(&self) -> usize {
        self.state.borrow_mut().session().log.changes()
    }

    #[inline(always)]
    pub(crate) fn store(&self, inner: Borrowed<'_>, value: *mut (), free: Option<Free>) {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: as above.
        unsafe { &mut *self.state.as_ptr() }.session.log.write(inner.pointer(), value, free);
    }

    /// As `store`, for a value in a node, which `free` frees as [`nodes::free`] does.
    #[inline(always)]
    pub(crate) fn store_node<T: Send + Sync + 'static>(&self, inner: Borrowed<'_>, value: T, free: Free) {
        debug_assert!(self.state.try_borrow_mut().is_ok(), "no borrow lasts while the program's code runs");
        // SAFETY: as above.
        let session = unsafe { &mut *self.state.as_ptr() }.session();
        let node = session.spare.make(value).cast();
        session.log.write(inner.pointer(), node, Some(free));
    }
}

/// A part of a transaction that may be undone. If it is dropped before its end, because its body
/// has panicked, it is undone.
pub(crate) struct Branch<'tx, E: Engine> {
    tx: &'tx Tx<E>,
    /// None at the end.
    log: Option<BranchMark>,
    after_commit: usize,
    on_abort: usize,
}

impl<'tx, E: Engine> Branch<'tx, E> {
    pub(crate) fn begin(tx: &'tx Tx<E>) -> Branch<'tx, E> {
        let state = &mut *tx.state.borrow_mut();
        let counts = |extras: &Extras| (extras.after_commit.len(), extras.on_abort.len());
        let (after_commit, on_abort) = state.extras.as_deref().map_or((0, 0), counts);
        let log = Some(state.session.log.begin_branch());
        Branch { tx, log, after_commit, on_abort }
    }

    pub(crate) fn end(mut self, kept: bool) {
        let undone = self.end_log(kept);
        // Their captures are values of the program, so they are dropped without a borrow.
        drop(undone);
    }

    /// The hooks that belong to the branch, if it is not kept.
    fn end_log(&mut self, kept: bool) -> Vec<BoxedHook> {
        let Some(mark) = self.log.take() else { return Vec::new() };
        let state = &mut *self.tx.state.borrow_mut();
        state.session.log.end_branch(mark, kept);
        if kept {
            return Vec::new();
        }
        let Some(extras) = state.extras.as_deref_mut() else { return Vec::new() };
        extras.undone.extend(extras.on_abort.drain(self.on_abort..));
        extras.after_commit.split_off(self.after_commit)
    }
}

impl<E: Engine> Drop for Branch<'_, E> {
    fn drop(&mut self) {
        if self.log.is_some() {
            let undone = self.end_log(false);
            quietly(|| drop(undone));
        }
    }
}

/// The part of an attempt in which a predicate runs.
pub(crate) struct PredicateMark<'tx, E: Engine> {
    tx: &'tx Tx<E>,
    /// The number of reads before the predicate.
    pub(crate) from: usize,
}

impl<'tx, E: Engine> PredicateMark<'tx, E> {
    /// `None` within another predicate.
    pub(crate) fn begin(tx: &'tx Tx<E>) -> Option<PredicateMark<'tx, E>> {
        let state = &mut *tx.state.borrow_mut();
        match std::mem::replace(&mut state.in_predicate, true) {
            true => None,
            false => Some(PredicateMark { tx, from: state.session.log.reads.len() }),
        }
    }
}

impl<E: Engine> Drop for PredicateMark<'_, E> {
    fn drop(&mut self) {
        self.tx.state.borrow_mut().in_predicate = false;
    }
}

/// The result of a predicate in a commit.
pub(crate) enum Evaluated {
    /// The transaction goes on waiting.
    Stays,
    Wakes,
    /// As `Wakes`; and this attempt can evaluate no more predicates.
    Spent,
}

/// What a commit does with the predicates of transactions that wait: see `condition.rs`.
impl<E: Engine> Tx<E> {
    /// An attempt that evaluates predicates, and does not commit.
    pub(crate) fn for_predicates() -> Tx<E> {
        let mut state = AttemptState::begin(None);
        state.in_predicate = true;
        Tx { state: RefCell::new(state) }
    }

    /// Evaluates a predicate, whatever this attempt has evaluated before.
    ///
    /// # Safety
    /// As for [`WakeCondition::holds`].
    #[inline]
    pub(crate) unsafe fn evaluate(&self, condition: &WakeCondition) -> Evaluated {
        self.state.borrow_mut().session.log.reads.clear();
        // SAFETY: the caller's contract.
        let result = unsafe { condition.holds(self) };
        let state = &mut *self.state.borrow_mut();
        let log = &state.session.log;
        if state.has_conflict || !log.writes.is_empty() {
            return Evaluated::Spent;
        }
        match result {
            Ok(false) | Err(Stop(StopReason::Retry))
                if log.reads.iter().all(|read| condition.watches(read.inner)) =>
            {
                Evaluated::Stays
            }
            _ => Evaluated::Wakes,
        }
    }
}
