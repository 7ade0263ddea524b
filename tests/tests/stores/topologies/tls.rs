//! Redis over TLS: who the server is has to be proved, by the system's authorities or by our own.

use std::time::Duration;

use fencelock::Code;
use fencelock_tests::servers::Authority;

async fn code(url: &str) -> (Code, String) {
    let builder = fencelock::Client::builder().option("connect_timeout", "2s");
    match builder.connect(url).await {
        Ok(_) => panic!("{url} is refused"),
        Err(error) => (error.code(), error.to_string()),
    }
}

#[tokio::test]
async fn a_server_with_our_own_authority_gives_locks() {
    let authority = Authority::default();
    let (server, port) = authority.server(false);
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("rediss://{host}:{port}?cacert={}", authority.path("ca.pem"));
        let (a, b) =
            (fencelock::connect(&url).await.unwrap(), fencelock::connect(&url).await.unwrap());
        let held = a.lock("orders").acquire().await.unwrap();
        let waiting = tokio::spawn(async move { b.lock("orders").acquire().await });
        while a.lock("orders").inspect().await.unwrap().waiters.is_empty() {
            tokio::task::yield_now().await;
        }
        held.release().await.check().unwrap();
        let next = waiting.await.unwrap().unwrap();
        next.release().await.check().unwrap();
        a.close().await;
    }
    // The same server in the clear, and the same locks.
    fencelock::connect(server.url().as_str()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_prove_itself_is_refused() {
    let authority = Authority::default();
    let (server, port) = authority.server(false);
    let stranger = Authority::default();
    let ca = |authority: &Authority| authority.path("ca.pem");
    for (url, says) in [
        (format!("rediss://localhost:{port}"), "certificate"),
        (format!("rediss://localhost:{port}?cacert={}", ca(&stranger)), "certificate"),
    ] {
        let (code, text) = code(&url).await;
        assert_eq!(code, Code::Unavailable, "{text}");
        assert!(text.contains(says), "{text}");
    }
    let elsewhere = Authority::new(&["elsewhere.example"]);
    let (_other, other) = elsewhere.server(false);
    let (refused, text) =
        code(&format!("rediss://localhost:{other}?cacert={}", ca(&elsewhere))).await;
    assert_eq!(refused, Code::Unavailable, "{text}");
    assert!(text.contains("certificate"), "{text}");
    // U23: another name that is said, and any name under a trusted authority.
    let place = format!("rediss://localhost:{other}?cacert={}", ca(&elsewhere));
    for more in ["&tls_name=elsewhere.example", "&sslmode=verify-ca"] {
        fencelock::connect(&format!("{place}{more}")).await.unwrap();
    }
    let before = Authority::until(2020, &["localhost"]);
    let (_former, former) = before.server(false);
    let (refused, text) =
        code(&format!("rediss://localhost:{former}?cacert={}", ca(&before))).await;
    assert!(refused == Code::Unavailable && text.contains("has expired"), "{text}");
    // One speaks TLS and the other does not.
    let plain = server.port();
    let (refused, text) =
        code(&format!("rediss://localhost:{plain}?cacert={}", ca(&authority))).await;
    assert_eq!(refused, Code::Unavailable, "{text}");
    assert_eq!(code(&format!("redis://localhost:{port}")).await.0, Code::Unavailable);
}

#[tokio::test]
async fn files_that_are_no_certificates_are_named() {
    let authority = Authority::default();
    let empty = authority.path("none.pem");
    std::fs::write(&empty, "").unwrap();
    let key = authority.path("client.key");
    for (option, url) in [
        ("cacert", format!("rediss://localhost?cacert={empty}")),
        ("cacert", "rediss://localhost?cacert=/nowhere.pem".to_owned()),
        ("cert", format!("rediss://localhost?cert={empty}&key={key}")),
        ("key", format!("rediss://localhost?cert={}&key={empty}", authority.path("client.pem"))),
        ("cert", format!("rediss://localhost?cert={}&key={key}", authority.path("server.pem"))),
    ] {
        let (code, text) = code(&url).await;
        assert_eq!(code, Code::Invalid, "{text}");
        assert!(text.contains(&format!("argument: {option}")), "{text}");
    }
}

#[tokio::test]
async fn a_server_may_ask_who_we_are() {
    let authority = Authority::default();
    let (_server, port) = authority.server(true);
    let url = format!("rediss://localhost:{port}?cacert={}", authority.path("ca.pem"));
    let (refused, text) = code(&url).await;
    assert_eq!(refused, Code::Auth, "{text}");
    assert!(text.contains("`cert`"), "{text}");
    let (cert, key) = (authority.path("client.pem"), authority.path("client.key"));
    let client = fencelock::connect(&format!("{url}&cert={cert}&key={key}")).await.unwrap();
    let guard = client.lock("orders").try_acquire().await.unwrap().expect("it is free");
    guard.release().await.check().unwrap();
}

/// Every node has to prove itself, and a majority that cannot gives no locks.
#[tokio::test]
async fn the_nodes_of_a_quorum_are_spoken_to_over_tls() {
    let authority = Authority::default();
    let servers: Vec<_> = (0..3).map(|_| authority.server(false)).collect();
    let places: Vec<_> = servers.iter().map(|(_, port)| format!("localhost:{port}")).collect();
    let options = format!("cacert={}&ttl=500ms&max_ttl=600ms", authority.path("ca.pem"));
    let url = format!("rediss+redlock://{}?{options}", places.join(","));
    let client = fencelock::connect(&url).await.unwrap();
    let guard = client.lock("orders").acquire_within(Duration::from_secs(10)).await.unwrap();
    for (server, _) in &servers {
        // A connection says at which of the server's addresses it came in; the one that asks came in the clear.
        let listed = server.ask::<String>(&["CLIENT", "LIST"]);
        let mut ours = listed.lines().filter(|line| !line.contains("cmd=client|list")).peekable();
        let clear = format!("laddr=127.0.0.1:{} ", server.port());
        assert!(ours.peek().is_some() && ours.all(|line| !line.contains(&clear)), "{listed}");
    }
    guard.release().await.check().unwrap();
    client.close().await;
    let stranger = Authority::default();
    let url = format!("rediss+redlock://{}?cacert={}", places.join(","), stranger.path("ca.pem"));
    let (refused, text) = code(&url).await;
    assert_eq!(refused, Code::Unavailable, "{text}");
    assert!(text.contains("certificate"), "{text}");
}

/// A URL that names certificates asks for encryption.
#[tokio::test]
async fn certificates_without_tls_are_refused() {
    let authority = Authority::default();
    let (server, _) = authority.server(false);
    let here = format!("127.0.0.1:{}", server.port());
    for (scheme, url) in [
        ("redis", format!("redis://{here}?cacert=")),
        ("redis+sentinel", format!("redis+sentinel://{here}/main?key=")),
        ("redis+cluster", format!("redis+cluster://{here}?cert=")),
        ("redlock", format!("redlock://{here},localhost:1,localhost:2?cacert=")),
        ("memory", "memory:tls?cacert=".to_owned()),
        ("sqlite", "sqlite:nowhere/tls.db?cacert=".to_owned()),
    ] {
        let (code, text) = code(&format!("{url}{}", authority.path("ca.pem"))).await;
        assert_eq!(code, Code::Invalid, "{text}");
        assert!(text.contains(&format!("`{scheme}` has no TLS")), "{text}");
    }
}

/// The program's own choice of a provider stays its own.
#[tokio::test]
async fn no_provider_is_installed_for_the_process() {
    let authority = Authority::default();
    let (_server, port) = authority.server(false);
    let url = format!("rediss://localhost:{port}?cacert={}", authority.path("ca.pem"));
    fencelock::connect(&url).await.unwrap();
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}
