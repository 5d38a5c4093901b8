//! Which servers are trusted with `rediss://` and `https://`: those with a certificate for their name from an authority that was given.

use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The authorities that are trusted.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

/// Why certificates cannot be used.
#[derive(Debug)]
pub enum TrustError {
    /// None of them is the certificate of an authority.
    NoAuthority,
    NotPem(pem::Error),
    Config(rustls::Error),
}

impl std::error::Error for TrustError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TrustError::NoAuthority => None,
            TrustError::NotPem(error) => Some(error),
            TrustError::Config(error) => Some(error),
        }
    }
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustError::NoAuthority => f.write_str("there is no trusted CA certificate"),
            TrustError::NotPem(error) => write!(f, "this is not a PEM file: {error}"),
            TrustError::Config(error) => error.fmt(f),
        }
    }
}

impl Trust {
    /// Trusts these certificates, each in DER; what cannot be used is left out, but something must remain.
    pub fn in_authorities(certificates: impl IntoIterator<Item = Vec<u8>>) -> Result<Trust, TrustError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.into_iter().map(CertificateDer::from));
        if roots.is_empty() {
            return Err(TrustError::NoAuthority);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(TrustError::Config)?;
        Ok(Trust(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// Trusts the certificates in the text of a PEM file.
    pub fn in_pem(text: &str) -> Result<Trust, TrustError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let certificates = read.map_err(TrustError::NotPem)?;
        Trust::in_authorities(certificates.into_iter().map(|certificate| certificate.to_vec()))
    }

    pub(super) fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.0.clone())
    }

    /// One that offers these protocols, the best first.
    pub(super) fn connector_for(&self, protocols: &[&[u8]]) -> TlsConnector {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

/// The name that the server's certificate must be for: the host of the address, a name or a number.
pub(super) fn server_name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}
