//! [`ToSocketAddrs`]: what names an address, or several. `bind` and `connect` take it.
//!
//! What is an address already costs no look-up. A name is looked up by `resolve`, on the blocking
//! pool.

use super::tcp::resolve;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// What [`bind`](super::bind) and [`connect`](super::connect) take: an address, several, or the
/// name of a host with a port, as text (`"localhost:80"`) or as a pair (`("localhost", 80)`). The
/// types are those of [`std::net::ToSocketAddrs`].
///
/// A text that is an address (`"127.0.0.1:80"`, `"[::1]:80"`, `("::1", 80)`) is not looked up. A
/// name is, on an OS thread of the blocking pool. In a simulated world each name stands for
/// 127.0.0.1.
///
/// # Examples
/// ```
/// use selvedge::net::{bind, connect};
///
/// selvedge::run_local(async {
///     let listener = bind(("localhost", 0)).await?;
///     let port = listener.local_addr().port();
///     connect(format!("localhost:{port}")).await?;
///     connect(("localhost", port)).await?;
///     connect(listener.local_addr()).await?;
///     connect(&[listener.local_addr()][..]).await?;
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToSocketAddrs {
    #[doc(hidden)]
    fn places(&self) -> Places<'_>;
}

/// The addresses, or the name that has them.
#[doc(hidden)]
#[derive(Debug)]
pub enum Places<'a> {
    One(SocketAddr),
    Several(&'a [SocketAddr]),
    Name(Cow<'a, str>),
}

impl Places<'_> {
    /// The addresses, looked up if need be.
    ///
    /// # Errors
    /// As for [`resolve`].
    pub(super) async fn addresses(&self) -> io::Result<Cow<'_, [SocketAddr]>> {
        match self {
            Places::One(address) => Ok(std::slice::from_ref(address).into()),
            Places::Several(addresses) => Ok((*addresses).into()),
            Places::Name(name) => resolve(name).await.map(Cow::from),
        }
    }
}

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Places::One(address) => address.fmt(f),
            Places::Several(addresses) => write!(f, "one of {addresses:?}"),
            Places::Name(name) => f.write_str(name),
        }
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn places(&self) -> Places<'_> {
        (**self).places()
    }
}

impl ToSocketAddrs for str {
    fn places(&self) -> Places<'_> {
        self.parse().map_or(Places::Name(self.into()), Places::One)
    }
}

impl ToSocketAddrs for String {
    fn places(&self) -> Places<'_> {
        self.as_str().places()
    }
}

impl ToSocketAddrs for [SocketAddr] {
    fn places(&self) -> Places<'_> {
        Places::Several(self)
    }
}

impl ToSocketAddrs for (&str, u16) {
    fn places(&self) -> Places<'_> {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(host) => Places::One((host, port).into()),
            Err(_) => Places::Name(format!("{host}:{port}").into()),
        }
    }
}

impl ToSocketAddrs for (String, u16) {
    fn places(&self) -> Places<'_> {
        match (self.0.as_str(), self.1).places() {
            Places::One(address) => Places::One(address),
            other => Places::Name(other.to_string().into()),
        }
    }
}

macro_rules! are_one {
    ($($address:ty),*) => {
        $(
            impl ToSocketAddrs for $address {
                fn places(&self) -> Places<'_> {
                    Places::One(SocketAddr::from(*self))
                }
            }
        )*
    };
}

are_one!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));
