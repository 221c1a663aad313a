//! How two worlds of one process meet: [`PortQueue`].
//!
//! The root of the world that connects puts a [`Knock`] into the queue of the port, and waits for
//! its answer. The root of the world that accepts takes a knock, makes the [`JoinedWorlds`], and
//! answers with it. A side that is given up leaves the queue. A port that is closed answers all
//! knocks that wait.

use crate::completion::Completion;
use crate::error::{CallSite, Error, ErrorClass};
use crate::joined::JoinedWorlds;
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The worlds that meet at a port of this process.
#[derive(Default)]
pub(super) struct PortQueue {
    state: Mutex<PortQueueState>,
}

#[derive(Default)]
struct PortQueueState {
    /// Worlds that wait to be accepted.
    knocks: VecDeque<Arc<Knock>>,
    /// Accepting roots that wait for a world.
    accepting: VecDeque<Arc<Completion<Arc<Knock>>>>,
    is_closed: bool,
}

/// A world that connects.
pub(super) struct Knock {
    pub(super) ranks: usize,
    /// `None` if the port is closed.
    answer: Completion<Option<JoinedWorlds>>,
    /// Whether the world has given up before it was answered.
    has_left: Mutex<bool>,
}

impl Knock {
    fn new(ranks: usize) -> Knock {
        Knock { ranks, answer: Completion::new(), has_left: Mutex::new(false) }
    }

    /// Answers, unless the world has given up. Whether it has an answer now.
    pub(super) fn answer(&self, answer: Option<JoinedWorlds>) -> bool {
        let has_left = self.has_left.lock().unwrap_or_else(PoisonError::into_inner);
        if *has_left {
            return false;
        }
        self.answer.set(answer);
        drop(has_left);
        self.answer.wake();
        true
    }

    /// The world gives up. Gives the answer, if there is one.
    fn leave(&self) -> Option<JoinedWorlds> {
        let mut has_left = self.has_left.lock().unwrap_or_else(PoisonError::into_inner);
        *has_left = true;
        self.answer.take().flatten()
    }
}

impl PortQueue {
    /// The port is closed: no world is accepted any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let knocks = mem::take(&mut state.knocks);
        drop(state);
        for knock in knocks {
            knock.answer(None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PortQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a world that connects.
    pub(super) async fn next(self: &Arc<PortQueue>, call: CallSite) -> Arc<Knock> {
        let waiting = AcceptWaiting { queue: self, cell: Arc::new(Completion::new()) };
        if let Some(knock) = self.first_knock_or(&waiting.cell) {
            return knock;
        }
        let object = || format!("a world that connects, as rank {}, at {}", call.rank, call.place);
        waiting.cell.wait(call.place, "accept", object).await;
        waiting.cell.take().expect("it has come, and this accept alone takes it")
    }

    /// The first world that waits. If there is none, the accept waits.
    fn first_knock_or(&self, accepting: &Arc<Completion<Arc<Knock>>>) -> Option<Arc<Knock>> {
        let mut state = self.lock();
        let first = state.knocks.pop_front();
        if first.is_none() {
            state.accepting.push_back(accepting.clone());
        }
        first
    }

    /// Gives a knock to the root that accepts first, or lets it wait. A closed port answers it.
    fn put(&self, knock: Arc<Knock>, at_front: bool) {
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            knock.answer(None);
            return;
        }
        let Some(accepting) = state.accepting.pop_front() else {
            match at_front {
                true => state.knocks.push_front(knock),
                false => state.knocks.push_back(knock),
            }
            return;
        };
        drop(state);
        accepting.complete(knock);
    }
}

/// An accept that waits. When it is dropped, it leaves the queue, and a knock that has come is
/// there for the next.
struct AcceptWaiting<'q> {
    queue: &'q Arc<PortQueue>,
    cell: Arc<Completion<Arc<Knock>>>,
}

impl Drop for AcceptWaiting<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.accepting.retain(|cell| !Arc::ptr_eq(cell, &self.cell));
        drop(state);
        if let Some(knock) = self.cell.take() {
            self.queue.put(knock, true);
        }
    }
}

/// A knock that waits. When it is dropped, it leaves the queue; and if it was answered, the ranks
/// that accept are told that no rank comes.
struct KnockWaiting<'q> {
    queue: &'q Arc<PortQueue>,
    knock: Arc<Knock>,
}

impl Drop for KnockWaiting<'_> {
    fn drop(&mut self) {
        self.queue.lock().knocks.retain(|knock| !Arc::ptr_eq(knock, &self.knock));
        if let Some(joined) = self.knock.leave() {
            joined.second_group_stays_away();
        }
    }
}

/// Connects to a port of this name, with this queue if one is open.
pub(super) async fn knocked(
    call: CallSite,
    queue: Option<Arc<PortQueue>>,
    name: &str,
    ranks: usize,
) -> Result<JoinedWorlds, Error> {
    let no_port = |how| call.error(ErrorClass::Join, format!("the port {name} {how}"));
    let Some(queue) = queue else { return Err(no_port("is not open")) };
    let waiting = KnockWaiting { queue: &queue, knock: Arc::new(Knock::new(ranks)) };
    queue.put(waiting.knock.clone(), false);
    let object = || format!("the port {name} to accept it, as rank {}, at {}", call.rank, call.place);
    waiting.knock.answer.wait(call.place, "connect", object).await;
    waiting.knock.answer.take().flatten().ok_or_else(|| no_port("was closed"))
}
