//! A value that is found by a pointer and by no lock, since a fork may copy a lock while another thread holds it.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

/// The newest value put here. None of them is ever freed, so whoever found one may keep it.
pub(super) struct Published<T: 'static>(AtomicPtr<T>);

impl<T: Send + Sync> Published<T> {
    /// Nothing yet.
    pub(super) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The newest value.
    #[expect(unsafe_code, reason = "what the pointer shows to is shared, and never freed")]
    pub(super) fn get(&self) -> Option<&'static T> {
        // SAFETY: it is null, or comes from the leaked box of `replace`.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Puts a value here, if `known` is still the newest one.
    pub(super) fn replace(&self, known: Option<&'static T>, value: T) -> Option<&'static T> {
        let known = known.map_or(ptr::null_mut(), |known| ptr::from_ref(known).cast_mut());
        // One that comes too late is leaked as well: that is rare, and small.
        let value = Box::leak(Box::new(value));
        let value_at = ptr::from_mut(value);
        self.0.compare_exchange(known, value_at, AcqRel, Acquire).ok()?;
        self.get()
    }
}
