//! One ownership on the store: what is known of its end, on the local clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use event_listener::{Event, EventListener};

use super::cohort::lines_up;
use super::target::Target;
use crate::fence::Token;
use crate::port::{Instant, Mode, OwnerId, RuntimeHandle, Take};
use crate::runtime::sync::Mutex;

/// What an acquire asks for, apart from how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// How to hold it.
    pub mode: Mode,
    /// Of how many permits.
    pub limit: u32,
    /// The lease wanted.
    pub ttl: Duration,
    /// Whether the wheel renews it.
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

impl Terms {
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
impl Terms {
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

/// A hold as this client knows it. Shared by the cohort, the wheel and the guard of the day.
///
/// In this order: of a hundred thousand a renewal finds none in the processor's cache, and what it looks at lies together.
#[repr(C)]
pub(crate) struct Hold {
    /// The moment the claim ends, in nanoseconds of the local clock.
    deadline: AtomicU64,
    /// The lease the present holder wants, in nanoseconds.
    ttl: AtomicU64,
    /// The moment beyond which it is not renewed.
    cap: AtomicU64,
    /// The furthest end that was ever asked for, answered or not.
    asked: AtomicU64,
    lost: AtomicBool,
    /// Whether the last one gave it up, and it is to be freed.
    retired: AtomicBool,
    /// Whether its loss was told.
    mourned: AtomicBool,
    /// Whether the store said that it is gone, so that there is nothing left to free.
    gone: AtomicBool,
    pub renew: bool,
    /// How many tokens were drawn.
    pub block: u32,
    pub owner: OwnerId,
    pub lock: Target,
    /// The first token drawn with it.
    pub token: Token,
    /// The local hold of the day; 0 when the last one was given up.
    present: AtomicU64,
    signal: Event,
    state: Mutex<Standing>,
    pub open: bool,
    runtime: RuntimeHandle,
}

/// How a hold stands beside others now.
#[derive(Clone, Copy)]
struct Standing {
    mode: Mode,
    /// Whether it belongs to one guard for good and never passes on inside: a share, or what was one.
    alone: bool,
    /// The number of its newest change of mode.
    turn: u32,
}

/// The moment until which a lease of `length`, asked for at `sent`, may be relied on: less 1 % and 2 ms for clocks that
/// drift apart.
pub(crate) fn deadline(sent: Instant, length: Duration) -> Instant {
    if mutant!(DeadlineWithoutDrift) {
        return sent + length + length / 50;
    }
    sent + length.saturating_sub(length / 100 + Duration::from_millis(2))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Hold {
    pub(crate) fn new(
        lock: Target,
        owner: OwnerId,
        token: Token,
        block: u32,
        terms: &Terms,
        deadline: Instant,
        runtime: &RuntimeHandle,
    ) -> Self {
        let hold = Self {
            lock,
            owner,
            token,
            block,
            renew: terms.renew,
            open: terms.open,
            runtime: runtime.clone(),
            deadline: AtomicU64::new(0),
            ttl: AtomicU64::new(0),
            cap: AtomicU64::new(u64::MAX),
            asked: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            mourned: AtomicBool::new(false),
            present: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            signal: Event::new(),
            state: Mutex::new(Standing { mode: terms.mode, alone: !lines_up(terms.mode), turn: 0 }),
        };
        hold.set_terms(terms, runtime.now());
        hold.deadline.store(deadline.as_nanos(), Ordering::Release);
        hold
    }

    /// The last of the tokens drawn with it: what the store's counter stood at.
    pub(crate) fn newest_token(&self) -> Token {
        Token::new(self.token.get() + u64::from(self.block) - 1)
    }

    /// From now on the hold serves a holder with these terms.
    pub(crate) fn set_terms(&self, terms: &Terms, now: Instant) {
        self.ttl.store(nanos(terms.ttl), Ordering::Relaxed);
        let cap = terms.max_hold.filter(|_| !mutant!(MaxHoldIgnored));
        self.cap.store(cap.map_or(Instant::FAR, |hold| now + hold).as_nanos(), Ordering::Relaxed);
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

    pub(crate) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire)).min(self.cap())
    }

    /// The store is asked to let it last until then.
    pub(crate) fn asks(&self, end: Instant) {
        self.asked.fetch_max(end.as_nanos(), Ordering::Relaxed);
    }

    /// Until when the store may keep it, whatever became of what was asked for and however early the claim ends.
    pub(crate) fn furthest(&self) -> Instant {
        let answered = self.deadline.load(Ordering::Acquire);
        Instant::from_nanos(answered.max(self.asked.load(Ordering::Relaxed)))
    }

    /// Whether the claim stands at this very moment.
    pub(crate) fn is_held(&self) -> bool {
        let in_time = self.runtime.now() < self.deadline() || mutant!(ClockNotCompared);
        in_time && !self.lost.load(Ordering::Acquire)
    }

    /// A renewal sent at `sent` was answered: `left` was left at the answer. Moves the deadline, never back; a claim that
    /// has ended stays ended. Returns whether it stands.
    pub(crate) fn prolong(&self, sent: Instant, left: Duration, now: Instant) -> bool {
        let ended = self.lost.load(Ordering::Acquire) || now >= self.deadline();
        if ended && !mutant!(LateRenewRevives) {
            return false;
        }
        let sent = if mutant!(DeadlineFromReply) { now } else { sent };
        let left = if mutant!(GrantCountedWithOwnTtl) { self.ttl() } else { left };
        let new = deadline(sent, left);
        if mutant!(DeadlineMovesBack) {
            self.deadline.store(new.as_nanos(), Ordering::Release);
        }
        self.deadline.fetch_max(new.as_nanos(), Ordering::AcqRel);
        true
    }

    /// Ends the claim; true for the first who does.
    pub(crate) fn lose(&self, gone: bool) -> bool {
        self.gone.fetch_or(gone, Ordering::AcqRel);
        let first = !self.lost.swap(true, Ordering::AcqRel);
        self.tell();
        first
    }

    /// Whether its loss is still to be told; true for the first who asks.
    pub(crate) fn mourn(&self) -> bool {
        !self.mourned.swap(true, Ordering::AcqRel)
    }

    /// It is not renewed from now on.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Whether nobody claims it any more, nor will.
    pub(crate) fn is_over(&self) -> bool {
        self.retired.load(Ordering::Acquire) || self.is_lost()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
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
        self.gone.load(Ordering::Acquire)
    }

    /// How it holds.
    pub(crate) fn mode(&self) -> Mode {
        self.state.lock().mode
    }

    /// From now on it holds like this, and for one guard only.
    pub(crate) fn set_mode(&self, mode: Mode) {
        let mut state = self.state.lock();
        (state.mode, state.alone) = (mode, true);
    }

    /// Whether it never passes on inside.
    pub(crate) fn stands_alone(&self) -> bool {
        self.state.lock().alone
    }

    /// The number of the newest change of its mode that was asked for.
    pub(crate) fn turn(&self) -> u32 {
        self.state.lock().turn
    }

    /// Draws the number of a change of its mode: a later one outweighs it, however late it arrives.
    pub(crate) fn next_turn(&self) -> u32 {
        let mut state = self.state.lock();
        state.turn += 1;
        state.turn
    }

    /// Fires when the hold is lost or given up, and when the store tells of it.
    pub(crate) fn on_lost(&self) -> EventListener {
        self.signal.listen()
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }
}
