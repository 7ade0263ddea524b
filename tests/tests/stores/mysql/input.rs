//! The demands on a MySQL or MariaDB database, each reported with a code and what to do; rights, passwords and TLS.

use std::path::Path;
use std::time::Duration;

use fencelock::{Client, Code, Error};
use fencelock_servers::own::free_port;
use fencelock_tests::chosen_table;
use fencelock_tests::database::{
    DatabaseServer, a_password_that_becomes_wrong_costs_no_hold, a_silent_host_is_passed_over,
    an_expired_certificate_is_told, another_name_is_said, holds, refused,
};
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::servers::Authority;
use mysql_async::prelude::Queryable;

async fn connect(url: impl AsRef<str>) -> Result<Client, Error> {
    fencelock::connect(url.as_ref()).await
}

/// Tables of another name have other locks. A name may be a word of SQL's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_can_be_chosen() {
    let server = MysqlServer::start();
    server.sql("CREATE DATABASE own; CREATE USER own; GRANT ALL ON own.* TO own");
    let ways = ["mysql", "mysql+getlock", "mysql+row"];
    chosen_table::has_locks_of_its_own(&server, &server.url("own"), ways).await;
    for scheme in ways {
        let url = server.url("own").replacen("mysql", scheme, 1);
        a_silent_host_is_passed_over(&url, server.port()).await;
    }

    // Nothing is made beside a table that is the user's own.
    server.sql("USE own; CREATE TABLE customer (name varchar(9))");
    let (code, error) = refused(&format!("{}?create=true&table=customer", server.url("own"))).await;
    assert_eq!(code, Code::Conflict, "{error}");
    let made = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'customer%'";
    assert_eq!(server.sql(made), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_database_is_told() {
    let server = MysqlServer::start();
    let port = server.port();
    drop(connect(server.place("made")).await.unwrap());
    for (query, argument) in [
        ("durability=often", "durability"),
        ("durability=relaxed", "durability"),
        ("sslmode=no-verify", "sslmode"),
        ("cacert=x", "cacert"),
    ] {
        let (code, error) = refused(&format!("{}?{query}", server.url("made"))).await;
        assert_eq!((code, &*error.fields()["argument"]), (Code::Invalid, argument), "{error}");
    }
    let (code, error) = refused("mysql://me:hunter2@127.0.0.1:1,127.0.0.1:2/x").await;
    assert_eq!(code, Code::Unavailable, "{error}");
    let (code, error) = refused("mysql://me:hunter2@127.0.0.1").await;
    assert_eq!(code, Code::Invalid, "{error}");
    let (code, error) = refused(&format!("mysql://nobody@127.0.0.1:{port}/made")).await;
    assert_eq!(code, Code::Auth, "{error}");
    server.sql("CREATE USER mighty; GRANT ALL ON *.* TO mighty");
    let (code, error) = refused(&format!("mysql://mighty@127.0.0.1:{port}/none")).await;
    assert_eq!(code, Code::Invalid, "{error}");

    server.sql(
        "CREATE DATABASE poor; CREATE USER poor; GRANT CREATE TEMPORARY TABLES ON poor.* TO poor",
    );
    let (code, error) = refused(&server.url("poor")).await;
    assert!(matches!(code, Code::Auth | Code::Unsupported), "{error}");
    server.sql("GRANT SELECT, INSERT, UPDATE ON poor.* TO poor");
    let (code, error) = refused(&server.url("poor")).await;
    assert_eq!(code, Code::Unsupported, "{error}");
    assert!(error.message().contains("fencelock sql schema"), "{error}");
    let (code, error) = refused(&format!("{}?create=true", server.url("poor"))).await;
    assert_eq!(code, Code::Auth, "it may not make the tables: {error}");
    server.sql("REVOKE ALL PRIVILEGES ON poor.* FROM poor; GRANT CREATE TEMPORARY TABLES ON poor.* TO poor");

    // What is printed makes the tables, any number of times.
    let schema = fencelock::driver::mysql::schema("fencelock").unwrap();
    server.sql(&format!("USE poor; {schema} {schema}"));
    server
        .sql("GRANT SELECT ON poor.fencelock TO poor; GRANT SELECT ON poor.fencelock_cell TO poor");
    let client = connect(server.url("poor")).await.expect("it may look at what there is");
    let error = client.lock("x").try_acquire().await.expect_err("it may not write");
    assert_eq!(error.code(), Code::Auth, "{error}");
    assert!(error.message().contains("grant"), "{error}");
    server.sql(
        "GRANT SELECT, INSERT, UPDATE ON poor.fencelock TO poor;
         GRANT SELECT, INSERT, UPDATE, DELETE ON poor.fencelock_cell TO poor",
    );
    let client = connect(server.url("poor")).await.expect("it has the rights");
    assert!(holds(&client, "x").await);
    let version = client.version("v");
    version
        .update(|value: Option<u32>| Some(value.unwrap_or_default() + 1))
        .await
        .expect("cells work too");

    server.sql("SET GLOBAL read_only = 1");
    let (code, error) = refused(&server.url("poor")).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("read-only"), "{error}");
    let error = client.lock("x").try_acquire().await.expect_err("it takes no writes");
    assert!(error.message().contains("read-only"), "{error}");
    server.sql("SET GLOBAL read_only = 0");
    assert!(holds(&client, "x").await, "the same client goes on");
}

