//! The parts of an attempt: a [`Branch`], which may be undone, and the part in which a predicate
//! runs.

use super::{AttemptState, BoxedHook, Extras};
use crate::engine::Engine;
use crate::log::BranchMark;
use selvedge_core::internal::quietly;
use std::cell::RefCell;

/// A part of a transaction that may be undone. If it is dropped before its end, because its body
/// has panicked, it is undone.
pub(crate) struct Branch<'tx, E: Engine> {
    state: &'tx RefCell<AttemptState<E>>,
    /// None at the end.
    log: Option<BranchMark>,
    after_commit: usize,
    on_abort: usize,
}

impl<'tx, E: Engine> Branch<'tx, E> {
    pub(crate) fn begin(attempt: &'tx RefCell<AttemptState<E>>) -> Branch<'tx, E> {
        let state = &mut *attempt.borrow_mut();
        let counts = |extras: &Extras| (extras.after_commit.len(), extras.on_abort.len());
        let (after_commit, on_abort) = state.extras.as_deref().map_or((0, 0), counts);
        let log = Some(state.session.log.begin_branch());
        Branch { state: attempt, log, after_commit, on_abort }
    }

    pub(crate) fn end(mut self, kept: bool) {
        let undone = self.end_log(kept);
        // Their captures are values of the program, so they are dropped without a borrow.
        drop(undone);
    }

    /// The hooks that belong to the branch, if it is not kept.
    fn end_log(&mut self, kept: bool) -> Vec<BoxedHook> {
        let Some(mark) = self.log.take() else { return Vec::new() };
        let state = &mut *self.state.borrow_mut();
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
    state: &'tx RefCell<AttemptState<E>>,
    /// The number of reads before the predicate.
    pub(crate) from: usize,
}

impl<'tx, E: Engine> PredicateMark<'tx, E> {
    /// `None` within another predicate.
    pub(crate) fn begin(attempt: &'tx RefCell<AttemptState<E>>) -> Option<PredicateMark<'tx, E>> {
        let state = &mut *attempt.borrow_mut();
        match std::mem::replace(&mut state.in_predicate, true) {
            true => None,
            false => Some(PredicateMark { state: attempt, from: state.session.log.reads.len() }),
        }
    }
}

impl<E: Engine> Drop for PredicateMark<'_, E> {
    fn drop(&mut self) {
        self.state.borrow_mut().in_predicate = false;
    }
}
