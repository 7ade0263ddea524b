//! A Redis server whose scripts read the time from a key, which a test sets: for tests of what takes seconds.
//!
//! A proxy gives the server other scripts than it is sent. They also make a bucket of two holds, not 64, because few tests have many.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, Result, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use redis::Script;
use url::Url;

/// The key that has the time, in microseconds since 1970. In the text it would make new scripts at each move, which cost the server
/// more than all else that the tests do.
pub const CLOCK: &str = "fencelock:clock";

/// The proxy. It takes no more connections when it is dropped; those that are there go on.
pub struct StoppedClock {
    address: SocketAddr,
    admin: Mutex<redis::Connection>,
    ended: Arc<AtomicBool>,
}

impl StoppedClock {
    /// A proxy before this server, whose clock stands at `now`.
    pub fn before(server: &Url, now: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
        let address = listener.local_addr().expect("a bound socket has an address");
        let client = redis::Client::open(server.clone()).expect("this is a Redis URL");
        let admin = client.get_connection().expect("the server takes connections").into();
        let port = server.port().expect("the server has a port of its own");
        let ended = Arc::<AtomicBool>::default();
        let (scripts, over) = (Arc::default(), ended.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let scripts = Arc::clone(&scripts);
                thread::spawn(move || carry(&client, port, &scripts));
            }
        });
        let clock = Self { address, admin, ended };
        clock.set(now);
        clock
    }

    /// Where clients connect to.
    pub fn url(&self) -> Url {
        format!("redis://{}", self.address).parse().expect("this is a URL")
    }

    /// Moves the clock of all clients.
    pub fn set(&self, now: u64) {
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let set = redis::cmd("SET").arg(CLOCK).arg(now).exec(&mut *admin);
        set.expect("the server takes commands");
    }
}

impl Drop for StoppedClock {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the one who accepts.
        drop(TcpStream::connect(self.address));
    }
}

/// The hashes by which clients know scripts, with those by which the server does.
type Scripts = Mutex<BTreeMap<Vec<u8>, String>>;

/// Carries what a client and its server say, until one of them ends the connection.
fn carry(client: &TcpStream, port: u16, scripts: &Scripts) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut from_client = BufReader::new(client);
            while let Ok(command) = command(&mut from_client) {
                if (&server).write_all(&exchanged(command, scripts)).is_err() {
                    break;
                }
            }
            let _ = server.shutdown(Shutdown::Both);
        });
        let _ = copy(&mut &server, &mut &*client);
        let _ = client.shutdown(Shutdown::Both);
    });
}

/// The words of the next command: a list of texts, as clients write it.
fn command(from: &mut impl BufRead) -> Result<Vec<Vec<u8>>> {
    (0..number(from, b'*')?)
        .map(|_| {
            let mut word = vec![0; number(from, b'$')? + 2];
            from.read_exact(&mut word)?;
            word.truncate(word.len() - 2);
            Ok(word)
        })
        .collect()
}

/// A line that is a number behind this mark.
fn number(from: &mut impl BufRead, mark: u8) -> Result<usize> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let digits = line.strip_prefix(&[mark]).and_then(|rest| rest.strip_suffix(b"\r\n"));
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    number.ok_or_else(|| Error::other("the connection ends, or a command is none"))
}

/// The command with another script in it, as it is sent.
fn exchanged(mut words: Vec<Vec<u8>>, scripts: &Scripts) -> Vec<u8> {
    let mut scripts = scripts.lock().unwrap_or_else(PoisonError::into_inner);
    let verb = words[0].to_ascii_uppercase();
    match (&*verb, words.len()) {
        (b"EVALSHA", 2..) => {
            let ours = scripts.get(&words[1]).expect("its text came this way");
            words[1] = ours.clone().into_bytes();
        }
        (b"EVAL", 2..) => words[1] = stopped(&words[1], &mut scripts),
        (b"SCRIPT", 3) if words[1].eq_ignore_ascii_case(b"LOAD") => {
            words[2] = stopped(&words[2], &mut scripts);
        }
        _ => {}
    }
    let mut sent = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        sent.extend(format!("${}\r\n", word.len()).into_bytes());
        sent.extend(word);
        sent.extend(b"\r\n");
    }
    sent
}

/// The script with the time from the key. Its hash is remembered.
fn stopped(script: &[u8], scripts: &mut BTreeMap<Vec<u8>, String>) -> Vec<u8> {
    let text = std::str::from_utf8(script).expect("scripts are text");
    let clock = format!("{{ 0, redis.call('GET', '{CLOCK}') }}");
    let ours = text.replace("redis.call('TIME')", &clock).replace("42 * 64", "42 * 2");
    let hash = |text: &str| Script::new(text).get_hash().to_owned();
    scripts.insert(hash(text).into_bytes(), hash(&ours));
    ours.into_bytes()
}
