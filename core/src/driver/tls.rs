//! TLS without a crypto provider for the whole process: that is the program's own choice, and may be another one.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::hosts::{self, Host};
use super::tcp;
use crate::error::{Code, Error, Result};
use crate::options::{Options, SslMode};
use crate::port::RuntimeHandle;

/// How we prove who the server is, and who we are.
#[derive(Clone)]
#[cfg_attr(not(feature = "postgres"), allow(unreachable_pub))] // Only its dialect shows it.
pub struct Tls {
    files: Files,
    /// The name that the server's certificate must have; empty: that of the host.
    name: String,
    /// The settings as the files said when the client was made.
    config: Arc<ClientConfig>,
}

/// The files that are read anew for each connection: certificates are renewed while a client runs.
#[derive(Clone)]
struct Files {
    cacert: String,
    cert: String,
    key: String,
    /// Whether the server may have another name.
    any_name: bool,
    /// The protocols that the server is told of.
    protocols: Vec<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads the certificates the options name.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let Options { cacert, cert, key, .. } = options.clone();
        let any_name = options.sslmode == SslMode::VerifyCa;
        let files = Files { cacert, cert, key, any_name, protocols: Vec::new() };
        let (config, name) = (Arc::new(files.read()?), options.tls_name.clone());
        if !name.is_empty() && ServerName::try_from(name.clone()).is_err() {
            let message = "`tls_name` must be the name of a host or an address";
            return Err(Error::invalid("tls_name", message));
        }
        Ok(Self { files, name, config })
    }

    /// The same for servers that want to be told what is spoken.
    #[cfg(feature = "etcd")]
    pub(crate) fn speaking(&self, protocol: &[u8]) -> Self {
        let (mut copy, mut config) = (self.clone(), ClientConfig::clone(&self.config));
        copy.files.protocols = vec![protocol.to_vec()];
        config.alpn_protocols.clone_from(&copy.files.protocols);
        Self { config: Arc::new(config), ..copy }
    }

    /// The settings as the files say now. While somebody replaces them they may not fit together; then the former ones still count.
    fn config(&self) -> Arc<ClientConfig> {
        let Files { cacert, cert, .. } = &self.files;
        let is_named = !cacert.is_empty() || !cert.is_empty();
        let read = is_named.then(|| self.files.read().ok()).flatten();
        read.map_or_else(|| Arc::clone(&self.config), Arc::new)
    }

    /// An encrypted connection to a server that has proved to be the one.
    pub(crate) async fn connect(
        &self,
        host: &Host,
        runtime: &RuntimeHandle,
    ) -> Result<TlsStream<TcpStream>> {
        let stream = tcp::connect(&host.name, host.port, runtime).await;
        let stream = stream.map_err(|error| hosts::absent(host, &error.to_string()))?;
        self.secure(stream, &host.name, host.port).await
    }

    /// The same over a connection that is there.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        name: &str,
        port: u16,
    ) -> Result<TlsStream<TcpStream>> {
        let proven = if self.name.is_empty() { name } else { &self.name };
        let server = ServerName::try_from(proven.to_owned())
            .map_err(|_| Error::invalid("url", "the host is neither a name nor an address"))?;
        let connector = TlsConnector::from(self.config());
        connector.connect(server, stream).await.map_err(|error| {
            let server = Host { name: name.to_owned(), port }.to_string();
            unproven(&server, &error).unwrap_or_else(|| {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                let message = match inner {
                    Some(rustls::Error::AlertReceived(_)) => {
                        "the server does not speak TLS with us; does it ask for a certificate of ours (`cert`, `key`)?"
                    }
                    _ => "the server does not speak TLS with us",
                };
                Error::new(Code::Unavailable, message)
                    .with("server", server)
                    .with("reason", error.to_string())
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

impl Files {
    fn read(&self) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = authorities(&self.cacert)?;
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::internal("TLS has no protocol version").with_source(error))?;
        let config = if self.any_name {
            let verifier = Arc::new(AnyName { roots, provider });
            config.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            config.with_root_certificates(roots)
        };
        let mut config = match (&*self.cert, &*self.key) {
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
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(config)
    }
}

/// Believes a server for which a trusted authority vouches, under whatever name (`verify-ca`).
#[derive(Debug)]
struct AnyName {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let (cert, known) = (ParsedCertificate::try_from(end_entity)?, &self.provider);
        let algorithms = known.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &cert,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Says that a server has not proved to be the one, if that is what went wrong.
pub(crate) fn unproven(server: &str, error: &std::io::Error) -> Option<Error> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else { return None };
    let message = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired; renew it there, or correct the clock of this machine"
        }
        _ if format!("{why:?}").contains("CaUsedAsEndEntity") => {
            "the server's certificate is that of an authority (`CA:TRUE`), which is no server's; make one with `CA:FALSE`, and name it or its authority by `cacert`"
        }
        _ => {
            "the server's certificate does not prove that it is this host (it is checked with `sslmode=require` too); name its authority by `cacert`, or the name it was made for by `tls_name`"
        }
    };
    let explained = Error::new(Code::Unavailable, message).with("server", server);
    Some(explained.with("reason", error.to_string()).with_retryable(false))
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
    // Not beside the system's: whoever names an authority trusts no other.
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
