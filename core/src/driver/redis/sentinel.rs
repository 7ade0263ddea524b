//! Sentinels: who of the servers is the master now.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::PubSubStream;
use redis::{AsyncConnectionConfig, Pipeline, ProtocolVersion, RedisConnectionInfo, Value};

use super::address::{Address, Host};
use super::connection::wire::{self, Trouble};
use super::fault;
use crate::error::{Code, Error, Result};
use crate::port::RuntimeHandle;
use crate::port::backoff::Backoff;

/// How long before a sentinel that is silent is listened to again.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);

/// The master as one sentinel knows it, and how new that knowledge is: the epoch rises with every failover.
struct Word {
    epoch: u64,
    master: Host,
}

/// Asks all sentinels at once where the master is, and believes the newest word of a majority; of fewer, when the
/// others do not answer within `patience`.
pub(super) async fn master(
    address: &Address,
    sentinels: &[Host],
    name: &str,
    patience: Duration,
    runtime: &RuntimeHandle,
) -> Result<Host> {
    let mut asked: FuturesUnordered<_> =
        sentinels.iter().map(|sentinel| ask(address, sentinel, name, runtime)).collect();
    let mut end = pin!(runtime.sleep(patience));
    let (mut newest, mut words, mut failure): (Option<Word>, _, _) = (None, 0, None);
    // A single sentinel may be out of date.
    while words * 2 <= sentinels.len() {
        match select(pin!(asked.next()), end.as_mut()).await {
            Either::Left((Some(Ok(word)), _)) => {
                words += 1;
                if newest.as_ref().is_none_or(|newest| newest.epoch < word.epoch) {
                    newest = Some(word);
                }
            }
            Either::Left((Some(Err(error)), _)) => failure = Some(error),
            Either::Left((None, _)) | Either::Right(_) => break,
        }
    }
    let silent = || {
        let message = "no sentinel answers; are they running, and are the addresses right?";
        Error::new(Code::Unavailable, message).with("server", address.to_string())
    };
    newest.map(|newest| newest.master).ok_or_else(|| failure.unwrap_or_else(silent))
}

/// Completes when the sentinels have another master than the one at `place`. All are listened to: those that did not lead the
/// failover learn of it up to two seconds later.
pub(super) async fn switched(
    address: &Address,
    sentinels: &[Host],
    name: &str,
    place: &Host,
    runtime: &RuntimeHandle,
) {
    let mut backoff = Backoff::new();
    loop {
        let waits = sentinels
            .iter()
            .map(|sentinel| hears_of_switch(address, sentinel, name, place, runtime));
        waits.collect::<FuturesUnordered<_>>().next().await;
        let now = master(address, sentinels, name, LISTEN_AGAIN, runtime).await;
        if now.is_ok_and(|now| now != *place) {
            return;
        }
        // It is the one that is behind, or the others are.
        runtime.sleep(backoff.next_up_to(LISTEN_AGAIN)).await;
    }
}

/// Completes when one sentinel tells of another master than the one at `place`.
async fn hears_of_switch(
    address: &Address,
    sentinel: &Host,
    name: &str,
    place: &Host,
    runtime: &RuntimeHandle,
) {
    loop {
        if let Ok(mut news) = listen(address, sentinel, runtime).await {
            // It may have happened while nobody listened.
            let word = ask(address, sentinel, name, runtime).await;
            if word.is_ok_and(|word| word.master != *place) {
                return;
            }
            while let Some(message) = news.next().await {
                // The master's name, where it was, and where it is now.
                let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
                let words: Vec<_> = text.rsplitn(5, ' ').collect();
                if let [port, host, _, _, master] = words[..]
                    && master == name
                    && port.parse().is_ok_and(|port| Host::tcp(host, port) != *place)
                {
                    return;
                }
            }
        }
        runtime.sleep(LISTEN_AGAIN).await;
    }
}

