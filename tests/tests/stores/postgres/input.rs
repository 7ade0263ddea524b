//! The demands on a PostgreSQL database, each reported with a code and what to do; rights, passwords and TLS.

use std::path::Path;

use fencelock::{Client, Code, Error};
use fencelock_tests::chosen_table;
use fencelock_tests::database::{
    DatabaseServer, a_password_that_becomes_wrong_costs_no_hold, an_expired_certificate_is_told,
    another_name_is_said, holds, refused,
};
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::servers::Authority;

async fn connect(url: impl AsRef<str>) -> Result<Client, Error> {
    fencelock::connect(url.as_ref()).await
}

/// Locks in two schemas of one database are not the same, and their names are quoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_can_be_chosen() {
    let server = PostgresServer::start();
    server.sql(r#"CREATE SCHEMA "My ""Locks"; CREATE SCHEMA other"#);
    let mine = format!("{}?create=true&schema=My+%22Locks", server.url("postgres"));
    let by_session =
        ["postgres+advisory", "postgres+row"].map(|scheme| mine.replacen("postgres", scheme, 1));
    for url in [mine].into_iter().chain(by_session) {
        let one = connect(&url).await.expect("the tables are made there");
        let two = connect(&url.replace("My+%22Locks", "other")).await.expect("and there");
        let _guard = one.lock("x").acquire().await.unwrap();
        assert!(!holds(&connect(&url).await.unwrap(), "x").await, "{url}");
        let apart = !url.contains("advisory");
        assert_eq!(holds(&two, "x").await, apart, "advisory locks are those of a database: {url}");
    }
    assert_eq!(server.sql(r#"SELECT count(*) FROM "My ""Locks".fencelock"#), "1");
    assert_eq!(server.sql("SELECT to_regclass('public.fencelock') IS NULL"), "t");
    let none = format!("{}?schema=none", server.url("postgres"));
    assert_eq!(refused(&none).await.0, Code::Unsupported);
    let (code, error) = refused(&format!("{none}&create=true")).await;
    assert!(code == Code::Invalid && error.message().contains("CREATE SCHEMA"), "{error}");
    let (code, error) = refused(&format!("{none}{}", "e".repeat(64))).await;
    assert_eq!((code, &*error.fields()["argument"]), (Code::Invalid, "schema"), "{error}");
}

/// Tables of another name have other locks. A name may be a word of SQL's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_can_be_chosen() {
    let server = PostgresServer::start();
    let ways = ["postgres", "postgres+advisory", "postgres+row"];
    chosen_table::has_locks_of_its_own(&server, &server.url("postgres"), ways).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_database_is_told() {
    let server = PostgresServer::start();
    let port = server.port();
    for (query, argument) in [
        ("durability=often", "durability"),
        ("sslmode=no-verify", "sslmode"),
        ("cacert=x", "cacert"),
        ("target_session_attrs=standby", "target_session_attrs"),
    ] {
        let (code, error) = refused(&format!("{}?{query}", server.url("postgres"))).await;
        assert_eq!((code, &*error.fields()["argument"]), (Code::Invalid, argument), "{error}");
    }
    // What means nothing there, or cannot be kept.
    for (url, argument) in [
        ("memory:?table=mine", "table"),
        ("sqlite:locks.db?table=mine", "table"),
        ("mysql://me@127.0.0.1:1/x?schema=mine", "schema"),
        ("postgres+advisory://me@127.0.0.1:1/x?durability=relaxed", "durability"),
        ("postgres+row://me@127.0.0.1:1/x?ttl=25d", "ttl"),
    ] {
        let (code, error) = refused(url).await;
        assert_eq!((code, &*error.fields()["argument"]), (Code::Invalid, argument), "{error}");
    }
    let (code, error) = refused("postgres://me:hunter2@127.0.0.1:1,127.0.0.1:2/x").await;
    assert_eq!(code, Code::Unavailable, "{error}");
    let (code, error) = refused("postgres://me:hunter2@127.0.0.1").await;
    assert_eq!(code, Code::Invalid, "{error}");
    let (code, error) = refused(&format!("postgres://postgres@127.0.0.1:{port}/none")).await;
    assert_eq!(code, Code::Invalid, "{error}");
    let (code, error) = refused(&format!("postgres://nobody@127.0.0.1:{port}/postgres")).await;
    assert_eq!(code, Code::Auth, "{error}");

    server.sql("CREATE ROLE poor LOGIN");
    let (code, error) = refused(&server.url("poor")).await;
    assert_eq!(code, Code::Unsupported, "{error}");
    assert!(error.message().contains("fencelock sql schema"), "{error}");
    let (code, error) = refused(&format!("{}?create=true", server.url("poor"))).await;
    assert_eq!(code, Code::Auth, "it may not make the tables: {error}");

    // What is printed makes the tables, any number of times.
    server.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
    server.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
    let client = connect(server.url("poor")).await.expect("it may look at what there is");
    let error = client.lock("x").try_acquire().await.expect_err("it may not write");
    assert_eq!(error.code(), Code::Auth, "{error}");
    assert!(error.message().contains("grant"), "{error}");
    server.sql(
        "GRANT SELECT, INSERT, UPDATE ON fencelock TO poor;
         GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_cell TO poor",
    );
    assert!(holds(&client, "x").await, "the same client goes on");
    let version = client.version("v");
    version
        .update(|value: Option<u32>| Some(value.unwrap_or_default() + 1))
        .await
        .expect("cells work too");

    server.sql("ALTER ROLE poor SET default_transaction_read_only = on");
    let (code, error) = refused(&server.url("poor")).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("read-only"), "{error}");
}

/// Tables of another shape, and rows somebody else has written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fencelock_did_not_write_is_left_alone() {
    let server = PostgresServer::start();
    let url = server.place("shapes");
    for (number, (change, column)) in [
        ("ALTER TABLE fencelock ALTER waiting TYPE bigint", "fencelock.waiting"),
        ("ALTER TABLE fencelock_cell ALTER since TYPE integer", "fencelock_cell.since"),
        ("ALTER TABLE fencelock DROP COLUMN rest", "rest"),
        ("DROP TABLE fencelock; CREATE VIEW fencelock AS SELECT 1 AS name", "version"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("shape{number}");
        drop(connect(server.place(&name)).await.expect("the tables are made"));
        server.sql(&format!("SET search_path = {name}; {change}"));
        let (code, error) = refused(&server.url(&name)).await;
        assert_eq!(code, Code::Conflict, "{change}: {error}");
        assert!(format!("{:?}", error.fields()).contains(column), "{change}: {error}");
    }
    // A key that is missing shows where it is needed.
    let client = connect(server.place("keyless")).await.unwrap();
    server.sql("ALTER TABLE keyless.fencelock DROP CONSTRAINT fencelock_pkey");
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict, "{error}");
    let client = connect(&url).await.unwrap();
    assert!(holds(&client, "good").await && holds(&client, "bad").await);
    server.sql("UPDATE shapes.fencelock SET rest = '{\"what\":1}' WHERE name = 'bad'");
    let error = client.lock("bad").try_acquire().await.expect_err("the row is none of ours");
    assert_eq!((error.code(), &*error.fields()["column"]), (Code::Conflict, "rest"), "{error}");
    assert!(holds(&client, "good").await, "others are not concerned");
}

