//! [`Layer`]: what wraps a handler.

use selvedge_handler::{BoxResponse, DynHandler, Handler, IntoResponse, Request, Response};
use std::fmt;
use std::rc::Rc;

/// Code around a handler: it sees each request first and each response last, and decides whether
/// the handler runs. Every `async fn(Request, Next) -> impl IntoResponse` is one.
///
/// # Examples
/// ```
/// use selvedge::web::{Handler, Layering, Next, Request, Response, Router, testing::get};
///
/// async fn timed(request: Request, next: Next) -> Response {
///     let begun = selvedge::now();
///     let mut response = next.call(request).await;
///     let micros = selvedge::now().since(begun).as_micros() as u64;
///     response.headers_mut().insert("server-timing", micros.into());
///     response
/// }
///
/// selvedge::run_local(async {
///     let router = Router::new().get("/", async || "woven").layer(timed);
///     assert!(get(&router, "/").await.header("server-timing").is_some());
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub trait Layer: 'static {
    /// Answers `request`, with the help of `next` or without.
    fn call(&self, request: Request, next: Next) -> impl Future<Output = Response>;
}

/// The handler that a layer wraps.
#[derive(Clone)]
pub struct Next(Rc<dyn DynHandler>);

impl Handler for Next {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        self.0.call_boxed(request)
    }
}

impl<F, R> Layer for F
where
    F: Fn(Request, Next) -> R + 'static,
    R: Future,
    R::Output: IntoResponse,
{
    async fn call(&self, request: Request, next: Next) -> Response {
        self(request, next).await.into_response()
    }
}

/// A handler with a layer around it.
#[derive(Debug)]
pub struct Layered<L> {
    layer: L,
    next: Next,
}

impl<L: Layer> Handler for Layered<L> {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        self.layer.call(request, self.next.clone())
    }
}

/// Puts layers around handlers.
pub trait Layering: Handler + Sized {
    /// The handler with `layer` around it. The layer that was put last sees a request first.
    fn layer<L: Layer>(self, layer: L) -> Layered<L> {
        Layered { layer, next: Next(Rc::new(self)) }
    }
}

impl<H: Handler> Layering for H {}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// A future of a handler behind a pointer that several places hold.
pub(crate) fn call<'a>(handler: &'a Rc<dyn DynHandler>, request: Request) -> BoxResponse<'a> {
    handler.call_boxed(request)
}
