//! Nobody else speaks in the client's name to a ZooKeeper over TLS. It counts the ports of this process, so it runs by itself: `stores relay::`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_tests::servers::Authority;
use fencelock_tests::session_store::PATIENCE;
use fencelock_tests::zookeeper::ZookeeperServer;

/// Everybody on the machine can connect to the port by which the client goes to a member. Who does not know the secret is not
/// let through, whatever comes of it.
#[tokio::test]
async fn nobody_else_speaks_in_our_name() {
    let authority = Authority::default();
    let (server, port) = ZookeeperServer::start_secure(&authority, "");
    let before = listening();
    // Java is slow with its first handshakes, and a fifth of a session is what a member has for one.
    let url = format!("zookeepers://127.0.0.1:{port}/p?ttl=60s&connect_timeout=30s");
    let builder = Client::builder().option("cacert", authority.path("ca.pem"));
    let client = builder.connect(&url).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    let ours: Vec<_> = listening().difference(&before).copied().collect();
    assert_eq!(ours.len(), 1, "a session has a port for its member");
    let login = |secret: &[u8]| {
        let body = [LOGIN, &u32::try_from(secret.len()).unwrap().to_be_bytes(), secret].concat();
        [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
    };
    assert!(ask(server.port(), CONNECT.to_vec()).await.len() > 36, "a server would answer");
    for login in [login(&[0; 16]), login(&[0; 15]), vec![0; 4], vec![0xff; 64]] {
        let told = ask(ours[0], [CONNECT, &login].concat()).await;
        assert!(told.is_empty(), "a stranger is answered");
    }
    guard.release().await.check().unwrap();
    client.close().await;
    let began = Instant::now();
    while listening().contains(&ours[0]) {
        assert!(began.elapsed() < PATIENCE, "the port is given back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A request for a session of ten seconds.
const CONNECT: &[u8] = b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// A login by the relay's scheme, without what is told and its length.
const LOGIN: &[u8] = b"\0\0\0\x01\0\0\0\x64\0\0\0\0\0\0\0\x09fencelock";

/// The answer on a port until the connection ends, or nothing more comes.
async fn ask(port: u16, said: Vec<u8>) -> Vec<u8> {
    let asking = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let _ = stream.write_all(&said);
        let mut told = Vec::new();
        // It may be ended by force.
        let _ = stream.read_to_end(&mut told);
        told
    });
    asking.await.unwrap()
}

/// The ports of 127.0.0.1 on which this process listens.
fn listening() -> BTreeSet<u16> {
    let open = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let open: BTreeSet<_> = open.filter_map(|link| link.to_str().map(str::to_owned)).collect();
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let ports = table.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let port = words.get(1)?.strip_prefix("0100007F:")?;
        let ours = words[3] == "0A" && open.contains(&format!("socket:[{}]", words[9]));
        ours.then(|| u16::from_str_radix(port, 16).ok())?
    });
    ports.collect()
}
