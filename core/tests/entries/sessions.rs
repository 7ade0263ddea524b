//! Tests of a client's trust in its session, and of how long it lasts.

use fencelock::Code;

use super::line::TIMEOUT;
use super::{Call, MS, Machine, S, TTL, World, check, granted};

/// A client that gets the lock after a session has ended finds no other guard that is held; `late`: the last heartbeats were
/// answered late; else it was extended after the last one was answered, and the machine stands still from then on.
pub(crate) async fn cut_off(world: &World, late: bool) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    let guard = one.client.lock("x").renew(late).acquire().await.expect("it is free");
    let mut next = world.start(two.lock("x").acquire());
    if late {
        one.line.delay_answers(Call::Beat, 3 * S);
        world.sleep(50 * S).await;
    }
    one.line.lose(&[Call::Beat, Call::End]);
    one.line.deafen(true);
    let cut = world.now();
    if !late {
        world.sleep(14 * S).await;
        guard.extend(TTL).await.expect("it was heard of lately");
        // Nobody tells the guard that the session is over: it has to know by itself.
        one.node.pause();
    }
    loop {
        world.sleep(MS).await;
        let granted = granted(&mut next);
        check(granted.is_none() || !guard.is_held(), || "two hold".to_owned())?;
        if granted.is_some() {
            break;
        }
    }
    let took = world.since(cut);
    check(took <= TTL + MS, || format!("the lock was free after {took:?}"))
}

/// A hold whose session has ended on the store is lost with the next heartbeat, and one whose entry is removed at once; though
/// neither is renewed.
pub(crate) async fn told_at_once(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.machine().await);
    let first = one.client.lock("x").renew(false).acquire().await.expect("it is free");
    let won = world.start(two.client.lock("x").renew(false).acquire());
    world.sleep(MS).await;
    let session = one.line.session().expect("it has one");
    world.end(session).await;
    let ended = world.now();
    first.lost().await;
    let took = world.since(ended);
    check(took <= TTL / 4, || format!("the end of the session was told after {took:?}"))?;
    let second = won.await.expect("it is served");
    world.remove(&world.entries().await[0]).await;
    let removed = world.now();
    second.lost().await;
    let took = world.since(removed);
    check(took <= MS, || format!("the removal was told after {took:?}"))
}

/// A machine that stood still beyond its session has lost the lock at its first look, and goes on with another session.
pub(crate) async fn stood_still(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let next = world.start(two.lock("x").acquire());
    one.node.pause();
    let second = next.await.expect("it is served when the session has ended");
    let held = guard.is_held();
    one.node.resume();
    check(!held, || "it says that it is held".to_owned())?;
    second.release().await.check().expect("it was held");
    drop(guard);
    let again = one.client.lock("x").acquire_within(S).await;
    check(again.is_ok(), || format!("{again:?}"))
}

/// A session whose deadline has passed is ended, though the store has kept it.
pub(crate) async fn not_resumed(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let next = world.start(two.lock("x").acquire());
    world.sleep(100 * S).await;
    // The heartbeats arrive.
    one.line.lose_answers(&[Call::Beat]);
    guard.lost().await;
    let lost = world.now();
    let _next = next.await.expect("it is served");
    let took = world.since(lost);
    // The guard leaves room for drift once more.
    check(took < 500 * MS, || format!("the lock was free {took:?} after it was lost"))?;
    one.line.lose_answers(&[]);
    let other = one.client.lock("y").acquire().await;
    check(other.is_ok(), || format!("{other:?}"))?;
    let (opened, ended) = (one.line.count(Call::Open), one.line.count(Call::End));
    check((opened, ended) == (2, 1), || format!("{opened} opened, {ended} ended"))
}

/// A session that could not be ended when its deadline had passed is ended once the store can be reached again, though the store
/// would keep it for longer.
pub(crate) async fn ended_again(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let next = world.start(two.lock("x").acquire());
    world.sleep(100 * S).await;
    // The heartbeats arrive.
    one.line.lose_answers(&[Call::Beat]);
    one.line.lose(&[Call::End]);
    guard.lost().await;
    world.sleep(S).await;
    one.line.lose(&[]);
    let reached = world.now();
    let _next = next.await.expect("it is served");
    let took = world.since(reached);
    check(took < 3 * S, || format!("the lock was free {took:?} after the store was there again"))
}

