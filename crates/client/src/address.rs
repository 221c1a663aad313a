//! [`Address`]: where a server is, and connecting to it.

use crate::error::{Error, ErrorCause};
use http::Uri;
use selvedge_io::net::{Stream, UnixStream, connect};
use selvedge_io::time::timeout;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a server is. A clone is cheap.
///
/// # Examples
/// ```
/// use selvedge::client::Address;
///
/// assert_eq!(Address::tcp("127.0.0.1:8080").to_string(), "127.0.0.1:8080");
/// assert_eq!(Address::unix("/run/app.sock").to_string(), "unix:/run/app.sock");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Place);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    /// Host and port.
    Tcp(Arc<str>),
    Unix(Arc<PathBuf>),
}

impl Address {
    /// A host, by its name or its number, and a port: `example.org:80`, `[::1]:8080`. A name is
    /// looked up for each connection.
    pub fn tcp(host_and_port: impl Into<Arc<str>>) -> Address {
        Address(Place::Tcp(host_and_port.into()))
    }

    /// The path of a Unix socket.
    pub fn unix(path: impl AsRef<Path>) -> Address {
        Address(Place::Unix(Arc::new(path.as_ref().to_path_buf())))
    }

    /// The server that a URI names.
    ///
    /// # Errors
    /// If it names none, has another scheme than `http`, or has a user's name.
    pub(crate) fn of(uri: &Uri) -> Result<Address, Error> {
        let refuse = |text| Err(Error::new(ErrorCause::Request(text)));
        match uri.scheme_str() {
            Some("http") => {}
            Some(_) => return refuse("the client speaks `http` and no other scheme"),
            None => return refuse("the URI has no scheme"),
        }
        let Some(authority) = uri.authority() else { return refuse("the URI names no host") };
        if authority.as_str().contains('@') {
            return refuse("a user's name in a URI is not sent: use the field `Authorization`");
        }
        match authority.port() {
            Some(_) => Ok(Address::tcp(authority.as_str())),
            None => Ok(Address::tcp(format!("{}:80", authority.host()))),
        }
    }

    /// Connects within a time limit, look-up of the name included.
    ///
    /// # Errors
    /// If no connection could be made in that time.
    pub async fn connect(&self, limit: Duration) -> Result<Stream, Error> {
        let connected = timeout(limit, self.connect_unlimited()).await;
        let connected = connected.unwrap_or_else(|elapsed| Err(elapsed.into()));
        connected.map_err(|error| Error::from_io(ErrorCause::Connect, error))
    }

    async fn connect_unlimited(&self) -> io::Result<Stream> {
        match &self.0 {
            Place::Tcp(place) => {
                let stream = connect(&**place).await?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
            Place::Unix(path) => Ok(UnixStream::connect(&**path).await?.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Tcp(place) => f.write_str(place),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
