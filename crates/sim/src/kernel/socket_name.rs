//! [`SocketName`]: the address of a simulated socket.

use rustix::io::{Errno, Result};
use rustix::net::{SocketAddrAny, SocketAddrUnix};
use std::net::SocketAddr;

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SocketName {
    Internet(SocketAddr),
    Path(Vec<u8>),
    Unnamed,
}

impl SocketName {
    pub(super) fn of(address: &SocketAddrAny) -> Result<SocketName> {
        if let Ok(address) = SocketAddr::try_from(address.clone()) {
            return Ok(SocketName::Internet(address));
        }
        let unix = SocketAddrUnix::try_from(address.clone()).map_err(|_| Errno::AFNOSUPPORT)?;
        Ok(unix.path().map_or(SocketName::Unnamed, |path| SocketName::Path(path.to_bytes().to_vec())))
    }

    pub(super) fn address(&self) -> Option<SocketAddrAny> {
        match self {
            SocketName::Internet(address) => Some((*address).into()),
            SocketName::Path(path) => Some(SocketAddrUnix::new(&path[..]).ok()?.into()),
            SocketName::Unnamed => Some(SocketAddrUnix::new_unnamed().into()),
        }
    }
}
