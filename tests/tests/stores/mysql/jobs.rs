//! Scheduled jobs on a real MariaDB server, by nodes whose clocks disagree.

use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::periods::a_job_starts_once_in_a_period;

#[tokio::test]
async fn b81_b82_a_job_starts_once_in_a_period() {
    a_job_starts_once_in_a_period::<MysqlServer>().await;
}
