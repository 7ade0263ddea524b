//! One task of a world: it asks for locks, works under them, and gives them back, as its plan says.

mod cells;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fencelock::port::{Instant, Mode, Runtime};
use fencelock::{Claim, Client, Code, Error, Gate, Guard, Lock, Released, Scope, WithError};
use fencelock_sim::SimNode;
use futures_util::future::{Either, select};

use super::cancel::{Cancel, Cancelled};
use super::checker::{Checker, Rule, Span};
use super::plan::{Act, Doing, End, How, JobPlan, Task, name};

/// Where a task runs.
#[derive(Clone)]
pub struct Place {
    /// The world itself, which wakes machines that stand still.
    pub world: Arc<SimNode>,
    /// The task's machine.
    pub node: Arc<SimNode>,
    /// The number of its client.
    pub number: usize,
    /// The checker that watches the world.
    pub checker: Arc<Checker>,
    /// Guards the resources.
    pub gate: Arc<Gate>,
    /// Shared by the tasks of the client.
    pub scope: Scope,
    /// The longest a try may take.
    pub longest_try: Duration,
    /// How jobs are run.
    pub job: JobPlan,
}

impl Place {
    /// Does what the plan says, to the end.
    pub async fn run(self, client: Client, task: Task) {
        for act in &task.acts {
            self.sleep(act.rest).await;
            let _until_it_is_given_back = self.checker.acts(self.number);
            self.act(&client, act).await;
        }
    }

    async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    /// The whole machine stands still.
    async fn freeze(&self, time: Duration) {
        freeze(&self.world, &self.node, &self.checker, self.number, time);
        // The machine is polled no more after this await begins, until it goes on.
        self.sleep(Duration::from_nanos(1)).await;
    }

    async fn act(&self, client: &Client, act: &Act) {
        match act.how {
            How::Add(retries) => return self.add(client, act, retries).await,
            How::Delete => return self.delete(client, act).await,
            How::Start => return self.start(client, act).await,
            How::Lead => return self.lead(client, act).await,
            How::Acquire | How::Within(_) | How::Try | How::With => {}
        }
        if let Some(other) = act.also {
            return self.act_on_both(client, other, act).await;
        }
        let name = name(act.lock);
        let lock = match act.mode {
            Mode::Exclusive if act.scope.is_some() => self.scope.lock(&name),
            Mode::Read => client.read_lock(&name),
            Mode::Write => client.write_lock(&name),
            Mode::Permit => client.semaphore(&name, act.limit).permits(act.permits),
            _ => client.lock(&name),
        };
        let lock = lock.ttl(act.ttl).renew(act.renew).local(act.local);
        // Order is the default, and not to be asked for where there is none.
        let lock = if act.fair { lock } else { lock.fair(false) };
        let lock = match act.max_hold {
            Some(most) => lock.max_hold(most),
            None => lock,
        };
        if act.how == How::With {
            return self.act_within_with(&lock, act).await;
        }
        let asking = Asking::begin(self, act);
        let asked = async {
            match act.how {
                How::Try => lock.try_acquire().await,
                How::Within(wait) => lock.acquire_within(wait).await.map(Some),
                _ => lock.acquire().await.map(Some),
            }
        };
        let asked = Cancelled::new(&self.node, act.cancel, asked).await;
        if let Some(Ok(Some(_))) = asked {
            self.checker.served(&asking.span);
        }
        asking.end(&Ended::of(asked.as_ref()));
        let Some(Ok(Some(guard))) = asked else { return };
        let span = self.checker.holds(self.number, act.lock, act, &guard);
        for doing in &act.section {
            self.section(&guard.claim(), Some(&guard), &span, act, *doing).await;
        }
        drop(span);
        self.give_back(guard, act).await;
    }

    /// Takes two mutexes as one, and works under both.
    async fn act_on_both(&self, client: &Client, other: usize, act: &Act) {
        let all = client.all([act.lock, other].map(name));
        let all = all.ttl(act.ttl).renew(act.renew);
        let all = if act.fair { all } else { all.option("fair", false) };
        let asking = Asking::begin(self, act);
        let also = self.checker.asks(self.number, other, act, false);
        let asked = async {
            match act.how {
                How::Try => all.try_acquire().await,
                How::Within(wait) => all.acquire_within(wait).await.map(Some),
                _ => all.acquire().await.map(Some),
            }
        };
        let asked = Cancelled::new(&self.node, act.cancel, asked).await;
        asking.end(&Ended::of(asked.as_ref()));
        drop(also);
        let Some(Ok(Some(guard))) = asked else { return };
        let spans = [act.lock, other].map(|lock| {
            let claim = guard.of(&name(lock)).expect("it is one of them");
            (lock, self.checker.holds(self.number, lock, act, &claim), claim)
        });
        for doing in &act.section {
            for (lock, span, claim) in &spans {
                let act = &Act { lock: *lock, ..act.clone() };
                self.section(claim, None, span, act, *doing).await;
            }
        }
        drop(spans);
        match act.end {
            End::Drop | End::Fail => drop(guard),
            End::Release(cancel) => drop(Cancelled::new(&self.node, cancel, guard.release()).await),
        }
    }

