//! The line of `docs/reference/redis.md` for a Redis user: enough for everything, and nothing in it that is not needed.

use std::time::Duration;

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Applied, CellKey, CellStore, Change, Family, Kind, Layout, LeaseStore, LockKey, Mode,
    Notice, Outcome, Step, Take,
};
use fencelock::{Code, Token};
use fencelock_tests::bare::{Bare, PATIENCE, TTL, take, taking};
use fencelock_tests::servers::{ClusterSet, RedisServer, rights};

async fn connect(server: &RedisServer) -> Result<Bare, String> {
    let client = Bare::connect(&server.url_with_rights(), &Options::default()).await;
    client.map_err(|error| error.to_string())
}

/// Everything a client does; what it could not. A push is waited for with patience.
async fn everything(server: &RedisServer, patience: Duration) -> Result<(), String> {
    let mut client = connect(server).await?;
    // In a name with a tag another text stands within the record's braces.
    let lock = LockKey::new("app:{7}:till");
    let step = |owner, action| Step { lock: lock.clone(), owner, kind: Kind::Mutex, action };
    let run = async |client: &Bare, batch: &[Step]| {
        let answers = client.store.step(batch).await.into_iter();
        let answers: Result<Vec<_>, _> = answers.collect();
        answers.map_err(|failure| failure.error.to_string())
    };
    let owners: Vec<_> = (0..4).map(|_| client.owner()).collect();
    run(&client, &[step(owners[0], take(true))]).await?;
    // A waiter, and a hand-over that is told.
    run(&client, &[step(owners[1], take(true))]).await?;
    run(&client, &[step(owners[1], Action::Refresh { ttl: TTL })]).await?;
    run(&client, &[step(owners[0], Action::Free { open: false })]).await?;
    let told = tokio::time::timeout(patience, client.hear()).await;
    if !matches!(told, Ok(Notice::Granted { .. })) {
        return Err("nobody was told".to_owned());
    }
    run(&client, &[step(owners[1], Action::Renew { ttl: 2 * TTL })]).await?;
    run(&client, &[step(owners[1], Action::Free { open: false }), step(owners[2], take(true))])
        .await?;
    run(&client, &[step(owners[2], Action::Free { open: false })]).await?;
    // A tombstone, and its end, which a later step sweeps.
    let tombstone = Some(Duration::from_millis(1));
    run(&client, &[step(owners[3], Action::Leave { tombstone })]).await?;
    tokio::time::sleep(Duration::from_millis(2)).await;
    let longer = Take { ttl: 1000 * TTL, ..taking(Mode::Exclusive, 1, false) };
    run(&client, &[step(client.owner(), Action::Take(longer))]).await?;
    let seen = run(&client, &[step(client.owner(), Action::Read)]).await?;
    assert!(matches!(&seen[..], [Outcome::State(state)] if state.holders.len() == 1));
    // Readers and a writer, permits.
    for (name, first, second) in [
        ("app:book", Mode::Read, Mode::Write),
        ("app:pool", Mode::Permit, Mode::Permit),
        // That of a job.
        ("fencelock:job:app:report", Mode::Exclusive, Mode::Exclusive),
    ] {
        let lock = LockKey::new(name);
        let kind = first.kind();
        let step = |owner, action| Step { lock: lock.clone(), owner, kind, action };
        let [first, second] = [first, second].map(|mode| Action::Take(taking(mode, 1, true)));
        run(&client, &[step(owners[0], first), step(owners[1], second)]).await?;
        run(&client, &[step(owners[0], Action::Renew { ttl: TTL })]).await?;
        run(&client, &[step(owners[0], Action::Free { open: false })]).await?;
        run(&client, &[step(owners[1], Action::Refresh { ttl: TTL })]).await?;
        run(&client, &[step(owners[1], Action::Leave { tombstone: None })]).await?;
    }
    // A value that stays, a job's record, a gate.
    for (family, name) in [(Family::Version, "app:{7}:price"), (Family::Job, "app:{7}:report")] {
        let key = CellKey::new(family, name);
        let change = Change {
            key: key.clone(),
            expected: None,
            value: Some("1".into()),
            writer: client.owner(),
            keep: None,
        };
        let swapped = client.store.compare_and_set(&change).await;
        swapped.map_err(|failure| failure.error.to_string())?;
        client.store.read(&key).await.map_err(|error| error.to_string())?;
    }
    let gate = fencelock::connect_gate(server.url_with_rights().as_str()).await;
    let gate = gate.map_err(|error| error.to_string())?;
    for resource in ["app:stock", "app:{7}:stock"] {
        let set = gate.set(resource, Token::new(7), "3").await;
        set.map_err(|error| error.to_string())?;
    }
    // Scripts the server has forgotten.
    let () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut server.admin()).unwrap();
    run(&client, &[step(client.owner(), Action::Renew { ttl: TTL })]).await?;
    Ok(())
}

