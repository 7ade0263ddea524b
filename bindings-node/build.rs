//! What linking an addon needs on this platform.

fn main() {
    napi_build::setup();
}
