//! The turn makes a transaction irrevocable: a transaction that has met many conflicts locks each
//! variable before it reads it.
//!
//! One transaction of the process at most has the turn. Its attempt meets no conflict: no commit
//! can change a variable that the attempt has locked, and the attempt waits for a locked variable
//! until it is unlocked. Other transactions take no notice of the turn. For them the variables are
//! locked, as by a commit that lasts as long as the body.
//!
//! # It does not wait for ever
//! A variable that the attempt waits for is locked by a commit, because there is no second turn. A
//! commit runs no code of the program while it has a variable locked. It looks a bounded number of
//! times at a variable that is locked already, then unlocks its own and gives up. So each commit
//! unlocks its variables in a bounded number of steps. The attempt may lose a variable to several
//! commits in a row before its own exchange succeeds; that has no bound but chance.
//!
//! The turn is no lock that a thread could keep while it waits: it is taken and given back within
//! one attempt, which is a call of an ordinary function.

use crate::address::VarAddress;
use crate::locks::{give_back, lock_one};
use crate::log::Log;
use crate::primitives::{Ordering, give_way, in_one_order};
use crate::testing;
use crate::variable::{Borrowed, Inner, WAITERS, version};
use crate::world::world;
use std::collections::HashMap;

/// The turn, with the variables that its attempt has locked. It is given back when this is dropped,
/// and so it is dropped before the session of the attempt is unpinned.
pub(crate) struct CommitTurn {
    /// The variables, with their words as the turn found them.
    locked: HashMap<VarAddress, u64>,
}

impl CommitTurn {
    /// The turn, unless another transaction has it.
    #[cold]
    pub(crate) fn take() -> Option<Box<CommitTurn>> {
        let exchange = world().turn.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        exchange.is_ok().then(|| Box::new(CommitTurn { locked: HashMap::new() }))
    }

    /// The value of a variable, which stays locked until the turn ends.
    pub(crate) fn read(&mut self, log: &mut Log, inner: Borrowed<'_>) -> *mut () {
        let seen = self.keep(inner) & !WAITERS;
        log.note_read(inner.address(), seen);
        inner.value.load(Ordering::Acquire)
    }

    /// Locks a variable until the turn ends; the word that it had.
    fn keep(&mut self, inner: Borrowed<'_>) -> u64 {
        *self.locked.entry(inner.address()).or_insert_with(|| lock_surely(&inner))
    }

    /// Locks the variables of the log's writes, which the caller publishes; the newest of their
    /// versions.
    pub(crate) fn lock_all(&mut self, log: &mut Log) -> u64 {
        let mut newest = 0;
        for write in &mut log.writes {
            write.found = match self.locked.remove(&write.variable) {
                Some(found) => found,
                // SAFETY: the session of the log is pinned.
                None => lock_surely(unsafe { write.variable.inner() }),
            };
            newest = newest.max(version(write.found));
        }
        in_one_order();
        testing::take_ticket();
        newest
    }
}

/// Gives the turn back, if there is one. Most attempts have none.
#[inline(always)]
pub(crate) fn end(turn: &mut Option<Box<CommitTurn>>) {
    if turn.is_some() {
        give_back_turn(turn);
    }
}

#[cold]
#[inline(never)]
fn give_back_turn(turn: &mut Option<Box<CommitTurn>>) {
    *turn = None;
}

fn lock_surely(inner: &Inner) -> u64 {
    loop {
        if let Some(found) = lock_one(inner) {
            return found;
        }
        give_way();
    }
}

impl Drop for CommitTurn {
    fn drop(&mut self) {
        for (variable, found) in &self.locked {
            // SAFETY: the session of the attempt is pinned until the engine has released the
            // turn. This turn has locked the variable, and no commit has published it since.
            give_back(unsafe { variable.inner() }, *found);
        }
        world().turn.0.store(false, Ordering::Release);
    }
}
