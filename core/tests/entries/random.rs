//! Random worlds: clients that hold, wait, give up; lines that lose and delay; machines that stand still or die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::{Kind, Mode, Runtime};
use fencelock::{Claim, Client, Guard, Lock, Token};
use fencelock_sim::{Dice, SimNode};

use super::line::CALLS;
use super::{Call, Machine, S, TTL, World, check};

const TURNS: u64 = 5;
const PERMITS: u32 = 2;

/// The claims of the holders, and the errors found.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    claims: Vec<Claim>,
    newest: Token,
    wrong: Vec<String>,
}

impl Book {
    /// Somebody has a guard.
    fn enter(&self, claim: Claim) {
        let mut book = self.0.lock().unwrap();
        let Pages { claims, newest, wrong } = &mut *book;
        if claim.mode().is_exclusive() && claim.is_held() && claim.token() < *newest {
            wrong.push(format!("{} after {newest}", claim.token()));
        }
        *newest = claim.token().max(*newest);
        claims.push(claim);
        drop(book);
        self.look();
    }

    /// Whether those who hold may hold beside each other.
    fn look(&self) {
        let mut book = self.0.lock().unwrap();
        let Pages { claims, wrong, .. } = &mut *book;
        claims.retain(Claim::is_held);
        let count = |mode| claims.iter().filter(|claim| claim.mode() == mode).count();
        let alone = claims.iter().filter(|claim| claim.mode().is_exclusive()).count();
        let bad = alone > 0 && claims.len() > 1 || count(Mode::Permit) > PERMITS as usize;
        if bad {
            let modes: Vec<_> = claims.iter().map(|claim| (claim.mode(), claim.token())).collect();
            wrong.push(format!("they hold together: {modes:?}"));
        }
    }
}

struct Actor {
    node: Arc<SimNode>,
    client: Client,
    book: Book,
    dice: Dice,
    kind: Kind,
}

impl Actor {
    async fn rest(&mut self, most: u64) {
        let time = Duration::from_millis(self.dice.below(most));
        self.node.sleep_until(self.node.now() + time).await;
    }

    fn lock(&mut self) -> Lock {
        let lock = match self.kind {
            Kind::Mutex => self.client.lock("x"),
            Kind::Semaphore => self.client.semaphore("x", PERMITS),
            Kind::ReadWrite if self.dice.chance(300) => self.client.write_lock("x"),
            Kind::ReadWrite => self.client.read_lock("x"),
        };
        if self.dice.chance(100) { lock.ttl(5 * S) } else { lock }
    }

    async fn play(mut self) {
        for _ in 0..TURNS {
            self.rest(10_000).await;
            let (lock, limit) = (self.lock(), Duration::from_millis(self.dice.below(60_000)));
            let won = if self.dice.chance(200) {
                lock.try_acquire().await.ok().flatten()
            } else {
                lock.acquire_within(limit).await.ok()
            };
            if let Some(guard) = won {
                self.hold(guard).await;
            }
        }
    }

    async fn hold(&mut self, guard: Guard) {
        self.book.enter(guard.claim());
        self.rest(15_000).await;
        if self.dice.chance(500) {
            let _ = guard.release().await;
        }
    }
}

/// Something goes wrong for a while.
async fn strike(world: &World, dice: &mut Dice, machine: &Machine) {
    let (line, time) = (&machine.line, Duration::from_millis(dice.below(50_000)));
    let late = Duration::from_millis(dice.below(9_000));
    match dice.below(9) {
        0 => line.lose(CALLS),
        1 => line.lose(&[Call::Beat]),
        2 => line.lose_answers(CALLS),
        3 => line.lose_answers(&[Call::Join, Call::Leave]),
        4 => line.delay(Call::Join, late),
        5 => line.delay_answers(Call::Beat, late),
        6 => line.deafen(true),
        7 => line.delay_answers(Call::Join, late),
        _ => machine.node.pause(),
    }
    world.sleep(time).await;
    line.heal();
    machine.node.resume();
}

/// A world of this seed keeps what is promised.
pub(crate) async fn any(world: &World, seed: u64) -> Result<(), String> {
    let mut dice = world.sim.dice();
    let kind = [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore][(seed % 3) as usize];
    let (book, mut machines, mut ends) = (Book::default(), Vec::new(), Vec::new());
    for _ in 0..4 {
        let machine = world.machine_that_drifts(dice.below(6000) as i32 - 3000).await;
        for _ in 0..dice.between(1, 2) {
            let (node, client) = (machine.node.clone(), machine.client.clone());
            let actor = Actor { node, client, book: book.clone(), dice: dice.fork(), kind };
            let (sender, end) = futures_channel::oneshot::channel();
            machine.node.spawn(Box::pin(async move {
                actor.play().await;
                let _ = sender.send(());
            }));
            ends.push(end);
        }
        machines.push(machine);
    }
    for _ in 0..dice.below(6) {
        world.sleep(Duration::from_millis(dice.below(20_000))).await;
        let at = dice.below(machines.len() as u64) as usize;
        strike(world, &mut dice, &machines[at]).await;
    }
    if dice.chance(300) {
        machines[0].node.crash();
    }
    for end in ends {
        let _ = end.await;
    }
    for machine in &machines[1..] {
        let load = machine.client.stats();
        check(load.1 == 0, || format!("{load:?} at rest"))?;
    }
    // What was not confirmed, and the session of one that died.
    world.sleep(2 * TTL).await;
    let left = world.entries().await;
    check(left.is_empty(), || format!("left: {left:?}"))?;
    let wrong = std::mem::take(&mut book.0.lock().unwrap().wrong);
    check(wrong.is_empty(), || wrong.join("; "))
}
