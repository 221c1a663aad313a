//! The side of the pipeline: [`OnRank`] stands between a source and the stages after it, and
//! [`OnRankOf`] is the supply of what comes back.
//!
//! A thread of its own, the feeder, takes the chunks of the source and sends them, each when it has
//! a credit. The thread that runs the pipeline receives what the stage yields, and the credits,
//! which it hands to the feeder. So a pipeline that is not run on takes no chunk of its source.

use crate::remote_item::RemoteItem;
use crate::stages::{RemoteStage, StagePool};
use crate::stream::{StreamKind, StreamLink, WINDOW};
use selvedge_core::{Exception, JoinError, JoinHandle, catch, in_thread, spawn};
use selvedge_flow::{AfterSource, BoxedSource, FlowSource, Source, made};
use selvedge_mpi::Error;
use selvedge_pipeline::{
    AfterGenerator, Generate, Generator, Item, StageError, Store, StreamPlace, Transduce, Unchanged,
};
use selvedge_scope::race;
use selvedge_sync::{BoundedFifo, Event, Putter, Taker};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// What [`on_rank`](crate::on_rank()) returns: it stands between a source and the stages after it.
pub struct OnRank<A: ?Sized, B: ?Sized> {
    pub(crate) pool: StagePool,
    pub(crate) rank: usize,
    pub(crate) stage: RemoteStage<A, B>,
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for OnRank<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnRank({}, rank {})", self.pool.name(self.stage), self.rank)
    }
}

impl<A, B, C, S, T> AfterSource<A, B, S, T> for OnRank<B, C>
where
    A: Item + ?Sized,
    B: RemoteItem + ?Sized,
    C: RemoteItem + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    type Whole = FlowSource<C, C, OnRankOf<B, C>, Unchanged>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        let upstream = source.into_source().boxed().into_inner();
        FlowSource::new(OnRankOf { begin: Some((upstream, self)), running: None, items: C::Store::default() })
    }
}

impl<B, C, G> AfterGenerator<B, G> for OnRank<B, C>
where
    B: RemoteItem + ?Sized,
    C: RemoteItem + ?Sized,
    G: Generate<B> + Send + 'static,
{
    type Whole = FlowSource<C, C, OnRankOf<B, C>, Unchanged>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The supply of [`on_rank`](crate::on_rank()).
pub struct OnRankOf<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> {
    /// What the first `next` starts.
    begin: Option<(BoxedSource<A>, OnRank<A, B>)>,
    running: Option<RunningStream<A, B>>,
    /// The items that are lent.
    items: B::Store,
}

impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> fmt::Debug for OnRankOf<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnRankOf").field("begun", &self.begin.is_none()).finish_non_exhaustive()
    }
}

/// How the feeder has ended: it was stopped or has sent all, its source has failed, or has
/// panicked.
type FeederEnd = Result<Result<(), StageError>, Exception>;

/// A stream that is open.
struct RunningStream<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> {
    /// For the messages that are left when the pipeline has been dropped.
    rest: Option<StreamRest<A, B>>,
    credits: Putter<()>,
    name: String,
}

/// What has to end before a stream is closed.
struct StreamRest<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> {
    link: StreamLink,
    feeder: JoinHandle<FeederEnd>,
    stop: Arc<Event>,
    /// The stage has sent its last message.
    has_ended: bool,
    types: PhantomData<fn(&A) -> &B>,
}

impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> Source<B> for OnRankOf<A, B> {
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        if let Some((upstream, on_rank)) = self.begin.take() {
            self.running = Some(RunningStream::start(upstream, on_rank).await?);
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        match running.receive().await? {
            Some(chunk) => {
                self.items = B::from_wire(chunk);
                Ok(Some(self.items.all()))
            }
            None => Ok(None),
        }
    }

    async fn close(mut self) {
        if let Some((upstream, _)) = self.begin.take() {
            upstream.close().await;
        }
        if let Some(mut running) = self.running.take()
            && let Some(rest) = running.rest.take()
        {
            let _fed = rest.close().await;
        }
    }
}

impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> RunningStream<A, B> {
    /// # Errors
    /// If the stream cannot be opened. The source is closed then.
    async fn start(
        upstream: BoxedSource<A>,
        OnRank { pool, rank, stage }: OnRank<A, B>,
    ) -> Result<RunningStream<A, B>, StageError> {
        let name = pool.name(stage).to_string();
        let link = match pool.open(rank, stage) {
            Ok(link) => link,
            Err(error) => {
                upstream.close().await;
                return Err(lost(&name, error));
            }
        };
        let (credits, taken) = BoundedFifo::ends(2 * WINDOW);
        for _ in 0..WINDOW {
            // There is room for them.
            let _ = credits.try_put(());
        }
        let stop = Arc::new(Event::new());
        let feeder = spawn(feed(upstream, link.clone(), taken, stop.clone()));
        let rest = Some(StreamRest { link, feeder, stop, has_ended: false, types: PhantomData });
        Ok(RunningStream { rest, credits, name })
    }

    /// Waits for a chunk. `None` when the stage has yielded all, and the feeder has ended.
    ///
    /// # Errors
    /// The failure of the source or of the stage, and if the rank has ended.
    async fn receive(&mut self) -> Result<Option<B::Wire>, StageError> {
        loop {
            let Some(rest) = &mut self.rest else { return Ok(None) };
            let received = match rest.link.receive::<B::Wire>().await {
                Ok(received) => received,
                Err(error) => {
                    rest.has_ended = true;
                    let failure = lost(&self.name, error);
                    if let Some(rest) = self.rest.take() {
                        let _fed = rest.close().await;
                    }
                    return Err(failure);
                }
            };
            match received.kind {
                StreamKind::Items => {
                    // The credit cannot be sent only if the rank has ended, which the next receive
                    // tells.
                    let _ = rest.link.say::<A::Wire>(StreamKind::Credit);
                    return Ok(received.chunk);
                }
                StreamKind::Credit => {
                    // It is closed if the feeder has ended.
                    let _ = self.credits.try_put(());
                }
                kind => {
                    rest.has_ended = true;
                    let Some(rest) = self.rest.take() else { return Ok(None) };
                    let fed = rest.close().await;
                    return match (kind, received.failure) {
                        (_, Some(failure)) => Err(failure),
                        (StreamKind::Abandon, None) => told(fed).map(|()| None),
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

/// The result of a feeder with a source that has failed or panicked.
fn told(fed: Result<FeederEnd, JoinError>) -> Result<(), StageError> {
    match fed {
        Ok(Ok(result)) => result,
        Ok(Err(exception)) => exception.rethrow(),
        Err(JoinError::Panicked(panic)) => panic.rethrow(),
        Err(JoinError::Cancelled) => Ok(()),
    }
}

/// The failure of a stage that cannot be reached.
fn lost(name: &str, error: Error) -> StageError {
    StageError::new(name.to_string(), StreamPlace::default(), error)
}

impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> StreamRest<A, B> {
    /// Stops the feeder, sends the last message, and receives until the stage has sent its own.
    async fn close(self) -> Result<FeederEnd, JoinError> {
        let StreamRest { link, feeder, stop, mut has_ended, .. } = self;
        stop.set();
        // It closes the source before it ends.
        let fed = feeder.await;
        // If the rank has ended, the receives tell it.
        let _ = link.say::<A::Wire>(StreamKind::Close);
        while !has_ended {
            has_ended = match link.receive::<B::Wire>().await {
                Ok(received) => !matches!(received.kind, StreamKind::Items | StreamKind::Credit),
                Err(_) => true,
            };
        }
        fed
    }
}

/// The pipeline was dropped: a thread of its own closes the stream.
impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> Drop for RunningStream<A, B> {
    fn drop(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        if in_thread() {
            drop(spawn(async move {
                let _fed = rest.close().await;
            }));
        } else {
            rest.feeder.cancel();
        }
    }
}

/// The feeder: sends the chunks of the source, until it is stopped, and closes the source.
async fn feed<A: RemoteItem + ?Sized>(
    mut upstream: BoxedSource<A>,
    link: StreamLink,
    credits: Taker<()>,
    stop: Arc<Event>,
) -> FeederEnd {
    let stopped = async {
        stop.wait().await;
        Ok(())
    };
    let fed = catch(race((send_chunks(&mut upstream, &link, &credits), stopped))).await;
    if !matches!(fed, Ok(Ok(()))) {
        // If the rank has ended, the receives tell it.
        let _ = link.say::<A::Wire>(StreamKind::Abandon);
    }
    upstream.close().await;
    fed
}

/// # Errors
/// The failure of the source.
async fn send_chunks<A: RemoteItem + ?Sized>(
    upstream: &mut BoxedSource<A>,
    link: &StreamLink,
    credits: &Taker<()>,
) -> Result<(), StageError> {
    while credits.take().await.is_some() {
        let sent = match upstream.next().await? {
            Some(chunk) => link.give(A::to_wire(chunk)),
            None => {
                // As above.
                let _ = link.say::<A::Wire>(StreamKind::End);
                return Ok(());
            }
        };
        if sent.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