/// B84: a name as long as names may be, and one with all that is hard to quote, are locks of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b84_long_and_odd_names_are_locks() {
    let server = PostgresServer::start();
    let url = server.place("names");
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let long = "é".repeat(256);
    let almost = format!("{}e", "é".repeat(255));
    for name in [&*long, &almost, "a'b\"c\\d%_$1;--", "\u{1F512}"] {
        let guard = one.lock(name).acquire().await.expect("it is a name");
        assert!(!holds(&two, name).await, "{name}");
        guard.release().await.check().unwrap();
    }
    let names = one.names("a'b").await.unwrap();
    assert_eq!(names, ["a'b\"c\\d%_$1;--"]);
    let error = one.lock(&format!("{long}x")).try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_and_socket_files_work() {
    let server = PostgresServer::start();
    let made = server.place("secret");
    let port = server.port();
    let (code, error) = refused(&made).await;
    assert_eq!(code, Code::Auth, "{error}");
    let (code, error) =
        refused(&format!("postgres://secret:hunter3@127.0.0.1:{port}/postgres")).await;
    assert_eq!(code, Code::Auth, "{error}");
    let url = format!("postgres://secret:hunter2@127.0.0.1:{port}/postgres?create=true");
    let client = connect(&url).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    assert!(!format!("{client:?} {guard:?}").contains("hunter"));
    let folder = server.socket_folder().display().to_string().replace('/', "%2F");
    let other = connect(format!("postgresql://secret@{folder}:{port}/postgres")).await.unwrap();
    assert!(!holds(&other, "x").await, "it is the same database");
    guard.release().await.check().unwrap();
    a_password_that_becomes_wrong_costs_no_hold(&url, |password| {
        server.sql(&format!("ALTER ROLE secret PASSWORD '{password}'"));
        server.end_connections("secret");
    })
    .await;
}

