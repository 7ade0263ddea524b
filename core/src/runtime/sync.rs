//! The mutex of the core: poisoning is passed over (the state behind it is changed in one piece or not at all). In a test whose
//! order of threads is searched, every lock is a point of that search.

#[cfg(not(test))]
use std::sync as imp;

#[cfg(test)]
use searched as imp;

/// A mutual exclusion lock for state of this process. Never held across an await.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> imp::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Mutexes that are shuttle's where a search runs, and the standard library's elsewhere: one build has both kinds of tests.
#[cfg(test)]
pub(crate) mod searched {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::sync::{LockResult, PoisonError};

    thread_local! {
        static SEARCHED: Cell<bool> = const { Cell::new(false) };
    }

    /// From now on mutexes made on this thread are shuttle's. All threads of a search are run by one.
    pub(crate) fn begin() {
        SEARCHED.set(true);
    }

    #[derive(Debug)]
    pub(crate) enum Mutex<T> {
        Threads(std::sync::Mutex<T>),
        Searched(shuttle::sync::Mutex<T>),
    }

    pub(crate) enum MutexGuard<'a, T> {
        Threads(std::sync::MutexGuard<'a, T>),
        Searched(shuttle::sync::MutexGuard<'a, T>),
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            if SEARCHED.get() {
                Self::Searched(shuttle::sync::Mutex::new(value))
            } else {
                Self::Threads(std::sync::Mutex::new(value))
            }
        }

        pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            fn as_ours<G, H>(locked: LockResult<G>, ours: impl Fn(G) -> H) -> LockResult<H> {
                locked.map(&ours).map_err(|poisoned| PoisonError::new(ours(poisoned.into_inner())))
            }
            match self {
                Self::Threads(mutex) => as_ours(mutex.lock(), MutexGuard::Threads),
                Self::Searched(mutex) => as_ours(mutex.lock(), MutexGuard::Searched),
            }
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            match self {
                Self::Threads(guard) => guard,
                Self::Searched(guard) => guard,
            }
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            match self {
                Self::Threads(guard) => guard,
                Self::Searched(guard) => guard,
            }
        }
    }
}
