//! A throw-away certificate authority, for servers with TLS.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::redis::RedisServer;
use fencelock_servers::own::free_port;

/// An authority, and the files of one server and one client it vouches for.
pub struct Authority {
    folder: TempDir,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new(&["localhost", "127.0.0.1"])
    }
}

impl Authority {
    /// An authority whose server goes by these names.
    pub fn new(names: &[&str]) -> Self {
        Self::until(4096, names)
    }

    /// The same, of which the certificates end with this year.
    pub fn until(year: i32, names: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let key = || KeyPair::generate().expect("a key can be made");
        let params = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let mut params = CertificateParams::new(names).expect("these are names");
            params.not_after = date_time_ymd(year, 12, 31);
            params
        };
        let write = |file: &str, text: String| {
            std::fs::write(folder.path().join(file), text).expect("the folder can be written to");
        };
        let (own, mut ca) = (key(), params(&[]));
        // Certificates of one name would vouch for themselves.
        ca.distinguished_name.push(DnType::CommonName, "a throw-away authority");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        write("ca.pem", ca.self_signed(&own).expect("an authority vouches for itself").pem());
        let issuer = Issuer::new(ca, own);
        for (who, names) in [("server", names), ("client", &["clerk"])] {
            let key = key();
            let cert = params(names).signed_by(&key, &issuer).expect("it vouches for both");
            write(&format!("{who}.pem"), cert.pem());
            write(&format!("{who}.key"), key.serialize_pem());
            // Java reads both from one file.
            write(&format!("{who}.both.pem"), key.serialize_pem() + &cert.pem());
        }
        Self { folder }
    }

    /// `ca.pem`, `server.pem`, `server.key`, `client.pem` or `client.key`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file, as options name it.
    pub fn path(&self, name: &str) -> String {
        text(&self.file(name))
    }

    /// A server with a second port that speaks TLS and asks clients for certificates if `asks`; and that port.
    pub fn server(&self, asks: bool) -> (RedisServer, u16) {
        let port = free_port();
        let arguments = self.arguments(port, asks);
        let server = RedisServer::start_with(&arguments.each_ref().map(|word| &**word));
        (server, port)
    }

    /// The settings that make a `ZooKeeper` speak TLS on a port too.
    pub fn settings(&self, port: u16) -> String {
        let (own, ca) = (self.path("server.both.pem"), self.path("ca.pem"));
        format!(
            "secureClientPort={port}\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.location={own}\nssl.trustStore.location={ca}\nssl.clientAuth=none\n"
        )
    }

    /// The arguments with which a server speaks TLS on a port.
    pub fn arguments(&self, port: u16, asks: bool) -> [String; 10] {
        let path = |name| text(&self.file(name));
        let asks = if asks { "yes" } else { "no" };
        [
            "--tls-port".to_owned(),
            port.to_string(),
            "--tls-cert-file".to_owned(),
            path("server.pem"),
            "--tls-key-file".to_owned(),
            path("server.key"),
            "--tls-ca-cert-file".to_owned(),
            path("ca.pem"),
            "--tls-auth-clients".to_owned(),
            asks.to_owned(),
        ]
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary folders have plain names").to_owned()
}
