//! An HTTP server that counts its visitors, and counts right however many come at once and however many servers count.
//!
//! ```sh
//! cargo run -p fencelock-examples --bin counter -- redis://127.0.0.1 8080
//! ab -n 1000 -c 100 http://127.0.0.1:8080/            # then http://127.0.0.1:8080/value says 1000
//! ab -n 1000 -c 100 http://127.0.0.1:8080/unlocked    # this loses some
//! ```
//!
//! Counting is reading a number and writing the next one, as with any store that has no step for it. `/` does that under
//! the lock, `/unlocked` without; `/reset` begins anew.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const NUMBER: &str = "fencelock-example:visitors:number";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Clone)]
struct Counter {
    locks: fencelock::Client,
    store: MultiplexedConnection,
}

impl Counter {
    async fn value(&mut self) -> RedisResult<u64> {
        let number: Option<u64> =
            redis::cmd("GET").arg(NUMBER).query_async(&mut self.store).await?;
        Ok(number.unwrap_or(0))
    }

    async fn write(&mut self, number: u64) -> RedisResult<u64> {
        let () = redis::cmd("SET").arg(NUMBER).arg(number).query_async(&mut self.store).await?;
        Ok(number)
    }

    /// Not one step: whoever else reads in between counts the same visitor.
    async fn count(&mut self) -> RedisResult<u64> {
        let before = self.value().await?;
        self.write(before + 1).await
    }

    async fn answer(&mut self, path: &str) -> Result<Option<u64>> {
        Ok(Some(match path {
            "/" => {
                let guard = self.locks.lock("fencelock-example:visitors").acquire().await?;
                let number = self.count().await?;
                guard.release().await.check()?;
                number
            }
            "/unlocked" => self.count().await?,
            "/value" => self.value().await?,
            "/reset" => self.write(0).await?,
            _ => return Ok(None),
        }))
    }
}

/// One request a connection, as HTTP/1.0 has it.
async fn serve(mut counter: Counter, stream: TcpStream) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut header = String::new();
    while stream.read_line(&mut header).await? > 2 {
        header.clear();
    }
    let (status, text) = match counter.answer(&path).await {
        // Of one length, since `ab` takes others for failures.
        Ok(Some(number)) => ("200 OK", format!("{number:12}")),
        Ok(None) => ("404 Not Found", "no such page".to_owned()),
        Err(error) => ("500 Internal Server Error", error.to_string()),
    };
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "redis://127.0.0.1".into());
    let port: u16 = words.next().map_or(Ok(8080), |port| port.parse())?;
    // A busy machine can take longer for an answer than the half second this crate waits for one.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let locks = fencelock::connect(&url).await?;
    let server = redis::Client::open(url)?;
    let store = server.get_multiplexed_async_connection_with_config(&patient).await?;
    let counter = Counter { locks, store };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let visit = serve(counter.clone(), stream);
        tokio::spawn(async move {
            if let Err(error) = visit.await {
                eprintln!("a visitor was not answered: {error}");
            }
        });
    }
}
