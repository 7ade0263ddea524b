//! Which store: `--url`, `FENCELOCK_URL`, or a file of this user.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Args;
use fencelock::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::exit::{Failure, say};
use crate::state_directory::directory;

const VARIABLE: &str = "FENCELOCK_URL";

const HELP: &str = "The store: sqlite:FILE, redis://HOST:PORT (over TLS: rediss://), redis+sentinel://HOSTS/MASTER, \
                    redis+cluster://HOSTS, redlock://HOSTS, etcd://HOSTS/PREFIX, zookeeper://HOSTS/CHROOT, postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE; options follow in its query, as in ?timeout=2s. Default: FENCELOCK_URL; without that, a SQLite file of this user, which is reported on standard error (`job` has no such default)";

/// The characters of a path that a URL has as they are: letters, digits and those removed here.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// The URL of a file, whatever its name.
pub(crate) fn sqlite_url(file: &str) -> String {
    format!("sqlite:{}", utf8_percent_encode(file, PLAIN))
}

/// The store to use.
#[derive(Args)]
pub(crate) struct Store {
    #[arg(long, value_name = "URL", help = HELP)]
    url: Option<String>,
    /// Do not report which store is used when none is named.
    #[arg(long, short)]
    quiet: bool,
}

impl Store {
    /// Does something with a client that takes no lock, and leaves nothing of that client on the store.
    pub(crate) async fn look<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = Client::builder().connect(&self.url()?).await?;
        let seen = work(&client).await;
        // It takes two seconds at most.
        client.close().await;
        seen
    }

    /// Fails unless a store is named: a file of this user's excludes no other machine, nor another user of this one.
    pub(crate) fn has_to_be_named(&self) -> Result<(), Failure> {
        let message = format!(
            "no store is named, and all machines have to share one; use --url or {VARIABLE}"
        );
        self.named()?.map(drop).ok_or_else(|| Failure::configuration(message))
    }

    /// The URL that the flag or the environment names.
    fn named(&self) -> Result<Option<String>, Failure> {
        if let Some(url) = &self.url {
            return Ok(Some(url.clone()));
        }
        for variable in [super::secret::VARIABLE, VARIABLE] {
            match env::var_os(variable).map(OsString::into_string) {
                // Not the same as unset: a unit or a script that lost its value must not lock a file of its own.
                Some(Ok(url)) if url.is_empty() => {
                    let message = format!(
                        "{variable} is empty; name a store there, or unset it to use a SQLite file of this user's"
                    );
                    return Err(Failure::configuration(message));
                }
                Some(Ok(url)) => return Ok(Some(url)),
                Some(Err(_)) => {
                    return Err(Failure::configuration(format!("{variable} is not UTF-8")));
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// The URL of the store; which file it is where none is named is said.
    pub(crate) fn url(&self) -> Result<String, Failure> {
        if let Some(url) = self.named()? {
            return Ok(url);
        }
        let directory = directory()?;
        let Some(file) = directory.to_str() else {
            return Err(Failure::configuration(format!(
                "{} is not UTF-8; name the store with --url",
                directory.display()
            )));
        };
        let url = sqlite_url(&format!("{file}/locks.db"));
        if !self.quiet {
            say(format_args!(
                "no --url and no {VARIABLE}: locks between processes of this user only, in {url}"
            ));
        }
        Ok(url)
    }
}

/// The last part of a program's path: what `inspect` shows as the application.
pub(crate) fn program(command: &OsStr) -> String {
    let name = Path::new(command).file_name().unwrap_or(command);
    name.to_string_lossy().chars().filter(|c| !c.is_control()).take(64).collect()
}
