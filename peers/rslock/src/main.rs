//! rslock 0.7 at its default delays; `acquire` tries again until it has the lock.

use std::time::Duration;

use rslock::{Lock, LockManager};

#[path = "../../../bench/src/subject/course.rs"]
mod course;

use course::{Contestant, Course};

#[derive(Clone)]
struct Rslock(LockManager);

impl Contestant for Rslock {
    type Guard = Lock;

    async fn acquire(&self, key: &str) -> Lock {
        self.0.acquire_no_guard(key.as_bytes(), Duration::from_secs(30)).await.expect("an answer")
    }

    async fn release(&self, lock: Lock) {
        self.0.unlock(&lock).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(2);
    let workload = words.next().expect("a course");
    let course = Course::parse(words);
    let servers = course.text("servers");
    let manager = if servers.is_empty() {
        LockManager::new(vec![course.text("url")])
    } else {
        LockManager::new(servers.split(',').map(|server| format!("redis://{server}")).collect())
    };
    course::run(Rslock(manager), &workload, &course).await;
    std::process::exit(0);
}
