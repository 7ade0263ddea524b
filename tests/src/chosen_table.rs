//! Tables of a name of one's own, by the option `table`, on every database and in each way.

use std::time::Duration;

use fencelock::{Client, Code};

use crate::database::{DatabaseServer, connect, holds, refused};

/// A word of SQL's, which is the hardest name.
const TABLE: &str = "order";

/// Tables that begin with `table` hold locks, versions and jobs of their own; no others are made. `url` makes tables; `schemes` are the ways.
pub async fn has_locks_of_its_own(server: &impl DatabaseServer, url: &str, schemes: [&str; 3]) {
    let (_, rest) = url.split_once("://").expect("it has a scheme");
    let usual = |scheme: &str| format!("{scheme}://{rest}?create=true");
    let named = |scheme: &str, table: &str| format!("{}&table={table}", usual(scheme));
    let own = |scheme: &str| named(scheme, TABLE);
    for scheme in schemes {
        let (one, two) = (connect(&own(scheme)).await, connect(&own(scheme)).await);
        waiters_are_served(&one, &two).await;
    }
    let made = "SELECT count(*) FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_name LIKE";
    assert_eq!(server.sql(&format!("{made} 'fencelock%'")), "0");
    assert_eq!(server.sql(&format!("{made} '{TABLE}%'")), "3");
    for scheme in schemes {
        let mine = connect(&own(scheme)).await;
        let others = connect(&usual(scheme)).await;
        let guard = mine.lock("x").acquire().await.unwrap();
        assert!(holds(&others, "x").await, "tables of another name have other locks: {scheme}");
        assert!(!holds(&mine, "x").await, "{scheme}");
        assert_eq!(mine.lock("x").inspect().await.unwrap().holders.len(), 1, "{scheme}");
        assert!(others.lock("x").inspect().await.unwrap().holders.is_empty(), "{scheme}");
        guard.release().await.check().unwrap();
    }

    let table = connect(&own(schemes[0])).await;
    let others = connect(&usual(schemes[0])).await;
    table.version("v").update(|old: Option<u32>| Some(old.unwrap_or(0) + 1)).await.unwrap();
    assert_eq!(table.version("v").read::<u32>().await.unwrap().unwrap().value, 1);
    assert!(others.version("v").read::<u32>().await.unwrap().is_none());
    let job = |client: &Client| client.job("daily", Duration::from_hours(1)).start();
    job(&table).await.unwrap().expect("it is due").succeed().await.check().unwrap();
    assert!(job(&table).await.unwrap().is_err());
    assert!(job(&others).await.unwrap().is_ok());

    for bad in ["", "Order", "or;der", "1st", &"e".repeat(49)] {
        let (code, error) = refused(&named(schemes[0], bad)).await;
        assert_eq!((code, &*error.fields()["argument"]), (Code::Invalid, "table"), "{error}");
    }
}

/// A waiter gets a notice of its turn, and tokens rise.
async fn waiters_are_served(one: &Client, two: &Client) {
    let first = one.lock("turn").acquire().await.unwrap();
    let waits = two.lock("turn").acquire();
    let frees = async {
        while one.lock("turn").inspect().await.unwrap().waiters.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let token = first.token();
        first.release().await.check().unwrap();
        token
    };
    let (second, token) = futures_util::future::join(waits, frees).await;
    let second = second.unwrap();
    assert!(second.token() > token);
    second.release().await.check().unwrap();
}
