//! `serve`: a web server of hyper's, whole: accepting, a thread for each connection, and stopping.
//!
//! Programs call it with a service of hyper's. The connections are threads of a `Threads` set
//! (`scope`), so none is left when `serve` has returned.

use super::Clock;
use crate::Compat;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_scope::{CancelToken, Selected, Threads, select};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;

/// Serves HTTP/1.1 to all that connect, by a thread for each connection, until `stop` is ready.
/// Then it accepts no more, lets the requests that are under way be answered, and returns when the
/// last connection is closed.
///
/// `service` is cloned for each connection: [`service_fn`](hyper::service::service_fn) makes one of
/// a function, and the `TowerToHyperService` of `hyper-util` one of a router of axum. A connection
/// that breaks ends alone, and says nothing. A head that has not come after 30 seconds ends its
/// connection.
///
/// # Errors
/// Those of accepting that waiting does not mend. The connections that are left are cancelled.
///
/// # Cancellation
/// Dropping the future cancels all connections. To stop at once, or after a while, put a
/// [`timeout`](selvedge_io::time::timeout) around what is left after `stop`.
///
/// # Examples
/// ```
/// use http_body_util::Full;
/// use hyper::body::{Bytes, Incoming};
/// use hyper::service::service_fn;
/// use hyper::{Request, Response};
/// use selvedge::net::{TcpListener, connect};
/// use selvedge::sync::one_shot;
/// use selvedge_compat::hyper::serve;
/// use std::convert::Infallible;
///
/// async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
///     Ok(Response::new(Full::from(format!("hello from {}", request.uri().path()))))
/// }
///
/// selvedge::run(async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
///     let address = listener.local_addr().to_string();
///     let (stop, mut stopped) = one_shot();
///     let server = selvedge::spawn(async move {
///         let stopped = async { stopped.take().await.unwrap_or(()) };
///         serve(listener, service_fn(hello), stopped).await
///     });
///
///     let client = connect(&address).await?;
///     let request = b"GET /loom HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
///     client.write_all(request).await?;
///     assert!(client.read_to_end().await?.ends_with(b"hello from /loom"));
///     let _ = stop.reply(());
///     server.await.unwrap()
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "axum")]
pub async fn serve<S, B>(listener: TcpListener, service: S, stop: impl Future<Output = ()>) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (finish, mut connections, mut stop) = (CancelToken::new(), Threads::new(), pin!(stop));
    loop {
        // Without connections nothing is to be taken in, and `next` would be ready at once.
        let ended = async {
            match connections.is_empty() {
                true => std::future::pending().await,
                false => connections.next().await,
            }
        };
        match select((stop.as_mut(), listener.accept(), ended)).await {
            Selected::First(()) => break,
            Selected::Second(accepted) => {
                let (stream, _) = accepted?;
                connections.spawn(converse(stream, service.clone(), finish.clone()));
            }
            _ => {}
        }
    }
    drop(listener);
    finish.cancel();
    while connections.next().await.is_some() {}
    Ok(())
}

/// One connection, until its end, or until the request under way is answered when it is to finish.
async fn converse<S, B>(stream: TcpStream, service: S, finish: CancelToken)
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut http = http1::Builder::new();
    http.timer(Clock);
    let mut connection = pin!(http.serve_connection(Compat::new(stream), service));
    let (mut finish, mut finishes) = (pin!(finish.cancelled()), false);
    let ended = poll_fn(|cx| {
        if !finishes && finish.as_mut().poll(cx).is_ready() {
            finishes = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    // A peer that breaks its connection off is no fault of the program's, which may log within the
    // service.
    let _ = ended.await;
}
