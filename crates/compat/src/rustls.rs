//! What a server shows over TLS: a certificate and its key, read from files into the configuration
//! of rustls.
//!
//! The provider of cryptography is `ring`, which needs no C compiler for assembly and no cmake. The
//! streams themselves go through [`Compat`](crate::Compat) and `futures-rustls`.

use ::rustls::ServerConfig;
use ::rustls::crypto::ring::default_provider;
use ::rustls::pki_types::pem::{self, PemObject};
use ::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no certificate to show.
#[derive(Debug)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file cannot be read, or has no certificate or key in the format PEM.
    File(PathBuf, pem::Error),
    /// The certificate and the key do not fit to each other, or TLS does not take them.
    Refused(::rustls::Error),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::File(path, error) => write!(f, "{}: {error}", path.display()),
            IdentityError::Refused(error) => write!(f, "the certificate cannot be used: {error}"),
        }
    }
}

impl Error for IdentityError {}

/// The configuration of a server that shows the certificate in a file, with the certificates of its
/// issuers behind it, and has the private key in another. Clients show none. It blocks while it
/// reads.
///
/// # Errors
/// If a file is not right, or if the two do not fit to each other.
///
/// # Examples
/// ```
/// use selvedge_compat::rustls::{IdentityError, server_config};
/// use std::path::Path;
///
/// let missing = server_config(Path::new("/nowhere/chain.pem"), Path::new("/nowhere/key.pem"));
/// assert!(matches!(missing, Err(IdentityError::File(..))));
/// ```
pub fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, IdentityError> {
    let at = |path: &Path| {
        let path = path.to_path_buf();
        |error| IdentityError::File(path, error)
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<CertificateDer<'static>> = chain.map_err(at(certificate))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(at(key))?;
    server_config_of(chain, key)
}

/// As [`server_config`], with the certificate and the key themselves.
///
/// # Errors
/// If they do not fit to each other.
pub fn server_config_of(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, IdentityError> {
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(IdentityError::Refused)
}
