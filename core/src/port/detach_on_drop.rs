//! Work that runs to its end, also if its caller goes away.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{BoxFuture, MaybeSend, RuntimeHandle};

/// Work that runs where it is awaited, and goes on as a task once it is dropped.
pub(crate) struct DetachOnDrop<T: MaybeSend + 'static> {
    work: Option<BoxFuture<'static, T>>,
    runtime: RuntimeHandle,
}

impl<T: MaybeSend + 'static> DetachOnDrop<T> {
    pub(crate) fn new(work: BoxFuture<'static, T>, runtime: &RuntimeHandle) -> Self {
        Self { work: Some(work), runtime: runtime.clone() }
    }
}

impl<T: MaybeSend + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<T: MaybeSend + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(Box::pin(async move {
                work.await;
            }));
        }
    }
}
