//! [`serve`]: a handler on an address.

use std::io;

use selvedge_handler::Handler;
use selvedge_http::{Config, Site, Stop};
use selvedge_io::net::bind;

/// Serves `handler` on `address`, which is a name or a number with a port, until the future is
/// dropped. All connections stay on the calling OS thread; what the handler spawns does not.
///
/// A program that has a configuration, a log, a graceful end, or a worker on each core makes a
/// [`Site`] itself:
///
/// ```
/// use selvedge::http::{Config, Site, Stop};
/// use selvedge::net::ListenOptions;
/// use selvedge::web::Router;
///
/// fn on_each_core(address: std::net::SocketAddr, stop: &Stop) -> Result<(), selvedge::Failure> {
///     let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
///     let serve = move |stop: Stop| async move {
///         let router = Router::new().get("/", async || "woven");
///         let site = Site::with_handler(router, Config::default(), None);
///         // Each worker has a listener, and the kernel spreads the connections.
///         let listener = ListenOptions::new().reuse_port(true).bind(address)?;
///         site.serve_tcp(listener, &stop).await?;
///         site.drain().await;
///         Ok::<(), std::io::Error>(())
///     };
///     selvedge::per_core(cores, |_| serve(stop.clone()))?;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// If the address cannot be bound, and those of accepting that waiting does not remove.
///
/// # Panics
/// Outside of a thread of ours.
pub async fn serve(address: impl AsRef<str>, handler: impl Handler) -> io::Result<()> {
    let listener = bind(address.as_ref()).await?;
    let site = Site::with_handler(handler, Config::default(), None);
    site.serve_tcp(listener, &Stop::new()).await
}