async fn listen(
    address: &Address,
    sentinel: &Host,
    runtime: &RuntimeHandle,
) -> Result<PubSubStream, Trouble> {
    let subscribe = async |settings| {
        let mut subscriber = wire::listen(address, sentinel, settings, runtime).await?;
        subscriber.subscribe("+switch-master").await?;
        Ok(subscriber.into_on_message())
    };
    let mut subscribed = subscribe(open()).await;
    for settings in credentials(address) {
        if subscribed.is_ok() {
            break;
        }
        subscribed = subscribe(settings).await;
    }
    subscribed
}

fn open() -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name()
}

/// The credentials for a sentinel that asks, one after the other: those of the URL for sentinels; else the user we are to the master,
/// whose password it is, and nobody but one who knows it. With `requirepass` a sentinel knows no users.
fn credentials(address: &Address) -> impl Iterator<Item = RedisConnectionInfo> {
    let named = address.sentinel.clone().map(RedisConnectionInfo::set_skip_set_lib_name);
    let ours = address.settings().set_protocol(ProtocolVersion::RESP2).set_db(0);
    let password = ours.password().map(str::to_owned);
    let alone = password.filter(|_| ours.username().is_some());
    let alone = alone.map(|password| open().set_password(password));
    let known = address.has_password() && named.is_none();
    named.into_iter().chain(known.then_some(ours)).chain(alone.filter(|_| known))
}

async fn ask(
    address: &Address,
    sentinel: &Host,
    name: &str,
    runtime: &RuntimeHandle,
) -> Result<Word> {
    let mut questions = Pipeline::new();
    questions.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    questions.cmd("SENTINEL").arg("MASTER").arg(name);
    // Without a password first: a sentinel is told one only if it asks.
    let mut replies = answers(address, sentinel, open(), &questions, runtime).await;
    let wants = |replies: &Result<Vec<Value>>| match replies {
        Ok(replies) => replies.iter().any(is_refused),
        Err(error) => error.code() == Code::Auth,
    };
    for settings in credentials(address) {
        if !wants(&replies) {
            break;
        }
        replies = answers(address, sentinel, settings, &questions, runtime).await;
    }
    let unclear = || {
        let message = "a sentinel answered in a form fencelock does not know";
        Error::new(Code::Unavailable, message).with("server", sentinel.to_string())
    };
    let mut replies = replies?.into_iter();
    let (Some(place), Some(facts)) = (replies.next(), replies.next()) else {
        return Err(unclear());
    };
    match place {
        Value::Nil => Err(Error::invalid(
            "url",
            "the sentinels watch no master of this name; it is the path of the URL",
        )
        .with("master", name)
        .with("server", sentinel.to_string())),
        Value::ServerError(error) => {
            let text = fault::words(&error);
            Err(fault::refusal(address, &text, None))
        }
        place => {
            let (host, port): (String, _) =
                redis::from_redis_value(place).map_err(|_| unclear())?;
            let facts: BTreeMap<String, String> =
                redis::from_redis_value(facts).unwrap_or_default();
            let epoch = facts.get("config-epoch").and_then(|epoch| epoch.parse().ok());
            Ok(Word { epoch: epoch.unwrap_or(0), master: Host::tcp(host, port) })
        }
    }
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if matches!(error.code(), "NOAUTH" | "NOPERM"))
}

async fn answers(
    address: &Address,
    sentinel: &Host,
    settings: RedisConnectionInfo,
    questions: &Pipeline,
    runtime: &RuntimeHandle,
) -> Result<Vec<Value>> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None);
    let named = |trouble: Trouble| trouble.into_error(address).with("server", sentinel.to_string());
    let (mut connection, _abort) =
        wire::connect(address, sentinel, settings, config.set_response_timeout(None), runtime)
            .await
            .map_err(named)?;
    let sent = connection.send_packed_commands(questions, 0, 2).await;
    sent.map_err(|error| named(error.into()))
}
