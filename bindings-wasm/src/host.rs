//! The services that the host has for the core: `lib/host.ts` and `lib/transport.ts`.

use std::cell::OnceCell;

use js_sys::{Function, Promise, Uint8Array};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// The platform.
    pub type Host;

    /// Milliseconds on a clock that never steps back and runs through suspend.
    #[wasm_bindgen(method)]
    pub(crate) fn now(this: &Host) -> f64;

    /// Milliseconds since 1970.
    #[wasm_bindgen(method)]
    pub(crate) fn wall(this: &Host) -> f64;

    /// Calls once so many milliseconds have passed. Answers what stops that.
    #[wasm_bindgen(method)]
    pub(crate) fn after(this: &Host, millis: f64, call: &JsValue) -> JsValue;

    /// Stops a call that has not come yet.
    #[wasm_bindgen(method)]
    pub(crate) fn stop(this: &Host, timer: &JsValue);

    /// Bytes from a cryptographically secure source.
    #[wasm_bindgen(method)]
    pub(crate) fn random(this: &Host, count: u32) -> Uint8Array;

    /// The machine's name.
    #[wasm_bindgen(method)]
    pub(crate) fn machine(this: &Host) -> String;

    /// The number of the process, 0 where there is none.
    #[wasm_bindgen(method)]
    pub(crate) fn pid(this: &Host) -> u32;

    /// Has `turn` called soon, behind whatever runs now.
    #[wasm_bindgen(method)]
    pub(crate) fn turn(this: &Host);

    /// A Redis client.
    pub type Client;

    /// How errors name the server.
    #[wasm_bindgen(method)]
    pub(crate) fn name(this: &Client) -> String;

    /// Sends commands, as JSON; the replies come as JSON.
    #[wasm_bindgen(method)]
    pub(crate) fn send(this: &Client, commands: String) -> Promise;

    /// Listens to a channel; answers whether it can.
    #[wasm_bindgen(method)]
    pub(crate) fn subscribe(this: &Client, channel: &str, pass_on: &Function) -> Promise;

    /// Ends the subscription.
    #[wasm_bindgen(method)]
    pub(crate) fn close(this: &Client);
}

thread_local! {
    static HOST: OnceCell<Host> = const { OnceCell::new() };
}

/// The platform from now on.
pub(crate) fn set(host: Host) {
    HOST.with(|known| drop(known.set(host)));
}

/// Asks the platform.
pub(crate) fn host<T>(ask: impl FnOnce(&Host) -> T) -> T {
    HOST.with(|known| ask(known.get().expect("the door was made with a platform")))
}
