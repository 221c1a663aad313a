//! [`Produced`]: a body that an `async` block makes piece by piece, and [`Out`], where the block
//! puts the pieces.
//!
//! The block is polled by the task that polls the body, so it takes no thread. It goes on when the
//! piece before has been taken, so at most one piece waits.

use crate::BodyError;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Where the block of [`Body::produce`](crate::Body::produce) puts the pieces of the body.
pub struct Out {
    shared: Rc<RefCell<PieceSlot>>,
}

/// The body that [`Body::produce`](crate::Body::produce) makes.
pub struct Produced<F> {
    /// `None` when it has ended.
    block: Option<Pin<Box<F>>>,
    /// The error of the block, until the piece before it has been taken.
    error: Option<BodyError>,
    shared: Rc<RefCell<PieceSlot>>,
}

#[derive(Default)]
struct PieceSlot {
    piece: Option<Bytes>,
    trailers: Option<HeaderMap>,
    /// Wakes the block, which waits for the slot to be empty.
    block: Option<Waker>,
    /// Wakes the reader of the body.
    reader: Option<Waker>,
}

impl Out {
    /// Puts a piece of the body. It waits until the piece before has been taken.
    pub fn put(&mut self, piece: impl Into<Bytes>) -> impl Future<Output = ()> {
        let mut piece = Some(piece.into());
        std::future::poll_fn(move |cx| {
            let slot = &mut *self.shared.borrow_mut();
            if slot.piece.is_some() {
                slot.block = Some(cx.waker().clone());
                return Poll::Pending;
            }
            // An empty piece would be an end in some framings.
            slot.piece = piece.take().filter(|piece| !piece.is_empty());
            if let Some(waker) = slot.reader.take()
                && !waker.will_wake(cx.waker())
            {
                waker.wake();
            }
            Poll::Ready(())
        })
    }

    /// Sets the trailers, which go out behind the last piece. They are lost where the protocol, or
    /// the client, has no place for them.
    pub fn set_trailers(&mut self, trailers: HeaderMap) {
        self.shared.borrow_mut().trailers = Some(trailers);
    }
}

impl<F> Produced<F> {
    pub(crate) fn new<E>(block: impl FnOnce(Out) -> F) -> Produced<F>
    where
        F: Future<Output = Result<(), E>>,
    {
        let shared = Rc::<RefCell<PieceSlot>>::default();
        Produced { block: Some(Box::pin(block(Out { shared: shared.clone() }))), error: None, shared }
    }
}

impl<F, E> http_body::Body for Produced<F>
where
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        loop {
            let waker = {
                let slot = &mut *this.shared.borrow_mut();
                if let Some(piece) = slot.piece.take() {
                    if let Some(waker) = slot.block.take()
                        && !waker.will_wake(cx.waker())
                    {
                        waker.wake();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                if let Some(error) = this.error.take() {
                    slot.trailers = None;
                    return Poll::Ready(Some(Err(error)));
                }
                if this.block.is_none() {
                    return Poll::Ready(slot.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
                }
                slot.reader.replace(cx.waker().clone())
            };
            drop(waker);
            let Some(block) = &mut this.block else { continue };
            match block.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => this.block = None,
                Poll::Ready(Err(error)) => {
                    this.block = None;
                    this.error = Some(BodyError::failed(error));
                }
                Poll::Pending if this.shared.borrow().piece.is_some() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl fmt::Debug for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Produced<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Produced").field("ended", &self.block.is_none()).finish_non_exhaustive()
    }
}
