#!/usr/bin/env bash
# Checks that the core, without tokio, compiles for wasm32-unknown-unknown. Exit 2: this machine lacks what it takes.
set -euo pipefail
cd "$(dirname "$0")/.."
triple=wasm32-unknown-unknown

check() { # cargo and its first arguments
  for features in "" sim; do
    "$@" --package fencelock --lib --no-default-features --features "$features" --target "$triple"
  done
}

# The pinned toolchain, where rustup can add the target's standard library.
if command -v rustup >/dev/null && rustup target add "$triple"; then
  check cargo check --profile quick
  exit
fi

# Debian's compiler for the web, which builds the standard library from source; another compiler, another folder.
packages=(rustc-web cargo-web rust-web-src lld-19)
installed() { dpkg --status "${packages[@]}" >/dev/null 2>&1; }
if ! installed && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q && apt-get install -q --yes --no-install-recommends "${packages[@]}" || true
fi
if ! installed; then
  echo "no standard library for $triple: run 'rustup target add $triple' or install ${packages[*]}"
  exit 2
fi
bin=$(dirname "$(dpkg --listfiles rustc-web | grep --max-count=1 'bin/rustc$')")
export RUSTC=$bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/web
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$bin/wasm-ld-19
check "$bin/cargo" check -Zbuild-std=std,panic_abort
