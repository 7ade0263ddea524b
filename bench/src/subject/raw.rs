//! The floor: a blocking socket that sends the two commands and reads the two replies, and nothing else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::json;

use super::course::{Course, pair_figures, ready};

/// Deletes a key if it is ours: what every plain lock releases by.
pub(crate) const RELEASE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end";

/// One request in the wire format.
fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

struct Socket(TcpStream);

impl Socket {
    /// Sends, and reads until `answers` lines have come.
    fn ask(&mut self, request: &[u8], answers: usize) -> Vec<u8> {
        self.0.write_all(request).expect("the server is there");
        let (mut reply, mut buffer, mut lines) = (Vec::new(), [0; 16384], 0);
        while lines < answers {
            let read = self.0.read(&mut buffer).expect("the server is there");
            assert!(read > 0, "the server closed the connection");
            lines += buffer[..read].iter().map(|byte| usize::from(*byte == b'\n')).sum::<usize>();
            reply.extend_from_slice(&buffer[..read]);
        }
        assert!(!reply.contains(&b'-'), "refused: {}", String::from_utf8_lossy(&reply));
        reply
    }
}

/// Runs the course and prints its figures.
pub(super) fn run(workload: &str, course: &Course) {
    let socket = TcpStream::connect(course.text("server")).expect("the server is there");
    socket.set_nodelay(true).expect("a TCP socket");
    let mut socket = Socket(socket);
    let loaded = socket.ask(&request(&["SCRIPT", "LOAD", RELEASE]), 2);
    let hash = String::from_utf8(loaded).expect("hexadecimal digits");
    let hash = hash.lines().nth(1).expect("a hash after its length");
    let owner = "0123456789abcdef0123456789abcdef";
    let take = |key: &str| request(&["SET", key, owner, "NX", "PX", "30000"]);
    let free = |key: &str| request(&["EVALSHA", hash, "1", key, owner]);
    let figures = match workload {
        "pair" => {
            let (take, free) = (take(course.text("key")), free(course.text("key")));
            ready();
            let times = (0..course.number("pairs")).map(|_| {
                let begin = Instant::now();
                socket.ask(&take, 1);
                socket.ask(&free, 1);
                begin.elapsed()
            });
            pair_figures(times.collect())
        }
        "parallel" => {
            // All keys' requests in one write: nobody can be faster on one connection.
            let keys: Vec<String> = (0..course.number("keys"))
                .map(|number| format!("{}:{number}", course.text("key")))
                .collect();
            let take = keys.iter().flat_map(|key| take(key)).collect::<Vec<u8>>();
            let free = keys.iter().flat_map(|key| free(key)).collect::<Vec<u8>>();
            ready();
            let (begin, mut pairs) = (Instant::now(), 0);
            while begin.elapsed() < course.seconds() {
                socket.ask(&take, keys.len());
                socket.ask(&free, keys.len());
                pairs += keys.len();
            }
            json!({ "pairs_per_s": pairs as f64 / begin.elapsed().as_secs_f64() })
        }
        _ => panic!("the floor has no course `{workload}`"),
    };
    println!("{figures}");
}
