//! ZooKeeper over TLS: whom the client believes, and who it says it is.

use std::time::Duration;

use fencelock::{Client, Code, Error};
use fencelock_tests::database::an_expired_certificate_is_told;
use fencelock_tests::proxy::Proxy;
use fencelock_tests::servers::Authority;
use fencelock_tests::session_store::{PATIENCE, waiting};
use fencelock_tests::zookeeper::ZookeeperServer;
use fencelock_tests::zookeeper_ensemble::ZookeeperEnsemble;

/// A server with TLS, the port for that, and what a client believes.
fn secure(
    authority: &Authority,
    settings: &str,
) -> (ZookeeperServer, u16, [(&'static str, String); 1]) {
    let (server, port) = ZookeeperServer::start_secure(authority, settings);
    (server, port, [("cacert", authority.path("ca.pem"))])
}

async fn connect(url: &str, options: &[(&str, String)]) -> Result<Client, Error> {
    let builder = options
        .iter()
        .fold(Client::builder(), |builder, (name, value)| builder.option(name, value.clone()));
    builder.connect(url).await
}

/// Java is slow with its first handshakes, and a fifth of a session is what a member has for one.
const PATIENTLY: &str = "ttl=60s&connect_timeout=30s";

fn url(port: u16) -> String {
    format!("zookeepers://127.0.0.1:{port}/p?{PATIENTLY}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_proves_who_it_is() {
    let (authority, other) = (Authority::default(), Authority::default());
    let (server, port, known) = secure(&authority, "");
    let client = connect(&url(port), &known).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    assert_eq!(server.entries("/p/x").await.len(), 1);
    guard.release().await.check().unwrap();
    for (refused, options) in [
        (connect(&url(port), &[("cacert", other.path("ca.pem"))]).await, "another authority"),
        (connect(&url(port), &[]).await, "the system's authorities"),
        (
            connect(&format!("zookeepers://[::ffff:127.0.0.1]:{port}?{PATIENTLY}"), &known).await,
            "another name",
        ),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(
            (error.code(), error.retryable()),
            (Code::Unavailable, false),
            "{options}: {error}"
        );
        assert!(error.to_string().contains("cacert"), "{options}: {error}");
        assert!(error.fields()["server"].ends_with(&format!(":{port}")), "{error:?}");
    }
    let former = Authority::until(2020, &["127.0.0.1"]);
    let (_old, port, _) = secure(&former, "");
    let url = format!("{}&cacert={}", url(port), former.path("ca.pem"));
    an_expired_certificate_is_told(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_speaks_tls_where_the_other_does_not_is_told() {
    let authority = Authority::default();
    let (server, port, known) = secure(&authority, "");
    let error = connect(&url(server.port()), &known).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.message().contains("does not speak TLS"), "{error}");
    let error = connect(&format!("zookeeper://127.0.0.1:{port}"), &[]).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.message().contains("zookeepers://"), "{error}");
    let error = connect("zookeepers://127.0.0.1:1", &known).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert_eq!(error.fields()["server"], "127.0.0.1:1", "the member is told, not our own port");
}

/// In TLS 1.2 a server refuses a client within the handshake, in TLS 1.3 behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_proves_who_it_is() {
    let authority = Authority::default();
    // ZooKeeper knows by itself the ciphers of TLS 1.2 only.
    let newer = "ssl.protocol=TLSv1.3\nssl.ciphersuites=TLS_AES_128_GCM_SHA256\n";
    for (version, settings) in [("TLS 1.2", ""), ("TLS 1.3", newer)] {
        let settings = format!("ssl.clientAuth=need\n{settings}");
        let (_server, port, [ca]) = secure(&authority, &settings);
        let own = |file| authority.path(file);
        let known = [ca.clone(), ("cert", own("client.pem")), ("key", own("client.key"))];
        let client = connect(&url(port), &known).await.unwrap();
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
        let error = connect(&url(port), &[ca]).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{version}: {error}");
        assert!(error.message().contains("`cert`"), "{version}: {error:?}");
    }
}

/// A user and a password go to the member behind the login that stays here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_nodes_of_its_own() {
    let authority = Authority::default();
    let (_server, port, known) = secure(&authority, "");
    let as_user = |user: &str| format!("zookeepers://{user}@127.0.0.1:{port}/p?{PATIENTLY}");
    let (mine, theirs) = (as_user("me:hunter2"), as_user("you:hunter3"));
    let (mine, theirs) =
        (connect(&mine, &known).await.unwrap(), connect(&theirs, &known).await.unwrap());
    let _guard = mine.lock("x").acquire().await.unwrap();
    let error = theirs.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Auth, "{error}");
}

/// A session goes on over another connection: after a cut in the middle of an answer, and on a server that has started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_outlives_its_connection() {
    let authority = Authority::default();
    let (mut server, port, known) = secure(&authority, "");
    let proxy = Proxy::before(port).await;
    let url = format!("{}&timeout=5s", url(proxy.url().port().unwrap()));
    let (one, two) = (connect(&url, &known).await.unwrap(), connect(&url, &known).await.unwrap());
    let guard = one.lock("x").acquire().await.unwrap();
    for bytes in [0, 1, 30] {
        proxy.cut_after(bytes);
        let _ = one.lock("y").try_acquire().await;
        drop(one.lock("y").acquire_within(PATIENCE).await.unwrap());
    }
    let wait = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    server.kill_hard();
    assert_eq!(one.lock("z").try_acquire().await.unwrap_err().code(), Code::Unavailable);
    server.start_again();
    guard.extend(Duration::from_secs(60)).await.unwrap();
    let token = guard.token();
    guard.release().await.check().unwrap();
    assert!(wait.await.unwrap().unwrap().token() > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_with_another_member() {
    let authority = Authority::default();
    let known = [("cacert", authority.path("ca.pem"))];
    let mut set = tokio::task::block_in_place(|| ZookeeperEnsemble::start_secure(&authority));
    let url = format!("{}?{PATIENTLY}", set.secure_url("p"));
    let clients = [connect(&url, &known).await.unwrap(), connect(&url, &known).await.unwrap()];
    let guard = clients[0].lock("x").acquire().await.unwrap();
    for _ in 0..3 {
        let (at, _) = tokio::task::block_in_place(|| set.kill_leader());
        drop(clients[1].lock("y").acquire_within(PATIENCE).await.unwrap());
        tokio::task::block_in_place(|| set.rejoin(at));
    }
    guard.extend(Duration::from_secs(60)).await.unwrap();
    guard.release().await.check().unwrap();
}
