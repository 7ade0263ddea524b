//! Three masters that know nothing of each other, and may vote at once.

use super::redis::RedisServer;

/// A quorum for as long as this lives.
pub struct QuorumSet {
    /// The servers.
    pub masters: Vec<RedisServer>,
}

impl Default for QuorumSet {
    fn default() -> Self {
        Self { masters: (0..3).map(|_| grown()).collect() }
    }
}

impl QuorumSet {
    /// Where the quorum is.
    pub fn url(&self) -> String {
        let places = self.masters.iter().map(|server| format!("127.0.0.1:{}", server.port()));
        format!("redlock://{}", places.collect::<Vec<_>>().join(","))
    }
}

/// A server whose run has kept its data since 1970, for all that its birth mark says: nobody waits for it to vote.
fn grown() -> RedisServer {
    let server = RedisServer::start();
    let about = server.info("server");
    let run = about.lines().find_map(|line| line.strip_prefix("run_id:"));
    let mark = format!("{} 0", run.expect("every run has an id").trim());
    server.ask::<()>(&["SET", "fencelock:born", &mark]);
    server
}
