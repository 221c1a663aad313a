//! [`Handler`], what answers requests, and [`DynHandler`], the same behind a pointer, for tables of
//! handlers.

use std::pin::Pin;
use std::rc::Rc;

use crate::{Forwarding, IntoResponse, PlainGet, Request, Response};

/// Makes a response of a request.
///
/// Every `async fn(Request) -> impl IntoResponse` is one. A handler stays on the worker that
/// serves the connection, so neither it nor its future has to be `Send`.
///
/// # Cancellation
/// The future is dropped when the client is gone, or when the time for the handler is over. So a
/// handler that must finish its work spawns a thread for it.
///
/// # Panics
/// A handler that panics is answered with `500 Internal Server Error`. If the head of its response
/// has left already, the engine closes the connection, so that the client sees a reply cut short.
pub trait Handler: 'static {
    /// Answers `request`.
    fn call(&self, request: Request) -> impl Future<Output = Response>;

    /// Answers a request that it need not take apart, or returns `None`; then the engine
    /// calls [`call`](Self::call). It is for handlers that send requests on, because a head that
    /// stays bytes costs a fraction of an owned one. It must answer as [`call`](Self::call) would.
    ///
    /// If not written, it is `None` for every request.
    fn forward(&self, request: &PlainGet<'_>) -> Option<Forwarding> {
        let _ = request;
        None
    }
}

/// The future of a [`DynHandler`].
pub type BoxResponse<'a> = Pin<Box<dyn Future<Output = Response> + 'a>>;

/// A [`Handler`] behind a pointer. Every handler is one.
pub trait DynHandler: 'static {
    /// Answers `request`, at the cost of one allocation.
    fn call_boxed<'a>(&'a self, request: Request) -> BoxResponse<'a>;

    /// [`Handler::forward`].
    fn forward_boxed(&self, request: &PlainGet<'_>) -> Option<Forwarding>;
}

impl<H: Handler> DynHandler for H {
    fn call_boxed<'a>(&'a self, request: Request) -> BoxResponse<'a> {
        Box::pin(self.call(request))
    }

    fn forward_boxed(&self, request: &PlainGet<'_>) -> Option<Forwarding> {
        self.forward(request)
    }
}

impl Handler for Rc<dyn DynHandler> {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        (**self).call_boxed(request)
    }

    fn forward(&self, request: &PlainGet<'_>) -> Option<Forwarding> {
        (**self).forward_boxed(request)
    }
}

impl<F, R> Handler for F
where
    F: Fn(Request) -> R + 'static,
    R: Future,
    R::Output: IntoResponse,
{
    async fn call(&self, request: Request) -> Response {
        self(request).await.into_response()
    }
}
