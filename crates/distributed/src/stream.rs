//! [`StreamLink`]: one end of a stream of chunks between two ranks, with the messages that go
//! through it. `on_rank.rs` has the end of the pipeline, and `serve.rs` the end of the stage.
//!
//! ```text
//! the pipeline ──▶ ITEMS*  then END, or ABANDON if its source has failed ──▶ the stage
//! the pipeline ◀── ITEMS*  then END, ABANDON or FAIL ◀────────────────────── the stage
//! both ways        CREDIT for each chunk that was taken
//! the pipeline ──▶ CLOSE, its last message
//! ```
//!
//! **Back-pressure.** Each side may have sent [`WINDOW`] chunks more than it has credits for. So at
//! most this number of chunks waits on each side, and a slow consumer holds up the stage, which
//! holds up the source.
//!
//! **No message is left behind.** The stage goes on receiving until CLOSE, and the pipeline sends
//! CLOSE when it will send nothing more. The pipeline goes on receiving until END, ABANDON or FAIL,
//! which is the last message of the stage. A stage that hears CLOSE before that ends at once.

use crate::telling::tell;
use selvedge_mpi::{Communicator, Error, Message, Tag};
use selvedge_pipeline::{StageError, StreamPlace};

/// The number of chunks that may be sent before one is taken.
pub(crate) const WINDOW: usize = 4;

/// The tag of the messages that open streams.
pub(crate) const OPENINGS: Tag = Tag(0);

/// What a message of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    Items = 0,
    End = 1,
    /// There are no more items, because the source has failed. The stage does not end.
    Abandon = 2,
    Fail = 3,
    Credit = 4,
    Close = 5,
}

impl StreamKind {
    const ALL: [StreamKind; 6] = [
        StreamKind::Items,
        StreamKind::End,
        StreamKind::Abandon,
        StreamKind::Fail,
        StreamKind::Credit,
        StreamKind::Close,
    ];
}

/// A [`StageError`]: the stage, its place, the section around it, and the text of the cause.
type FailureMessage = (String, (u64, u64), Option<(u64, u64)>, String);

/// A message: its kind, its chunk, and its failure.
type StreamMessage<W> = (u8, Option<W>, Option<FailureMessage>);

/// What has come.
pub(crate) struct StreamArrival<W> {
    pub(crate) kind: StreamKind,
    pub(crate) chunk: Option<W>,
    pub(crate) failure: Option<StageError>,
}

/// One end of a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamLink {
    comm: Communicator,
    peer: usize,
    sends: Tag,
    receives: Tag,
}

impl StreamLink {
    /// The end of the pipeline.
    pub(crate) fn of_pipeline(comm: &Communicator, peer: usize, stream: u32) -> StreamLink {
        StreamLink { comm: comm.clone(), peer, sends: Tag(2 * stream + 1), receives: Tag(2 * stream + 2) }
    }

    /// The end of the stage.
    pub(crate) fn of_stage(comm: &Communicator, peer: usize, stream: u32) -> StreamLink {
        StreamLink { comm: comm.clone(), peer, sends: Tag(2 * stream + 2), receives: Tag(2 * stream + 1) }
    }

    /// The largest number of a stream.
    pub(crate) const STREAMS_MAX: u32 = Tag::MAX.0 / 2 - 2;

    /// Sends a chunk. `W` is the type of the chunks of this direction, in each message of it.
    pub(crate) fn give<W: Message>(&self, chunk: W) -> Result<(), Error> {
        self.send(StreamKind::Items, Some(chunk), None)
    }

    /// Sends a message without a chunk.
    pub(crate) fn say<W: Message>(&self, kind: StreamKind) -> Result<(), Error> {
        self.send::<W>(kind, None, None)
    }

    /// Sends a failure.
    pub(crate) fn fail<W: Message>(&self, failure: &StageError) -> Result<(), Error> {
        self.send::<W>(StreamKind::Fail, None, Some(failure))
    }

    fn send<W: Message>(
        &self,
        kind: StreamKind,
        chunk: Option<W>,
        failure: Option<&StageError>,
    ) -> Result<(), Error> {
        let message: StreamMessage<W> = (kind as u8, chunk, failure.map(failure_message));
        tell(&self.comm, self.peer, self.sends, message)
    }

    /// Waits for a message. `W` is the type of the chunks of the other direction.
    pub(crate) async fn receive<W: Message>(&self) -> Result<StreamArrival<W>, Error> {
        let (message, _) = self.comm.recv::<StreamMessage<W>>(self.peer, self.receives).await?;
        let (kind, chunk, failure) = message;
        let kind = StreamKind::ALL.into_iter().find(|of| *of as u8 == kind).unwrap_or(StreamKind::Close);
        Ok(StreamArrival { kind, chunk, failure: failure.map(stage_failure) })
    }
}

fn failure_message(failure: &StageError) -> FailureMessage {
    let place = (failure.item() - 1, failure.offset());
    let section = failure.section().map(|section| (section.items, section.elements));
    (failure.stage().to_string(), place, section, failure.cause().to_string())
}

fn stage_failure((stage, (items, elements), section, cause): FailureMessage) -> StageError {
    let failure = StageError::new(stage, StreamPlace { items, elements }, cause);
    match section {
        Some((items, elements)) => failure.within(StreamPlace { items, elements }),
        None => failure,
    }
}
