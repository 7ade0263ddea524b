//! The module's way to the core. See [`Environment`] for what its methods do; numbers are JavaScript's.

use std::sync::Arc;

use fencelock::Client;
use fencelock::facade::{Environment, Facade, Operation};
use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::host::{self, Host};
use crate::runtime::HostRuntime;
use crate::transport::HostTransport;

/// One for each module that is loaded.
#[wasm_bindgen]
pub struct Door(Environment);

#[wasm_bindgen]
impl Door {
    /// `wake` is called when there is something to drain.
    #[wasm_bindgen(constructor)]
    pub fn new(platform: Host, wake: Function) -> Self {
        host::set(platform);
        let wake = Arc::new(move || drop(wake.call0(&JsValue::UNDEFINED)));
        Self(Environment::new(wake, Arc::new(HostRuntime)))
    }

    /// Begins to connect: to a client of the host's, or to what the URL names. Ends with the client's number.
    pub fn connect(
        &self,
        url: String,
        client: Option<host::Client>,
        options: &str,
        app: String,
    ) -> f64 {
        let (machine, pid) = host::host(|host| (host.machine(), host.pid()));
        let builder = Client::builder().language("wasm").app(app).place(machine, pid);
        counted(self.0.connect(builder, options, |builder| {
            Box::pin(async move {
                match client {
                    Some(client) => builder.host(HostTransport::new(client)).await,
                    None => builder.connect(&url).await,
                }
            })
        }))
    }

    /// Asks for an operation of the facade, told as JSON.
    pub fn submit(&self, client: f64, text: &str) -> f64 {
        counted(self.0.submit(number(client), text))
    }

    /// The same for giving a guard back.
    pub fn release(&self, client: f64, guard: f64) -> f64 {
        let release = Operation::Release { guard: number(guard), succeeded: false };
        counted(self.0.perform(number(client), release))
    }

    /// The same for hearing of the loss of a guard.
    pub fn lost(&self, client: f64, guard: f64) -> f64 {
        counted(self.0.perform(number(client), Operation::Lost { guard: number(guard) }))
    }

    /// Sets off what was asked for since the last time.
    #[wasm_bindgen(js_name = setOff)]
    pub fn set_off(&self) {
        self.0.set_off();
    }

    /// Begins to wait for events.
    pub fn news(&self, client: f64) -> f64 {
        counted(self.0.news(number(client)))
    }

    /// Which events are kept: all, or warnings only; without a word no more.
    pub fn listen(&self, client: f64, all: Option<bool>) {
        self.0.listen(number(client), all);
    }

    /// Gives an operation up.
    pub fn forget(&self, operation: f64) {
        self.0.forget(number(operation));
    }

    /// All that has ended, as JSON.
    pub fn drain(&self) -> String {
        self.0.drain()
    }

    /// Whether a guard may be relied on at this very moment.
    #[wasm_bindgen(js_name = isHeld)]
    pub fn is_held(&self, client: f64, guard: f64) -> bool {
        self.with(client, |facade| facade.is_held(number(guard))).unwrap_or_default()
    }

    /// For how many milliseconds a guard may still be relied on.
    pub fn remaining(&self, client: f64, guard: f64) -> f64 {
        self.with(client, |facade| facade.remaining(number(guard))).unwrap_or_default()
    }

    /// Why a guard may not be relied on, as an error in JSON.
    pub fn check(&self, client: f64, guard: f64) -> Option<String> {
        self.0.check(number(client), number(guard))
    }

    /// Gives a guard back without waiting.
    #[wasm_bindgen(js_name = dropGuard)]
    pub fn drop_guard(&self, client: f64, guard: f64) {
        self.with(client, |facade| facade.forget(number(guard)));
    }

    /// Gives a client up without waiting, with all it holds and does.
    #[wasm_bindgen(js_name = dropClient)]
    pub fn drop_client(&self, client: f64) {
        self.0.remove(number(client));
    }

    /// Opens a scope of a client.
    #[wasm_bindgen(js_name = openScope)]
    pub fn open_scope(&self, client: f64) -> f64 {
        counted(self.with(client, Facade::open_scope).unwrap_or_default())
    }

    /// Nobody enters by this scope any more.
    #[wasm_bindgen(js_name = closeScope)]
    pub fn close_scope(&self, client: f64, scope: f64) {
        self.with(client, |facade| facade.close_scope(number(scope)));
    }

    /// The guarantees, options and load of a client as JSON, known without asking the store.
    pub fn about(&self, client: f64) -> String {
        self.0.about(number(client))
    }
}

impl Door {
    fn with<T>(&self, client: f64, act: impl FnOnce(&Facade) -> T) -> Option<T> {
        self.0.with(number(client), act)
    }
}

/// Numbers are whole and start at 1, so JavaScript's suffice. Another one is nobody's.
fn number(number: f64) -> u64 {
    number as u64
}

fn counted(number: u64) -> f64 {
    number as f64
}
