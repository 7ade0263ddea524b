//! A Redis client of the host's, as the core's transport.

use fencelock::driver::redis::{Published, Reply, Subscriber, Transport};
use fencelock::port::BoxFuture;
use js_sys::Promise;
use serde::Deserialize;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::host::Client;

/// See the module.
pub(crate) struct HostTransport {
    client: Rc<Client>,
    /// The function that the subscription calls, kept for as long as it may be called.
    subscriber: RefCell<Option<PassOn>>,
}

type PassOn = Closure<dyn Fn(JsValue)>;

/// One command's end, in the shape of Upstash's pipelines.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Result(Word),
    Error(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Nil(()),
    Int(i64),
    Text(String),
    List(Vec<Word>),
}

impl From<Word> for Reply {
    fn from(word: Word) -> Self {
        match word {
            Word::Nil(()) => Self::Nil,
            Word::Int(number) => Self::Int(number),
            Word::Text(text) => Self::Text(text),
            Word::List(words) => Self::List(words.into_iter().map(Self::from).collect()),
        }
    }
}

impl HostTransport {
    pub(crate) fn new(client: Client) -> Self {
        Self { client: Rc::new(client), subscriber: RefCell::default() }
    }
}

impl Transport for HostTransport {
    fn name(&self) -> String {
        self.client.name()
    }

    fn send(&self, commands: Vec<Vec<String>>) -> BoxFuture<'static, Result<Vec<Reply>, String>> {
        let commands = serde_json::to_string(&commands).unwrap_or_default();
        let sent = self.client.send(commands);
        Box::pin(async move {
            let replies = ended(sent).await?.as_string().unwrap_or_default();
            let ends: Vec<End> =
                serde_json::from_str(&replies).map_err(|error| error.to_string())?;
            let reply = |end| match end {
                End::Result(word) => word.into(),
                End::Error(text) => Reply::Error(text),
            };
            Ok(ends.into_iter().map(reply).collect())
        })
    }

    fn subscribe(
        &self,
        channel: &str,
        subscriber: Subscriber,
    ) -> BoxFuture<'static, Result<bool, String>> {
        let pass_on = PassOn::new(move |message: JsValue| {
            subscriber(message.as_string().map_or(Published::Gap, Published::Message));
        });
        let subscribed = self.client.subscribe(channel, pass_on.as_ref().unchecked_ref());
        *self.subscriber.borrow_mut() = Some(pass_on);
        Box::pin(async move { Ok(ended(subscribed).await?.is_truthy()) })
    }

    fn close(&self) {
        self.client.close();
    }
}

impl Drop for HostTransport {
    fn drop(&mut self) {
        self.client.close();
    }
}

/// The value of a promise, or the message of its error.
async fn ended(promise: Promise) -> Result<JsValue, String> {
    JsFuture::from(promise).await.map_err(|error| {
        let message = js_sys::Error::from(error).message();
        message.as_string().unwrap_or_default()
    })
}
