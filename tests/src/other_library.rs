//! A client of another lock library, for the tests of one store: a program of `peers/`, which is asked one thing after the other.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use fencelock_peers::{Family, Lack, Program, Role};
use serde_json::{Value, json};

/// A program over such a library, which is asked one thing after the other.
pub struct OtherLibrary {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The program over the libraries of this family. `None`: the machine lacks its language.
pub fn installed(actor: &Path, family: Family, library: &str) -> Option<Program> {
    let target = fencelock_peers::target(actor);
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    match family.install(Role::Actor, &target) {
        Ok(program) => Some(program),
        Err(Lack::Language(lack)) if !strict => {
            // Past the harness, which keeps to itself what tests print that pass.
            writeln!(std::io::stdout().lock(), "\nskipped: {library}: {lack}").unwrap();
            None
        }
        Err(lack) => panic!("{library}: {lack}"),
    }
}

impl OtherLibrary {
    /// Starts the program of this library, with the locks behind a URL. `None`: the machine lacks its language. `actor` is a program of
    /// these tests, whose target folder has the others.
    pub fn start(actor: &Path, family: Family, library: &str, url: &str) -> Option<Self> {
        Self::start_with(actor, family, library, url, Duration::from_secs(5))
    }

    /// The same, with locks that last for so long.
    pub fn start_with(
        actor: &Path,
        family: Family,
        library: &str,
        url: &str,
        lease: Duration,
    ) -> Option<Self> {
        let mut command = installed(actor, family, library)?.with(library).command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it can be run");
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut peer = Self { process, requests, answers };
        let options = json!({"ttl": lease.as_millis() as u64});
        peer.ask(&json!({"op": "connect", "url": url, "options": options}));
        Some(peer)
    }

    fn send(&mut self, request: &Value) {
        let mut request = request.clone();
        request["id"] = json!(1);
        writeln!(self.requests, "{request}").expect("it reads");
    }

    /// The answer to [`OtherLibrary::send_take`], or to anything else that was sent; null if the lock was not granted in time.
    pub fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let answer: Value = serde_json::from_str(&line).expect("it answers in JSON");
        // Whoever waits in vain has nothing.
        let in_time = answer["error"]["code"] != "timeout";
        assert!(answer["error"].is_null() || !in_time, "{answer}");
        answer["ok"].clone()
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.answer()
    }

    /// Asks for a lock; within so many milliseconds it has it, or not.
    pub fn take(&mut self, name: &str, wait: u64, kind: &str) -> Option<Value> {
        self.send_take(name, wait, kind);
        let held = self.answer();
        (!held.is_null()).then_some(held)
    }

    /// Asks, and does not wait for the answer.
    pub fn send_take(&mut self, name: &str, wait: u64, kind: &str) {
        let options = json!({"wait": wait, "kind": kind, "permits": 2});
        let op = if wait == 0 { "try" } else { "acquire" };
        self.send(&json!({"op": op, "lock": name, "options": options}));
    }

    /// Ends the program at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Gives a lock back.
    pub fn release(&mut self, held: &Value) {
        let released = self.ask(&json!({"op": "release", "guard": held["guard"]}));
        assert_eq!(released, "released");
    }
}

impl Drop for OtherLibrary {
    fn drop(&mut self) {
        self.kill();
    }
}
