//! axum's routers on our threads: [`serve`], with the limits, errors and stopping of
//! [`hyper::Serve`](crate::hyper::Serve).
//!
//! axum itself is compiled without its feature `tokio`, and so without a runtime. Programs ask for
//! it with `axum = { version = "0.8", default-features = false }`, and the features that they need.
//!
//! Extractors, layers and state work as they are. Three things differ: `axum::serve` is [`serve`],
//! `ConnectInfo` is [`PeerAddr`], and a handler that calls a library on tokio's runtime needs the
//! feature `tokio-runtime` and its `tokio::within`.

pub use crate::hyper::{PeerAddr, Serve, ServeError};

use axum::Router;
use axum::body::Body;
use axum::routing::future::RouteFuture;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use selvedge_io::net::TcpListener;
use std::convert::Infallible;
use std::future::{Pending, pending};

/// Serves a router to all that connect, by a thread for each connection, as `axum::serve` does.
///
/// [`Serve`] has the limits, and `with_graceful_shutdown`. It begins when it is awaited.
///
/// # Examples
/// ```
/// use axum::Router;
/// use axum::extract::{Path, State};
/// use axum::routing::get;
/// use selvedge::net::{TcpListener, connect};
/// use selvedge::stm::{TVar, atomically};
/// use selvedge::{scope::CancelToken, spawn};
/// use std::time::Duration;
///
/// // The state of the program: how much of all cloth is woven.
/// async fn weave(State(woven): State<TVar<u64>>, Path(ells): Path<u64>) -> String {
///     let sum = atomically(|tx| {
///         let sum = woven.read(tx)? + ells;
///         woven.write(tx, sum);
///         Ok(sum)
///     });
///     format!("{} ells", sum.await)
/// }
///
/// selvedge::run(async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
///     let address = listener.local_addr().to_string();
///     let router = Router::new().route("/weave/{ells}", get(weave)).with_state(TVar::new(0));
///     let stop = CancelToken::new();
///     let stopped = stop.clone();
///     let server = spawn(async move {
///         selvedge_compat::axum::serve(listener, router)
///             .max_connections(10_000)
///             .header_read_timeout(Duration::from_secs(10))
///             .grace_period(Duration::from_secs(5))
///             .on_error(|error| eprintln!("server: {error}"))
///             .with_graceful_shutdown(async move { stopped.cancelled().await })
///             .await
///     });
///
///     for answer in ["12 ells", "24 ells"] {
///         let client = connect(&address).await?;
///         let request = b"GET /weave/12 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
///         client.write_all(request).await?;
///         assert!(client.read_to_end().await?.ends_with(answer.as_bytes()));
///     }
///     stop.cancel();
///     server.await.unwrap()
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn serve(listener: TcpListener, router: Router) -> Serve<RouterService, Pending<()>> {
    // axum asks for this call, because a router with its state settled is cheaper to clone.
    crate::hyper::serve(listener, RouterService(router.with_state(())), pending())
}

/// A router as a service of hyper's.
#[derive(Clone, Debug)]
pub struct RouterService(Router);

impl Service<Request<Incoming>> for RouterService {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, request: Request<Incoming>) -> RouteFuture<Infallible> {
        // `poll_ready` is left out, because a router is always ready.
        tower_service::Service::call(&mut self.0.clone(), request.map(Body::new))
    }
}
