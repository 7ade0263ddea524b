//! `fencelock sql gate`: what is printed keeps writes with older tokens out of a table.

use crate::scene;

use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::postgres::PostgresServer;
use rusqlite::Connection;
use scene::Scene;

/// Two runs after each other, each of which says its token.
fn tokens(scene: &Scene) -> [i64; 2] {
    [(); 2].map(|()| {
        let run = scene.run(&["run", "lamp", "--", "sh", "-c", "echo $FENCELOCK_TOKEN"]);
        run.out.trim().parse().expect("a token is a number")
    })
}

#[test]
fn a_table_in_sqlite_refuses_the_earlier_run() {
    let scene = Scene::new();
    let [older, newer] = tokens(&scene);
    let gate = ["sql", "gate", "--table", "my shelf", "--column", "fence", "--dialect", "sqlite"];
    let gate = scene.run(&gate);
    assert_eq!(gate.code, Some(0), "{}", gate.err);
    let shelf = Connection::open_in_memory().unwrap();
    let table =
        "CREATE TABLE \"my shelf\" (stock, fence INTEGER); INSERT INTO \"my shelf\" VALUES (10, 0)";
    shelf.execute_batch(table).unwrap();
    shelf.execute_batch(&gate.out).unwrap();
    let sell = |token: i64| {
        shelf.execute("UPDATE \"my shelf\" SET stock = stock - 1, fence = ?1", [token])
    };
    assert_eq!(sell(newer), Ok(1));
    assert!(sell(older).unwrap_err().to_string().starts_with("lost:"));
}

#[test]
fn a_table_in_postgres_refuses_the_earlier_run() {
    let scene = Scene::new();
    let [older, newer] = tokens(&scene);
    let gate = scene.run(&["sql", "gate", "--table", "public.My shelf", "--column", "fence"]);
    assert_eq!(gate.code, Some(0), "{}", gate.err);
    let server = PostgresServer::start();
    server.sql("CREATE TABLE \"My shelf\" (stock int, fence bigint); INSERT INTO \"My shelf\" VALUES (10, 0)");
    server.sql(&gate.out);
    let sell = |token: i64| {
        let write = format!("UPDATE \"My shelf\" SET stock = stock - 1, fence = {token}");
        server.psql("postgres", &write)
    };
    assert!(sell(newer).status.success());
    let refused = sell(older);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("lost:"));
    assert_eq!(server.sql("SELECT stock FROM \"My shelf\""), "9");
}

#[test]
fn a_table_in_mysql_refuses_the_earlier_run() {
    let scene = Scene::new();
    let [older, newer] = tokens(&scene);
    let gate = ["sql", "gate", "--table", "My $$ shelf", "--column", "fence", "--dialect", "mysql"];
    let gate = scene.run(&gate);
    assert_eq!(gate.code, Some(0), "{}", gate.err);
    let server = MysqlServer::start();
    let table = "CREATE DATABASE shop; USE shop; CREATE TABLE `My $$ shelf` (stock int, fence bigint); INSERT INTO `My $$ shelf` VALUES (10, 0);";
    server.sql(&format!("{table}\n{}", gate.out));
    let sell = |token: i64| {
        let write = format!("UPDATE shop.`My $$ shelf` SET stock = stock - 1, fence = {token}");
        let refused = "DECLARE EXIT HANDLER FOR SQLSTATE '45000' SELECT 'refused'";
        server.sql(&format!("DELIMITER //\nBEGIN NOT ATOMIC {refused}; {write}; END //"))
    };
    assert_eq!([sell(newer), sell(older)], ["", "refused"]);
    assert_eq!(server.sql("SELECT stock FROM shop.`My $$ shelf`"), "9");
}

#[test]
fn what_is_no_name_is_refused() {
    let scene = Scene::new();
    for (table, column) in [("", "fence"), ("a.b.c", "fence"), ("shelf", "")] {
        let refused = scene.run(&["sql", "gate", "--table", table, "--column", column]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(78), ""), "{table} {column}");
    }
    let refused = scene.run(&["sql", "gate", "--table", "shelf"]);
    assert_eq!(refused.code, Some(64));
}