/// Servers that cannot keep locks, or not now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_server_is_told() {
    for (setting, code, says) in [
        ("version=10.3.39-MariaDB", Code::Unsupported, "10.4"),
        ("sysdate-is-now", Code::Unsupported, "sysdate-is-now"),
        ("read-only", Code::Unavailable, "read-only"),
    ] {
        let server = MysqlServer::start_with(&[setting]);
        let (found, error) = refused(&server.place("a")).await;
        assert_eq!(found, code, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
    let server = MysqlServer::start();
    let url = server.place("a");
    let client = connect(&url).await.unwrap();
    server.sql("SET GLOBAL max_connections = 10");
    let opts = mysql_async::Opts::from_url(&server.url("a")).unwrap();
    let (mut taken, mut refusals) = (Vec::new(), 0);
    // A connection that was closed keeps its place for a moment.
    while refusals < 5 {
        match mysql_async::Conn::new(opts.clone()).await {
            Ok(conn) => taken.push(conn),
            Err(_) => refusals += 1,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (code, error) = refused(&url).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("max_connections"), "{error}");
    drop(taken);
    server.sql("SET GLOBAL max_connections = 100");
    assert!(holds(&client, "x").await, "the same client goes on");
    // A limit for statements: whatever ends by it has changed nothing, and is told. Rows that stay locked take longest.
    server.sql("SET GLOBAL max_statement_time = 0.2");
    let limited = connect(format!("{url}&timeout=3s")).await.unwrap();
    let mut stranger = mysql_async::Conn::new(opts).await.unwrap();
    stranger
        .query_drop("BEGIN; SELECT 1 FROM fencelock WHERE name = 'x' FOR UPDATE")
        .await
        .unwrap();
    let error = limited.lock("x").try_acquire().await.expect_err("the row is locked");
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.message().contains("max_statement_time"), "{error}");
    stranger.query_drop("COMMIT").await.unwrap();
    assert!(holds(&limited, "x").await);
}

/// A server that writes its log later keeps less; who connects is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_forget_is_told() {
    let server = MysqlServer::start_with(&["innodb-flush-log-at-trx-commit=2"]);
    let client = connect(server.place("a")).await.unwrap();
    let rows = client.guarantees().guarantees;
    assert!(rows.iter().any(|row| row.when.contains("writes its log later")), "{rows:?}");
    let server = MysqlServer::start();
    let client = connect(server.place("a")).await.unwrap();
    assert!(
        client.guarantees().guarantees.iter().all(|row| !row.when.contains("writes its log later"))
    );
}

