//! `bind`: listens by name, at the first address of the name that the host has. Programs call it;
//! `TcpListener::bind` makes each attempt.

use super::TcpListener;
use super::addresses::{Places, ToSocketAddrs};
use crate::error::doing;
use std::io;

/// Listens at an address, or at the first of several that is free: `bind("localhost:80")`,
/// `bind(("::1", 80))`, `bind(address)`. See [`ToSocketAddrs`].
///
/// [`TcpListener::bind`] is for one address that is known already, and waits for nothing.
///
/// # Errors
/// With the name in the message, and the reason why the last address failed: unknown, in use, not
/// of this host, not permitted.
///
/// # Examples
/// ```
/// use selvedge::net::{bind, connect};
///
/// selvedge::run_local(async {
///     let listener = bind("localhost:0").await?;
///     let client = connect(listener.local_addr()).await?;
///     assert_eq!(listener.accept().await?.1, client.local_addr()?);
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let places = address.places();
    if let Places::One(address) = places {
        return TcpListener::bind(address);
    }
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in places.addresses().await?.iter() {
        match TcpListener::bind(*address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = error,
        }
    }
    Err(doing(format_args!("bind {places}"))(last_error))
}
