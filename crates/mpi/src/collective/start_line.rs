//! [`StartLine`]: what a persistent collective and its thread have in common. The rank's thread
//! puts starts into it, the collective's thread takes them out, and hands the results back.
//!
//! # One thread for all starts
//! A collective goes on while its rank does something else, so it needs a thread. A persistent one
//! has a single thread for all its starts, which waits between them, because a thread for each
//! would be an allocation for each. Memory goes round too: a start brings the room for its result.
//!
//! # Results that are not wanted
//! Each start has a number, and so has its end. The line keeps the last end alone. A start that is
//! given up ends all the same, and the rank passes its end over.

use super::CollectiveRound;
use crate::completion::Completion;
use crate::error::{CallSite, Error};
use crate::shared_payload::SharedPayload;
use selvedge_core::{Exception, catch};
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// The starts of a persistent collective that its thread has not taken, and the last end.
pub(super) struct StartLine<S, R> {
    starts: Mutex<VecDeque<Step<S, R>>>,
    /// The thread has something to do.
    called: Completion<()>,
    ended: Completion<(u64, RoundEnd<R>)>,
}

/// The result of a start, or the panic of the program's operation.
pub(super) type RoundEnd<R> = Result<Result<R, Error>, Exception>;

/// What the thread does next.
enum Step<S, R> {
    Round(StartedRound<S, R>),
    /// The rank has dropped the collective.
    Stop,
}

/// One start.
pub(super) struct StartedRound<S, R> {
    pub(super) number: u64,
    pub(super) round: CollectiveRound,
    /// What this rank gives, if it gives something.
    pub(super) own: Option<SharedPayload<S>>,
    /// Memory for the result.
    pub(super) room: R,
}

impl<S, R: Send> StartLine<S, R> {
    pub(super) fn new() -> Arc<StartLine<S, R>> {
        let starts = Mutex::new(VecDeque::with_capacity(2));
        Arc::new(StartLine { starts, called: Completion::new(), ended: Completion::new() })
    }

    pub(super) fn start(&self, started: StartedRound<S, R>) {
        self.put(Step::Round(started));
    }

    /// The thread ends when it has made all rounds that were started.
    pub(super) fn stop(&self) {
        self.put(Step::Stop);
    }

    fn put(&self, step: Step<S, R>) {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push_back(step);
        self.called.complete(());
    }

    /// The end of the start with this number, when it comes.
    pub(super) async fn end(&self, call: CallSite, number: u64) -> RoundEnd<R> {
        loop {
            let object = || format!("the end of {}, as rank {}, at {}", call.name, call.rank, call.place);
            self.ended.wait(call.place, "see", object).await;
            match self.ended.take() {
                Some((ended, end)) if ended == number => return end,
                // An earlier start, which was given up.
                _ => {}
            }
        }
    }

    /// The thread of the collective. `go` makes a round: it gets what this rank gives, the room for
    /// the result, and the memory of the messages, and gives that back with the result.
    pub(super) async fn run<P, F>(
        self: Arc<Self>,
        call: CallSite,
        mut go: impl FnMut(CollectiveRound, Option<SharedPayload<S>>, R, P) -> F + Send,
    ) where
        F: Future<Output = (Result<R, Error>, P)> + Send,
        P: Default + Send,
        S: Send + Sync,
    {
        let mut memory = P::default();
        while let Some(StartedRound { number, round, own, room }) = self.next(call).await {
            let end = match catch(go(round, own, room, mem::take(&mut memory))).await {
                Ok((result, used)) => {
                    memory = used;
                    Ok(result)
                }
                Err(exception) => Err(exception),
            };
            self.ended.complete((number, end));
        }
    }

    /// The next start. `None` if there will be none.
    async fn next(&self, call: CallSite) -> Option<StartedRound<S, R>> {
        loop {
            let step = self.starts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match step {
                Some(Step::Round(started)) => return Some(started),
                Some(Step::Stop) => return None,
                None => {}
            }
            let object = || format!("a start of {}, as rank {}, at {}", call.name, call.rank, call.place);
            self.called.wait(call.place, "see", object).await;
            self.called.take();
        }
    }
}
