//! One attempt of a transaction, from its begin to its end: [`AttemptState`]. `body.rs` runs it.
//!
//! # What an ordinary attempt does
//! An attempt is ordinary if it meets no conflict, has no branch, hook or predicate, and wakes no
//! transaction. It takes the session of its OS thread, pins it, reads the clock, runs the body,
//! commits, unpins the session and puts it back. The code for other attempts is in separate
//! functions, which are not inlined.

mod branch;

pub(crate) use branch::{Branch, PredicateMark};

use crate::condition::{Predicate, WakeCondition};
use crate::engine::{Conflict, Engine, HasWaiters};
use crate::garbage::Garbage;
use crate::reads::ReadEntry;
use crate::registration::{AttemptConditions, Registration};
use crate::session::{self, Session};
use crate::stop::{Abort, Stop, StopReason, Tried};
use crate::turn::CommitTurn;
use crate::variable::{Borrowed, WAITERS};
use crate::waking::{self, WokenByCommit};
use selvedge_core::internal::quietly;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;

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
    pub(crate) fn run_after_commit(self) {
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

/// What is left to do for a commit when the session has been given back: code of the program.
pub(crate) struct RestOfCommit {
    pub(crate) nodes: Vec<Garbage>,
    pub(crate) woken: WokenByCommit,
    pub(crate) extras: Option<Box<Extras>>,
}

impl<E: Engine> AttemptState<E> {
    #[inline(always)]
    pub(crate) fn begin(turn: Option<Box<CommitTurn>>) -> AttemptState<E> {
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

    #[inline(always)]
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(crate) fn extras(&mut self) -> &mut Extras {
        self.session.log.set_unordinary();
        self.extras.get_or_insert_default()
    }

    /// Waits for a predicate, with its reads from `from` on, unless the attempt has written.
    pub(crate) fn add_condition(&mut self, from: usize, predicate: impl Predicate + 'static) {
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
    pub(crate) fn load(&mut self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        let log = &mut self.session.log;
        if log.needs_search(inner.address()) {
            return self.load_with_search(inner);
        }
        if log.reads.has_room()
            && let Some((seen, value)) = E::glance(&mut self.engine, log, &inner)
        {
            // SAFETY: there is room.
            unsafe { log.reads.push_within(ReadEntry { variable: inner.address(), seen }) };
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
        if let Some(at) = log.find(inner.address()) {
            return Ok(log.writes[at].value);
        }
        if let Some(turn) = E::turn(&mut self.engine) {
            return Ok(turn.read(log, inner));
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
    pub(crate) fn resume_if_it_holds(&mut self, panic: Box<dyn Any + Send>) {
        if self.holds() {
            resume_unwind(panic);
        }
        quietly(|| drop(panic));
    }

    /// Publishes the writes and ends the attempt. With an error there is no effect, because another
    /// transaction is in the way, and the attempt has not ended.
    #[inline(always)]
    pub(crate) fn commit(&mut self) -> Result<Option<RestOfCommit>, Conflict> {
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
            waking::gather(unsafe { Borrowed::at(write.variable) }, &mut woken);
        }
        let nodes = self.session.log.clear_all(true);
        let extras = self.extras.take();
        E::release(&mut self.engine);
        self.close();
        RestOfCommit { nodes, woken, extras }
    }

    /// The end of a body without a value.
    #[inline(never)]
    pub(crate) fn end_without_effect<R, X>(&mut self, ending: Abort<X>) -> Attempted<R, X> {
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

/// The result of a predicate in a commit.
pub(crate) enum Evaluated {
    /// The transaction goes on waiting.
    Stays,
    Wakes,
    /// As `Wakes`; and this attempt can evaluate no more predicates.
    Spent,
}

/// What a commit does with the predicates of transactions that wait: see `evaluate.rs`.
impl<E: Engine> AttemptState<E> {
    /// An attempt that evaluates predicates, and does not commit.
    pub(crate) fn for_predicates() -> AttemptState<E> {
        let mut state = AttemptState::begin(None);
        state.in_predicate = true;
        state
    }

    /// Makes ready for the next predicate, whatever this attempt has evaluated before.
    #[inline]
    pub(crate) fn forget_reads(&mut self) {
        self.session.log.reads.clear();
    }

    /// What follows from the result of the predicate that this attempt has evaluated.
    #[inline]
    pub(crate) fn evaluated(&self, condition: &WakeCondition, result: Tried<bool>) -> Evaluated {
        let log = &self.session.log;
        if self.has_conflict || !log.writes.is_empty() {
            return Evaluated::Spent;
        }
        match result {
            Ok(false) | Err(Stop(StopReason::Retry))
                if log.reads.iter().all(|read| condition.watches(read.variable)) =>
            {
                Evaluated::Stays
            }
            _ => Evaluated::Wakes,
        }
    }
}
