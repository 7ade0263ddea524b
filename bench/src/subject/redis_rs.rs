//! A lock written by hand with the crate `redis`: a value of one's own, SET NX PX, and a script that compares and deletes.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use super::course::{Contestant, Course};
use super::raw::RELEASE;

/// See the module.
#[derive(Clone)]
pub(super) struct RedisRs {
    connection: MultiplexedConnection,
    release: redis::Script,
}

impl RedisRs {
    pub(super) async fn connect(course: &Course) -> Self {
        let client = redis::Client::open(course.text("url")).expect("a Redis URL");
        // As patient as everybody else.
        let patient = AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
        Self {
            connection: connection.expect("the server is there"),
            release: redis::Script::new(RELEASE),
        }
    }
}

impl Contestant for RedisRs {
    type Guard = (String, String);

    async fn acquire(&self, key: &str) -> Self::Guard {
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .expect("the operating system's source of randomness answers");
        let owner = format!("{:032x}", u128::from_ne_bytes(random));
        let mut connection = self.connection.clone();
        loop {
            let mut set = redis::cmd("SET");
            set.arg(key).arg(&owner).arg("NX").arg("PX").arg(30_000);
            let won: bool = set.query_async(&mut connection).await.expect("an answer");
            if won {
                return (key.to_owned(), owner);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn release(&self, (key, owner): Self::Guard) {
        let mut connection = self.connection.clone();
        let mut invocation = self.release.prepare_invoke();
        let freed: i64 =
            invocation.key(key).arg(owner).invoke_async(&mut connection).await.expect("an answer");
        assert_eq!(freed, 1, "the lock was lost");
    }
}
