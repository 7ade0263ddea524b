//! The identity of a client, for people who inspect its locks.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

/// The process of a client and its machine, as people who inspect see them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Identity {
    host: String,
    pid: u32,
    app: String,
    language: String,
    /// The JSON of the above, for locks without more to say.
    #[serde(skip)]
    plain: Arc<str>,
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    identity: &'a Identity,
    info: Value,
}

impl Identity {
    /// As a program says it, and as the system does where that is silent.
    pub(crate) fn of(
        app: Option<String>,
        language: Option<String>,
        place: Option<(String, u32)>,
    ) -> Self {
        let program = || {
            let path = std::env::args().next().unwrap_or_default();
            path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
        };
        let (host, pid) = place.unwrap_or_else(|| (host(), pid()));
        let mut identity = Self {
            host,
            pid,
            app: app.unwrap_or_else(program),
            language: language.unwrap_or_else(|| "rust".to_owned()),
            plain: "".into(),
        };
        identity.plain = serde_json::to_string(&identity).unwrap_or_default().into();
        identity
    }

    /// All of it as JSON, with what one lock says beside: a text, or texts by name.
    pub(crate) fn info(&self, said: &str) -> Arc<str> {
        if said.is_empty() {
            return self.plain.clone();
        }
        let texts = serde_json::from_str(said).ok().filter(Value::is_object);
        let info = Info { identity: self, info: texts.unwrap_or_else(|| said.into()) };
        serde_json::to_string(&info).unwrap_or_default().into()
    }
}

#[cfg(all(feature = "tokio", unix))]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Windows gives every process the machine's name.
#[cfg(windows)]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(not(any(all(feature = "tokio", unix), windows)))]
fn host() -> String {
    String::new()
}

#[cfg(not(target_arch = "wasm32"))]
fn pid() -> u32 {
    std::process::id()
}

#[cfg(target_arch = "wasm32")]
fn pid() -> u32 {
    0
}
