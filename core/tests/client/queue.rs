//! The entry queue, whose locks live with their clients' sessions: each story shows what random worlds meet too rarely.

use fencelock::port::{Action, Kind, LeaseStore, LockKey, Outcome, OwnerId, Step};
use fencelock::{Code, Token};
use futures_util::future::join;

use crate::world::line::{Call, Line, TIMEOUT};
use crate::world::{MS, Machine, S, TTL, World, granted, look, play, take};

/// A waiter behind one that gives up waits for the holder.
async fn behind_one_that_leaves(world: &World) {
    let holder = world.entrant().await.client.lock("x").acquire().await.expect("it is free");
    let (two, three) = (world.entrant().await.client, world.entrant().await.client);
    let second = world.start(two.lock("x").acquire_within(S));
    world.sleep(MS).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(2 * S).await;
    drop(second);
    assert!(granted(&mut third).is_none() && holder.is_held(), "two hold");
    holder.release().await.check().expect("it was held");
    drop(third.await.expect("it is served"));
}

/// A waiter that is served late does not ask for each of those that were served before it.
async fn looks_are_few(world: &World) {
    let holder = world.entrant().await.client.lock("x").acquire().await.expect("it is free");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let machine = world.entrant().await;
        let won = world.start(machine.client.lock("x").acquire());
        world.sleep(MS).await;
        waiting.push((won, machine.line));
    }
    let looks = |line: &Line| line.count(Call::Watch) + line.count(Call::List);
    let lines: Vec<_> = waiting.iter().map(|(_, line)| line.clone()).collect();
    let before: usize = lines.iter().map(looks).sum();
    holder.release().await.check().expect("it was held");
    for (won, _) in waiting {
        won.await.expect("the task ends").release().await.check().expect("it was held");
    }
    let looks = lines.iter().map(looks).sum::<usize>() - before;
    assert!(looks <= 25, "{looks} looks for 10 grants");
}

/// A try that is refused leaves nothing in the way of others, also until its entry would have been removed.
async fn tries_beside_tries(world: &World) {
    let (holder, slow, other) =
        (world.entrant().await.client, world.entrant().await, world.entrant().await.client);
    let held = holder.lock("x").acquire().await.expect("it is free");
    slow.line.delay(Call::Leave, 5 * S);
    let first = async {
        let refused = slow.client.lock("x").try_acquire().await.expect("it is answered");
        assert!(refused.is_none(), "it is held");
    };
    let second = async {
        world.sleep(MS).await;
        held.release().await.check().expect("it was held");
        other.lock("x").try_acquire().await.expect("it is answered")
    };
    let ((), won) = join(first, second).await;
    assert!(won.is_some(), "a try was refused though nobody holds the lock");
}

/// A mutex whose entry is behind the one of a writer, since a name is used as two kinds and a removal was lost. The writer's fence
/// is drawn later than the mutex' entry, whose token is the greater one all the same.
async fn mutex_behind_a_writer(world: &World) {
    let (one, two) = (world.entrant().await.client, world.entrant().await.client);
    let (lossy, three) = (world.entrant().await, world.entrant().await.client);
    let first = one.write_lock("x").acquire().await.expect("it is free");
    lossy.line.lose(&[Call::Leave]);
    let tried = lossy.client.lock("x").acquire().await;
    assert!(tried.is_err(), "{tried:?}");
    let mut writer = world.start(two.write_lock("x").acquire());
    world.sleep(MS).await;
    first.release().await.check().expect("it was held");
    world.sleep(MS).await;
    let mut mutex = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    assert!(granted(&mut writer).is_none(), "the lost removal has arrived");
    lossy.line.heal();
    let writer = writer.await.expect("it is served");
    assert!(granted(&mut mutex).is_none(), "a mutex beside a writer");
    let token = writer.token();
    writer.release().await.check().expect("it was held");
    let next = mutex.await.expect("it is served").token();
    assert!(next > token, "{next} after {token}");
}

