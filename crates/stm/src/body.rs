//! Running the body of a transaction once: [`attempt`].

use crate::attempt::{AttemptState, Attempted, RestOfCommit};
use crate::engine::{Conflict, Engine};
use crate::evaluate::evaluate;
use crate::stop::Abort;
use crate::transaction::Tx;
use crate::turn::CommitTurn;
use selvedge_core::internal::indivisible;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

impl RestOfCommit {
    #[cold]
    #[inline(never)]
    fn run<E: Engine>(self) {
        drop(self.nodes);
        self.woken.wake_all(evaluate::<E>);
        if let Some(extras) = self.extras {
            extras.run_after_commit();
        }
    }
}
