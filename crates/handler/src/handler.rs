//! [`Handler`], what answers requests, and [`DynHandler`], the same behind a pointer, for tables of
//! handlers.

use crate::{IntoResponse, PlainCall, PlainRequest, Request, Response};
use std::pin::Pin;
use std::rc::Rc;

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
    /// calls [`call`](Self::call). It must answer as [`call`](Self::call) would. A head that stays
    /// bytes costs a fraction of an owned one, and an engine sends the answer of a future that does
    /// not wait with those of other requests.
    ///
    /// A handler that looks at an extension, such as [`Mount`](crate::Mount), returns `None`: bytes
    /// have none.
    ///
    /// If not written, it is `None` for every request.
    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
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

    /// [`Handler::call_plain`].
    fn call_plain_boxed(&self, request: &PlainRequest<'_>) -> Option<PlainCall>;
}

impl<H: Handler> DynHandler for H {
    fn call_boxed<'a>(&'a self, request: Request) -> BoxResponse<'a> {
        Box::pin(self.call(request))
    }

    fn call_plain_boxed(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        self.call_plain(request)
    }
}

impl Handler for Rc<dyn DynHandler> {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        (**self).call_boxed(request)
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        (**self).call_plain_boxed(request)
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
