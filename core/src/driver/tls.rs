//! TLS without a crypto provider for the whole process: that is the program's own choice, and may be another one.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::tcp;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::RuntimeHandle;

/// How we prove who the server is, and who we are.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads the certificates the options name.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::internal("TLS has no protocol version").with_source(error))?
            .with_root_certificates(authorities(&options.cacert)?);
        let config = match (&*options.cert, &*options.key) {
            ("", "") => config.with_no_client_auth(),
            (cert, key) => {
                let chain = certificates("cert", cert)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|_| unreadable("key", key))?;
                config.with_client_auth_cert(chain, key).map_err(|error| {
                    let message = "the certificate of `cert` and the private key of `key` do not belong together";
                    Error::invalid("cert", message).with_source(error)
                })?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    /// The same for servers that want to be told what is spoken.
    #[cfg(feature = "etcd")]
    pub(crate) fn speaking(&self, protocol: &[u8]) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.to_vec()];
        Self(Arc::new(config))
    }

    /// An encrypted connection to a server that has proved to be the one.
    pub(crate) async fn connect(
        &self,
        name: &str,
        port: u16,
        runtime: &RuntimeHandle,
    ) -> Result<TlsStream<TcpStream>> {
        let absent = "the server cannot be reached; is it running, and is the address right?";
        let stream = tcp::connect(name, port, runtime)
            .await
            .map_err(|error| unavailable(absent, name, port, &error))?;
        self.secure(stream, name, port).await
    }

    /// The same over a connection that is there.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        name: &str,
        port: u16,
    ) -> Result<TlsStream<TcpStream>> {
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| Error::invalid("url", "the host is neither a name nor an address"))?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        connector.connect(server, stream).await.map_err(|error| {
            unproven(&place(name, port), &error).unwrap_or_else(|| {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                let message = match inner {
                    Some(rustls::Error::AlertReceived(_)) => {
                        "the server does not speak TLS with us; does it ask for a certificate of ours (`cert`, `key`)?"
                    }
                    _ => "the server does not speak TLS with us",
                };
                unavailable(message, name, port, &error)
            })
        })
    }

    /// The authorities that the system trusts, for a client that reads certificates itself.
    #[cfg(feature = "mysql")]
    pub(crate) fn known_authorities() -> Vec<CertificateDer<'static>> {
        let usable =
            |der: &CertificateDer<'static>| RootCertStore::empty().add(der.clone()).is_ok();
        rustls_native_certs::load_native_certs().certs.into_iter().filter(usable).collect()
    }
}

fn unavailable(message: &'static str, name: &str, port: u16, error: &std::io::Error) -> Error {
    let error_text = error.to_string();
    Error::new(Code::Unavailable, message)
        .with("server", place(name, port))
        .with("reason", error_text)
}

fn place(name: &str, port: u16) -> String {
    if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
}

/// Says that a server has not proved to be the one, if that is what went wrong.
pub(crate) fn unproven(server: &str, error: &std::io::Error) -> Option<Error> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    if !matches!(inner, Some(rustls::Error::InvalidCertificate(_))) {
        return None;
    }
    let message = "the server's certificate does not prove that it is this host; name its authority by `cacert`, or connect to the name it was made for";
    let told = Error::new(Code::Unavailable, message).with("server", server);
    Some(told.with("reason", error.to_string()).with_retryable(false))
}

/// Whom to believe: the authorities of a file alone, or those of the system.
fn authorities(file: &str) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if file.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let message = "the system has no certificate authorities; name one by `cacert`";
            return Err(Error::invalid("cacert", message));
        }
        return Ok(roots);
    }
    for certificate in certificates("cacert", file)? {
        roots.add(certificate).map_err(|_| unreadable("cacert", file))?;
    }
    Ok(roots)
}

fn certificates(option: &'static str, file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.ok().filter(|all| !all.is_empty()).ok_or_else(|| unreadable(option, file))
}

fn unreadable(option: &'static str, file: &str) -> Error {
    let message = format!("`{option}` must name a file in PEM format that can be read");
    Error::invalid(option, message).with("file", file)
}