/// Tables of another shape, and rows somebody else has written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fencelock_did_not_write_is_left_alone() {
    let server = MysqlServer::start();
    let url = server.place("shapes");
    for (number, (change, column)) in [
        ("ALTER TABLE fencelock MODIFY waiting bigint", "fencelock.waiting"),
        ("ALTER TABLE fencelock DROP COLUMN rest", "fencelock.rest"),
        ("ALTER TABLE fencelock_cell DROP COLUMN trail", "fencelock_cell.trail"),
        ("ALTER TABLE fencelock DROP PRIMARY KEY", "fencelock.name"),
        ("ALTER TABLE fencelock MODIFY name varchar(512)", "fencelock.name"),
        ("ALTER TABLE fencelock ENGINE=MyISAM", "fencelock.name"),
        ("DROP TABLE fencelock; CREATE VIEW fencelock AS SELECT 1 AS name", "fencelock.name"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("shape{number}");
        drop(connect(server.place(&name)).await.expect("the tables are made"));
        server.sql(&format!("USE {name}; {change}"));
        let (code, error) = refused(&server.url(&name)).await;
        assert_eq!((code, &*error.fields()["column"]), (Code::Conflict, column), "{change}");
    }
    let client = connect(&url).await.unwrap();
    assert!(holds(&client, "good").await && holds(&client, "bad").await);
    server.sql("UPDATE shapes.fencelock SET rest = '{\"what\":1}' WHERE name = 'bad'");
    let error = client.lock("bad").try_acquire().await.expect_err("the row is none of ours");
    assert_eq!((error.code(), &*error.fields()["column"]), (Code::Conflict, "rest"), "{error}");
    assert!(holds(&client, "good").await, "others are not concerned");
}

/// B84: a name as long as names may be, one with all that is hard to quote, and those that differ in little, are locks of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b84_long_and_odd_names_are_locks() {
    let server = MysqlServer::start();
    let url = server.place("names");
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let long = "é".repeat(256);
    let almost = format!("{}e", "é".repeat(255));
    let names = [&*long, &almost, "a'b\"c\\d%_$1;--", "\u{1F512}", "A", "a", "a ", "á"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(
            one.lock(name).acquire_within(Duration::from_secs(5)).await.expect("it is a name"),
        );
        assert!(!holds(&two, name).await, "{name}");
    }
    for guard in guards {
        guard.release().await.check().unwrap();
    }
    let found = one.names("a'b").await.unwrap();
    assert_eq!(found, ["a'b\"c\\d%_$1;--"]);
    assert_eq!(one.names("A").await.unwrap(), ["A"]);
    let error = one.lock(&format!("{long}x")).try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_and_socket_files_work() {
    let server = MysqlServer::start();
    let made = server.place("secret");
    server.sql("ALTER USER secret IDENTIFIED BY 'hunter2'");
    let port = server.port();
    let (code, error) = refused(&made).await;
    assert_eq!(code, Code::Auth, "{error}");
    let (code, error) = refused(&format!("mysql://secret:hunter3@127.0.0.1:{port}/secret")).await;
    assert_eq!(code, Code::Auth, "{error}");
    let url = format!("mariadb://secret:hunter2@127.0.0.1:{port}/secret?create=true");
    let client = connect(&url).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    assert!(!format!("{client:?} {guard:?}").contains("hunter"));
    let socket = server.socket().display().to_string().replace('/', "%2F");
    let other = connect(format!("mysql://secret:hunter2@{socket}/secret")).await.unwrap();
    assert!(!holds(&other, "x").await, "it is the same database");
    guard.release().await.check().unwrap();
    a_password_that_becomes_wrong_costs_no_hold(&url, |password| {
        server.sql(&format!("ALTER USER secret IDENTIFIED BY '{password}'"));
        server.end_connections("secret");
    })
    .await;
}

/// A Galera cluster takes no sequence with a cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_galera_has_tokens_too() {
    let library = "/usr/lib/galera/libgalera_smm.so";
    assert!(Path::new(library).exists(), "it comes with mariadb-server");
    let group = format!("gmcast.listen_addr=tcp://127.0.0.1:{}", free_port());
    let server = MysqlServer::start_with(&[
        "wsrep-on=1",
        &format!("wsrep-provider={library}"),
        &format!("wsrep-provider-options={group}"),
        "wsrep-cluster-address=gcomm://",
        "wsrep-new-cluster",
        "wsrep-sst-method=skip",
        "binlog-format=ROW",
        "innodb-autoinc-lock-mode=2",
    ]);
    server.sql("CREATE DATABASE own; CREATE USER own; GRANT ALL ON own.* TO own");
    for scheme in ["mysql", "mysql+getlock", "mysql+row"] {
        let url = server.url("own").replacen("mysql", scheme, 1);
        let client = connect(format!("{url}?create=true")).await.unwrap();
        let first = client.lock("x").acquire().await.unwrap();
        let token = first.token();
        first.release().await.check().unwrap();
        assert!(client.lock("x").acquire().await.unwrap().token() > token, "{scheme}");
    }
}