/// The entry of a reader that was refused stays for a while before those of two mutexes. It goes while the first still holds.
async fn mutex_keeps_its_place(world: &World) {
    let (one, two, three) =
        (world.entrant().await.client, world.entrant().await.client, world.entrant().await.client);
    let lossy = world.entrant().await;
    let first = one.lock("x").acquire().await.expect("it is free");
    lossy.line.lose(&[Call::Leave]);
    let tried = lossy.client.read_lock("x").acquire().await;
    assert!(tried.is_err(), "{tried:?}");
    let second = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    lossy.line.heal();
    world.sleep(300 * S).await;
    assert!(world.entries().await.len() == 3, "the reader's entry is still there");
    first.release().await.check().expect("it was held");
    let second = second.await.expect("it is served");
    assert!(granted(&mut third).is_none(), "two hold");
    second.release().await.check().expect("it was held");
    world.sleep(MS).await;
    assert!(granted(&mut third).is_some(), "the third is not served");
}

/// However often a hold passes on inside, its tokens stay below those of the next one in the queue.
async fn passes_inside(world: &World) {
    let (one, two) = (world.entrant().await.client, world.entrant().await.client);
    let guard = one.lock("x").local(1000).acquire().await.expect("it is free");
    let other = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let mut inside: Vec<_> =
        (0..50).map(|_| world.start(one.lock("x").local(1000).acquire())).collect();
    world.sleep(MS).await;
    inside.push(other);
    let (mut last, mut next, mut turns) = (guard.token(), Some(guard), 0);
    while let Some(guard) = next.take() {
        guard.release().await.check().expect("it was held");
        world.sleep(MS / 100).await;
        next = inside.iter_mut().find_map(granted);
        let token = next.as_ref().map_or(Token::MAX, |guard| guard.token());
        assert!(token > last, "{token} after {last}");
        (last, turns) = (token, turns + 1);
    }
    assert!(turns == 52, "{turns} turns");
}

/// An entry whose join was not answered is removed, however long the store refuses to.
async fn unanswered_join(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
    one.line.lose_answers(&[Call::Join]);
    one.line.lose(&[Call::Leave]);
    let tried = one.client.lock("x").try_acquire().await;
    assert!(tried.is_err(), "{tried:?}");
    world.sleep(300 * S).await;
    assert!(world.entries().await.len() == 1, "it was removed by nobody");
    one.line.lose_answers(&[]);
    one.line.lose(&[]);
    let next = two.lock("x").acquire_within(5 * S).await;
    assert!(next.is_ok(), "{next:?}");
    assert!(world.entries().await.len() == 1, "something is left");
}

/// A join that arrives behind its removal makes no entry.
async fn late_join(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
    one.line.delay(Call::Join, 2 * S);
    let mut asked = Box::pin(one.client.lock("x").acquire());
    assert!(look(&mut asked).await.is_pending(), "it is under way");
    world.sleep(MS).await;
    assert!(look(&mut asked).await.is_pending(), "it is under way");
    drop(asked);
    world.sleep(3 * S).await;
    let left = world.entries().await;
    assert!(left.is_empty(), "{left:?}");
    let next = two.lock("x").acquire_within(S).await;
    assert!(next.is_ok(), "{next:?}");
}

/// A release whose answer is lost frees the lock.
async fn b63_a_release_without_an_answer_frees_the_lock(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    one.line.lose(&[Call::Leave]);
    let released = guard.release().await;
    assert!(released == fencelock::Released::Unconfirmed, "{released:?}");
    one.line.lose(&[]);
    let _next = won.await.expect("it is served");
    assert!(world.entries().await.len() == 1, "something is left");
}

/// A waiter whose entry is gone waits with a new one, not behind nobody.
async fn own_entry_gone(world: &World) {
    let (one, two, three) =
        (world.entrant().await.client, world.entrant().await.client, world.entrant().await.client);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut second = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let entries = world.entries().await;
    world.remove(&entries[1]).await;
    world.sleep(2 * S).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    world.sleep(2 * S).await;
    let holders = [granted(&mut second), granted(&mut third)];
    let count = holders.iter().flatten().filter(|guard| guard.is_held()).count();
    assert!(count == 1, "{count} hold");
    assert!(holders[0].is_some(), "it has lost its turn");
}

