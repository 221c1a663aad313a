//! Services of tower and handlers of ours, each as the other.
//!
//! | adapter | what it makes | for |
//! |---|---|---|
//! | [`FromTower`] | a [`Handler`] of a tower `Service` | an axum `Router`, or any stack of tower's layers, on `selvedge::http`'s connections |
//! | [`ToTower`] | a tower `Service`, and a hyper `Service`, of a [`Handler`] | a handler of ours under hyper, or within a stack of tower's layers |

use hyper::body::{Bytes, Frame, SizeHint};
use hyper::{Request, Response, StatusCode};
use selvedge_core::detach_local;
use selvedge_handler::{
    Body, BodyError, DynHandler, Handler, Incoming, IntoResponse, Source, Wanted, incoming,
};
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A service of tower's as a handler of ours.
///
/// The service is cloned for each request. An error of it is answered with 500, and reported on
/// standard error.
///
/// # Examples
/// An axum application on our connections:
/// ```
/// use axum::{Router, extract::Path, routing::get};
/// use selvedge::http::{Config, Site};
/// use selvedge::{net::UnixStream, spawn_local};
/// use selvedge_compat::tower::FromTower;
///
/// async fn hello(Path(name): Path<String>) -> String {
///     format!("hello, {name}")
/// }
///
/// selvedge::run_local(async {
///     let router: Router = Router::new().route("/hello/{name}", get(hello));
///     let site = Site::with_handler(FromTower(router), Config::default(), None);
///     let (client, server) = UnixStream::pair().unwrap();
///     let server = spawn_local(site.serve(server.into(), None));
///     let request = b"GET /hello/loom HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
///     client.write_all(request).await.unwrap();
///     assert!(client.read_to_end().await.unwrap().ends_with(b"hello, loom"));
///     server.await.unwrap();
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FromTower<S>(pub S);

impl<S, B> Handler for FromTower<S>
where
    S: tower_service::Service<Request<SendBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: hyper::body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn call(&self, request: selvedge_handler::Request) -> selvedge_handler::Response {
        let mut service = self.0.clone();
        let answer = async {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            service.call(request.map(SendBody::from)).await
        };
        match answer.await {
            Ok(response) => response.map(Body::new),
            Err(error) => {
                eprintln!("selvedge: a service failed: {}", error.into());
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// The body of a request, as tower's services want it: `Send`.
///
/// A body that is not `Send` is read by a thread of its own, which stays on its OS thread.
#[derive(Debug)]
pub struct SendBody(Sendable);

#[derive(Debug)]
enum Sendable {
    Bytes(Bytes),
    Incoming(Incoming),
}

impl From<Body> for SendBody {
    fn from(body: Body) -> SendBody {
        let length = body.len();
        match body.into_source() {
            Source::Empty => SendBody(Sendable::Bytes(Bytes::new())),
            Source::Bytes(bytes) => SendBody(Sendable::Bytes(bytes)),
            Source::Incoming(incoming) => SendBody(Sendable::Incoming(incoming)),
            source => {
                let (feeder, incoming) = incoming(length);
                let mut body = Body::from(source);
                detach_local(async move {
                    while poll_fn(|cx| feeder.poll_wanted(cx)).await == Wanted::Piece {
                        match body.next().await {
                            Some(Ok(piece)) => {
                                poll_fn(|cx| {
                                    feeder.put(piece.clone(), cx);
                                    Poll::Ready(())
                                })
                                .await;
                            }
                            end => {
                                let end = match end {
                                    Some(Err(error)) => Err(error),
                                    _ => Ok(body.trailers().cloned()),
                                };
                                let mut ending = Some((feeder, end));
                                poll_fn(|cx| {
                                    let ending = ending.take();
                                    ending.into_iter().for_each(|(feeder, end)| feeder.end(end, cx));
                                    Poll::Ready(())
                                })
                                .await;
                                return;
                            }
                        }
                    }
                });
                SendBody(Sendable::Incoming(incoming))
            }
        }
    }
}

impl hyper::body::Body for SendBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Sendable::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Sendable::Incoming(incoming) => Pin::new(incoming).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Sendable::Bytes(bytes) => bytes.is_empty(),
            Sendable::Incoming(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Sendable::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Sendable::Incoming(incoming) => incoming.size_hint(),
        }
    }
}

/// A handler of ours as a service of tower's and of hyper's. Clones are the same handler.
///
/// It stays on one OS thread, so hyper's connections must be served by threads that stay there too,
/// as those of [`spawn_local`](selvedge_core::spawn_local) do. An upgrade needs an engine of ours.
///
/// # Examples
/// ```
/// use hyper::server::conn::http1;
/// use selvedge::web::{Path, Router};
/// use selvedge::{net::UnixStream, spawn_local};
/// use selvedge_compat::{Compat, tower::ToTower};
///
/// selvedge::run_local(async {
///     let hello = async |Path(name): Path<String>| format!("hello, {name}");
///     let service = ToTower::new(Router::new().get("/hello/{name}", hello));
///     let (client, server) = UnixStream::pair().unwrap();
///     let http = http1::Builder::new();
///     let server = spawn_local(http.serve_connection(Compat::new(server), service));
///     let request = b"GET /hello/loom HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
///     client.write_all(request).await.unwrap();
///     assert!(client.read_to_end().await.unwrap().ends_with(b"hello, loom"));
///     server.await.unwrap().unwrap();
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
pub struct ToTower(Rc<dyn DynHandler>);

impl ToTower {
    /// `handler` as a service.
    pub fn new(handler: impl Handler) -> ToTower {
        ToTower(Rc::new(handler))
    }

    fn answer<B>(&self, request: Request<B>) -> BoxedAnswer
    where
        B: hyper::body::Body<Data = Bytes> + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let handler = self.0.clone();
        Box::pin(async move {
            let response = handler.call_boxed(request.map(Body::new)).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                eprintln!("selvedge: a handler under another server cannot upgrade a connection");
                return Ok(StatusCode::NOT_IMPLEMENTED.into_response());
            }
            Ok(response)
        })
    }
}

/// The future of [`ToTower`].
type BoxedAnswer = Pin<Box<dyn Future<Output = Result<selvedge_handler::Response, Infallible>>>>;

impl<B> tower_service::Service<Request<B>> for ToTower
where
    B: hyper::body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = selvedge_handler::Response;
    type Error = Infallible;
    type Future = BoxedAnswer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> BoxedAnswer {
        self.answer(request)
    }
}

impl<B> hyper::service::Service<Request<B>> for ToTower
where
    B: hyper::body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = selvedge_handler::Response;
    type Error = Infallible;
    type Future = BoxedAnswer;

    fn call(&self, request: Request<B>) -> BoxedAnswer {
        self.answer(request)
    }
}

impl fmt::Debug for ToTower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToTower").finish_non_exhaustive()
    }
}
