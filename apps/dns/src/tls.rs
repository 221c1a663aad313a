//! [`Identity`]: the certificate and the key by which the server shows over TLS which server it is.
//!
//! `main.rs` reads it when the server starts, and again for each `SIGHUP`.

use futures_rustls::rustls::crypto::ring::default_provider;
use futures_rustls::rustls::pki_types::pem::{self, PemObject};
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use futures_rustls::rustls::{self, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The name of the protocol in the handshake (RFC 7858 §3.1, IANA's registry of ALPN).
const PROTOCOL: &[u8] = b"dot";

/// What the server shows, which a reload replaces.
pub type IdentityCell = Arc<Mutex<Arc<Identity>>>;

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    pub(crate) config: Arc<ServerConfig>,
}

/// Why there is no certificate to show.
#[derive(Debug)]
#[non_exhaustive]
pub enum IdentityError {
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
    /// Reads a certificate, with those of its issuers behind it, and the private key.
    ///
    /// # Errors
    /// If a file is not right, or if the two do not fit to each other.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            |error| IdentityError::File(path, error)
        };
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain: Vec<CertificateDer<'static>> = chain.map_err(at(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(at(key))?;
        Identity::new(chain, key)
    }

    /// The identity of a certificate and its key.
    ///
    /// # Errors
    /// If they do not fit to each other.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, IdentityError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(IdentityError::Refused)?;
        config.alpn_protocols.push(PROTOCOL.to_vec());
        Ok(Identity { config: Arc::new(config) })
    }
}
