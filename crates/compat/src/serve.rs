//! [`Serve`]: a web server of hyper's, whole: accepting, a thread for each connection, limits,
//! errors, and stopping.
//!
//! [`serve`] makes one of a service of hyper's, and `axum.rs` makes one of a router. The
//! connections are threads of a `Threads` set (`scope`), so none is left when the server has
//! returned.

use super::Clock;
use crate::Compat;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_scope::{CancelToken, Selected, Threads, select};
use std::error::Error;
use std::fmt;
use std::future::{Future, IntoFuture, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

/// Serves HTTP/1.1 to all that connect, by a thread for each connection, until `stop` is ready.
/// Then it accepts no more, lets the requests that are under way be answered, and returns when the
/// last connection is closed. [`Serve`] has the limits, and begins when it is awaited.
///
/// `service` is cloned for each connection: [`service_fn`](hyper::service::service_fn) makes one of
/// a function. Each request has a [`PeerAddr`] among its extensions.
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
///         let stopped = async move { stopped.take().await.unwrap_or(()) };
///         serve(listener, service_fn(hello), stopped).max_connections(1_000).await
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
pub fn serve<S, F>(listener: TcpListener, service: S, stop: F) -> Serve<S, F> {
    Serve {
        listener,
        service,
        stop,
        limits: Limits { connections: usize::MAX, head: Duration::from_secs(30), grace: None },
        handler: Arc::new(tell),
    }
}

/// A web server that has not begun: its limits, and what hears of its errors. It begins when it is
/// awaited.
///
/// [`hyper::serve`](serve()) makes one, and `axum::serve`.
///
/// # Errors
/// Awaiting it fails with the errors of accepting that waiting does not remove. The connections
/// that are left are cancelled then.
///
/// # Cancellation
/// Dropping the future cancels all connections.
///
/// # Panics
/// Awaiting it panics outside of a thread of ours, when there is a connection to serve. A handler
/// that panics ends its connection alone, and the panic hook reports it.
///
/// # Cost
/// A thread for each connection, and for each request one allocation, which holds [`PeerAddr`].
#[must_use = "a server begins when it is awaited"]
pub struct Serve<S, F> {
    listener: TcpListener,
    service: S,
    stop: F,
    limits: Limits,
    handler: ErrorHandler,
}

/// What a server allows its peers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// How many connections there are at a time, at most.
    connections: usize,
    /// How long a head may take.
    head: Duration,
    /// How long the connections may live on when the server is to stop.
    grace: Option<Duration>,
}

/// What hears of a server's errors, from each connection's thread.
type ErrorHandler = Arc<dyn Fn(ServeError) + Send + Sync>;

impl<S, F> Serve<S, F> {
    /// Serves at most `most` connections at a time. While it serves this number, further
    /// connections wait in the kernel's queue, and are accepted when others have ended.
    ///
    /// Without this, the number of descriptors that the process may have is the only limit.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn max_connections(mut self, most: usize) -> Serve<S, F> {
        assert!(most > 0, "a server without connections serves nothing");
        self.limits.connections = most;
        self
    }

    /// Closes a connection when the head of its next request has not come whole within `limit`: at
    /// the beginning, and behind each answer. It is 30 seconds without this.
    ///
    /// So it also bounds how long an idle connection is kept alive, and a peer that sends its head
    /// byte by byte holds a connection for no longer.
    pub fn header_read_timeout(mut self, limit: Duration) -> Serve<S, F> {
        self.limits.head = limit;
        self
    }

    /// Cancels the connections that are left `grace` after the server was told to stop, together
    /// with the handlers that run for them. Without this, the server waits until the last has
    /// ended.
    pub fn grace_period(mut self, grace: Duration) -> Serve<S, F> {
        self.limits.grace = Some(grace);
        self
    }

    /// Gives each error to `handler`, which runs in the thread that met the error and must not
    /// block.
    ///
    /// Without this, the errors that the [program or the system](ServeError::is_ours) caused are
    /// written to standard error, a line for each. Errors that a peer can cause are dropped,
    /// because a peer could fill the log with them.
    pub fn on_error(mut self, handler: impl Fn(ServeError) + Send + Sync + 'static) -> Serve<S, F> {
        self.handler = Arc::new(handler);
        self
    }
}

#[cfg(feature = "axum")]
impl<S> Serve<S, std::future::Pending<()>> {
    /// Stops when `stop` is ready: the server accepts no more, lets the requests that are under way
    /// be answered, and returns when the last connection is closed, or after the
    /// [grace period](Self::grace_period).
    pub fn with_graceful_shutdown<F: Future>(self, stop: F) -> Serve<S, F> {
        let Serve { listener, service, stop: _, limits, handler } = self;
        Serve { listener, service, stop, limits, handler }
    }
}

