//! Tests of the holders and their order.

use fencelock::{Code, Token};
use futures_util::future::join;

use super::{Call, MS, S, World, check, granted};

/// First come, first served, and tokens rise. Nothing is left in the end.
pub(crate) async fn in_turn(world: &World) -> Result<(), String> {
    let first = world.client().await.lock("x").acquire().await.expect("it is free");
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let client = world.client().await;
        waiting.push(world.start(client.lock("x").acquire()));
        world.sleep(MS).await;
    }
    let (mut guard, mut tokens) = (first, Vec::new());
    for mut won in waiting {
        tokens.push(guard.token());
        check(granted(&mut won).is_none(), || "two hold".to_owned())?;
        guard.release().await.check().expect("it was held");
        guard = won.await.expect("the task ends");
    }
    tokens.push(guard.token());
    guard.release().await.check().expect("it was held");
    check(tokens.is_sorted_by(|one, two| one < two), || format!("{tokens:?}"))?;
    let left = world.entries().await;
    check(left.is_empty(), || format!("{left:?}"))
}

/// A waiter behind one that gives up waits for the holder.
pub(crate) async fn behind_one_that_leaves(world: &World) -> Result<(), String> {
    let holder = world.client().await.lock("x").acquire().await.expect("it is free");
    let (two, three) = (world.client().await, world.client().await);
    let second = world.start(two.lock("x").acquire_within(S));
    world.sleep(MS).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(2 * S).await;
    drop(second);
    check(granted(&mut third).is_none() && holder.is_held(), || "two hold".to_owned())?;
    holder.release().await.check().expect("it was held");
    third.await.map(drop).map_err(|_| "it is not served".to_owned())
}

/// One release wakes one waiter.
pub(crate) async fn one_is_woken(world: &World) -> Result<(), String> {
    let holder = world.client().await.lock("x").acquire().await.expect("it is free");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let machine = world.machine().await;
        let won = world.start(machine.client.lock("x").acquire());
        world.sleep(MS).await;
        waiting.push((won, machine));
    }
    world.sleep(3 * S).await;
    let calls = || waiting.iter().map(|(_, one)| one.line.count(Call::Watch)).sum::<usize>();
    let before = calls();
    holder.release().await.check().expect("it was held");
    // They also look once a second, each at a time of its own.
    world.sleep(5 * MS).await;
    let looks = calls() - before;
    check(looks <= 4, || format!("{looks} looks after one release"))
}

/// A waiter that is served late does not ask for each of those that were served before it.
pub(crate) async fn looks_are_few(world: &World) -> Result<(), String> {
    let holder = world.client().await.lock("x").acquire().await.expect("it is free");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let machine = world.machine().await;
        let won = world.start(machine.client.lock("x").acquire());
        world.sleep(MS).await;
        waiting.push((won, machine.line));
    }
    let looks = |line: &super::Line| line.count(Call::Watch) + line.count(Call::List);
    let lines: Vec<_> = waiting.iter().map(|(_, line)| line.clone()).collect();
    let before: usize = lines.iter().map(looks).sum();
    holder.release().await.check().expect("it was held");
    for (won, _) in waiting {
        won.await.expect("the task ends").release().await.check().expect("it was held");
    }
    let looks = lines.iter().map(looks).sum::<usize>() - before;
    check(looks <= 25, || format!("{looks} looks for 10 grants"))
}

/// A try that is refused leaves nothing in the way of others, also until its entry would have been removed.
pub(crate) async fn tries_beside_tries(world: &World) -> Result<(), String> {
    let (holder, slow, other) = (world.client().await, world.machine().await, world.client().await);
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
    check(won.is_some(), || "a try was refused though nobody holds the lock".to_owned())
}

/// So many permits and no more; the next one is served when any of them comes back.
pub(crate) async fn permits(world: &World) -> Result<(), String> {
    let permits = |client: &fencelock::Client| client.semaphore("x", 2);
    let (one, two) = (world.client().await, world.client().await);
    let first = permits(&one).acquire().await.expect("it is free");
    let _second = permits(&two).acquire().await.expect("it is free");
    let (three, four) = (world.client().await, world.client().await);
    let mut third = world.start(permits(&three).acquire());
    world.sleep(MS).await;
    let mut fourth = world.start(permits(&four).acquire());
    world.sleep(MS).await;
    check(granted(&mut third).is_none(), || "three hold two permits".to_owned())?;
    first.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut third).is_some(), || "the permit went to nobody".to_owned())?;
    // Its guard was dropped with that look.
    world.sleep(MS).await;
    check(granted(&mut fourth).is_some(), || "the last one is not served".to_owned())
}

/// A name in use as one kind is refused as another, and its queue goes on.
pub(crate) async fn kinds(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let tried = two.semaphore("x", 2).acquire_within(S).await;
    let code = tried.as_ref().err().map(fencelock::Error::code);
    check(code == Some(Code::Conflict), || format!("{tried:?}"))?;
    guard.release().await.check().expect("it was held");
    let permit = two.semaphore("x", 2).acquire().await;
    check(permit.is_ok(), || format!("{permit:?}"))
}

/// A mutex whose entry is behind the one of a writer, since a name is used as two kinds and a removal was lost. The writer's fence
/// is drawn later than the mutex' entry, whose token is the greater one all the same.
pub(crate) async fn mutex_behind_a_writer(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let (lossy, three) = (world.machine().await, world.client().await);
    let first = one.write_lock("x").acquire().await.expect("it is free");
    lossy.line.lose(&[Call::Leave]);
    let tried = lossy.client.lock("x").acquire().await;
    check(tried.is_err(), || format!("{tried:?}"))?;
    let mut writer = world.start(two.write_lock("x").acquire());
    world.sleep(MS).await;
    first.release().await.check().expect("it was held");
    world.sleep(MS).await;
    let mut mutex = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    check(granted(&mut writer).is_none(), || "the lost removal has arrived".to_owned())?;
    lossy.line.heal();
    let writer = writer.await.expect("it is served");
    check(granted(&mut mutex).is_none(), || "a mutex beside a writer".to_owned())?;
    let token = writer.token();
    writer.release().await.check().expect("it was held");
    let next = mutex.await.expect("it is served").token();
    check(next > token, || format!("{next} after {token}"))
}

/// The entry of a reader that was refused stays for a while before those of two mutexes. It goes while the first still holds.
pub(crate) async fn mutex_keeps_its_place(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let lossy = world.machine().await;
    let first = one.lock("x").acquire().await.expect("it is free");
    lossy.line.lose(&[Call::Leave]);
    let tried = lossy.client.read_lock("x").acquire().await;
    check(tried.is_err(), || format!("{tried:?}"))?;
    let second = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    lossy.line.heal();
    world.sleep(300 * S).await;
    check(world.entries().await.len() == 3, || "the reader's entry is still there".to_owned())?;
    first.release().await.check().expect("it was held");
    let second = second.await.expect("it is served");
    check(granted(&mut third).is_none(), || "two hold".to_owned())?;
    second.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut third).is_some(), || "the third is not served".to_owned())
}

/// However often a hold passes on inside, its tokens stay below those of the next one in the queue.
pub(crate) async fn passes_inside(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
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
        check(token > last, || format!("{token} after {last}"))?;
        (last, turns) = (token, turns + 1);
    }
    check(turns == 52, || format!("{turns} turns"))
}