    async fn act_within_with(&self, lock: &Lock, act: &Act) {
        let mut asking = Some(Asking::begin(self, act));
        let result = {
            let body = |claim: Claim| {
                if let Some(asking) = asking.take() {
                    self.checker.served(&asking.span);
                    asking.end(&Ended::Well);
                }
                let span = self.checker.holds(self.number, act.lock, act, &claim);
                async move {
                    for doing in &act.section {
                        self.section(&claim, None, &span, act, *doing).await;
                    }
                    Ok::<_, Infallible>(())
                }
            };
            let ended = Cancelled::new(&self.node, act.cancel, lock.with(body)).await;
            ended.map(|ended| ended.map_err(WithError::<Infallible>::into_error))
        };
        match (asking, result) {
            (Some(asking), result) => {
                asking.end(&Ended::of(result.as_ref()));
            }
            (None, Some(Err(error))) if !matches!(error.code(), Code::Lost | Code::Closed) => {
                self.checker.violated(Rule::WrongError, error.to_string());
            }
            (None, None) => self.checker.count(|figures| figures.cancels += 1),
            (None, Some(Err(_))) if self.checker.calm() => {
                self.checker.violated(Rule::FalselyLost, "under `with`".to_owned());
            }
            _ => {}
        }
    }

    async fn section(
        &self,
        claim: &Claim,
        guard: Option<&Guard>,
        span: &Span,
        act: &Act,
        doing: Doing,
    ) {
        match doing {
            Doing::Work(time) => self.work(claim, span, time).await,
            Doing::Write(time) => self.write(claim, act.lock, self.sleep(time)).await,
            Doing::Freeze(time) => self.write(claim, act.lock, self.freeze(time)).await,
            Doing::Extend(ttl) => {
                let Some(guard) = guard else { return };
                match guard.extend(ttl).await {
                    Ok(()) if !self.checker.calm() || claim.is_held() => {}
                    Err(error) if !self.checker.calm() => {
                        self.judge(&error, &[Code::Lost, Code::Unavailable, Code::Closed]);
                    }
                    result => {
                        let detail = format!("extending ended with {result:?}");
                        self.checker.violated(Rule::FalselyLost, detail);
                    }
                }
            }
            Doing::Enter(ttl, cancel) => self.enter(claim, act, ttl, cancel).await,
        }
    }

    async fn work(&self, claim: &Claim, span: &Span, time: Duration) {
        self.checker.awaits_loss(span, true, false);
        let lost = Box::pin(claim.lost());
        match select(Box::pin(self.sleep(time)), lost).await {
            Either::Left(_) => self.checker.awaits_loss(span, false, false),
            Either::Right(_) => {
                self.checker.awaits_loss(span, false, true);
                if claim.is_held() {
                    let detail = format!("{} is held, yet told to be lost", claim.token());
                    self.checker.violated(Rule::FalselyLost, detail);
                }
            }
        }
    }

    /// Reads the resource, dawdles, and writes what follows from the read: lost if anybody wrote in between.
    async fn write(&self, claim: &Claim, lock: usize, dawdling: impl Future<Output = ()>) {
        if !claim.mode().is_exclusive() {
            // Whoever shares the lock may not write.
            return dawdling.await;
        }
        let Some(value) = self.checker.read(&self.gate, lock, claim.token()) else { return };
        let held = claim.is_held();
        dawdling.await;
        if held {
            self.checker.write(&self.gate, lock, claim.token(), value + 1);
        }
    }

    async fn give_back(&self, guard: Guard, act: &Act) {
        let End::Release(cancel) = act.end else { return drop(guard) };
        let held = guard.is_held();
        let asked = self.checker.now();
        match Cancelled::new(&self.node, cancel, guard.release()).await {
            None => self.checker.count(|figures| figures.cancels += 1),
            Some(Released::Released) => self.checker.told_freed(self.number, act, asked),
            Some(other) if self.checker.calm() => {
                let detail = format!("a release ended with {other:?}, held: {held}");
                self.checker.violated(Rule::FalselyLost, detail);
            }
            Some(_) => {}
        }
    }

