//! One ownership on the store: what is known of its end, on the local clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use event_listener::{Event, EventListener};

use super::life::{Life, LifeFlag};
use super::lock_id::LockId;
use crate::fence::Token;
use crate::port::{Instant, Mode, OwnerId, RuntimeHandle, Take};
use crate::runtime::sync::Mutex;

/// What an acquire asks for, apart from how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How to hold it.
    pub mode: Mode,
    /// Of how many permits.
    pub limit: u32,
    /// The lease wanted.
    pub ttl: Duration,
    /// Whether the renewer renews it.
    pub renew: bool,
    /// The longest it may be held.
    pub max_hold: Option<Duration>,
    /// Leave the lock open at the end instead of handing it over (`fair: false`).
    pub open: bool,
    /// How often the hold may pass on inside this client.
    pub local: u32,
    /// Who asks, as JSON.
    pub info: std::sync::Arc<str>,
}

impl Request {
    /// What is asked of the store.
    pub(crate) fn take(&self, wait: bool, floor: Token) -> Take {
        let Self { mode, limit, ttl, ref info, .. } = *self;
        Take { mode, limit, ttl, wait, block: self.block(), floor, info: info.clone() }
    }

    /// Tokens to draw with a grant: one for every local holder.
    pub(crate) fn block(&self) -> u32 {
        if self.renew && self.mode.is_exclusive() { self.local + 1 } else { 1 }
    }
}

#[cfg(test)]
impl Request {
    /// A mutex that is renewed, for tests.
    pub(super) fn of_a_mutex(local: u32) -> Self {
        Self {
            mode: Mode::Exclusive,
            limit: 1,
            ttl: Duration::from_secs(30),
            renew: true,
            max_hold: None,
            open: false,
            local,
            info: "{}".into(),
        }
    }
}

/// The tokens that were drawn with a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub first: Token,
    /// How many, one after the other: one for each local holder that may follow.
    pub count: u32,
}

/// A hold as this client knows it. Shared by the cohort, the renewer and the present guard.
///
/// The order of the fields matters: those that a renewal reads are in one cache line.
#[repr(C)]
pub(crate) struct Hold {
    /// The moment the lease ends, in nanoseconds of the local clock.
    deadline: AtomicU64,
    /// The lease the present holder wants, in nanoseconds.
    ttl: AtomicU64,
    /// The moment beyond which it is not renewed.
    cap: AtomicU64,
    /// The furthest end that was ever asked for, answered or not.
    asked: AtomicU64,
    life: Life,
    pub renew: bool,
    /// How many tokens were drawn.
    pub block: u32,
    pub owner: OwnerId,
    pub lock: LockId,
    /// The first token drawn with it.
    pub token: Token,
    /// The present local hold; 0 when the last one was given up.
    present: AtomicU64,
    signal: Event,
    /// When the present guard, or the one before it, got the lock, in nanoseconds.
    since: AtomicU64,
    state: Mutex<HoldMode>,
    pub open: bool,
    runtime: RuntimeHandle,
}

/// How a hold stands beside others now.
#[derive(Clone, Copy)]
struct HoldMode {
    mode: Mode,
    /// Whether it belongs to one guard for good and never passes on inside: a share, or what was one.
    alone: bool,
    /// The number of its newest change of mode.
    turn: u32,
    /// Calls that want it to write: it is the writer, or becomes it, until the last of them is given up.
    writers: u32,
    /// Drawn when it became the writer.
    drawn: Token,
}

/// Until when a lease of `length`, asked for at `sent`, may be relied on: less 1 % and 2 ms for clocks that drift apart.
pub(crate) fn deadline(sent: Instant, length: Duration) -> Instant {
    sent + length.saturating_sub(length / 100 + Duration::from_millis(2))
}