fn grant(server: &RedisServer, words: &[&str]) {
    let mut admin = server.admin();
    let () = redis::cmd("FLUSHALL").query(&mut admin).unwrap();
    let () = redis::cmd("ACL").arg(&["DELUSER", "fencelock"]).query(&mut admin).unwrap();
    let () = redis::cmd("ACL").arg("SETUSER").arg(words).query(&mut admin).unwrap();
}

#[tokio::test]
async fn the_rights_are_enough_and_none_is_too_many() {
    let server = RedisServer::start();
    grant(&server, &rights());
    everything(&server, PATIENCE).await.unwrap();
    for word in rights().iter().filter(|word| word.starts_with(['+', '~', '&'])) {
        for less in std::iter::once(String::new()).chain(narrower(word)) {
            let rest = rights().into_iter().filter(|other| other != word);
            grant(
                &server,
                &rest.chain(Some(&*less).filter(|less| !less.is_empty())).collect::<Vec<_>>(),
            );
            // Here it may well be that nobody is told.
            let refused = everything(&server, Duration::from_millis(300)).await;
            assert!(refused.is_err(), "instead of {word} it may be '{less}'");
        }
    }
}

/// The same right with each of its stars standing for less.
fn narrower(word: &str) -> impl Iterator<Item = String> {
    word.match_indices('*').flat_map(|(at, _)| {
        ["app:*", "t*"].map(|less| [&word[..at], less, &word[at + 1..]].concat())
    })
}

/// Of other applications' keys, and of what a client of this one never needs, nothing can be read or written.
#[tokio::test]
async fn others_are_none_of_its_business() {
    let server = RedisServer::start();
    grant(&server, &rights());
    let client = connect(&server).await.unwrap();
    let failure = client.fail("other", take(true)).await;
    assert_eq!(failure.error.code(), Code::Auth, "{failure:?}");
    let mut user =
        redis::Client::open(server.url_with_rights().as_str()).unwrap().get_connection().unwrap();
    let other = LockKey::new("other");
    let keys = [
        RedisStore::record_key(&other),
        RedisStore::record_key(&LockKey::new("{app:7}other")),
        RedisStore::record_key(&LockKey::laid_out(Layout::Redisson, "other")),
        RedisStore::record_key(&LockKey::new("fencelock:job:other")),
        RedisStore::holder_key(&other),
        RedisStore::holder_key(&LockKey::new("fencelock:job:other")),
        "fencelock:{other}:job:other".to_owned(),
        "fencelock:{other}:version:other".to_owned(),
        "fencelock:{other}:gate:other".to_owned(),
        "fencelock:born".to_owned(),
    ];
    for key in keys {
        let read: Result<Option<String>, _> = redis::cmd("GET").arg(&key).query(&mut user);
        let error = read.unwrap_err();
        assert_eq!(error.code(), Some("NOPERM"), "{key}: {error}");
    }
    let names = client.store.names("app:").await.unwrap_err();
    assert_eq!(names.code(), Code::Auth);
    grant(&server, &rights().into_iter().chain(["+scan"]).collect::<Vec<_>>());
    let client = connect(&server).await.unwrap();
    assert!(client.store.names("app:").await.unwrap().is_empty());
}

/// The rights that a node of a quorum needs beyond the line.
#[tokio::test]
async fn a_node_of_a_quorum_may_tell_since_when_it_keeps_its_data() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let places: Vec<_> = servers.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let url = format!("redlock://fencelock:PASSWORD@{}?ttl=2s&max_ttl=2s", places.join(","));
    for missing in ["+info", "~fencelock:born", ""] {
        let more = ["+info", "~fencelock:born"].into_iter().filter(|word| *word != missing);
        let words: Vec<_> = rights().into_iter().chain(more).collect();
        for server in &servers {
            grant(server, &words);
        }
        let client = fencelock::connect(&url).await;
        if !missing.is_empty() {
            assert_eq!(client.unwrap_err().code(), Code::Auth, "without {missing}");
            continue;
        }
        let (one, two) = (client.unwrap(), fencelock::connect(&url).await.unwrap());
        let writer = one.write_lock("app:x").acquire_within(Duration::from_secs(5)).await.unwrap();
        let waiter = tokio::spawn(two.read_lock("app:x").acquire());
        assert!(two.read_lock("app:x").try_acquire().await.unwrap().is_none());
        writer.release().await.check().unwrap();
        let next = waiter.await.unwrap().unwrap();
        next.release().await.check().unwrap();
        one.lock("app:y").acquire().await.unwrap().release().await.check().unwrap();
    }
}