    /// Enters and leaves the lock that `outer` holds; what it holds is what `outer` does, and stays.
    async fn enter(&self, outer: &Claim, act: &Act, ttl: Duration, cancel: Cancel) {
        if act.scope.is_none() {
            return;
        }
        let act = Act { how: How::Acquire, section: Vec::new(), ..act.clone() };
        let asking = Asking::begin(self, &act);
        let lock = self.scope.lock(&name(act.lock)).ttl(ttl);
        let entered = Cancelled::new(&self.node, cancel, lock.acquire()).await;
        asking.end(&Ended::of(entered.as_ref()));
        let Some(Ok(guard)) = entered else { return };
        let span = self.checker.holds(self.number, act.lock, &act, &guard);
        if guard.token() != outer.token() {
            let detail = format!("entered with {} beside {}", guard.token(), outer.token());
            self.checker.violated(Rule::Overlap, detail);
        }
        drop(span);
        let released = guard.release().await;
        if self.checker.calm() && !(matches!(released, Released::Released) && outer.is_held()) {
            let detail = format!("left again: {released:?}, held: {}", outer.is_held());
            self.checker.violated(Rule::FalselyLost, detail);
        }
    }

    fn judge(&self, error: &Error, expected: &[Code]) {
        if !expected.contains(&error.code()) {
            self.checker.violated(Rule::WrongError, format!("client {}: {error}", self.number));
        }
    }
}

/// Stops a machine, and has the world start it again.
pub fn freeze(
    world: &Arc<SimNode>,
    node: &Arc<SimNode>,
    checker: &Arc<Checker>,
    client: usize,
    time: Duration,
) {
    node.pause();
    checker.paused(client);
    let end = checker.now() + time;
    checker.disturb(client, end, false);
    checker.tell(|| format!("client {client} stands still for {time:?}"));
    let (over, node) = (world.sleep_until(world.now() + time), Arc::clone(node));
    let checker = Arc::clone(checker);
    world.spawn(Box::pin(async move {
        over.await;
        checker.paused(client);
        node.resume();
    }));
}

/// How an acquire ended.
enum Ended<'a> {
    Cancelled,
    Well,
    Badly(&'a Error),
}

impl<'a> Ended<'a> {
    fn of<T>(result: Option<&'a Result<T, Error>>) -> Self {
        match result {
            None => Self::Cancelled,
            Some(Ok(_)) => Self::Well,
            Some(Err(error)) => Self::Badly(error),
        }
    }
}

/// An acquire in flight, with what may be expected of its time.
struct Asking<'a> {
    place: &'a Place,
    act: &'a Act,
    span: Span,
    since: Instant,
    pauses: u64,
}

impl<'a> Asking<'a> {
    fn begin(place: &'a Place, act: &'a Act) -> Self {
        let Place { checker, node, number, .. } = place;
        // Of two it is not known from outside which one is waited for.
        let waits = act.how != How::Try && act.also.is_none();
        let span = checker.asks(*number, act.lock, act, waits);
        Self { place, act, span, since: node.now(), pauses: checker.pauses(*number) }
    }

    /// Judges how it ended.
    fn end(self, ended: &Ended<'_>) {
        let Self { place, act, span, since, pauses } = self;
        drop(span);
        let checker = &place.checker;
        let paused = checker.pauses(place.number) != pauses;
        let took = place.node.now().since(since);
        let code = match ended {
            Ended::Cancelled => {
                return checker.count(|figures| figures.cancels += 1);
            }
            Ended::Well => None,
            Ended::Badly(error) => {
                // Some names are asked for as something else than they are in use as.
                let calm: &[Code] = &[Code::Timeout, Code::Conflict];
                // The last one: a scope's own hold may be lost.
                let rough =
                    [Code::Timeout, Code::Conflict, Code::Unavailable, Code::Closed, Code::Lost];
                let rough = if act.scope.is_some() { &rough[..] } else { &rough[..4] };
                place.judge(error, if checker.calm() { calm } else { rough });
                Some(error.code())
            }
        };
        if let How::Within(wait) = act.how
            && !paused
            && !wait.is_zero()
        {
            let early = code == Some(Code::Timeout) && took < wait;
            if early || took > wait + Duration::from_millis(1) {
                let detail = format!("a wait of {wait:?} took {took:?} and ended with {code:?}");
                checker.violated(Rule::WrongWait, detail);
            }
        }
        let most = place.longest_try * if act.also.is_some() { 2 } else { 1 };
        if act.how == How::Try && !paused && took > most {
            let detail = format!("a try took {took:?} and ended with {code:?}");
            checker.violated(Rule::WrongWait, detail);
        }
    }
}
