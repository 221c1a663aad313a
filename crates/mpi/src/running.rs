//! The thread of one rank, from its start to its end: [`run_rank`]; the ends of the ranks of a run
//! ([`RankEnds`]); and ranks that a rank has spawned ([`run_spawned`]).
//!
//! `world.rs` starts the ranks. [`RunningRank`], which the thread of a rank owns, tells the engine
//! when the rank has ended, however it ends.

use crate::communicator::Communicator;
use crate::completion::EndedRank;
use crate::failure::{Cause, RanksError};
use crate::joined::JoinedWorlds;
use crate::mailbox::Mailbox;
use selvedge_core::{JoinHandle, catch, observe, spawn};
use selvedge_scope::scope;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The thread of one rank. Its mailbox is `home`.
pub(crate) async fn run_rank<T, E>(
    body: impl Future<Output = Result<T, E>>,
    mut running: RunningRank,
    ends: Arc<RankEnds<T, E>>,
    home: Arc<Mailbox>,
) {
    let name: Arc<str> = format!("rank {}", running.rank).into();
    let mut caught = pin!(catch(body));
    let caught = poll_fn(|cx| {
        // Said in each step, because a report may begin to hear at any time.
        if observe::is_on() {
            observe::named(&name);
        }
        caught.as_mut().poll(cx)
    });
    let end = match caught.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Cause::Error(error)),
        Err(exception) => Err(Cause::Exception(exception)),
    };
    let rank = running.rank;
    running.failed = end.is_err();
    ends.put(rank, end);
    // The others are told after the end has been put: so the failure of this rank comes before
    // the failures that it causes.
    drop(running);
    while let Some(end) = home.next_before_end() {
        if let Err(text) = end.await {
            ends.put_unless_failed(rank, Cause::Spawned(text));
        }
    }
}

/// A rank that runs. When it is dropped, the other ranks are told that it has ended.
pub(crate) struct RunningRank {
    rank: usize,
    failed: bool,
    tell: Box<dyn Fn(EndedRank) + Send + Sync>,
}

impl RunningRank {
    pub(crate) fn new(rank: usize, tell: impl Fn(EndedRank) + Send + Sync + 'static) -> RunningRank {
        RunningRank { rank, failed: true, tell: Box::new(tell) }
    }
}

impl Drop for RunningRank {
    fn drop(&mut self) {
        (self.tell)(EndedRank { rank: self.rank as u32, failed: self.failed });
    }
}

/// The results of the ranks that have ended.
pub(crate) struct RankEnds<T, E> {
    /// The rank of the first end.
    first: usize,
    ends: Mutex<Vec<Option<RankEnd<T, E>>>>,
    failures: AtomicUsize,
}

enum RankEnd<T, E> {
    Returned(T),
    /// With the number of failures before this one.
    Failed(usize, Cause<E>),
}

impl<T, E> RankEnds<T, E> {
    /// The ends of this number of ranks from `first` on.
    pub(crate) fn new(first: usize, ranks: usize) -> RankEnds<T, E> {
        let ends = Mutex::new((0..ranks).map(|_| None).collect());
        RankEnds { first, ends, failures: AtomicUsize::new(0) }
    }

    fn put(&self, rank: usize, end: Result<T, Cause<E>>) {
        let end = match end {
            Ok(value) => RankEnd::Returned(value),
            Err(cause) => RankEnd::Failed(self.failures.fetch_add(1, Ordering::Relaxed), cause),
        };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)[rank - self.first] = Some(end);
    }

    /// The rank has failed after its end, unless it has before.
    fn put_unless_failed(&self, rank: usize, cause: Cause<E>) {
        let has_failed = |end: &Option<RankEnd<T, E>>| matches!(end, Some(RankEnd::Failed(..)));
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = has_failed(&ends[rank - self.first]);
        drop(ends);
        if !failed {
            self.put(rank, Err(cause));
        }
    }

    /// The results, when all ranks have ended.
    pub(crate) fn result(&self) -> Result<Vec<T>, RanksError<E>> {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let mut values = Vec::with_capacity(ends.len());
        let mut failures = Vec::new();
        for (rank, end) in ends.into_iter().enumerate() {
            match end.expect("the scope has waited for every rank") {
                RankEnd::Returned(value) => values.push(value),
                RankEnd::Failed(order, cause) => failures.push((order, self.first + rank, cause)),
            }
        }
        if failures.is_empty() {
            return Ok(values);
        }
        failures.sort_unstable_by_key(|&(order, ..)| order);
        Err(RanksError { ranks: failures.into_iter().map(|(_, rank, cause)| (rank, cause)).collect() })
    }
}

/// Starts ranks that a rank has spawned. The mailbox of that rank in its world is `home`.
pub(crate) fn run_spawned<E, F, R>(home: &Mailbox, joined: &JoinedWorlds, ranks: usize, body: F)
where
    F: Fn(Communicator) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    let (joined, ends) = (joined.clone(), Arc::new(RankEnds::new(0, ranks)));
    let all = async move {
        scope(async |scope| {
            for rank in 0..ranks {
                let told = joined.clone();
                let running = RunningRank::new(rank, move |ended| told.spawned_rank_ended(ended));
                let home = joined.spawned_mailbox(rank).clone();
                let body = body(joined.spawned_world(rank));
                drop(scope.spawn(run_rank(body, running, ends.clone(), home)));
            }
        })
        .await;
        ends.result().map(drop).map_err(|failure| failure.to_string())
    };
    home.wait_before_end(Box::pin(SpawnedRanks(spawn(all)).end()));
}

/// The thread that waits for the ranks of one spawn. Dropping it cancels them.
struct SpawnedRanks(JoinHandle<Result<(), String>>);

impl SpawnedRanks {
    /// Waits until they have ended.
    ///
    /// # Errors
    /// In words, which of them have failed.
    async fn end(mut self) -> Result<(), String> {
        (&mut self.0).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl Drop for SpawnedRanks {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