/// A waiter goes on waiting with another session when its own has ended.
async fn b74_a_waiter_goes_on_in_another_session(world: &World) {
    let (one, two) = (world.entrant().await.client, world.entrant().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut won = world.start(two.client.lock("x").acquire());
    world.sleep(S).await;
    two.line.lose(&[Call::Beat]);
    world.sleep(60 * S).await;
    two.line.lose(&[]);
    world.sleep(5 * S).await;
    assert!(world.entries().await.len() == 2, "it does not wait any more");
    guard.release().await.check().expect("it was held");
    world.sleep(MS).await;
    assert!(granted(&mut won).is_some(), "it is not served");
}

/// A Take whose Leave came while there was no session, as when a hold is handed over to a waiter that leaves at that moment: nobody would
/// take back what the Take gets.
async fn take_after_its_leave(world: &World) {
    let (_, queue) = world.entry_queue(&world.node);
    let owner = OwnerId::draw(&*world.node);
    let leave = Action::Leave { tombstone: Some(TTL) };
    for action in [leave, take(TTL, Token::default(), true)] {
        let step = Step { lock: LockKey::new("x"), owner, kind: Kind::Mutex, action };
        let answers = queue.step(&[step]).await;
        assert!(matches!(answers[..], [Ok(Outcome::Gone)]), "{answers:?}");
    }
    let left = world.entries().await;
    assert!(left.is_empty(), "{left:?}");
}

/// A client that gets the lock after a session has ended finds no other guard that is held; `late`: the last heartbeats were
/// answered late; else it was extended after the last one was answered, and the machine stands still from then on.
async fn cut_off(world: &World, late: bool) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
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
        assert!(granted.is_none() || !guard.is_held(), "two hold");
        if granted.is_some() {
            break;
        }
    }
    let took = world.since(cut);
    assert!(took <= TTL + MS, "the lock was free after {took:?}");
}

/// A hold whose session has ended on the store is lost with the next heartbeat, and one whose entry is removed at once; though
/// neither is renewed.
async fn told_at_once(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await);
    let first = one.client.lock("x").renew(false).acquire().await.expect("it is free");
    let won = world.start(two.client.lock("x").renew(false).acquire());
    world.sleep(MS).await;
    let session = one.line.session().expect("it has one");
    world.end(session).await;
    let ended = world.now();
    first.lost().await;
    let took = world.since(ended);
    assert!(took <= TTL / 4, "the end of the session was told after {took:?}");
    let second = won.await.expect("it is served");
    world.remove(&world.entries().await[0]).await;
    let removed = world.now();
    second.lost().await;
    let took = world.since(removed);
    assert!(took <= MS, "the removal was told after {took:?}");
}

/// A machine that stood still beyond its session has lost the lock at its first look, and goes on with another session.
async fn b72_a_session_that_ended_ends_what_hangs_on_it(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let next = world.start(two.lock("x").acquire());
    one.node.pause();
    let second = next.await.expect("it is served when the session has ended");
    let held = guard.is_held();
    one.node.resume();
    assert!(!held, "it says that it is held");
    second.release().await.check().expect("it was held");
    drop(guard);
    let again = one.client.lock("x").acquire_within(S).await;
    assert!(again.is_ok(), "{again:?}");
}

/// A session whose deadline has passed is ended, though the store has kept it.
async fn not_resumed(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
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
    assert!(took < 500 * MS, "the lock was free {took:?} after it was lost");
    one.line.lose_answers(&[]);
    let other = one.client.lock("y").acquire().await;
    assert!(other.is_ok(), "{other:?}");
    let (opened, ended) = (one.line.count(Call::Open), one.line.count(Call::End));
    assert!((opened, ended) == (2, 1), "{opened} opened, {ended} ended");
}

/// A session that could not be ended when its deadline had passed is ended once the store can be reached again, though the store
/// would keep it for longer.
async fn ended_again(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await.client);
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
    assert!(took < 3 * S, "the lock was free {took:?} after the store was there again");
}

/// Those who need a session while the store cannot be reached wait for one attempt to open it, not for one after the other.
async fn tries_without_a_store(world: &World) {
    let one = world.entrant().await;
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
    assert!(all, "{:?}", ended.iter().map(code).collect::<Vec<_>>());
    // A try that failed so soon is made once more.
    let twice = 2 * TIMEOUT;
    assert!(took <= twice + TIMEOUT, "50 tries took {took:?}, two attempts take {twice:?}");
}

