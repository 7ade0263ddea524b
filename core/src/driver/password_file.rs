//! A password in a file, as those that hand out secrets for some minutes or days write it.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::runtime::sync::Mutex;

/// A file with a password, read anew for each connection. Its text is never shown.
#[derive(Clone)]
pub(super) struct PasswordFile {
    path: Arc<str>,
    /// The text that was read last: while somebody replaces the file there may be nothing to read.
    last: Arc<Mutex<String>>,
}

impl PasswordFile {
    /// The file that the options name. A URL with a password of its own leaves open which one counts.
    pub(super) fn of(options: &Options, has_password: bool) -> Result<Option<Self>> {
        let path = &*options.password_file;
        if path.is_empty() {
            return Ok(None);
        }
        let refused = |message: &str| Err(Error::invalid("password_file", message.to_owned()));
        if has_password {
            return refused("the URL has a password too; leave that or `password_file` out");
        }
        match read(path) {
            Some(last) => Ok(Some(Self { path: path.into(), last: Arc::new(Mutex::new(last)) })),
            None => {
                refused("`password_file` must name a file that can be read, with one line of text")
            }
        }
    }

    /// The password as the file says it now.
    pub(super) fn now(&self) -> String {
        let mut last = self.last.lock();
        if let Some(new) = read(&self.path) {
            *last = new;
        }
        last.clone()
    }

    /// The password that was read last.
    #[cfg(feature = "redis")]
    pub(super) fn last(&self) -> String {
        self.last.lock().clone()
    }
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.trim_end_matches(['\r', '\n']);
    (!line.is_empty() && !line.contains('\n')).then(|| line.to_owned())
}