/// The rights that `acks` and a cluster need beyond the line.
#[tokio::test]
async fn more_rights_are_named_where_they_are_needed() {
    let server = RedisServer::start();
    let mut options = Options::default();
    options.acks = 1;
    let both = ["+wait", "~fencelock:{*}:acks"];
    for (more, code) in
        [(&both[..1], Code::Auth), (&both[1..], Code::Auth), (&both, Code::Unavailable)]
    {
        let words: Vec<_> = rights().into_iter().chain(more.iter().copied()).collect();
        grant(&server, &words);
        let client = Bare::connect(&server.url_with_rights(), &options).await.unwrap();
        let failure = client.fail("app:till", take(true)).await;
        assert_eq!(
            (failure.error.code(), failure.applied),
            (code, Applied::Unknown),
            "{failure:?}"
        );
    }
    let words: Vec<_> =
        ["--user"].into_iter().chain(rights()).chain(["+asking", "+cluster|slots"]).collect();
    let set = ClusterSet::start(&words);
    let url = set.url().replace("://", "://fencelock:PASSWORD@");
    let client = fencelock::connect(&url).await.unwrap();
    for number in 0..20 {
        let lock = client.lock(&format!("app:{number}"));
        lock.acquire().await.unwrap().release().await.check().unwrap();
    }
}

/// The rights to wake those who wait by python-redis-lock and by Spring: without them nobody is woken, and nothing else
/// changes.
#[tokio::test]
async fn neighbours_are_woken_with_the_rights_for_it_and_left_alone_without() {
    const KEY: &str = "~lock:app:*";
    const RECORD: &str = "~fencelock:{*}:lock/plain:lock:app:*";
    let server = RedisServer::start();
    for (more, woken) in [
        (&["+lpush", "~lock-signal:*", KEY, RECORD][..], true),
        (&["~lock-signal:*", KEY, RECORD], false),
        (&["+lpush", KEY, RECORD], false),
    ] {
        let words: Vec<_> = rights().into_iter().chain(more.iter().copied()).collect();
        grant(&server, &words);
        let url = format!("{}?dialect=plain:lock:", server.url_with_rights());
        let client = fencelock::connect(&url).await.unwrap();
        client.lock("app:x").acquire().await.unwrap().release().await.check().unwrap();
        let signals: u64 =
            redis::cmd("LLEN").arg("lock-signal:app:x").query(&mut server.admin()).unwrap();
        assert_eq!(signals == 1, woken, "with {more:?}");
    }
    for (channel, woken) in [("&spring-channel:*", true), ("&other", false)] {
        let words: Vec<_> = rights()
            .into_iter()
            .chain([channel, "~spring:app:*", "~fencelock:{*}:lock/plain:spring:app:*"])
            .collect();
        grant(&server, &words);
        let mut listening = server.admin();
        listening.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut listening = listening.as_pubsub();
        listening.psubscribe("spring-channel:*").unwrap();
        let url = format!("{}?dialect=plain:spring:", server.url_with_rights());
        let client = fencelock::connect(&url).await.unwrap();
        client.lock("app:x").acquire().await.unwrap().release().await.check().unwrap();
        assert_eq!(listening.get_message().is_ok(), woken, "with {channel}");
    }
}

#[tokio::test]
async fn a_gate_takes_the_same_user_and_one_command_more_to_add() {
    let server = RedisServer::start();
    for (more, adds) in [(&["+incrby"][..], true), (&[], false)] {
        let words: Vec<_> = rights().into_iter().chain(more.iter().copied()).collect();
        grant(&server, &words);
        let gate = fencelock::connect_gate(server.url_with_rights().as_str()).await.unwrap();
        gate.set("app:stock", Token::new(7), "3").await.unwrap();
        let added = gate.increment("app:stock", Token::new(8), -1).await;
        assert_eq!(added.is_ok(), adds, "{added:?}");
        assert!(gate.delete("app:stock", Token::new(9)).await.unwrap());
    }
}