/// Those who need a session while the store cannot be reached wait for one attempt to open it, not for one after the other.
pub(crate) async fn tries_without_a_store(world: &World) -> Result<(), String> {
    let one = world.machine().await;
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    one.line.lose(&[Call::Open]);
    world.end(one.line.session().expect("it has one")).await;
    guard.lost().await;
    let began = world.now();
    let tries = (0..50).map(|n| {
        let lock = one.client.lock(&format!("x{n}"));
        async move { lock.try_acquire().await }
    });
    let ended = futures_util::future::join_all(tries).await;
    let took = world.since(began);
    let code =
        |ended: &Result<_, fencelock::Error>| ended.as_ref().err().map(fencelock::Error::code);
    let all = ended.iter().all(|ended| code(ended) == Some(Code::Unavailable));
    check(all, || format!("{:?}", ended.iter().map(code).collect::<Vec<_>>()))?;
    let once = TIMEOUT;
    check(took <= 2 * once, || format!("50 tries took {took:?}, one attempt takes {once:?}"))
}

/// An extension is answered with an error while the store is not heard of.
pub(crate) async fn in_doubt(world: &World) -> Result<(), String> {
    let one = world.machine().await;
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    world.sleep(100 * S).await;
    one.line.lose(&[Call::Beat]);
    world.sleep(TTL * 3 / 4).await;
    let extended = guard.extend(TTL).await;
    let code = extended.as_ref().err().map(fencelock::Error::code);
    check(guard.is_held(), || "it was lost though the session lives".to_owned())?;
    check(code == Some(Code::Unavailable), || format!("{extended:?}"))?;
    one.line.lose(&[]);
    world.sleep(2 * S).await;
    guard.extend(TTL).await.map_err(|error| error.to_string())
}

/// A lock is held for as long as it is wanted, also if it came when the session was about to end: by a wait, or because it was free.
pub(crate) async fn granted_in_doubt(world: &World, waits: bool) -> Result<(), String> {
    let (one, two) = (world.client().await, world.machine().await);
    let _opens = two.client.lock("y").acquire().await.expect("it is free");
    let first = one.lock("x").acquire().await.expect("it is free");
    let waiting = waits.then(|| world.start(two.client.lock("x").acquire()));
    silence(world, &two).await;
    first.release().await.check().expect("it was held");
    let won = match waiting {
        Some(waiting) => waiting.await.expect("it is served"),
        None => two.client.lock("x").acquire().await.expect("it is free"),
    };
    world.sleep(TTL).await;
    check(won.is_held(), || "it was lost though the store answers".to_owned())
}

/// No heartbeat arrives until the session has almost ended.
async fn silence(world: &World, machine: &Machine) {
    world.sleep(100 * S).await;
    let before = machine.line.count(Call::Beat);
    while machine.line.count(Call::Beat) == before {
        world.sleep(MS).await;
    }
    machine.line.lose(&[Call::Beat]);
    world.sleep(TTL.saturating_sub(800 * MS)).await;
    machine.line.lose(&[]);
}

/// A grant that is pushed ends with the session of the one who waited.
pub(crate) async fn pushed_in_doubt(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.machine().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.client.lock("x").acquire());
    world.sleep(100 * S).await;
    two.line.lose(&[Call::Beat]);
    let cut = world.now();
    world.sleep(12 * S).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("it is served").remaining();
    let most = TTL.saturating_sub(world.since(cut));
    check(left <= most, || format!("it begins with {left:?}, its session ends in {most:?}"))
}

/// A lease that is shorter than the session ends in time.
pub(crate) async fn short_lease(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").ttl(2 * S).renew(false).acquire().await.expect("it is free");
    let left = guard.remaining();
    check(left > 1900 * MS && left <= 2 * S, || format!("{left:?} are left of 2 s"))?;
    let asked = world.now();
    let next = world.start(two.lock("x").acquire());
    let _next = next.await.expect("it is served");
    let took = world.since(asked);
    check(!guard.is_held() && took < 2100 * MS, || format!("the lease ended after {took:?}"))?;
    let longer = one.lock("y").ttl(2 * TTL).acquire().await;
    let code = longer.as_ref().err().map(fencelock::Error::code);
    check(code == Some(Code::Invalid), || format!("{longer:?}"))
}

/// A client that is closed leaves nothing, and its session ends.
pub(crate) async fn closed(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.machine().await);
    let _guard = one.client.lock("x").acquire().await.expect("it is free");
    let _waits = world.start(two.client.lock("x").acquire());
    world.sleep(MS).await;
    two.client.close().await;
    one.client.close().await;
    let left = world.entries().await;
    check(left.is_empty(), || format!("{left:?}"))?;
    let ended = one.line.count(Call::End) + two.line.count(Call::End);
    check(ended == 2, || format!("{ended} of 2 sessions ended"))?;
    let refused = one.client.lock("x").acquire().await;
    let code = refused.as_ref().err().map(fencelock::Error::code);
    check(code == Some(Code::Closed), || format!("{refused:?}"))
}
