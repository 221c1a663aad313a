//! [`Identity`]: the certificate and the key by which the server shows over TLS which server it is.
//!
//! `main.rs` reads it when the server starts, and again for each `SIGHUP`.

use futures_rustls::rustls::ServerConfig;
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use selvedge_compat::rustls::{IdentityError, server_config, server_config_of};
use std::path::Path;
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

impl Identity {
    /// Reads a certificate, with those of its issuers behind it, and the private key.
    ///
    /// # Errors
    /// If a file is not right, or if the two do not fit to each other.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        server_config(certificate, key).map(Identity::shown_by)
    }

    /// The identity of a certificate and its key.
    ///
    /// # Errors
    /// If they do not fit to each other.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, IdentityError> {
        server_config_of(chain, key).map(Identity::shown_by)
    }

    fn shown_by(mut config: ServerConfig) -> Identity {
        config.alpn_protocols.push(PROTOCOL.to_vec());
        Identity { config: Arc::new(config) }
    }
}
