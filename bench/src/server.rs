//! A Redis server of the bench's own, and what it counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fencelock_servers::own::free_port;
use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::machine::{SERVER, pinned};

/// A `redis-server` on a free port, without persistence; stopped when this is dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
    connection: redis::Connection,
}

/// The server's counters since [`Server::reset`], this bench's own queries left out.
pub(crate) struct Counts {
    /// Calls and microseconds by command, those made by scripts included.
    pub commands: BTreeMap<String, (u64, f64)>,
}

impl Counts {
    /// Calls, those made by scripts included.
    pub(crate) fn calls(&self) -> u64 {
        self.commands.values().map(|(calls, _)| calls).sum()
    }

    /// Scripts run.
    pub(crate) fn scripts(&self) -> u64 {
        let is_script = |name: &str| name.starts_with("eval") || name.starts_with("fcall");
        let scripts = self.commands.iter().filter(|(name, _)| is_script(name));
        scripts.map(|(_, (calls, _))| calls).sum()
    }
}

impl Server {
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let port = free_port();
        let mut command = pinned(SERVER, Path::new("redis-server"));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--dir"]).arg(directory);
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut process = started
            .map_err(|error| format!("redis-server cannot be started ({error}); install it"))?;
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
        let patience = Instant::now() + Duration::from_secs(10);
        let connection = loop {
            match client.get_connection() {
                Ok(connection) => break connection,
                Err(error) if Instant::now() > patience => {
                    let _ = process.kill();
                    return Err(format!("redis-server does not answer: {error}").into());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Ok(Self { process, port, connection })
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Has it stand still, or go on.
    pub(crate) fn freeze(&self, still: bool) -> Result<()> {
        let signal = if still { Signal::STOP } else { Signal::CONT };
        Ok(kill_process(Pid::from_child(&self.process), signal)?)
    }

    /// Forgets all keys, so that nobody meets what another left.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(redis::cmd("FLUSHALL").exec(&mut self.connection)?)
    }

    /// Begins to count anew.
    pub(crate) fn reset(&mut self) -> Result<()> {
        Ok(redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut self.connection)?)
    }

    pub(crate) fn counts(&mut self) -> Result<Counts> {
        let text: String = redis::cmd("INFO").arg("commandstats").query(&mut self.connection)?;
        let mut commands = BTreeMap::new();
        for line in text.lines() {
            // cmdstat_get:calls=2,usec=3,usec_per_call=1.50,...
            let Some((name, figures)) =
                line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':'))
            else {
                continue;
            };
            let figure = |wanted: &str| {
                let mut figures = figures.split(',').filter_map(|figure| figure.split_once('='));
                figures.find(|(name, _)| *name == wanted).map_or("0", |(_, value)| value)
            };
            if !["info", "config|resetstat"].contains(&name) {
                commands
                    .insert(name.to_owned(), (figure("calls").parse()?, figure("usec").parse()?));
            }
        }
        Ok(Counts { commands })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