/// The server has to prove that it is the host of the URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_verified() {
    let authority = Authority::default();
    let plain = MysqlServer::start();
    let (code, error) = refused(&format!("{}&sslmode=verify-full", plain.place("clear"))).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("sslmode=disable") && !error.retryable(), "{error}");

    let file = |name: &str| authority.path(name);
    let server = MysqlServer::start_with_tls(
        Path::new(&file("server.pem")),
        Path::new(&file("server.key")),
        Path::new(&file("ca.pem")),
    );
    let port = server.port();
    drop(connect(server.place("tls")).await.unwrap());
    server.sql("ALTER USER tls REQUIRE SSL");
    let (code, error) = refused(&server.url("tls")).await;
    assert_eq!(code, Code::Auth, "the server wants TLS: {error}");
    let url = |host: &str, query: &str| format!("mysql://tls@{host}:{port}/tls?{query}");
    let (code, error) = refused(&url("localhost", "sslmode=verify-full")).await;
    assert_eq!(code, Code::Unavailable, "the system does not know the authority: {error}");
    assert!(!error.retryable(), "{error}");
    let query = format!("sslmode=verify-full&cacert={}", file("ca.pem"));
    let client = connect(url("localhost", &query)).await.unwrap();
    assert!(holds(&client, "x").await);
    let stranger = Authority::default();
    let query = format!("sslmode=verify-full&cacert={}", stranger.path("ca.pem"));
    let (code, error) = refused(&url("localhost", &query)).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("cacert"), "{error}");
    another_name_is_said(&url, &authority).await;
    let former = Authority::until(2020, &["localhost"]);
    let old = MysqlServer::start_with_tls(
        &former.file("server.pem"),
        &former.file("server.key"),
        &former.file("ca.pem"),
    );
    let cacert = former.path("ca.pem");
    let place = format!("mysql://tls@localhost:{}/tls", old.port());
    an_expired_certificate_is_told(&format!("{place}?sslmode=require&cacert={cacert}")).await;
    let query = format!("sslmode=verify-ca&cacert={}", file("ca.pem"));
    let (code, error) = refused(&url("localhost", &query)).await;
    assert!(code == Code::Unsupported && error.message().contains("tls_name"), "{error}");

    // One who has to show a certificate.
    server.sql("ALTER USER tls REQUIRE X509");
    let query = format!("sslmode=verify-full&cacert={}", file("ca.pem"));
    let (code, error) = refused(&url("localhost", &query)).await;
    assert_eq!(code, Code::Auth, "{error}");
    let (cert, key) = (file("client.pem"), file("client.key"));
    let client = connect(url("localhost", &format!("{query}&cert={cert}&key={key}"))).await;
    assert!(holds(&client.unwrap(), "x").await);
}

/// U13: a user of MariaDB's whose password is checked by `ed25519`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u13_a_user_by_ed25519_locks() {
    let server = MysqlServer::start();
    server.sql(
        "INSTALL SONAME 'auth_ed25519'; CREATE DATABASE modern; CREATE USER modern IDENTIFIED VIA ed25519 USING PASSWORD('hunter2');
         GRANT ALL ON modern.* TO modern",
    );
    for scheme in ["mysql", "mysql+getlock", "mysql+row"] {
        let url = server.url("modern").replacen("mysql://", &format!("{scheme}://"), 1);
        let url = url.replacen("//modern@", "//modern:hunter2@", 1) + "?create=true";
        let client = connect(&url).await.unwrap();
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
        let wrong = url.replacen("hunter2", "hunter3", 1);
        assert_eq!(refused(&wrong).await.0, Code::Auth, "{scheme}");
    }
}
