//! The linker options that an addon needs on this platform.

fn main() {
    napi_build::setup();
}
