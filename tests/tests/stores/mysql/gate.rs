//! The gate in tables of a MariaDB database: a write by an older token is refused by the write itself.

use std::time::Duration;

use fencelock::driver::mysql::gate_trigger;
use fencelock_tests::mysql::MysqlServer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts};

async fn session(server: &MysqlServer, user: &str) -> Conn {
    let opts = Opts::from_url(&server.url(user)).expect("this is a URL");
    Conn::new(opts).await.expect("the server takes connections")
}

async fn gate(shelf: &mut Conn, table: &str, column: &str) {
    for statement in gate_trigger(table, column).expect("these can be names") {
        shelf.query_drop(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn assert_refused(written: Result<(), Error>) {
    let Err(Error::Server(said)) = written else { panic!("an older token is refused") };
    assert_eq!(said.state, "45000");
    assert!(said.message.starts_with("lost:"), "{said}");
}

/// A holder whose lease has ended, and who does not look at its guard, writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_holder_writes_nothing() {
    let server = MysqlServer::start();
    let url = server.place("shop");
    let mut shelf = session(&server, "shop").await;
    shelf
        .query_drop("CREATE TABLE shelf (stock bigint, fence bigint); INSERT INTO shelf VALUES (1000, NULL)")
        .await
        .unwrap();
    gate(&mut shelf, "shelf", "fence").await;
    gate(&mut shelf, "shop.shelf", "fence").await;
    let without = shelf.query_drop("UPDATE shelf SET stock = 1000").await;
    without.expect("nobody has written the row under a lock yet");
    let sleepy = format!("{url}&ttl=100ms&renew=false");
    let (sleepy, awake) =
        (fencelock::connect(&sleepy).await.unwrap(), fencelock::connect(&url).await.unwrap());
    let mut sell = async |guard: &fencelock::Guard| {
        let token = guard.token();
        shelf.query_drop(format!("UPDATE shelf SET stock = stock - 1, fence = {token}")).await
    };
    for _ in 0..3 {
        let stopped = sleepy.lock("lamp").acquire().await.unwrap();
        sell(&stopped).await.unwrap();
        let guard = awake.lock("lamp").acquire_within(Duration::from_secs(30)).await.unwrap();
        sell(&guard).await.unwrap();
        sell(&guard).await.expect("one holder writes many times");
        assert_refused(sell(&stopped).await);
        guard.release().await.check().unwrap();
        let _ = stopped.release().await;
    }
    let stock: Option<i64> = shelf.query_first("SELECT stock FROM shelf").await.unwrap();
    assert_eq!(stock, Some(1000 - 9), "what was refused has changed nothing");
    assert_refused(shelf.query_drop("UPDATE shelf SET stock = 0, fence = NULL").await);
}

/// No name is read as anything but a name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_taken_as_they_are() {
    let server = MysqlServer::start();
    server.place("shop");
    let mut shelf = session(&server, "shop").await;
    shelf.query_drop("CREATE TABLE precious (n int)").await.unwrap();
    let long = "x".repeat(64);
    for name in ["Shelf", "a b", "a`; DROP TABLE precious; -- x", "b'\\", "ä%s", "$$", &long] {
        let quoted = format!("`{}`", name.replace('`', "``"));
        let make =
            format!("CREATE TABLE {quoted} ({quoted} bigint); INSERT INTO {quoted} VALUES (5)");
        shelf.query_drop(make).await.unwrap();
        gate(&mut shelf, &format!("shop.{name}"), name).await;
        let write = format!("UPDATE {quoted} SET {quoted} = ");
        shelf.query_drop(format!("{write}5")).await.unwrap();
        assert_refused(shelf.query_drop(format!("{write}4")).await);
    }
    shelf.query_drop("SELECT 1 FROM precious").await.expect("it is there");
    for bad in ["", "a\0", "a.b.c", &"a".repeat(257)] {
        assert!(gate_trigger(bad, "fence").is_err(), "{bad}");
    }
    assert!(gate_trigger("shelf", "").is_err());
}
