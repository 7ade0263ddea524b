//! Work that runs to its end once it was begun, whoever stays for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::port::{BoxFuture, RuntimeHandle};

/// See the module. Dropped in between, it goes on as a task.
pub(super) struct Finishing<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    begun: bool,
    runtime: RuntimeHandle,
}

impl<T: Send + 'static> Finishing<T> {
    pub(super) fn new(runtime: RuntimeHandle, work: BoxFuture<'static, T>) -> Self {
        Self { work: Some(work), begun: false, runtime }
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let work = self.work.as_mut().expect("it is not asked again after its end");
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take().filter(|_| self.begun) {
            self.runtime.spawn(Box::pin(async move { drop(work.await) }));
        }
    }
}
