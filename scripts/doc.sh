#!/usr/bin/env bash
# Builds the documentation of the libraries without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings" cargo doc --profile=quick --workspace --lib --no-deps
