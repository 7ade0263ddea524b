#!/usr/bin/env bash
# In place of cargo for the builders of packages (`FENCELOCK_BUILDER`), where packages are built among the tests: builds what they ask
# for as the tests are built, for this machine and with the features of the whole workspace. So neither the core nor what it depends
# on is built once more for each language.
set -euo pipefail
verb=${1:-}
case $verb in
  build | rustc) shift ;;
  *) exec cargo "$@" ;;
esac
words=() triple='' profile=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    --target) triple=$2 && shift ;;
    --profile) profile=$2 && words+=("$1" "$2") && shift ;;
    -p | --package | --manifest-path | --features | --crate-type) shift ;;
    --lib) ;;
    *) words+=("$1") ;;
  esac
  shift
done
# What the wheel's builder, which calls `rustc`, tells the dependency that binds Python. The others build as the tests do: with other words
# each run would build it anew.
unset PYO3_CONFIG_FILE PYO3_PYTHON PYO3_BUILD_EXTENSION_MODULE PYO3_ENVIRONMENT_SIGNATURE
if [ "$verb" = rustc ] && command -v python3 >/dev/null; then
  export PYO3_PYTHON=python3 PYO3_BUILD_EXTENSION_MODULE=1 PYO3_ENVIRONMENT_SIGNATURE=tests
fi
cd "$(dirname "$0")/.."
# A target of tests among them, since those have features of their own.
cargo build --workspace --lib --test cases "${words[@]}"
# Where a builder that names its target looks for it.
target=${CARGO_TARGET_DIR:-target}
if [ -n "$triple" ]; then
  mkdir -p "$target/$triple/$profile"
  ln -f "$target/$profile"/*.so "$target/$triple/$profile"
fi
