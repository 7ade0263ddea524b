//! Futures that are dropped before their end, at a chosen await point or time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fencelock::port::{BoxFuture, Runtime};
use fencelock_sim::{Dice, SimNode};

/// When a future is dropped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Never.
    Never,
    /// Instead of its next poll after so many: whatever woke it is not looked at.
    Poll(u32),
    /// At the end of its poll of this number.
    Await(u32),
    /// After so long.
    Time(Duration),
}

impl Cancel {
    /// Never in most cases; otherwise at any await point or time.
    pub fn draw(dice: &mut Dice, chance: u64, unit: Duration) -> Self {
        if !dice.chance(chance) {
            return Self::Never;
        }
        match dice.below(3) {
            0 => Self::Poll(dice.below(8) as u32),
            1 => Self::Await(dice.between(1, 6) as u32),
            _ => Self::Time(unit * dice.below(200) as u32 / 100),
        }
    }
}

/// Completes with the future's output, or with `None` after dropping it.
pub struct Cancelled<F> {
    future: Option<Pin<Box<F>>>,
    cancel: Cancel,
    polls: u32,
    timer: Option<BoxFuture<'static, ()>>,
}

impl<F: Future> Cancelled<F> {
    /// Wraps `future`; the clock is `node`'s.
    pub fn new(node: &SimNode, cancel: Cancel, future: F) -> Self {
        let timer = match cancel {
            Cancel::Time(time) => Some(node.sleep_until(node.now() + time)),
            _ => None,
        };
        Self { future: Some(Box::pin(future)), cancel, polls: 0, timer }
    }

    fn give_up(&mut self) -> Poll<Option<F::Output>> {
        self.future = None;
        Poll::Ready(None)
    }
}

impl<F: Future> Future for Cancelled<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.cancel == Cancel::Poll(self.polls) {
            return self.give_up();
        }
        if self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready()) {
            return self.give_up();
        }
        self.polls += 1;
        let future = self.future.as_mut().expect("it is not polled after its end");
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.cancel == Cancel::Await(self.polls) => self.give_up(),
            Poll::Pending => Poll::Pending,
        }
    }
}
