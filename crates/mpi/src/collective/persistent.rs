//! Collectives that are made once and started again and again: [`PersistentCollective`].
//!
//! `persistent_calls.rs` makes them. Each has a thread of its own, and a line of starts to it
//! (`start_line.rs`). The rounds are those of `elements.rs`, so another rank may make the same
//! round by any other call.

use super::content::CallContent;
use super::start_line::{StartLine, StartedRound};
use super::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error};
use crate::shared_payload::{BodyPool, SharedPayload};
use selvedge_core::spawn;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// A collective on elements that is started again and again, with other elements each time.
///
/// `S` is what this rank gives, `R` what it gets. [`own_mut`](Self::own_mut) is the place of the
/// elements that it gives; [`start`](Self::start) copies them and returns at once, and the future
/// that it returns gives the result.
///
/// A start takes its number among the collectives of the communicator, so every rank starts and
/// calls these in the same order. It may make the same call of another form: a rank that awaits
/// [`allreduce_into`](Communicator::allreduce_into) meets one that starts an
/// [`allreduce_init`](Communicator::allreduce_init).
///
/// # Cancellation
/// A start goes on if its future or the collective is dropped, because other ranks need it.
///
/// # Complexity
/// Between ranks of one process a start allocates nothing after the first ones, as long as the
/// numbers of elements stay, and no rank is more than some starts ahead. Between processes the
/// bytes of each message are allocated. The collective has a thread as long as it lives.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(4, |world| async move {
///     let mut sum = world.allreduce_init(vec![0.0], mpi::op::sum);
///     let mut value = world.rank() as f64;
///     for _ in 0..3 {
///         sum.own_mut()[0] = value;
///         let coming = sum.start();
///         // The rank may compute here.
///         value = coming.await?[0] / 4.0;
///     }
///     assert_eq!(value, 1.5);
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// The elements of a start stay as they are until its future is awaited or dropped:
///
/// ```compile_fail,E0499
/// # use selvedge::mpi;
/// # async fn rank(world: mpi::Communicator) -> Result<(), mpi::Error> {
/// let mut sum = world.allreduce_init(vec![0.0], mpi::op::sum);
/// let coming = sum.start();
/// sum.own_mut()[0] = 1.0;
/// coming.await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until it is started"]
#[doc(alias = "MPI_Request")]
pub struct PersistentCollective<S, R: Send> {
    communicator: Communicator,
    call: CallSite,
    kind: CollectiveKind,
    root: usize,
    own: S,
    /// What this rank gives, in words for the check.
    content: fn(&S) -> CallContent,
    /// Whether this rank gives its elements.
    gives: bool,
    pool: BodyPool<S>,
    result: R,
    /// The number of starts.
    started: u64,
    line: Arc<StartLine<S, R>>,
}

impl<S, R: Send> PersistentCollective<S, R> {
    /// The elements that the next start gives.
    pub fn own(&self) -> &S {
        &self.own
    }

    /// The place of the elements that the next start gives.
    pub fn own_mut(&mut self) -> &mut S {
        &mut self.own
    }

    /// The result of the last start that was awaited. It is empty before the first one, and after
    /// an error.
    pub fn result(&self) -> &R {
        &self.result
    }
}

impl<S, R> PersistentCollective<S, R>
where
    S: Clone + Default + Send + Sync + 'static,
    R: Default + Send + 'static,
{
    /// A collective that has not been started. `content` says what the ranks compare where they
    /// are [checked](crate::Ranks::checked), `gives` whether this rank gives its elements, and
    /// `go` makes a round: see [`StartLine::run`].
    pub(super) fn new<P, F>(
        communicator: &Communicator,
        call: CallSite,
        (kind, root): (CollectiveKind, usize),
        content: fn(&S) -> CallContent,
        gives: bool,
        own: S,
        go: impl FnMut(CollectiveRound, Option<SharedPayload<S>>, R, P) -> F + Send + 'static,
    ) -> PersistentCollective<S, R>
    where
        F: Future<Output = (Result<R, Error>, P)> + Send + 'static,
        P: Default + Send + 'static,
    {
        let line = StartLine::new();
        drop(spawn(line.clone().run(call, go)));
        PersistentCollective {
            communicator: communicator.clone(),
            call,
            kind,
            root,
            own,
            content,
            gives,
            pool: BodyPool::default(),
            result: R::default(),
            started: 0,
            line,
        }
    }

    /// Starts the collective with the elements that are there, which are copied before the call
    /// returns. The future gives the result.
    ///
    /// # Errors
    /// Those of the collective; the future has the error.
    ///
    /// # Panics
    /// If the operation of the program panics, where the future is awaited.
    #[doc(alias = "MPI_Start")]
    #[track_caller]
    pub fn start(&mut self) -> impl Future<Output = Result<&R, Error>> + Send {
        let call = CallSite::here(self.call.name, self.call.rank);
        let content = || (self.content)(&self.own);
        let begun = CollectiveRound::begin_with(&self.communicator, call, self.kind, self.root, content);
        let room = mem::take(&mut self.result);
        let begun = begun.map(|round| {
            self.started += 1;
            let own = self.gives.then(|| self.pool.copied(&self.own));
            self.line.start(StartedRound { number: self.started, round, own, room });
        });
        async move {
            begun?;
            match self.line.end(call, self.started).await {
                Ok(result) => self.result = result?,
                Err(exception) => exception.rethrow(),
            }
            Ok(&self.result)
        }
    }
}

impl<S, R: Send> Drop for PersistentCollective<S, R> {
    fn drop(&mut self) {
        self.line.stop();
    }
}

impl<S, R: Send> fmt::Debug for PersistentCollective<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PersistentCollective({}, started {} times)", self.call, self.started)
    }
}
