#!/usr/bin/env bash
# Compiles for wasm32-unknown-unknown, with whatever compiler this machine has for it.
#
#   scripts/wasm.sh                       checks the core, without tokio
#   scripts/wasm.sh build WORDS...        `cargo build WORDS...`; the last line names the target folder
#
# Exit 2: this machine lacks what it takes. With FENCELOCK_NO_INSTALL nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
triple=wasm32-unknown-unknown

words=("$@")

run() { # the compiler's own way to say it, cargo first
  if [ "${words[0]:-}" = build ]; then
    "$1" build "${@:2}" "${words[@]:1}" --target "$triple" >&2
    (cd "${CARGO_TARGET_DIR:-target}" && pwd)
    return
  fi
  # With the feature `host` the package for WebAssembly is built.
  "$1" check "${@:2}" --package fencelock --lib --no-default-features --target "$triple"
  "$1" check "${@:2}" --package fencelock-sim --target "$triple"
}

has_target() { # the pinned toolchain has, or may be given, the target's standard library
  command -v rustup >/dev/null || return 1
  if [ -n "${FENCELOCK_NO_INSTALL:-}" ]; then rustup target list --installed | grep --quiet "^$triple$"; else rustup target add "$triple" >&2; fi
}

if has_target; then
  if [ "${words[0]:-}" = build ]; then run cargo; else run cargo --profile quick; fi
  exit
fi

# Debian's compiler for the web, which builds the standard library from source; another compiler, another folder.
packages=(rustc-web cargo-web rust-web-src lld-19)
installed() { dpkg --status "${packages[@]}" >/dev/null 2>&1; }
if ! installed && [ -z "${FENCELOCK_NO_INSTALL:-}" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
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
run "$bin/cargo" -Zbuild-std=std,panic_abort
