//! Ways to a Redis server: over a connection of the core's own, and over a client of a host's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock::driver::redis::{HostStore, Published, RedisStore, Reply, Subscriber, Transport};
use fencelock::options::Options;
use fencelock::port::{BoxFuture, LeaseStore, RuntimeHandle};
use fencelock::runtime::TokioRuntime;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, IntoConnectionInfo, Pipeline, ProtocolVersion, PushInfo, PushKind, Value,
};
use url::Url;

/// How a client comes to its server.
#[allow(async_fn_in_trait)] // Runs on the test's own thread.
pub trait Way {
    /// The store that a client gets.
    type Store: LeaseStore;

    /// One more client.
    async fn connect(url: &Url) -> Self::Store;
}

/// Over a connection of the core's own.
pub struct Direct;

impl Way for Direct {
    type Store = RedisStore;

    async fn connect(url: &Url) -> RedisStore {
        RedisStore::connect(url, &Options::default(), runtime()).await.expect("it is running")
    }
}

/// Over a client of a host's, as in WebAssembly.
pub struct Hosted;

impl Way for Hosted {
    type Store = HostStore;

    async fn connect(url: &Url) -> HostStore {
        let client = HostClient::connect(url).await;
        HostStore::connect(client, &Options::default(), runtime()).await.expect("it is running")
    }
}

fn runtime() -> RuntimeHandle {
    Arc::new(TokioRuntime::current().expect("called in a runtime"))
}

/// The crate gives up on an answer after half a second, for which a busy machine can stand still.
fn patient() -> AsyncConnectionConfig {
    let long = Some(Duration::from_secs(60));
    AsyncConnectionConfig::new().set_connection_timeout(long).set_response_timeout(long)
}

/// A client such as a host has: it sends words, and hears a channel.
struct HostClient {
    connection: MultiplexedConnection,
    subscriber: Arc<Mutex<Option<Subscriber>>>,
}

impl HostClient {
    async fn connect(url: &Url) -> Self {
        let subscriber: Arc<Mutex<Option<Subscriber>>> = Arc::default();
        let heard = subscriber.clone();
        let config = patient().set_push_sender(move |push: PushInfo| {
            let subscriber = heard.lock().unwrap_or_else(PoisonError::into_inner);
            if let (PushKind::Message, [_, Value::BulkString(message)], Some(subscriber)) =
                (&push.kind, &push.data[..], &*subscriber)
            {
                subscriber(Published::Message(String::from_utf8_lossy(message).into_owned()));
            }
            Ok::<_, redis::aio::SendError>(())
        });
        let info = url.clone().into_connection_info().expect("this is a Redis URL");
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = redis::Client::open(info.set_redis_settings(settings));
        let client = client.expect("this is a Redis URL");
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        Self { connection: connection.expect("the server takes connections"), subscriber }
    }
}

impl Transport for HostClient {
    fn name(&self) -> String {
        "a host's server".to_owned()
    }

    fn send(&self, commands: Vec<Vec<String>>) -> BoxFuture<'static, Result<Vec<Reply>, String>> {
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let mut pipeline = Pipeline::new();
            for command in &commands {
                pipeline.add_command(redis::cmd(&command[0])).arg(&command[1..]);
            }
            let sent = connection.send_packed_commands(&pipeline, 0, commands.len()).await;
            Ok(sent.map_err(|error| error.to_string())?.into_iter().map(reply).collect())
        })
    }

    fn subscribe(
        &self,
        channel: &str,
        subscriber: Subscriber,
    ) -> BoxFuture<'static, Result<bool, String>> {
        *self.subscriber.lock().unwrap_or_else(PoisonError::into_inner) = Some(subscriber);
        let (mut connection, channel) = (self.connection.clone(), channel.to_owned());
        Box::pin(async move {
            let subscribed = connection.subscribe(&channel).await;
            subscribed.map(|()| true).map_err(|error| error.to_string())
        })
    }

    fn close(&self) {
        self.subscriber.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::Array(values) => Reply::List(values.into_iter().map(reply).collect()),
        Value::ServerError(error) => {
            Reply::Error(format!("{} {}", error.code(), error.details().unwrap_or_default()))
        }
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Text(text),
        Value::BulkString(bytes) => {
            Reply::Text(String::from_utf8(bytes).expect("all words are text"))
        }
        other => Reply::Text(format!("{other:?}")),
    }
}
