#!/usr/bin/env bash
# Compares the public API of the crate, as docs.rs shows it, with core/api.txt, which FENCELOCK_WRITE=1 writes anew.
set -euo pipefail
cd "$(dirname "$0")/.."
features=$(sed -n '/^\[package.metadata.docs.rs\]/,/^features/s/^features = //p' core/Cargo.toml | tr -d '[]" ')
# A stable rustdoc writes JSON only with this variable. With it in cargo's own environment all dependencies would be built anew.
mkdir -p target
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >target/rustdoc.sh && chmod +x target/rustdoc.sh
RUSTDOC=$PWD/target/rustdoc.sh cargo rustdoc --profile quick -p fencelock --lib --features "$features" -- -Z unstable-options --output-format json
cargo run --quiet --profile quick -p xtask --features public-api --example api target/doc/fencelock.json >target/api.txt
if [ "${FENCELOCK_WRITE:-}" ]; then
  cp target/api.txt core/api.txt
elif ! diff -u core/api.txt target/api.txt; then
  echo "the public API is not the one in core/api.txt; if that is meant: FENCELOCK_WRITE=1 $0"
  exit 1
fi
