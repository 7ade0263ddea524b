//! The identity of a client, for people who inspect its locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Identity {
    host: String,
    pid: u32,
    app: String,
    language: String,
    /// The JSON of the above, for locks without label and metadata.
    #[serde(skip)]
    plain: Arc<str>,
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    identity: &'a Identity,
    #[serde(skip_serializing_if = "str::is_empty")]
    label: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
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

    /// All of it as JSON, with what one lock says beside.
    pub(crate) fn info(&self, label: &str, metadata: &BTreeMap<String, String>) -> Arc<str> {
        if label.is_empty() && metadata.is_empty() {
            return self.plain.clone();
        }
        let info = Info { identity: self, label, metadata };
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
