//! The runtime over the host's event loop.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_task::Runnable;
use fencelock::port::{BoxFuture, Instant, Runtime};
use futures_channel::oneshot;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::Closure;

use crate::host::host;

/// A host's timers stand still while the machine sleeps: no longer than this after it has woken the clock is looked at.
const SLICE: Duration = Duration::from_secs(1);

thread_local! {
    static READY: RefCell<VecDeque<Runnable>> = const { RefCell::new(VecDeque::new()) };
}

/// See the module.
pub(crate) struct HostRuntime;

/// Lets every task that can go on do so, once.
pub(crate) fn turn() {
    let ready = READY.take();
    for task in ready {
        task.run();
    }
}

impl Runtime for HostRuntime {
    fn now(&self) -> Instant {
        let millis = host(crate::host::Host::now);
        Instant::from_nanos((millis * 1_000_000.0) as u64)
    }

    fn wall(&self) -> u64 {
        (host(crate::host::Host::wall) * 1000.0) as u64
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = at.since(Self.now());
                if left.is_zero() {
                    return;
                }
                Timer::set(left.min(SLICE)).await;
            }
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let schedule = |task: Runnable| {
            let first = READY.with_borrow_mut(|ready| {
                ready.push_back(task);
                ready.len() == 1
            });
            if first {
                host(crate::host::Host::turn);
            }
        };
        // Not wasm-bindgen-futures: a panic in a microtask of its own cannot be caught, and ends the module.
        let (runnable, task) = async_task::spawn_local(task, schedule);
        task.detach();
        runnable.schedule();
    }

    fn random(&self, bytes: &mut [u8]) {
        let count = u32::try_from(bytes.len()).expect("an owner id is short");
        host(|host| host.random(count)).copy_to(bytes);
    }
}

/// A timer of the host's, stopped when nobody waits for it any more.
struct Timer {
    number: JsValue,
    rung: oneshot::Receiver<()>,
    #[expect(dead_code, reason = "the host calls it until this is dropped")]
    ring: Closure<dyn FnMut()>,
}

impl Timer {
    fn set(time: Duration) -> Self {
        let (sender, rung) = oneshot::channel();
        let mut sender = Some(sender);
        let ring = Closure::new(move || {
            if let Some(sender) = sender.take() {
                // Nobody waits any more.
                let _ = sender.send(());
            }
        });
        // Timers ring on whole milliseconds, and never early.
        let millis = (time.as_secs_f64() * 1000.0).ceil();
        let number = host(|host| host.after(millis, ring.as_ref()));
        Self { number, rung, ring }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.rung).poll(context).map(|_| ())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        host(|host| host.stop(&self.number));
    }
}