impl<S, F> fmt::Debug for Serve<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("address", &self.listener.local_addr())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<S, B, F> IntoFuture for Serve<S, F>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    F: Future<Output = ()> + Send + 'static,
{
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<S, B, F> Serve<S, F>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    F: Future<Output = ()>,
{
    async fn run(self) -> io::Result<()> {
        let Serve { listener, service, stop, limits, handler } = self;
        let (finish, mut connections, mut stop) = (CancelToken::new(), Threads::new(), pin!(stop));
        let mut pauses = listener.pauses();
        loop {
            // Accepting can be ready at once for ever, so it does not leave the connections that
            // have ended to `next`.
            while connections.try_next().is_some() {}
            let before = std::mem::replace(&mut pauses, listener.pauses());
            if pauses > before {
                handler(ServeError::Paused { times: pauses - before });
            }
            let (full, empty) = (connections.len() >= limits.connections, connections.is_empty());
            let accepted = async {
                match full {
                    true => pending().await,
                    false => listener.accept().await,
                }
            };
            // Without connections nothing is to be taken in, and `next` would be ready at once.
            let ended = async {
                match empty {
                    true => pending().await,
                    false => connections.next().await,
                }
            };
            match select((stop.as_mut(), accepted, ended)).await {
                Selected::First(()) => break,
                Selected::Second(accepted) => {
                    let (stream, peer) = accepted?;
                    let service = WithPeer { service: service.clone(), peer: PeerAddr(peer) };
                    connections.spawn(converse(
                        stream,
                        service,
                        limits.head,
                        finish.clone(),
                        handler.clone(),
                    ));
                }
                _ => {}
            }
        }
        drop(listener);
        finish.cancel();
        let ended = async { while connections.next().await.is_some() {} };
        match limits.grace {
            None => ended.await,
            Some(grace) => {
                if timeout(grace, ended).await.is_err() {
                    connections.cancel_all();
                    handler(ServeError::GraceEnded { connections: connections.len() });
                    while connections.next().await.is_some() {}
                }
            }
        }
        Ok(())
    }
}

/// One connection, until its end, or until the request under way is answered when it is to finish.
async fn converse<S, B>(
    stream: TcpStream,
    service: WithPeer<S>,
    head: Duration,
    finish: CancelToken,
    handler: ErrorHandler,
) where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let peer = service.peer.0;
    let mut http = http1::Builder::new();
    http.timer(Clock).header_read_timeout(head);
    let connection = http.serve_connection(Compat::new(stream), service).with_upgrades();
    let mut connection = pin!(connection);
    let (mut finish, mut finishes) = (pin!(finish.cancelled()), false);
    let ended = poll_fn(|cx| {
        if !finishes && finish.as_mut().poll(cx).is_ready() {
            finishes = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        handler(ServeError::Connection { peer, error });
    }
}

/// The address from which a request came: an extension of each request that [`Serve`] hands to its
/// service.
///
/// A handler of axum takes it as `Extension(PeerAddr(peer))`, since axum's own `ConnectInfo` needs
/// axum's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddr(pub SocketAddr);

/// A service that adds the peer's address to each request.
struct WithPeer<S> {
    service: S,
    peer: PeerAddr,
}

impl<S: Service<Request<Incoming>>> Service<Request<Incoming>> for WithPeer<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<Incoming>) -> S::Future {
        request.extensions_mut().insert(self.peer);
        self.service.call(request)
    }
}

/// What went wrong while a server went on: what [`Serve::on_error`] hears of.
///
/// A panic of a handler is none, because the panic hook reports it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The process or the system had run out of descriptors or memory, so that accepting paused.
    /// The connections waited in the kernel's queue.
    Paused {
        /// How many pauses there were since the last such error.
        times: u64,
    },
    /// A connection ended before its time: its peer broke it off, sent what is no HTTP, or took too
    /// long for a head; or the service failed, or the body of its answer.
    Connection {
        /// The other end.
        peer: SocketAddr,
        /// What hyper says.
        error: hyper::Error,
    },
    /// The grace period was over, and the connections that were left have been cancelled.
    GraceEnded {
        /// How many there were.
        connections: usize,
    },
}

impl ServeError {
    /// Whether the program or the system caused the error, and no peer: the service or the body of
    /// an answer failed, descriptors ran out, or the grace period was too short.
    pub fn is_ours(&self) -> bool {
        match self {
            ServeError::Connection { error, .. } => error.is_user(),
            _ => true,
        }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Paused { times } => {
                write!(f, "descriptors or memory had run out: accepting paused, {times} times")
            }
            ServeError::Connection { peer, error } => write!(f, "connection from {peer}: {error}"),
            ServeError::GraceEnded { connections } => {
                write!(f, "connections cancelled at the end of the grace period: {connections}")
            }
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ServeError::Connection { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// What hears of errors where the program asks for nothing else.
fn tell(error: ServeError) {
    if error.is_ours() {
        let cause = error.source().and_then(Error::source).map(|cause| format!(": {cause}"));
        eprintln!("{error}{}", cause.unwrap_or_default());
    }
}
