//! TLS (RFC 4217): [`Identity`], the certificate that the server shows, and [`SecureStream`], a
//! connection behind its handshake.
//!
//! `server.rs` reads the certificate. `control.rs` and `transfer.rs` have the connections.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_rustls::TlsAcceptor;
use futures_rustls::rustls::crypto::ring::default_provider;
use futures_rustls::rustls::pki_types::pem::{self, PemObject};
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use futures_rustls::rustls::{self, ServerConfig};
use futures_rustls::server::TlsStream;
use selvedge::Time;
use selvedge::net::TcpStream;
use selvedge_compat::Compat;

/// A connection over TLS.
pub(crate) type SecureStream = Box<TlsStream<Compat<Arc<TcpStream>>>>;

/// A certificate with its key.
#[derive(Clone, Debug)]
pub(crate) struct Identity(Arc<ServerConfig>);

/// Why there is no certificate to show.
#[derive(Debug)]
pub(crate) enum IdentityError {
    /// A file cannot be read, or has no certificate or key in the format PEM.
    File(PathBuf, pem::Error),
    /// The certificate and the key do not fit to each other, or TLS does not take them.
    Refused(rustls::Error),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::File(path, error) => write!(f, "{}: {error}", path.display()),
            IdentityError::Refused(error) => write!(f, "the certificate cannot be used: {error}"),
        }
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// Reads a certificate, with those of its issuers behind it, and the private key. It blocks.
    ///
    /// # Errors
    /// If a file is not right, or if the two do not fit to each other.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            |error| IdentityError::File(path, error)
        };
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain: Vec<CertificateDer<'static>> = chain.map_err(at(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(at(key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        Ok(Identity(Arc::new(config.map_err(IdentityError::Refused)?)))
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
