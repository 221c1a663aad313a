//! The side of the stage: [`serve_stream`] runs one stage for a pipeline of another rank.
//!
//! `stages.rs` spawns a thread with it for each stream that a rank opens here.

use crate::remote_item::RemoteItem;
use crate::stream::{StreamArrival, StreamKind, StreamLink, WINDOW};
use selvedge_core::catch;
use selvedge_mpi::Error;
use selvedge_pipeline::{Keep, StageError, Store, StreamPlace, Transduce, Transducer};
use std::collections::VecDeque;
use std::marker::PhantomData;

/// How the work of a stage is over.
enum StageOver {
    /// It has yielded all, or wants no more.
    Ended,
    /// The source has failed.
    Abandoned,
    /// The stage has failed.
    Failed(StageError),
    /// The pipeline wants no more, and has sent its last message.
    Closed,
}

/// The stream, as the stage sees it.
struct ServedStream<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> {
    link: StreamLink,
    /// How many chunks may be sent.
    credits: usize,
    /// What has come while the stage waited for a credit.
    waiting: VecDeque<StreamArrival<A::Wire>>,
    yields: PhantomData<fn(&B)>,
}

/// Runs a stage for the pipeline at the other end of the link. `name` tells of a panic.
pub(crate) async fn serve_stream<A, B, T>(
    link: StreamLink,
    stage: Transducer<A, B, T>,
    name: String,
    rank: usize,
) where
    A: RemoteItem + ?Sized,
    B: RemoteItem + ?Sized,
    T: Transduce<A, B> + Send,
{
    let waiting = VecDeque::new();
    let mut stream =
        ServedStream::<A, B> { link: link.clone(), credits: WINDOW, waiting, yields: PhantomData };
    let over = match catch(stream.run(stage.into_stage())).await {
        Ok(Ok(over)) => over,
        // The rank of the pipeline has ended.
        Ok(Err(_)) => return,
        Err(exception) => {
            let cause = format!("the stage has panicked on rank {rank}: {exception}");
            StageOver::Failed(StageError::new(name, StreamPlace::default(), cause))
        }
    };
    let told = match &over {
        StageOver::Ended | StageOver::Closed => link.say::<B::Wire>(StreamKind::End),
        StageOver::Abandoned => link.say::<B::Wire>(StreamKind::Abandon),
        StageOver::Failed(failure) => link.fail::<B::Wire>(failure),
    };
    let mut is_closed = told.is_err() || matches!(over, StageOver::Closed);
    is_closed |= stream.waiting.iter().any(|received| received.kind == StreamKind::Close);
    while !is_closed {
        is_closed = match link.receive::<A::Wire>().await {
            Ok(received) => received.kind == StreamKind::Close,
            Err(_) => true,
        };
    }
}

impl<A: RemoteItem + ?Sized, B: RemoteItem + ?Sized> ServedStream<A, B> {
    async fn run<T: Transduce<A, B> + Send>(&mut self, mut stage: T) -> Result<StageOver, Error> {
        let mut made = B::Store::default();
        loop {
            let received = match self.waiting.pop_front() {
                Some(received) => received,
                None => self.link.receive::<A::Wire>().await?,
            };
            let (flow, is_last) = match received.kind {
                StreamKind::Items => {
                    let Some(chunk) = received.chunk else { continue };
                    let flow = stage.put_chunk(A::from_wire(chunk).all(), &mut Keep(&mut made));
                    self.link.say::<B::Wire>(StreamKind::Credit)?;
                    (flow, false)
                }
                StreamKind::End => (stage.end(&mut Keep(&mut made)), true),
                StreamKind::Credit => {
                    self.credits += 1;
                    continue;
                }
                StreamKind::Abandon => return Ok(StageOver::Abandoned),
                StreamKind::Close | StreamKind::Fail => return Ok(StageOver::Closed),
            };
            if !self.give(&mut made).await? {
                return Ok(StageOver::Closed);
            }
            if is_last || flow.is_break() {
                return Ok(stage
                    .failure()
                    .map_or(StageOver::Ended, |failure| StageOver::Failed(failure.clone())));
            }
        }
    }

    /// Sends what the stage has yielded, when there is a credit. False if the pipeline wants no
    /// more.
    async fn give(&mut self, made: &mut B::Store) -> Result<bool, Error> {
        if made.count() == 0 {
            return Ok(true);
        }
        while self.credits == 0 {
            let received = self.link.receive::<A::Wire>().await?;
            match received.kind {
                StreamKind::Credit => self.credits += 1,
                StreamKind::Close => return Ok(false),
                _ => self.waiting.push_back(received),
            }
        }
        self.credits -= 1;
        self.link.give(B::to_wire(made.all()))?;
        made.clear();
        Ok(true)
    }
}
