//! Errors: one variant for each code of the core.

use std::collections::HashMap;
use std::fmt;

use fencelock::{Code, Error};

macro_rules! errors {
    ($($doc:literal $code:ident),+ $(,)?) => {
        /// A refusal or failure, by its code. The variants are those of `fencelock::Code`.
        #[derive(Clone, Debug, uniffi::Error)]
        pub enum FencelockError {
            $(
                #[doc = $doc]
                $code {
                    /// The error and the remedy in words.
                    text: String,
                    /// Whether the same call may succeed later.
                    retryable: bool,
                    /// The facts by name, such as the lock's name.
                    fields: HashMap<String, String>,
                },
            )+
        }

        impl From<Error> for FencelockError {
            fn from(error: Error) -> Self {
                let (text, retryable) = (error.message().to_owned(), error.retryable());
                let fields = error.fields().iter();
                let fields = fields.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
                match error.code() {
                    $(Code::$code => Self::$code { text, retryable, fields },)+
                    _ => Self::Internal { text, retryable, fields },
                }
            }
        }
    };
}

errors!(
    "The wait ended before the lock was granted. Nothing is held." Timeout,
    "The lock was held and is not any more, or can no longer be proved to be." Lost,
    "The guard was released before, so there is nothing to act on." NotHeld,
    "A name, option or URL is not acceptable; the text names it." Invalid,
    "This store or dialect cannot do what was asked." Unsupported,
    "The store could not be reached or could not answer; nothing is held." Unavailable,
    "The store refused the credentials or the user's rights." Auth,
    "The store holds something else under this name." Conflict,
    "The caller gave the operation up, or a later request replaced it." Cancelled,
    "The client was closed, or belongs to the process that forked this one." Closed,
    "A defect of fencelock itself." Internal,
);

impl fmt::Display for FencelockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
