//! How a server proves who it is, and we who we are: what the other stores ask of TLS, for a client that reads the files itself.

use mysql_async::SslOpts;

use crate::driver::tls::Tls;
use crate::error::Result;
use crate::options::Options;

/// Refuses files that cannot be used, and says what connections need of them.
#[cfg(feature = "tls")]
pub(super) fn proof(options: &Options) -> Result<SslOpts> {
    use std::path::PathBuf;

    use mysql_async::ClientIdentity;
    use rustls::crypto::{CryptoProvider, ring};

    use crate::error::{Code, Error};
    use crate::options::SslMode;

    if options.sslmode == SslMode::VerifyCa {
        // Its own switch for this looks for words that rustls does not write any more.
        let message = "the driver of MySQL checks the name in the server's certificate too; give that by `tls_name`, with `sslmode=verify-full`";
        return Err(Error::new(Code::Unsupported, message));
    }
    Tls::new(options)?;
    // The client takes the one of the whole process, and would fail where two could be meant.
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster: then that one counts.
        let _ = ring::default_provider().install_default();
    }
    let roots = match &*options.cacert {
        "" => Tls::known_authorities().into_iter().map(|der| der.to_vec().into()).collect(),
        file => vec![PathBuf::from(file).into()],
    };
    let identity = (!options.cert.is_empty()).then(|| {
        ClientIdentity::new(PathBuf::from(&options.cert).into(), PathBuf::from(&options.key).into())
    });
    let proof = SslOpts::default()
        .with_disable_built_in_roots(true)
        .with_root_certs(roots)
        .with_client_identity(identity);
    let name = (!options.tls_name.is_empty()).then(|| options.tls_name.clone());
    Ok(proof.with_danger_tls_hostname_override(name))
}

#[cfg(not(feature = "tls"))]
pub(super) fn proof(options: &Options) -> Result<SslOpts> {
    Tls::new(options).map(|tls| match tls {})
}
