#!/usr/bin/env bash
# Builds the native part and generates a language's sources beside it: bindings-uniffi/generate.sh ruby|kotlin|swift FOLDER
# FENCELOCK_PROFILE names the profile, instead of `release`.
set -euo pipefail
language=$1
folder=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "$0")/.."
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
command -v cargo >/dev/null || { echo "there is no cargo: install a Rust toolchain"; exit 2; }
profile=${FENCELOCK_PROFILE:-release}

# The sources fit one version of uniffi only, that of the crate. Its generator is built once.
version=$(grep -A 1 '^name = "uniffi"$' Cargo.lock | sed -n 's/^version = "\(.*\)"/\1/p')
generator=$target/uniffi-$version
exec 8>"$target/uniffi.turn" && flock 8
if ! [ -x "$generator/bin/uniffi-bindgen" ]; then
  CARGO_TARGET_DIR=$generator CARGO_PROFILE_DEV_DEBUG=0 cargo install uniffi --quiet --version "=$version" --features cli --bin uniffi-bindgen --debug --root "$generator" >&2
  rm -rf "$generator/debug"
fi
"${FENCELOCK_BUILDER:-cargo}" build --quiet --profile "$profile" -p fencelock-uniffi --lib >&2
library=$target/$profile/libfencelock_uniffi.so
[ -e "$library" ] || library=${library%.so}.dylib
# Before it is stripped: the generator reads the library.
"$generator/bin/uniffi-bindgen" generate "$library" --language "$language" --out-dir "$folder" --no-format
cp "$library" "$folder"
if command -v strip >/dev/null; then strip -x "$folder/${library##*/}"; fi
