//! Rows of names that nobody uses any more, on a real MariaDB: which go, and which stay.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_tests::database::connect;
use fencelock_tests::mysql::MysqlServer;

const PATIENCE: Duration = Duration::from_secs(30);

async fn use_names(client: &Client, prefix: &str, count: usize) {
    for number in 0..count {
        let guard = client.lock(&format!("{prefix}{number}")).acquire().await.unwrap();
        guard.release().await.check().unwrap();
    }
}

/// Rows that nobody has used for a week go as others come; those that are in use or are younger stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_unused_names_go() {
    let server = MysqlServer::start();
    let client = connect(&server.place("a")).await;
    let known = client.lock("known").acquire().await.unwrap();
    let token = known.token();
    known.release().await.check().unwrap();
    let week =
        "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', UTC_TIMESTAMP(6)) - 7 * 86400 * 1000000";
    server.sql(&format!(
        "USE a; INSERT INTO fencelock (name, counter_until, last_token) SELECT CONCAT('old', seq), {week} - 1000000, 5 FROM seq_1_to_300;
         INSERT INTO fencelock (name, counter_until) VALUES ('young', {week} + 600000000);
         INSERT INTO fencelock (name, owner, ends) VALUES ('held', REPEAT('a', 32), 1);
         INSERT INTO fencelock (name, rest) VALUES ('waited', '{{}}');
         UPDATE fencelock SET counter_until = 5, last_token = 5 WHERE name = 'known'"
    ));
    let left = "SELECT GROUP_CONCAT(name ORDER BY name SEPARATOR ' ') FROM a.fencelock WHERE name NOT LIKE 'new%'";
    let (began, mut round) = (Instant::now(), 0);
    while server.sql(left).trim() != "held waited young" {
        assert!(began.elapsed() < PATIENCE, "{}", server.sql(left));
        use_names(&client, &format!("new{round}:"), 64).await;
        round += 1;
    }
    // The client knows of the row that is gone, and gets a greater token all the same.
    let again = client.lock("known").acquire().await.unwrap();
    assert!(again.token() > token);
    again.release().await.check().unwrap();
}
