//! The evaluation of the predicates for which transactions wait, by the commits of others.
//!
//! A transaction that waits for a [predicate](crate::Tx::wait_for) registers a [`WakeCondition`] in
//! the variables that the predicate has read. A commit that writes one of them evaluates the
//! predicate, and wakes the transaction only if the predicate holds. So of 1000 transactions that
//! wait for the same variable, only the transactions with something to do run.
//!
//! # No wake-up is lost
//! ```text
//!    commit, for each variable that has conditions, after steps a. to d. of `registration.rs`
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

use crate::attempt::{AttemptState, Evaluated};
use crate::condition::WakeCondition;
use crate::engine::Engine;
use crate::transaction::Tx;
use selvedge_core::internal::{indivisible, quietly};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

/// The conditions with transactions to wake: each holds, or it is not known whether it holds.
///
/// One attempt evaluates them all, unless one of them leaves something behind in it.
pub(crate) fn evaluate<E: Engine>(conditions: &[Arc<WakeCondition>]) -> Vec<&Arc<WakeCondition>> {
    let mut woken = Vec::new();
    let mut left = conditions.iter();
    while !left.as_slice().is_empty() {
        // A predicate that panics leaves its condition here.
        let mut running = None;
        quietly(|| {
            let tx = Tx { state: RefCell::new(AttemptState::for_predicates()) };
            indivisible(|| {
                for condition in left.by_ref() {
                    running = Some(condition);
                    // SAFETY: the conditions are registered in a variable that a transaction of the
                    // engine E has written.
                    match unsafe { evaluate_one::<E>(&tx, condition) } {
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

/// Evaluates a predicate.
///
/// # Safety
/// The condition is registered in a variable of the engine E.
#[inline]
unsafe fn evaluate_one<E: Engine>(tx: &Tx<E>, condition: &WakeCondition) -> Evaluated {
    tx.state.borrow_mut().forget_reads();
    // SAFETY: the predicate reads variables of one engine, because no function of `Tx<E>` takes
    // variables of another one. The condition is registered in these, so E is the predicate's.
    let result = unsafe { condition.predicate.holds(NonNull::from(tx).cast()) };
    tx.state.borrow().evaluated(condition, result)
}
