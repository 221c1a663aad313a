//! [`serve`]: a handler on an address.

use selvedge_handler::Handler;
use selvedge_http::{Config, Site, Stop};
use selvedge_io::net::bind;
use std::io;

/// Serves `handler` on `address`, which is a name or a number with a port, until the future is
/// dropped. All connections stay on the calling OS thread; what the handler spawns does not.
///
/// A [`Server`](crate::Server) has a worker on each processor, and ends gracefully. A program with
/// a log, or with several addresses, makes a [`Site`] itself.
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