/// An extension is answered with an error while the store is not heard of.
async fn in_doubt(world: &World) {
    let one = world.entrant().await;
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    world.sleep(100 * S).await;
    one.line.lose(&[Call::Beat]);
    world.sleep(TTL * 3 / 4).await;
    let extended = guard.extend(TTL).await;
    let code = extended.as_ref().err().map(fencelock::Error::code);
    assert!(guard.is_held(), "it was lost though the session lives");
    assert!(code == Some(Code::Unavailable), "{extended:?}");
    one.line.lose(&[]);
    world.sleep(2 * S).await;
    guard.extend(TTL).await.expect("the store is there again");
}

/// A lock is held for as long as it is wanted, also if it came when the session was about to end: by a wait, or because it was free.
async fn granted_in_doubt(world: &World, waits: bool) {
    let (one, two) = (world.entrant().await.client, world.entrant().await);
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
    assert!(won.is_held(), "it was lost though the store answers");
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
async fn pushed_in_doubt(world: &World) {
    let (one, two) = (world.entrant().await.client, world.entrant().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.client.lock("x").acquire());
    world.sleep(100 * S).await;
    two.line.lose(&[Call::Beat]);
    let cut = world.now();
    world.sleep(12 * S).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("it is served").remaining();
    let most = TTL.saturating_sub(world.since(cut));
    assert!(left <= most, "it begins with {left:?}, its session ends in {most:?}");
}

/// A lease that is shorter than the session ends in time.
async fn short_lease(world: &World) {
    let (one, two) = (world.entrant().await.client, world.entrant().await.client);
    let guard = one.lock("x").ttl(2 * S).renew(false).acquire().await.expect("it is free");
    let left = guard.remaining();
    assert!(left > 1900 * MS && left <= 2 * S, "{left:?} are left of 2 s");
    let asked = world.now();
    let next = world.start(two.lock("x").acquire());
    let _next = next.await.expect("it is served");
    let took = world.since(asked);
    assert!(!guard.is_held() && took < 2100 * MS, "the lease ended after {took:?}");
    let longer = one.lock("y").ttl(2 * TTL).acquire().await;
    let code = longer.as_ref().err().map(fencelock::Error::code);
    assert!(code == Some(Code::Invalid), "{longer:?}");
}

/// A client that is closed leaves nothing, and its session ends.
async fn closed(world: &World) {
    let (one, two) = (world.entrant().await, world.entrant().await);
    let _guard = one.client.lock("x").acquire().await.expect("it is free");
    let _waits = world.start(two.client.lock("x").acquire());
    world.sleep(MS).await;
    two.client.close().await;
    one.client.close().await;
    let left = world.entries().await;
    assert!(left.is_empty(), "{left:?}");
    let ended = one.line.count(Call::End) + two.line.count(Call::End);
    assert!(ended == 2, "{ended} of 2 sessions ended");
    let refused = one.client.lock("x").acquire().await;
    let code = refused.as_ref().err().map(fencelock::Error::code);
    assert!(code == Some(Code::Closed), "{refused:?}");
}

#[test]
fn one_that_is_cut_off_holds_beside_nobody() {
    play(async |world: &World| cut_off(world, true).await);
    play(async |world: &World| cut_off(world, false).await);
}

#[test]
fn b02_what_came_when_the_session_was_about_to_end_can_be_renewed() {
    play(async |world: &World| granted_in_doubt(world, true).await);
    play(async |world: &World| granted_in_doubt(world, false).await);
}

plays! {
    behind_one_that_leaves,
    looks_are_few,
    tries_beside_tries,
    mutex_behind_a_writer,
    mutex_keeps_its_place,
    passes_inside,
    unanswered_join,
    late_join,
    b63_a_release_without_an_answer_frees_the_lock,
    own_entry_gone,
    b74_a_waiter_goes_on_in_another_session,
    take_after_its_leave,
    told_at_once,
    b72_a_session_that_ended_ends_what_hangs_on_it,
    not_resumed,
    ended_again,
    tries_without_a_store,
    in_doubt,
    pushed_in_doubt,
    short_lease,
    closed,
}
