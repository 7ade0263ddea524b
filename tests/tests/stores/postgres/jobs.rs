//! Scheduled jobs on a real PostgreSQL server, by nodes whose clocks disagree.

use fencelock_tests::periods::a_job_starts_once_in_a_period;
use fencelock_tests::postgres::PostgresServer;

#[tokio::test]
async fn b81_b82_a_job_starts_once_in_a_period() {
    a_job_starts_once_in_a_period::<PostgresServer>().await;
}
