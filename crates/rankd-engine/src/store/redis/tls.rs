//! Which servers are trusted with `rediss://`: those with a certificate for their name from an authority that was given.

use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The authorities whose word is taken.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts these certificates, each in DER; what cannot be used is left out, but something must remain.
    pub fn in_authorities(certificates: impl IntoIterator<Item = Vec<u8>>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.into_iter().map(CertificateDer::from));
        if roots.is_empty() {
            return Err("there is no trusted CA certificate".into());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        Ok(Trust(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// Trusts the certificates in the text of a PEM file.
    pub fn in_pem(text: &str) -> Result<Trust, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let certificates = read.map_err(|error| format!("this is not a PEM file: {error}"))?;
        Trust::in_authorities(certificates.into_iter().map(|certificate| certificate.to_vec()))
    }

    pub(super) fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.0.clone())
    }
}

/// The name that the server's certificate must be for: the host of the address, a name or a number.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|_| format!("{host:?} is not a valid name for a certificate"))
}
