//! Links the unwinder that the process has, where zig links.
//!
//! Zig, which links releases (docs/design/python.md), would link one of its own into the module. An interpreter that ends kills threads that wait
//! here by unwinding them with the process's unwinder, whose data the other one does not understand: a crash.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let target = of("TARGET");
    println!("cargo::rerun-if-changed=build.rs");
    let linker = target.to_uppercase().replace('-', "_");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_{linker}_LINKER");
    let is_glibc = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    let linker = PathBuf::from(of("RUSTC_LINKER"));
    let linker = linker.file_name().unwrap_or_default().to_string_lossy();
    if !is_glibc || !linker.contains("zig") {
        return;
    }
    let compiler = if target == of("HOST") {
        "cc".to_owned()
    } else {
        format!("{}-linux-gnu-gcc", of("CARGO_CFG_TARGET_ARCH"))
    };
    let library = unwinder(&compiler);
    println!("cargo::rerun-if-changed={}", library.display());
    println!("cargo::rustc-link-arg-cdylib={}", library.display());
}

/// Where a compiler has the unwinder of its target.
fn unwinder(compiler: &str) -> PathBuf {
    let named = Command::new(compiler).arg("-print-file-name=libgcc_s.so.1").output();
    let named = named.unwrap_or_else(|error| panic!("`{compiler}` should be there: {error}"));
    let path = PathBuf::from(String::from_utf8_lossy(&named.stdout).trim());
    // A path within the compiler's own folder would be gone with its next version.
    path.canonicalize().unwrap_or_else(|_| panic!("`{compiler}` should have a libgcc_s.so.1"))
}
