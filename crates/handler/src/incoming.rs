//! [`Incoming`]: a body that an engine reads from a connection, and [`Feeder`], the engine's end of
//! it.
//!
//! The two ends share a slot for one piece. The handler's poll says that it wants a piece
//! ([`Wanted`]). The engine then reads from the connection, and [puts](Feeder::put) the piece. So
//! at most one piece lies between them, and a handler that does not read holds the client back.
//!
//! Both ends are usually polled by one thread, the connection's. A wake is then of no use, because
//! the engine polls the handler again by itself. So an end that finds the other end's waker to be
//! its own task's does not wake it.

use crate::BodyError;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A body that comes from a connection. It is `Send`: another thread may read it.
pub struct Incoming {
    shared: Arc<Mutex<IncomingState>>,
    /// Content that is to come; `None` if that is unknown.
    left: Option<u64>,
    ended: bool,
}

/// The engine's end of an [`Incoming`]. Dropping it before the [end](Self::end) makes the body fail
/// as disconnected.
pub struct Feeder {
    shared: Arc<Mutex<IncomingState>>,
}

#[derive(Default)]
struct IncomingState {
    piece: Option<Bytes>,
    end: Option<Result<Option<HeaderMap>, BodyError>>,
    /// The handler waits for a piece, and there is none.
    wanted: bool,
    /// The handler has dropped its end.
    dropped: bool,
    handler: Option<Waker>,
    engine: Option<Waker>,
}

/// What the handler wants of its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The next piece.
    Piece,
    /// Nothing more: it has dropped the body.
    Nothing,
}

/// The two ends of a body of `length` bytes, or of unknown length.
pub fn incoming(length: Option<u64>) -> (Feeder, Incoming) {
    let shared = Arc::new(Mutex::new(IncomingState::default()));
    (Feeder { shared: shared.clone() }, Incoming { shared, left: length, ended: false })
}

fn lock(shared: &Mutex<IncomingState>) -> MutexGuard<'_, IncomingState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps `cx`'s waker in `slot`.
fn keep(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

/// The waker in `slot`, unless it is `cx`'s task's own.
fn foreign(slot: &mut Option<Waker>, cx: Option<&Context<'_>>) -> Option<Waker> {
    slot.take().filter(|waker| cx.is_none_or(|cx| !waker.will_wake(cx.waker())))
}

impl Feeder {
    /// Waits until the handler wants something.
    pub fn poll_wanted(&self, cx: &mut Context<'_>) -> Poll<Wanted> {
        let mut state = lock(&self.shared);
        if state.dropped {
            return Poll::Ready(Wanted::Nothing);
        }
        if state.wanted {
            return Poll::Ready(Wanted::Piece);
        }
        keep(&mut state.engine, cx);
        Poll::Pending
    }

    /// Whether the handler has dropped the body.
    pub fn is_dropped(&self) -> bool {
        lock(&self.shared).dropped
    }

    /// Gives the handler a piece that it [wanted](Wanted::Piece). The engine has to poll the
    /// handler again, if both are one task.
    pub fn put(&self, piece: Bytes, cx: &mut Context<'_>) {
        let mut state = lock(&self.shared);
        debug_assert!(state.piece.is_none(), "a piece is put when it is wanted");
        (state.piece, state.wanted) = (Some(piece), false);
        let waker = foreign(&mut state.handler, Some(cx));
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends the body: with its trailers, if it has any, or with an error.
    pub fn end(self, end: Result<Option<HeaderMap>, BodyError>, cx: &mut Context<'_>) {
        let mut state = lock(&self.shared);
        (state.end, state.wanted) = (Some(end), false);
        let waker = foreign(&mut state.handler, Some(cx));
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        if state.end.is_none() {
            state.end = Some(Err(BodyError::new(crate::Cause::Disconnected)));
        }
        let waker = foreign(&mut state.handler, None);
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        let mut state = lock(&this.shared);
        if let Some(piece) = state.piece.take() {
            if let Some(left) = &mut this.left {
                *left = left.saturating_sub(piece.len() as u64);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(end) = state.end.take() {
            this.ended = true;
            return Poll::Ready(match end {
                Ok(None) => None,
                Ok(Some(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Err(error) => Some(Err(error)),
            });
        }
        state.wanted = true;
        keep(&mut state.handler, cx);
        let waker = foreign(&mut state.engine, Some(cx));
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.ended || {
            let state = lock(&self.shared);
            state.piece.is_none() && matches!(state.end, Some(Ok(None)))
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.dropped = true;
        let waker = state.engine.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("left", &self.left).field("ended", &self.ended).finish()
    }
}

impl fmt::Debug for Feeder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeder").finish_non_exhaustive()
    }
}