/// How much the client believes of the lease that the store answers to a request sent at `sent`: never more than was asked for. A
/// store whose clock has stepped back takes what it gave before for longer. `asked` is the furthest end asked for, `ttl` the lease wanted now.
pub(crate) fn believed(lease: Duration, sent: Instant, asked: Instant, ttl: Duration) -> Duration {
    lease.min(asked.since(sent).max(ttl))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What comes of a wish to hold less.
pub(crate) enum Lessened {
    /// The change of this number.
    By(u32),
    /// It holds like that.
    Already,
    /// That would not be less.
    Never,
}

impl HoldMode {
    fn new(mode: Mode, drawn: Token) -> Self {
        Self { mode, alone: !mode.lines_up(), turn: 0, writers: 0, drawn }
    }
}

impl Hold {
    pub(crate) fn new(
        lock: LockId,
        owner: OwnerId,
        tokens: Tokens,
        request: &Request,
        deadline: Instant,
        runtime: &RuntimeHandle,
    ) -> Self {
        let hold = Self {
            lock,
            owner,
            token: tokens.first,
            block: tokens.count,
            renew: request.renew,
            open: request.open,
            runtime: runtime.clone(),
            deadline: AtomicU64::new(0),
            ttl: AtomicU64::new(0),
            cap: AtomicU64::new(u64::MAX),
            asked: AtomicU64::new(0),
            life: Life::default(),
            present: AtomicU64::new(0),
            signal: Event::new(),
            since: AtomicU64::new(0),
            state: Mutex::new(HoldMode::new(request.mode, tokens.first)),
        };
        hold.set_request(request, runtime.now());
        hold.deadline.store(deadline.as_nanos(), Ordering::Release);
        hold
    }

    /// The last of the tokens drawn with it: what the store's counter stood at.
    pub(crate) fn newest_token(&self) -> Token {
        Token::new(self.token.get() + u64::from(self.block) - 1)
    }

    /// From now on the hold serves a holder with this request.
    pub(crate) fn set_request(&self, request: &Request, now: Instant) {
        self.ttl.store(nanos(request.ttl), Ordering::Relaxed);
        let cap = request.max_hold.map_or(Instant::FAR, |hold| now + hold);
        self.cap.store(cap.as_nanos(), Ordering::Relaxed);
        self.since.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn set_ttl(&self, ttl: Duration) {
        self.ttl.store(nanos(ttl), Ordering::Relaxed);
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl.load(Ordering::Relaxed))
    }

    pub(crate) fn cap(&self) -> Instant {
        Instant::from_nanos(self.cap.load(Ordering::Relaxed))
    }

    /// The moment the claim ends: with its lease, or with `max_hold`.
    pub(crate) fn deadline(&self) -> Instant {
        self.lease_end().min(self.cap())
    }

    /// The moment until which its lease may be relied on.
    pub(crate) fn lease_end(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// The store is asked to let it last until then.
    pub(crate) fn asks(&self, end: Instant) {
        self.asked.fetch_max(end.as_nanos(), Ordering::Relaxed);
    }

    /// Until when the store may keep it, whatever became of what was asked for and however early the claim ends.
    pub(crate) fn furthest(&self) -> Instant {
        self.lease_end().max(Instant::from_nanos(self.asked.load(Ordering::Relaxed)))
    }

    /// How long the present guard has the lock.
    pub(crate) fn held_for(&self) -> Duration {
        self.runtime.now().since(Instant::from_nanos(self.since.load(Ordering::Relaxed)))
    }

    /// Whether the claim stands at this very moment.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held_under(self.cap())
    }

    /// The same for a claim that ends at `cap`.
    pub(crate) fn is_held_under(&self, cap: Instant) -> bool {
        self.runtime.now() < self.lease_end().min(cap) && !self.is_lost()
    }

    /// A renewal sent at `sent` was answered: `left` was left at the answer. Moves the deadline, never back; a claim that
    /// has ended stays ended. Returns the lease that is believed, if the claim stands.
    pub(crate) fn prolong(&self, sent: Instant, left: Duration, now: Instant) -> Option<Duration> {
        if self.is_lost() || now >= self.deadline() {
            return None;
        }
        let asked = Instant::from_nanos(self.asked.load(Ordering::Relaxed));
        let left = believed(left, sent, asked, self.ttl());
        let new = deadline(sent, left);
        self.deadline.fetch_max(new.as_nanos(), Ordering::AcqRel);
        Some(left)
    }

    /// Ends the claim; true for the first who does.
    pub(crate) fn lose(&self, gone: bool) -> bool {
        if gone {
            self.life.end(LifeFlag::Gone);
        }
        let first = self.life.end(LifeFlag::Lost);
        self.tell();
        first
    }

    /// Whether its loss is still to be told; true for the first who asks.
    pub(crate) fn report_lost(&self) -> bool {
        self.life.end(LifeFlag::LossReported)
    }

    /// It is not renewed from now on. The renewer keeps it until the store has freed it, or the cleanup task is told to.
    pub(crate) fn retire(&self) {
        self.life.end(LifeFlag::GivenUp);
    }

    /// Whether nobody claims it any more, nor will.
    pub(crate) fn is_over(&self) -> bool {
        self.life.has(LifeFlag::GivenUp) || self.is_lost()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.life.has(LifeFlag::Lost)
    }

    /// The hold serves another local hold from now on; 0: none any more.
    pub(crate) fn serve(&self, number: u64) {
        self.present.store(number, Ordering::Release);
    }

    /// Whether this local hold has not been given up. One that was lost keeps its hold.
    pub(crate) fn serves(&self, number: u64) -> bool {
        self.present.load(Ordering::Acquire) == number
    }

    /// Has everybody who waits for the end of a local hold look again.
    pub(crate) fn tell(&self) {
        self.signal.notify(usize::MAX);
    }

    /// Whether the store itself said that nothing is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.life.has(LifeFlag::Gone)
    }

    /// How it holds.
    pub(crate) fn mode(&self) -> Mode {
        self.state.lock().mode
    }

    /// Whether it never passes on inside.
    pub(crate) fn stands_alone(&self) -> bool {
        self.state.lock().alone
    }

    /// One more call wants it to write. Answers the number of that change, which all of them share: a later one outweighs
    /// it, however late it arrives. None for a hold that cannot become the writer.
    pub(crate) fn join_upgrade(&self) -> Option<u32> {
        let mut state = self.state.lock();
        match state.mode {
            Mode::Write => {}
            Mode::Upgradeable => state.turn += u32::from(state.writers == 0),
            Mode::Exclusive | Mode::Read | Mode::Permit => return None,
        }
        state.writers += 1;
        Some(state.turn)
    }

    /// The store has made it the writer and drawn this token. Answers the latest that was drawn; none if another change was
    /// asked for meanwhile.
    pub(crate) fn becomes_writer(&self, turn: u32, drawn: Token) -> Option<Token> {
        let mut state = self.state.lock();
        if state.turn != turn {
            return None;
        }
        // The nodes of a quorum draw one each, and two who ask may hear of different ones.
        let drawn = drawn.max(state.drawn);
        (state.mode, state.alone, state.drawn) = (Mode::Write, true, drawn);
        drop(state);
        self.tell();
        Some(drawn)
    }

    /// Whether no other change was asked for since the one of this number.
    pub(crate) fn is_newest(&self, turn: u32) -> bool {
        self.state.lock().turn == turn
    }

    /// The token drawn when it became the writer; none while it is not.
    pub(crate) fn writes(&self) -> Option<Token> {
        let state = self.state.lock();
        (state.mode == Mode::Write).then_some(state.drawn)
    }

    /// A call that wanted it to write is given up. When it was the last one, the hold is the reader it was, and the answer is
    /// the number of the change that tells the store.
    pub(crate) fn leave_upgrade(&self, turn: u32) -> Option<u32> {
        let mut state = self.state.lock();
        // A writer from the start was never another's reader.
        let from_the_start = turn == 0;
        if from_the_start || state.turn != turn || state.writers == 0 {
            return None;
        }
        state.writers -= 1;
        if state.writers > 0 {
            return None;
        }
        (state.mode, state.writers) = (Mode::Upgradeable, 0);
        state.turn += 1;
        Some(state.turn)
    }

    /// From now on it holds like this, if that is less, and for one guard only.
    pub(crate) fn lessen(&self, mode: Mode) -> Lessened {
        let mut state = self.state.lock();
        match (state.mode, mode) {
            (Mode::Write, Mode::Upgradeable | Mode::Read) | (Mode::Upgradeable, Mode::Read) => {}
            // What waits to write is overtaken.
            (Mode::Upgradeable, Mode::Upgradeable) if state.writers > 0 => {}
            (from, to) if from == to => return Lessened::Already,
            _ => return Lessened::Never,
        }
        (state.mode, state.alone, state.writers) = (mode, true, 0);
        state.turn += 1;
        let turn = state.turn;
        drop(state);
        // Who waits to write hears that it is overtaken.
        self.tell();
        Lessened::By(turn)
    }

    /// Fires when the hold is lost or given up, and when the store tells of it.
    pub(crate) fn on_lost(&self) -> EventListener {
        self.signal.listen()
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }
}
