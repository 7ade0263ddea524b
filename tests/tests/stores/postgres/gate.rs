//! The gate in tables of a PostgreSQL database: a write by an older token is refused by the write itself.

use std::time::Duration;

use fencelock::driver::postgres::gate_trigger;
use fencelock_tests::postgres::PostgresServer;
use tokio_postgres::{Client, Error, NoTls};

const SHELF: &str = "CREATE TABLE shelf (item text PRIMARY KEY, stock bigint, fence bigint);
    INSERT INTO shelf VALUES ('lamp', 1000, NULL)";

async fn session(server: &PostgresServer, user: &str) -> Client {
    let connected = tokio_postgres::connect(&server.url(user), NoTls).await;
    let (client, connection) = connected.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

async fn sell(shelf: &Client, token: i64) -> Result<u64, Error> {
    let sql = "UPDATE shelf SET stock = stock - 1, fence = $1 WHERE item = 'lamp'";
    shelf.execute(sql, &[&token]).await
}

fn assert_refused(written: Result<u64, Error>) {
    let error = written.expect_err("an older token is refused");
    let said = error.as_db_error().expect("the server says so");
    assert_eq!(said.code().code(), "23514", "{error}");
    assert!(said.message().starts_with("lost:"), "{error}");
    assert_eq!(said.column(), Some("fence"));
    assert!(said.detail().is_some_and(|detail| detail.contains("token")), "{error}");
}

/// A holder whose lease has ended, and who does not look at its guard, writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_holder_writes_nothing() {
    let server = PostgresServer::start();
    let url = server.place("shop");
    let shelf = session(&server, "shop").await;
    shelf.batch_execute(SHELF).await.unwrap();
    for _ in 0..2 {
        shelf.batch_execute(&gate_trigger("shelf", "fence").unwrap()).await.unwrap();
    }
    let without = shelf.execute("UPDATE shelf SET stock = 1000", &[]).await;
    assert_eq!(without.expect("nobody has written the row under a lock yet"), 1);
    let sleepy = format!("{url}&ttl=100ms&renew=false");
    let (sleepy, awake) =
        (fencelock::connect(&sleepy).await.unwrap(), fencelock::connect(&url).await.unwrap());
    for _ in 0..3 {
        let stopped = sleepy.lock("lamp").acquire().await.unwrap();
        let token = |guard: &fencelock::Guard| guard.token().get().cast_signed();
        assert_eq!(sell(&shelf, token(&stopped)).await.unwrap(), 1);
        let guard = awake.lock("lamp").acquire_within(Duration::from_secs(30)).await.unwrap();
        assert_eq!(sell(&shelf, token(&guard)).await.unwrap(), 1);
        assert_eq!(sell(&shelf, token(&guard)).await.unwrap(), 1, "one holder writes many times");
        assert_refused(sell(&shelf, token(&stopped)).await);
        guard.release().await.check().unwrap();
        let _ = stopped.release().await;
    }
    let row = shelf.query_one("SELECT stock FROM shelf", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1000 - 9, "what was refused has changed nothing");
    let without = shelf.execute("UPDATE shelf SET stock = 0, fence = NULL", &[]).await;
    assert_refused(without);
}

/// Writers at once whose tokens come in any order: the row's token never falls, and each write that was not refused counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_writers_among_many_change_nothing() {
    let server = PostgresServer::start();
    let shelf = session(&server, "postgres").await;
    shelf.batch_execute(SHELF).await.unwrap();
    // Each write is noted with the token it found and the one it left.
    shelf
        .batch_execute(
            "CREATE TABLE seen (at bigserial, before bigint, after bigint);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen (before, after) VALUES (OLD.fence, NEW.fence); RETURN NULL; END $$;
             CREATE TRIGGER note AFTER UPDATE ON shelf FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .await
        .unwrap();
    shelf.batch_execute(&gate_trigger("public.shelf", "fence").unwrap()).await.unwrap();
    let mut tasks = Vec::new();
    for holder in 0..6_i64 {
        let shelf = session(&server, "postgres").await;
        tasks.push(tokio::spawn(async move {
            let mut written = 0;
            for round in 0..60 {
                match sell(&shelf, 1 + round * 6 + holder).await {
                    Ok(rows) => written += rows,
                    refused => assert_refused(refused),
                }
            }
            written
        }));
    }
    let mut written = 0;
    for task in tasks {
        written += task.await.unwrap();
    }
    let seen = "SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM seen WHERE after < before), (SELECT stock FROM shelf)";
    let row = shelf.query_one(seen, &[]).await.unwrap();
    let [count, fallen, stock] = [0, 1, 2].map(|at| row.get::<_, i64>(at));
    assert_eq!((count, fallen), (written.cast_signed(), 0));
    assert_eq!(stock, 1000 - count);
}

/// Tables of two owners lie in one schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_owner_has_a_gate() {
    let server = PostgresServer::start();
    server.sql(
        "GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE ROLE one LOGIN; CREATE ROLE two LOGIN",
    );
    for owner in ["one", "two"] {
        let shelf = session(&server, owner).await;
        let gate = gate_trigger(owner, "fence").unwrap();
        shelf.batch_execute(&format!("CREATE TABLE {owner} (fence bigint); {gate}")).await.unwrap();
    }
}

/// No name is read as anything but a name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_taken_as_they_are() {
    let server = PostgresServer::start();
    let shelf = session(&server, "postgres").await;
    shelf.batch_execute("CREATE TABLE precious ()").await.unwrap();
    let long = "x".repeat(63);
    for name in
        ["Shelf", "a b", "a\"; DROP TABLE precious; --", "b'\\", "$fencelock$", "ä%s", &long]
    {
        for strings in ["on", "off"] {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            let make = format!(
                "SET standard_conforming_strings = {strings}; DROP SCHEMA IF EXISTS {quoted} CASCADE; CREATE SCHEMA {quoted};
                 CREATE TABLE {quoted}.{quoted} ({quoted} bigint); INSERT INTO {quoted}.{quoted} VALUES (5)"
            );
            shelf.batch_execute(&make).await.unwrap();
            let gate = gate_trigger(&format!("{name}.{name}"), name).unwrap();
            shelf.batch_execute(&gate).await.unwrap_or_else(|error| panic!("{gate}: {error:?}"));
            let write = format!("UPDATE {quoted}.{quoted} SET {quoted} = ");
            shelf.batch_execute(&format!("{write}5")).await.unwrap();
            let refused = shelf.batch_execute(&format!("{write}4")).await.unwrap_err();
            let said = refused.as_db_error().unwrap();
            assert_eq!((said.code().code(), said.column()), ("23514", Some(name)), "{refused}");
        }
    }
    shelf.batch_execute("SELECT FROM precious").await.expect("it is there");
    for bad in ["", "a\0", "a.b.c", &"a".repeat(64)] {
        assert!(gate_trigger(bad, "fence").is_err(), "{bad}");
    }
    assert!(gate_trigger("shelf", "").is_err());
}
