//! TLS (RFC 4217): [`Identity`], the certificate that the server shows, and [`SecureStream`], a
//! connection behind its handshake.
//!
//! `server.rs` reads the certificate. `control.rs` and `transfer.rs` have the connections.

use futures_rustls::TlsAcceptor;
use futures_rustls::rustls::ServerConfig;
use futures_rustls::server::TlsStream;
use selvedge::Time;
use selvedge::net::TcpStream;
use selvedge_compat::Compat;
use selvedge_compat::rustls::{IdentityError, server_config};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A connection over TLS.
pub(crate) type SecureStream = Box<TlsStream<Compat<Arc<TcpStream>>>>;

/// A certificate with its key.
#[derive(Clone, Debug)]
pub(crate) struct Identity(Arc<ServerConfig>);

impl Identity {
    /// Reads a certificate, with those of its issuers behind it, and the private key. It blocks.
    ///
    /// # Errors
    /// If a file is not right, or if the two do not fit to each other.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        server_config(certificate, key).map(|config| Identity(Arc::new(config)))
    }

    /// Shakes hands with a client, within `patience`.
    ///
    /// # Errors
    /// Those of the connection; `InvalidData` if the client does not speak TLS as it should.
    pub(crate) async fn accept(
        &self,
        stream: &Arc<TcpStream>,
        patience: Duration,
    ) -> io::Result<SecureStream> {
        let until = Some(Time::now() + patience);
        stream.set_read_deadline(until);
        stream.set_write_deadline(until);
        let accepted = TlsAcceptor::from(Arc::clone(&self.0)).accept(Compat::new(Arc::clone(stream))).await;
        stream.set_read_deadline(None);
        Ok(Box::new(accepted?))
    }
}
