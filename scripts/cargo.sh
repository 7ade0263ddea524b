#!/usr/bin/env bash
# In place of cargo for the builders of packages (`FENCELOCK_BUILDER`), where packages are built among the tests: builds what they ask
# for as the tests are built, for this machine and with the features of the whole workspace. So neither the core nor what it depends
# on is built once more for each language.
set -euo pipefail
case "${1:-}" in
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
# What the wheel's builder tells the dependency that binds Python, for every package: else each would have it built anew.
unset PYO3_CONFIG_FILE
if command -v python3 >/dev/null; then
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