/// The server has to prove that it is the host of the URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_verified() {
    let authority = Authority::default();
    let plain = PostgresServer::start();
    let (code, error) = refused(&format!("{}&sslmode=verify-full", plain.place("clear"))).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("sslmode=disable") && !error.retryable(), "{error}");

    let file = |name: &str| authority.path(name);
    let server = PostgresServer::start_with_tls(
        Path::new(&file("server.pem")),
        Path::new(&file("server.key")),
        Path::new(&file("ca.pem")),
    );
    let port = server.port();
    drop(connect(server.place("tls")).await.unwrap());
    let url = |host: &str, query: &str| format!("postgres://tls@{host}:{port}/postgres?{query}");
    let (code, error) = refused(&url("localhost", "sslmode=verify-full")).await;
    assert_eq!(code, Code::Unavailable, "the system does not know the authority: {error}");
    assert!(!error.retryable(), "{error}");
    let query = format!("sslmode=verify-full&cacert={}", file("ca.pem"));
    let client = connect(url("localhost", &query)).await.unwrap();
    assert!(holds(&client, "x").await);
    assert_eq!(server.sql("SELECT count(*) > 0 FROM pg_stat_ssl WHERE ssl"), "t");
    let stranger = Authority::default();
    let query = format!("sslmode=verify-full&cacert={}", stranger.path("ca.pem"));
    let (code, error) = refused(&url("localhost", &query)).await;
    assert_eq!(code, Code::Unavailable, "{error}");
    assert!(error.message().contains("cacert"), "{error}");
    another_name_is_said(&url, &authority).await;
    let former = Authority::until(2020, &["localhost"]);
    let old = PostgresServer::start_with_tls(
        &former.file("server.pem"),
        &former.file("server.key"),
        &former.file("ca.pem"),
    );
    let cacert = former.path("ca.pem");
    let place = format!("postgres://tls@localhost:{}/postgres", old.port());
    an_expired_certificate_is_told(&format!("{place}?sslmode=require&cacert={cacert}")).await;
    // Any name, but not any authority.
    let any = |authority: &Authority| {
        url(
            "127.0.0.1",
            &format!("sslmode=verify-ca&tls_name=b&cacert={}", authority.path("ca.pem")),
        )
    };
    assert!(holds(&connect(any(&authority)).await.unwrap(), "x").await);
    assert_eq!(refused(&any(&stranger)).await.0, Code::Unavailable);

    // One who has to show a certificate.
    let certified = |more: &str| {
        let query = format!("create=true&sslmode=verify-full&cacert={}{more}", file("ca.pem"));
        url("localhost", &query).replacen("tls@", "certified@", 1)
    };
    server.place("certified");
    let (code, error) = refused(&certified("")).await;
    assert_eq!(code, Code::Auth, "{error}");
    let shown = format!("&cert={}&key={}", file("client.pem"), file("client.key"));
    assert!(holds(&connect(certified(&shown)).await.unwrap(), "x").await);
}
