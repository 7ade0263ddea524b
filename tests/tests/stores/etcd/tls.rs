//! etcd over TLS: whom the client believes, and who it says it is.

use fencelock::{Client, Code, Error};
use fencelock_tests::database::an_expired_certificate_is_told;
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::servers::Authority;

async fn connect(server: &EtcdServer, options: &[(&str, String)]) -> Result<Client, Error> {
    let builder = options
        .iter()
        .fold(Client::builder(), |builder, (name, value)| builder.option(name, value.clone()));
    builder.connect(&format!("etcds://127.0.0.1:{}/p", server.port())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_proves_who_it_is() {
    let authority = Authority::default();
    let (cert, key) = (authority.path("server.pem"), authority.path("server.key"));
    let server = EtcdServer::start_with(&["--cert-file", &cert, "--key-file", &key]);
    let client = connect(&server, &[("cacert", authority.path("ca.pem"))]).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    guard.release().await.check().unwrap();
    let other = Authority::default();
    let error = connect(&server, &[("cacert", other.path("ca.pem"))]).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), (Code::Unavailable, false), "{error}");
    let plain = fencelock::connect(server.url("p").as_str()).await.unwrap_err();
    assert_eq!(plain.code(), Code::Unavailable, "{plain}");
    let former = Authority::until(2020, &["127.0.0.1"]);
    let (cert, key) = (former.path("server.pem"), former.path("server.key"));
    let old = EtcdServer::start_with(&["--cert-file", &cert, "--key-file", &key]);
    let url = format!("etcds://127.0.0.1:{}?cacert={}", old.port(), former.path("ca.pem"));
    an_expired_certificate_is_told(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_proves_who_it_is() {
    let authority = Authority::default();
    let path = |name| authority.path(name);
    let (cert, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let server = EtcdServer::start_with(&[
        "--cert-file",
        &cert,
        "--key-file",
        &key,
        "--client-cert-auth",
        "--trusted-ca-file",
        &ca,
    ]);
    let known = [("cacert", ca), ("cert", path("client.pem")), ("key", path("client.key"))];
    let client = connect(&server, &known).await.unwrap();
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let error = connect(&server, &known[..1]).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}
