//! The operations of a test on a database server of any kind.

use std::future::Future;
use std::time::Duration;

use fencelock::{Client, Code, Error};

use crate::servers::Authority;

/// A server of a test's own, on which each user has a place with the tables.
pub trait DatabaseServer: Sized + Sync {
    /// A connection that keeps a row locked.
    type Kept;

    /// Starts a server.
    fn start() -> Self;

    /// The port on 127.0.0.1.
    fn port(&self) -> u16;

    /// Where this user's locks lie, on the server or the proxy of this port.
    fn url_at(port: u16, user: &str) -> String;

    /// A user of this name with a place of its own, in which the tables are made; its URL.
    fn place(&self, user: &str) -> String;

    /// Runs statements as the server's owner; what they print, one line for each row.
    fn sql(&self, statements: &str) -> String;

    /// Ends the server at once, as `kill -9` does.
    fn kill_hard(&mut self);

    /// Starts it again on its port, with its data.
    fn start_again(&mut self);

    /// How many connections this user has.
    fn connections(&self, user: &str) -> usize;

    /// Ends all connections of a user.
    fn end_connections(&self, user: &str);

    /// How many transactions of this user are open.
    fn open_transactions(&self, user: &str) -> usize;

    /// Sessions of this user that begin from now on have this isolation level.
    fn set_isolation(&self, user: &str, level: &str);

    /// Keeps the row of a lock locked, as somebody else.
    fn keep_row(&self, user: &str, name: &str) -> impl Future<Output = Self::Kept> + Send;

    /// Ends that.
    fn let_go(kept: Self::Kept) -> impl Future<Output = ()> + Send;
}

/// A client.
pub async fn connect(url: &str) -> Client {
    fencelock::connect(url).await.expect("the server takes connections")
}

/// How connecting fails: the code, and an error in which no password stands.
pub async fn refused(url: &str) -> (Code, Error) {
    let error = fencelock::connect(url).await.expect_err("it is refused");
    let shown = format!("{error} {error:?} {error:#?}");
    assert!(!shown.contains("hunter"), "{shown}");
    (error.code(), error)
}

/// A host that takes connections and answers nothing does not keep the next one from being used. `url` has one host of this port.
pub async fn a_silent_host_is_passed_over(url: &str, port: u16) {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let first = silent.local_addr().expect("it has a port").port();
    let (one, two) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{first},127.0.0.1:{port}"));
    let both = url.replacen(&one, &two, 1);
    assert_ne!(url, both);
    let client = Client::builder().option("connect_timeout", "4s").connect(&both).await;
    let client = client.expect("the second host answers");
    assert!(holds(&client, "beside a silent host").await);
}

/// U23: the name that a certificate must have can be another than the host's. `url` makes one of a host and a query; the server's certificate is for
/// `localhost`.
pub async fn another_name_is_said(url: &impl Fn(&str, &str) -> String, authority: &Authority) {
    let place = |name: &str| {
        let cacert = authority.path("ca.pem");
        url("127.0.0.1", &format!("sslmode=require&cacert={cacert}&tls_name={name}"))
    };
    let client = fencelock::connect(&place("localhost")).await.unwrap();
    assert!(holds(&client, "named").await);
    let (code, error) = refused(&place("db.internal")).await;
    assert!(code == Code::Unavailable && !error.retryable(), "{error}");
    assert!(error.message().contains("tls_name"), "{error}");
}

/// How a server is refused whose certificate has expired.
pub async fn an_expired_certificate_is_told(url: &str) {
    let (code, error) = refused(url).await;
    assert!(code == Code::Unavailable && !error.retryable(), "{error}");
    assert!(error.message().contains("has expired"), "{error}");
}

/// A password becomes wrong while a lock is held: that is told, and when it is right again, the hold is still there. `alter` sets the password
/// and ends all connections; the URL has the password `hunter2`.
pub async fn a_password_that_becomes_wrong_costs_no_hold(url: &str, alter: impl Fn(&str)) {
    let client = connect(url).await;
    let guard = client.lock("x").acquire().await.expect("nobody has it");
    alter("hunter5");
    for _ in 0..2 {
        let error = client.lock("y").try_acquire().await.expect_err("nobody is let in");
        assert_eq!(error.code(), Code::Auth, "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
    }
    alter("hunter2");
    assert!(holds(&client, "y").await);
    guard.extend(Duration::from_secs(30)).await.expect("it is the same hold");
    guard.release().await.check().expect("it is released");
}

/// Whether the lock could be taken. It is released.
pub async fn holds(client: &Client, name: &str) -> bool {
    let guard = client.lock(name).try_acquire().await.expect("it answers");
    let held = guard.is_some();
    if let Some(guard) = guard {
        guard.release().await.check().expect("it is released");
    }
    held
}
